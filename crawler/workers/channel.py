"""One end of a socket between two processes of the crawler: sends and receives messages, framed as in
`framing`.

Messages are JSON, never pickles: the other process may have parsed hostile markup, and nothing it sends may
be executed. `messages` and `sandbox` define what the messages mean.
"""

import socket
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import msgspec

from crawler.fetch.readiness import readiness
from crawler.workers.framing import Frames, length_of

READ: Final = 262_144  # bytes read at once
LONGEST_MESSAGE: Final = 8_000_000  # bytes of one message: twice the limit for the links of a page
MOST_TOGETHER: Final = 1_000_000  # bytes of a batch of several messages
# Bytes of a message that is sent by itself: copying it costs more than a system call.
LARGE_MESSAGE: Final = 65_536
# What reading a message may raise.
MALFORMED: Final = (ValueError, LookupError, RecursionError)
_ENCODER: Final = msgspec.json.Encoder()
T = TypeVar("T")


class Channel:
    """Any number of tasks may send; only one may receive. `longest`: maximum bytes of a received message.

    `post` and `receive_batches` are for many small messages: what is framed is then a JSON list of them.
    """

    def __init__(self, end: socket.socket, longest: int = LONGEST_MESSAGE) -> None:
        end.setblocking(False)
        self._end, self._frames = end, Frames(longest)
        self._readiness = readiness(end.fileno())
        self._waiting = list[bytes]()  # to be sent, after `_begun`
        self._begun = memoryview(b"")
        self._is_sending = False
        self._batch = list[object]()  # to be sent by `post`
        self._is_posting = False

    async def send(self, message: bytes) -> None:
        """Raises `OSError` when the other end is gone. Also sends the messages of other tasks."""
        self._waiting += (length_of(message), message)
        if self._is_sending:
            return
        self._is_sending = True
        try:
            while self._begun or self._waiting:
                await self._send_some()
        finally:
            self._is_sending = False

    async def post(self, message: object) -> None:
        """Sends a message as JSON, in one batch with those of other tasks: encoding and reading many takes
        little longer.

        Raises `OSError`, in one of these tasks at least, when the other end is gone.
        """
        self._batch.append(message)
        if self._is_posting:
            return
        self._is_posting = True
        try:
            await anyio.lowlevel.checkpoint()  # tasks that are ready add theirs
            while self._batch:
                batch, self._batch = self._batch, []
                data = _ENCODER.encode(batch)
                if len(data) <= MOST_TOGETHER:
                    await self.send(data)
                else:
                    for each in batch:
                        await self.send(_ENCODER.encode([each]))
        finally:
            self._is_posting = False

    async def receive(self) -> list[bytes]:
        """At least one message; none when the other end is closed. Raises `ValueError` if one is too long."""
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

    async def receive_batches(self, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
        """The messages that were sent with `post`; empty when the other end is closed.

        Raises `ValueError` for what the decoder refuses, `RecursionError` if it is nested too deeply.
        """
        while batches := await self.receive():
            if messages := [message for batch in batches for message in decoder.decode(batch)]:
                return messages
        return []

    def close(self) -> None:
        if self._end.fileno() < 0:
            return
        self._readiness.close()
        self._end.close()

    async def _send_some(self) -> None:
        """May be cancelled: what was not sent is sent by the next call."""
        if not self._begun:
            large = (at for at, part in enumerate(self._waiting) if len(part) >= LARGE_MESSAGE)
            count = next(large, len(self._waiting)) or 1
            self._begun = memoryview(b"".join(self._waiting[:count]))
            del self._waiting[:count]
        try:
            self._begun = self._begun[self._end.send(self._begun) :]
        except BlockingIOError:
            await anyio.wait_writable(self._end)
