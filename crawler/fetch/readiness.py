"""When a socket has something to read: anyio's way on any event loop, and a cheaper one on asyncio's and uvloop's.

anyio tells the loop of a socket before each wait and takes that back after it. A connection waits at least once for
each answer, so where that can be ours stays known to the loop. Nothing is read here.
"""

import asyncio
from typing import Final, Protocol

import anyio

IDLE: Final = 2  # times that a socket may be ready while nobody waits, until the loop is told to forget it


class Readiness(Protocol):
    """Of one socket."""

    async def wait(self) -> None:
        """Return when there is something to read, or the end; now and then there is not yet, and one waits again."""
        ...

    def close(self) -> None:
        """Forget the socket, which is about to be closed."""
        ...


def readiness(number: int) -> Readiness:
    """The best way to wait for the socket with that file number on the event loop that runs."""
    try:
        return _Registered(number, asyncio.get_running_loop())
    except (RuntimeError, NotImplementedError):  # trio, or a loop without add_reader
        return _Asking(number)


class _Asking:
    def __init__(self, number: int) -> None:
        self._number = number

    async def wait(self) -> None:
        await anyio.wait_readable(self._number)

    def close(self) -> None:
        pass


class _Registered:
    """Known to the loop from the first wait on, until it is ready again and again without anybody waiting."""

    __slots__ = ("_idle", "_loop", "_number", "_waiter")

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number, self._loop = number, loop
        self._waiter: asyncio.Future[None] | None = None
        self._idle = 0
        loop.add_reader(number, self._ready)

    async def wait(self) -> None:
        if self._idle >= IDLE:
            self._loop.add_reader(self._number, self._ready)
        self._idle = 0
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ready(self) -> None:
        if self._waiter is None:
            self._idle += 1
            if self._idle >= IDLE:
                self._loop.remove_reader(self._number)
        elif not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        if self._idle < IDLE:
            self._loop.remove_reader(self._number)
            self._idle = IDLE
