"""Starts and ends child processes. Their entry point is `child`. Only `forked` starts some in another way.

A child inherits one end of a socket, as its standard input, and no other open file. It runs in its own
session, so that only the main process handles Ctrl-C. It exits when the other end of the socket is closed,
hence also when its parent dies.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from subprocess import DEVNULL
from typing import Final, Protocol

import anyio
from msgspec import Struct

from crawler.workers.channel import LONGEST_MESSAGE, Channel

# The child gets our `sys.path`, so that it imports the same modules from any folder. Until then, with `-P`,
# it imports nothing from the current one.
_CODE: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from crawler.workers.child import main; main(*sys.argv[2:])"
)
# What a Python interpreter needs, without secrets as in settings or proxy URLs.
_PLAIN: Final = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
_PLAIN_PREFIXES: Final = ("PYTHON", "LC_", "LD_", "DYLD_", "COVERAGE_")


def python(entry: str, memory: int | None = None) -> list[str]:
    """The command of a child that calls `entry` (`module:function`) with its socket.

    `memory`: limit of its address space in bytes, where the system supports that.
    """
    return [sys.executable, "-P", "-c", _CODE, json.dumps(sys.path), entry, str(memory or 0)]


def plain_environment() -> dict[str, str]:
    """Our environment without secrets, for a child that reads hostile markup."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PLAIN or name.startswith(_PLAIN_PREFIXES)
    }


class Process(Protocol):
    """The part of `anyio.abc.Process` that is used here."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...
    async def aclose(self) -> None: ...


class Child(Struct, frozen=True):
    """A process, and the channel to it."""

    process: Process
    channel: Channel

    async def exit(self, seconds: float) -> None:
        """Closes the channel, upon which the child exits; kills it if that takes longer than `seconds`."""
        self.channel.close()
        with anyio.move_on_after(seconds):
            await self.process.wait()
        await self.end()

    async def end(self) -> None:
        """Kills the process if it still runs, and waits for its end."""
        self.kill()
        self.channel.close()
        await self.process.aclose()

    def kill(self) -> None:
        """Kills the process. Does nothing if it has already exited."""
        with suppress(ProcessLookupError):
            self.process.kill()


async def start(
    command: Sequence[str], *, longest: int = LONGEST_MESSAGE, environment: Mapping[str, str] | None = None
) -> Child:
    """Starts `command`. Raises `OSError`.

    `longest`: maximum bytes of a message from the child; `environment`: that of this process if None.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        channel = Channel(ours, longest)
        try:
            # A start that is cancelled half-way would leave a process for which nobody waits.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    command,
                    stdin=theirs.fileno(),
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    start_new_session=True,
                    env=environment,
                )
        except BaseException:
            channel.close()
            raise
    return Child(process, channel)
