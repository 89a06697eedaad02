"""Splits a stream of bytes into messages: four bytes with the length, then the message. `Frames` is bounded
and pure.

`messages` and `sandbox` define the contents; `channel` reads and writes the socket.
"""

import struct
from typing import BinaryIO, Final

_LENGTH: Final = struct.Struct("!I")
SIZE: Final = _LENGTH.size  # bytes before each message


def length_of(message: bytes) -> bytes:
    """The length prefix of `message`. Raises `struct.error` from 4 GiB."""
    return _LENGTH.pack(len(message))


class Frames:
    """Collects received bytes and returns complete messages, each of at most `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._longest, self._rest = longest, bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages completed by `data`. Raises `ValueError` as soon as a length prefix is too large."""
        self._rest += data
        whole, at = [], 0
        while (begin := at + SIZE) <= len(self._rest):
            end = begin + self._length(at)
            if end > len(self._rest):
                break
            whole.append(bytes(memoryview(self._rest)[begin:end]))
            at = end
        del self._rest[:at]
        return whole

    def _length(self, at: int) -> int:
        (length,) = _LENGTH.unpack_from(self._rest, at)
        if length > self._longest:
            raise ValueError("a message that is too long")
        return int(length)


def read(source: BinaryIO) -> bytes | None:
    """The next message; None at the end. Blocks, and does not limit the length: only for a trusted sender."""
    head = source.read(SIZE)
    if len(head) < SIZE:
        return None
    (length,) = _LENGTH.unpack(head)
    message = source.read(length)
    return message if len(message) == length else None
