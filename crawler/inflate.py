"""Content codings, undone in small pieces and never past a limit: a small answer cannot become a large one.

gzip with any number of members, deflate in both of its forms, and one coding inside another. What is decoded is
counted, not what came over the wire. Pure: bytes in, bytes out, or one of three errors.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

PIECE: Final = 65_536  # bytes decoded at a time
LAYERS: Final = 2  # codings inside each other that are undone
GZIP: Final = frozenset({"gzip", "x-gzip"})
MAGIC: Final = b"\x1f\x8b"  # how a gzip member begins (RFC 1952 2.3.1)


class TooLarge(Exception):  # noqa: N818 - these three say what is wrong with the bytes, not with us
    """More decoded bytes than the limit."""


class BrokenCoding(Exception):  # noqa: N818
    """Not in the coding it claims, or cut short."""


class UnknownCoding(Exception):  # noqa: N818
    """A coding we do not undo, or too many of them."""


class Inflater:
    """Undoes the codings of one body: `feed` each chunk, then `finish`."""

    def __init__(self, layers: Sequence["_Gzip | _Deflate"], limit: int) -> None:
        self._layers, self._left, self._limit = layers, limit, limit

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decoded pieces. Raises `TooLarge` or `BrokenCoding`."""
        pieces: Iterable[bytes] = (chunk,)
        for layer in self._layers:
            pieces = _through(layer, pieces)
        for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise TooLarge(f"more than {self._limit:,} bytes")
            yield piece

    def finish(self) -> None:
        """The body is over. Raises `BrokenCoding` when it ended too early."""
        for layer in self._layers:
            layer.finish()


def decoder(codings: Iterable[str], limit: int) -> Inflater:
    """An inflater for the codings of a Content-Encoding field, in their order there (RFC 9110 8.4).

    `limit`: decoded bytes. Raises `UnknownCoding`.
    """
    words = [word for word in codings if word != "identity"]
    if len(words) > LAYERS:
        raise UnknownCoding(f"{len(words)} codings in each other")
    return Inflater([_layer(word) for word in reversed(words)], limit)


def _layer(word: str) -> "_Gzip | _Deflate":
    if word in GZIP:
        return _Gzip()
    if word == "deflate":
        return _Deflate()
    raise UnknownCoding(word[:40])


def _through(layer: "_Gzip | _Deflate", chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from layer.feed(chunk)


class _Gzip:
    """RFC 1952: one member or several; zeros and garbage after a whole member are ignored, as gzip(1) does."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = zlib.decompressobj(31)
        self._whole = False  # at least one member came to its end
        self._begun = False  # the member at hand has seen a byte
        self._between = b""  # what came after a whole member, too short to tell

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self._member is None and not (chunk := self._next_member(chunk)):
                return
            member = self._member
            if member is None:
                return
            self._begun = True
            try:
                piece = member.decompress(chunk, PIECE)
            except zlib.error as error:
                raise BrokenCoding(f"gzip: {error}") from error
            if piece:
                yield piece
            chunk = member.unconsumed_tail
            if member.eof:
                self._whole, self._member, chunk = True, None, member.unused_data

    def _next_member(self, chunk: bytes) -> bytes:
        """What to feed a new member, if one begins here; nothing if not, or if that cannot be told yet."""
        self._between += chunk
        if len(self._between) < len(MAGIC) and MAGIC.startswith(self._between):
            return b""
        if not self._between.startswith(MAGIC):
            self._between = b"\0"  # garbage: no member comes after it
            return b""
        chunk, self._between = self._between, b""
        self._member, self._begun = zlib.decompressobj(31), False
        return chunk

    def finish(self) -> None:
        if self._member is not None and (self._begun or self._whole):
            raise BrokenCoding("gzip: cut short")


class _Deflate:
    """RFC 9110 8.4.1.2 means the zlib form (RFC 1950); many servers send the bare form (RFC 1951)."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()
        self._first = b""  # kept until the form is known
        self._known = self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(chunk)
        if not self._known:
            self._first += chunk
            if len(self._first) < 2:
                return
            chunk, self._known = self._first, True
            if not _is_zlib(chunk):
                self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        while chunk and not self._stream.eof:
            try:
                piece = self._stream.decompress(chunk, PIECE)
            except zlib.error as error:
                raise BrokenCoding(f"deflate: {error}") from error
            if piece:
                yield piece
            chunk = self._stream.unconsumed_tail

    def finish(self) -> None:
        if self._begun and not self._stream.eof:
            raise BrokenCoding("deflate: cut short")


def _is_zlib(start: bytes) -> bool:
    """Whether these are the first bytes of the zlib form (RFC 1950 2.2)."""
    return start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
