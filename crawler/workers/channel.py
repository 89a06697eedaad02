"""One end of a socket between two processes of the crawler: sends and receives messages, framed as in `framing`.

Messages are JSON, never pickles: the other process may have parsed hostile markup, and nothing it sends may be executed.
`messages` and `sandbox` define what the messages mean.
"""

import json
import socket
from typing import Any, Final

import anyio

from crawler.fetch.readiness import readiness
from crawler.parse import strict_json
from crawler.workers.framing import Frames, length_of

READ: Final = 262_144  # bytes read at once
LONGEST: Final = 8_000_000  # bytes of one message: twice the limit for the links of a page
LARGE: Final = 65_536  # bytes of a message, from which copying it costs more than a second system call


class Channel:
    """Any number of tasks may send; only one may receive. `longest`: maximum bytes of a received message."""

    def __init__(self, end: socket.socket, longest: int = LONGEST) -> None:
        end.setblocking(False)
        self._end, self._frames = end, Frames(longest)
        self._readiness = readiness(end.fileno())
        self._sending = anyio.Lock(fast_acquire=True)

    async def send(self, message: bytes) -> None:
        """Raises `OSError` when the other end is gone."""
        head = length_of(message)
        async with self._sending:
            for part in (head + message,) if len(message) < LARGE else (head, message):
                await self._send(memoryview(part))

    async def send_json(self, message: Any) -> None:
        """Raises `OSError` when the other end is gone."""
        await self.send(json.dumps(message, separators=(",", ":")).encode())

    async def receive(self) -> list[bytes]:
        """The messages received, at least one; empty when the other end is closed. Raises `ValueError` if one is too long."""
        while True:
            try:
                data = self._end.recv(READ)
            except BlockingIOError:
                await self._readiness.wait()
                continue
            except OSError:
                return []
            if not data:
                return []
            if messages := self._frames.feed(data):
                return messages

    async def receive_json(self) -> list[Any]:
        """As `receive`. Raises `ValueError` for invalid JSON, `RecursionError` if it is nested too deeply."""
        return [strict_json.loads(message) for message in await self.receive()]

    def close(self) -> None:
        """Closes the socket. May be called again."""
        if self._end.fileno() < 0:
            return
        self._readiness.close()
        self._end.close()

    async def _send(self, data: memoryview) -> None:
        while data:
            try:
                data = data[self._end.send(data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._end)
