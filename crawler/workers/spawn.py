"""Starts and ends child processes: the only place that does. They enter at `child`.

A child inherits one end of a socket, as its standard input, and nothing else that is open. It has a session of its own:
Ctrl-C is for us to answer. It ends when the other end of its socket is closed, so it outlives nobody for long: what is
killed takes its children with it.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL
from typing import Final

import anyio
from anyio.abc import Process

from crawler.workers.channel import LONGEST, Channel

# The child finds the program where we do, wherever it was started from.
_CODE: Final = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from crawler.workers.child import main; main(*sys.argv[2:])"
# What an interpreter needs, and none of the secrets that a setting or a proxy's address may hold.
_PLAIN: Final = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
_PLAIN_PREFIXES: Final = ("PYTHON", "LC_", "LD_", "DYLD_", "COVERAGE_")


def python(entry: str, memory: int | None = None) -> list[str]:
    """The command of a child that calls `entry` (`module:function`) with its socket.

    `memory`: bytes of address space that it may have, where the system can hold it to that.
    """
    return [sys.executable, "-c", _CODE, json.dumps(sys.path), entry, str(memory or 0)]


def plain_environment() -> dict[str, str]:
    """Our environment without secrets, for a child that reads hostile markup."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PLAIN or name.startswith(_PLAIN_PREFIXES)
    }


@dataclass(frozen=True, slots=True)
class Child:
    """A process, and the channel to it."""

    process: Process
    channel: Channel

    async def leave(self, seconds: float) -> None:
        """Close the channel, which asks the child to end, and kill it when it takes longer than `seconds`."""
        self.channel.close()
        with anyio.move_on_after(seconds):
            await self.process.wait()
        await self.end()

    async def end(self) -> None:
        """Kill it, if it still runs. It is gone when this returns."""
        self.kill()
        self.channel.close()
        await self.process.aclose()

    def kill(self) -> None:
        """Nothing happens when it is gone."""
        with suppress(ProcessLookupError):
            self.process.kill()


async def start(
    command: Sequence[str], *, longest: int = LONGEST, environment: Mapping[str, str] | None = None
) -> Child:
    """Start `command`. Raises `OSError`.

    `longest`: bytes of one message of the child's; `environment`: ours, if None.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        channel = Channel(ours, longest)
        try:
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
