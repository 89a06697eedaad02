"""Worker processes that are forked before the event loop starts: they need not start an interpreter and
import the program.

That takes as long as crawling hundreds of pages, and the memory of what is imported is shared. Only a process
without threads or an event loop can be forked safely: the command line, at its start. `spawn` starts all
other child processes.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NoReturn

import anyio

from crawler.workers.channel import Channel
from crawler.workers.child import tune_collector
from crawler.workers.spawn import Child

POLL: Final = 0.005  # seconds between two looks whether a process has exited
MOST_FILES: Final = 1 << 20  # file descriptors that a process closes at its start: one system call on Linux


class Forked:
    """A `spawn.Process` that was forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def kill(self) -> None:
        """Kills the process. Raises `ProcessLookupError` if it has already exited."""
        if self._has_exited():
            raise ProcessLookupError
        os.kill(self.pid, signal.SIGKILL)  # its number is not reused before `waitpid`

    async def wait(self) -> int:
        """Waits until it exits, and returns its exit code."""
        while not self._has_exited():  # noqa: ASYNC110 - the system has no event for it that every loop supports
            await anyio.sleep(POLL)
        return self.returncode or 0

    async def aclose(self) -> None:
        """Waits for its end. Kills it if that is cancelled."""
        try:
            await self.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                self.kill()
            with anyio.CancelScope(shield=True):
                await self.wait()
            raise

    def _has_exited(self) -> bool:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # SIGCHLD is ignored, so there is no exit code
                self.returncode = 0
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode is not None


class Forks:
    """Forked processes that nobody uses yet. They wait for a message, and exit with their socket."""

    def __init__(self) -> None:
        self._unused: list[tuple[Forked, socket.socket]] = []

    def fork(self, serve: Callable[[socket.socket], None], count: int) -> None:
        """Forks `count` processes that call `serve` with their socket; fewer or none where that is not
        possible.

        On macOS, system libraries do not support it.
        """
        if not count or sys.platform != "linux" or threading.active_count() > 1:
            return
        for name in ("anyio._backends._asyncio", "uvloop"):  # each process would import these
            if name != "uvloop" or find_spec(name):
                import_module(name)
        tune_collector()
        with suppress(OSError):  # too many processes: the pool reports that when it starts the others
            for _ in range(count):
                ours, theirs = socket.socketpair()
                with theirs:
                    pid = os.fork()
                    if not pid:
                        _begin(serve, theirs)
                self._unused.append((Forked(pid), ours))

    def take(self) -> Child | None:
        """One of them, for the caller to use and to end; None if there are none left. Needs an event loop."""
        if not self._unused:
            return None
        process, end = self._unused.pop()
        return Child(process, Channel(end))

    def end(self) -> None:
        """Ends those that were not taken."""
        while self._unused:
            process, end = self._unused.pop()
            end.close()
            with suppress(ProcessLookupError):
                process.kill()
            with suppress(ChildProcessError):
                os.waitpid(process.pid, 0)


forks: Final = Forks()
"""The only instance, as a process forks only before its event loop starts."""


def _begin(serve: Callable[[socket.socket], None], end: socket.socket) -> NoReturn:
    """Makes the process like one of `spawn`: session, streams, files and signals; then serves."""
    code = 1
    try:
        os.setsid()
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for source, target in ((end.fileno(), 0), (null, 1), (null, 2)):
            os.dup2(source, target)
        os.closerange(3, MOST_FILES)
        serve(socket.socket(fileno=0))
        code = 0
    finally:
        os._exit(code)  # neither flushes nor cleans up what belongs to the main process
