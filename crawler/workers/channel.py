"""One end of a socket between two of our processes: messages go out and come in, framed as in `framing`.

JSON and nothing richer: the other end may have read hostile markup, and what it says is data, never code. What the
messages mean is in `messages` and `sandbox`.
"""

import json
import socket
from typing import Any, Final

import anyio

from crawler.fetch.readiness import readiness
from crawler.parse import strict_json
from crawler.workers.framing import Frames, length_of

READ: Final = 262_144  # bytes taken at once
LONGEST: Final = 8_000_000  # bytes of one message: twice what the links of a page may have
LARGE: Final = 65_536  # bytes of a message, from which on a copy of it costs more than a system call


class Channel:
    """Any number of tasks may send, one receives. `longest`: bytes of one message that comes in."""

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
        """What has come, at least one message; nothing at the end. Raises `ValueError` for a message that is too long."""
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
        """The same. Raises `ValueError` for what is no JSON, `RecursionError` for what is nested too deep."""
        return [strict_json.loads(message) for message in await self.receive()]

    def close(self) -> None:
        """Let go of it, once."""
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
