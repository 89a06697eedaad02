"""Waits until a socket is readable: through anyio on any event loop, and more cheaply on asyncio and uvloop.

anyio registers a socket with the loop before each wait and unregisters it afterwards. Since a connection
waits at least once per response, the sockets here stay registered where the loop supports it. Nothing is read
here.
"""

import asyncio
from typing import Final

import anyio

IDLE: Final = 2  # times that a socket may be ready without a waiting task before it is unregistered


class Readiness:
    """Waits for one socket: through anyio, on any event loop."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        """`number`: the file descriptor."""
        self._number = number

    async def wait(self) -> None:
        """Return when the socket is readable or closed, or earlier: the caller reads, or waits again."""
        await anyio.wait_readable(self._number)

    def close(self) -> None:
        """Unregister the socket before it is closed."""


def readiness(number: int) -> Readiness:
    """The cheapest way to wait for the socket with file descriptor `number` on the running event loop."""
    try:
        return _Registered(number, asyncio.get_running_loop())
    except (RuntimeError, NotImplementedError):  # trio, or a loop without add_reader
        return Readiness(number)


class _Registered(Readiness):
    """Registered with the loop until it was ready `IDLE` times with no task waiting."""

    __slots__ = ("_idle", "_loop", "_waiter")

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(number)
        self._loop = loop
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
