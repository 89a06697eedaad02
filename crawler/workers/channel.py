"""Messages between two processes over a socket: JSON, a line each. What they mean is in `messages`.

JSON and nothing richer: a worker has read hostile markup, and what it says is data, never code.
"""

import json
import socket
from typing import Any, Final

import anyio

from crawler.fetch.readiness import readiness
from crawler.parse import strict_json

READ: Final = 262_144  # bytes taken at once
LONGEST: Final = 8_000_000  # bytes of one message: twice what the links of a page may have


class Channel:
    """One end. Any number of tasks may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end, self._rest = end, bytearray()
        self._readiness = readiness(end.fileno())
        self._sending = anyio.Lock(fast_acquire=True)

    async def send(self, message: Any) -> None:
        """Raises `OSError` when the other end is gone."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._sending:
            while data:
                try:
                    data = data[self._end.send(data) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._end)

    async def receive(self) -> list[Any]:
        """What has come, at least one message; nothing at the end.

        Raises `ValueError` for what is no message, `RecursionError` for what is nested too deep.
        """
        while True:
            try:
                data = self._end.recv(READ)
            except BlockingIOError:
                await self._readiness.wait()
                continue
            except OSError:
                return []
            self._rest += data
            if len(self._rest) > LONGEST + READ:
                raise ValueError("an endless message")
            whole, newline, rest = self._rest.rpartition(b"\n")
            if newline:
                self._rest = rest
                return [strict_json.loads(bytes(line)) for line in whole.split(b"\n")]
            if not data:
                return []

    def close(self) -> None:
        """Let go of it, once."""
        if self._end.fileno() < 0:
            return
        self._readiness.close()
        self._end.close()
