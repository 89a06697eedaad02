"""One browser process with its children: its age, its memory, and its end.

It is killed, not asked to end, when a page exceeds its time or the processes exceed their memory: a page may
keep a browser too busy to listen.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from playwright.async_api import Browser as Process

    from crawler.fetch.render.tab import Tab

MAX_PAGES: Final = 100  # that one browser renders
MEMORY: Final = 2 << 30  # bytes of private memory of the browser and its children
WATCHED: Final = 0.5  # seconds between two looks at its memory
CLOSING: Final = 5.0  # seconds that it may take to end by itself
_PROC: Final = Path("/proc")


class Browser:
    """A running browser. `pid`: of its main process, which is in a process group of its own.

    What leads the group may be a shell: the browser of Debian is started by a script.
    """

    def __init__(self, process: "Process", pid: int, *, pages: int = MAX_PAGES, memory: int = MEMORY) -> None:
        self.process, self.pid = process, pid
        self._group = _group(pid)
        self.tabs: set[Tab] = set()  # open now
        self.lent = 0  # pages that are being rendered, or about to be
        self.is_overdue = False  # killed because the time of a page was up
        self._pages, self._memory = pages, memory
        self._gone = anyio.Event()
        process.on("disconnected", lambda _: self._end())

    @property
    def is_fit(self) -> bool:
        """Whether another page may be opened in it."""
        return self._pages > 0 and not self._gone.is_set()

    def take(self) -> None:
        """One more page is rendered in it."""
        self._pages -= 1
        self.lent += 1

    def _end(self) -> None:
        self._gone.set()
        for tab in self.tabs:
            tab.crash()

    async def watch(self) -> None:
        """Kills the browser if it takes more memory than it may; notices if it has ended.

        Linux only.
        """
        while _PROC.exists() and not self._gone.is_set():
            used = sum(map(_private, _tree(self.pid)))
            if used > self._memory or used == 0:
                self.kill()
            with anyio.move_on_after(WATCHED):
                await self._gone.wait()
        await self._reap()

    async def _reap(self) -> None:
        """Once it is dead, its processes are children of process 1, which this one is in a container."""
        with suppress(ProcessLookupError, PermissionError):
            while self._group:
                os.killpg(self._group, 0)  # until none is left
                with suppress(ChildProcessError):
                    while os.waitpid(-self._group, os.WNOHANG) != (0, 0):  # noqa: ASYNC222 - at once
                        pass
                await anyio.sleep(WATCHED)

    def kill(self) -> None:
        """Ends the browser and all its children at once."""
        self._end()
        kill = getattr(signal, "SIGKILL", signal.SIGTERM)
        with suppress(ProcessLookupError, PermissionError):
            if self._group:
                os.killpg(self._group, kill)
            else:
                os.kill(self.pid, kill)

    async def close(self) -> None:
        """Asks the browser to end, and kills it if that takes too long."""
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(CLOSING), suppress(Error):
                await self.process.close()
            self.kill()


def _group(pid: int) -> int:
    """The process group of a process; 0 if it is ours, or unknown."""
    if hasattr(os, "getpgid"):
        with suppress(ProcessLookupError):
            group = os.getpgid(pid)
            return group if group != os.getpgrp() else 0
    return 0


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    with suppress(OSError, ValueError):
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _private(pid: int) -> int:
    """Bytes of memory that a process shares with no other, about; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        fields = (_PROC / str(pid) / "statm").read_text().split()
        return max(0, int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    return 0
