"""Messages on a stream of bytes: each is its length in four bytes, and then that many bytes. Bounded, and pure.

What a message says is for `messages` and `sandbox`; waiting for bytes is for `channel`.
"""

import struct
from typing import BinaryIO, Final

_LENGTH: Final = struct.Struct("!I")
SIZE: Final = _LENGTH.size  # bytes before each message


def length_of(message: bytes) -> bytes:
    """What goes before `message`. Raises `struct.error` for one of 4 GiB or more."""
    return _LENGTH.pack(len(message))


class Frames:
    """Takes bytes as they come, and gives the messages that they complete. None of them is longer than `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._longest, self._rest = longest, bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete with `data`. Raises `ValueError` as soon as one is announced that is too long."""
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
    """The next message, for who may block and trusts the other end; None at the end."""
    head = source.read(SIZE)
    if len(head) < SIZE:
        return None
    (length,) = _LENGTH.unpack(head)
    message = source.read(length)
    return message if len(message) == length else None
