"""Decodes Content-Encoding in small pieces and within limits, so that no decompression bomb exhausts memory
or CPU.

Supported: gzip with several members, deflate in both forms, br, zstd with several frames, and nested codings.
The limits count the decoded bytes of each layer, concatenated streams, and bytes after the last one. Pure:
bytes in, bytes out, or one of four exceptions.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import zlib
else:
    try:
        from zlib_ng import zlib_ng as zlib  # the same in half the time (the `fast` extra)
    except ImportError:
        import zlib

PIECE: Final = 65_536  # bytes decoded at a time
STEP: Final = 8_192  # coded bytes passed to a decoder at a time
LAYERS: Final = 2  # nested codings that are decoded
# Gzip members or zstd frames of one layer: an empty one is ten bytes and costs up to a millisecond.
STREAMS: Final = 1_000
TRAILING: Final = 65_536  # ignored bytes after the end of a gzip or deflate stream
ZSTD_WINDOW: Final = 23  # log2 of the window size that a decoder has to support (RFC 9659)
MAGIC: Final = b"\x1f\x8b"  # first bytes of a gzip member (RFC 1952 2.3.1)


class TooLarge(Exception):  # noqa: N818 - these exceptions describe the input, not an error of ours
    """More decoded bytes than the limit."""


class DecompressionBomb(TooLarge):
    """Costs far more work than its size suggests. What was decoded so far is not used."""


class BrokenCoding(Exception):  # noqa: N818
    """Invalid in its declared coding, or truncated."""


class UnknownCoding(Exception):  # noqa: N818
    """An unsupported coding, or too many nested ones."""


class Layer(Protocol):
    """Decodes one coding."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """One piece for each decoding step, possibly empty. Raises `BrokenCoding`, `DecompressionBomb`."""

    def finish(self) -> None:
        """The body is over. Raises `BrokenCoding`."""


class Inflater:
    """Decodes one body: `feed` each chunk, then `finish`."""

    def __init__(self, layers: Sequence[Layer], limit: int) -> None:
        self._layers, self._limit = layers, limit
        self._left = [limit] * max(1, len(layers))  # bytes, by layer

    @property
    def is_coded(self) -> bool:
        """Whether the body has any coding."""
        return bool(self._layers)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decoded pieces, none of them empty. Raises `TooLarge` or `BrokenCoding`."""
        return filter(None, self.steps(chunk))

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        """As `feed`, with an empty piece for each step without output, so that the caller can yield."""
        pieces: Iterable[bytes] = (chunk,)
        for place, layer in enumerate(self._layers):
            pieces = self._counted(place, _through(layer, pieces))
        yield from pieces if self._layers else self._counted(0, pieces)

    def _counted(self, place: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces, while the layer stays within its limit."""
        is_last = place == len(self._left) - 1
        for piece in pieces:
            left, self._left[place] = self._left[place], self._left[place] - len(piece)
            if self._left[place] < 0:
                if is_last:
                    yield piece[:left]  # for a caller that takes a truncated body
                    raise TooLarge(f"more than {self._limit:,} bytes")
                raise DecompressionBomb(f"more than {self._limit:,} bytes after removing the outer coding")
            yield piece

    def finish(self) -> None:
        """Raises `BrokenCoding` if the body is truncated."""
        for layer in self._layers:
            layer.finish()


def gunzip(body: bytes, most: int) -> bytes | None:
    """A whole body of one gzip member in one step; None if that does not make it, or of more than `most`."""
    member = zlib.decompressobj(31)
    try:
        plain = member.decompress(body, most + 1)
    except zlib.error:
        return None
    return plain if member.eof and not member.unused_data and len(plain) <= most else None


def decoder(codings: Iterable[str], limit: int) -> Inflater:
    """An inflater for the codings of a Content-Encoding field, in the order of the field (RFC 9110 8.4).

    `limit`: decoded bytes. Raises `UnknownCoding`.
    """
    words = [word for word in codings if word != "identity"]
    if len(words) > LAYERS:
        raise UnknownCoding(f"{len(words)} nested content codings")
    return Inflater([_layer(word) for word in reversed(words)], limit)


def _layer(word: str) -> Layer:
    kind = _KINDS.get(word)
    if kind is None:
        raise UnknownCoding(word[:40])
    return kind()


def _through(layer: Layer, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if not chunk:
            yield b""
        # zlib copies its unconsumed input on each call, so it gets little at a time.
        for at in range(0, len(chunk), STEP):
            yield from layer.feed(chunk[at : at + STEP])


class _Streams:
    """Counts the streams of a layer and the bytes after the last one. Raises `DecompressionBomb`."""

    def __init__(self) -> None:
        self._begun = self._ignored = 0

    def begin(self) -> None:
        """A gzip member or zstd frame begins."""
        self._begun += 1
        if self._begun > STREAMS:
            raise DecompressionBomb(f"more than {STREAMS:,} concatenated compressed streams")

    def ignore(self, count: int) -> None:
        """`count` bytes belong to no stream."""
        self._ignored += count
        if self._ignored > TRAILING:
            raise DecompressionBomb(f"more than {TRAILING:,} bytes after the end of the compressed stream")


class _Gzip:
    """RFC 1952: one member or several. Zeros and garbage after a whole one are ignored, as by gzip(1)."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = zlib.decompressobj(31)
        self._whole = False  # at least one member is complete
        self._begun = False  # the current member has received a byte
        self._between = b""  # bytes after a complete member, too few to recognise the next
        self._streams = _Streams()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self._member is None and not (chunk := self._next_member(chunk)):
                yield b""
                return
            member = self._member
            if member is None:
                return
            self._begun = True
            try:
                piece = member.decompress(chunk, PIECE)
            except zlib.error as error:
                raise BrokenCoding(f"gzip: {error}") from error
            yield piece
            chunk = member.unconsumed_tail
            if member.eof:
                self._whole, self._member, chunk = True, None, member.unused_data

    def _next_member(self, chunk: bytes) -> bytes:
        """The input of the next member; empty if none begins here, or if it is too early to tell."""
        self._between += chunk
        if len(self._between) < len(MAGIC) and MAGIC.startswith(self._between):
            return b""
        if not self._between.startswith(MAGIC):
            self._between = b"\0"  # garbage: no member can follow
            self._streams.ignore(len(chunk))
            return b""
        chunk, self._between = self._between, b""
        self._streams.begin()
        self._member, self._begun = zlib.decompressobj(31), False
        return chunk

    def finish(self) -> None:
        if self._member is not None and (self._begun or self._whole):
            raise BrokenCoding("gzip: truncated")


class _Deflate:
    """RFC 9110 8.4.1.2 means the zlib form (RFC 1950); many servers send the bare form (RFC 1951)."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()
        self._first = b""  # buffered until the form is known
        self._known = self._begun = False
        self._streams = _Streams()

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
            yield piece
            chunk = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        self._streams.ignore(len(chunk))

    def finish(self) -> None:
        if self._begun and not self._stream.eof:
            raise BrokenCoding("deflate: truncated")


def _is_zlib(start: bytes) -> bool:
    """Whether these are the first bytes of the zlib form (RFC 1950 2.2)."""
    return start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0


class _Brotli:
    """RFC 7932."""

    def __init__(self) -> None:
        import brotli  # noqa: PLC0415 - most servers send gzip

        self._stream, self._error = brotli.Decompressor(), brotli.error
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(chunk)
        try:
            while True:
                yield self._stream.process(chunk, output_buffer_limit=PIECE)
                if self._stream.can_accept_more_data():
                    return
                chunk = b""
                if self._stream.is_finished():
                    return
        except self._error as error:
            raise BrokenCoding(f"br: {error}") from error

    def finish(self) -> None:
        if self._begun and not self._stream.is_finished():
            raise BrokenCoding("br: truncated")


class _Zstd:
    """RFC 8878: one frame or several; the window is limited to what RFC 9659 requires of a decoder."""

    def __init__(self) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - most servers send gzip
        else:
            from backports import zstd  # noqa: PLC0415

        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW}
        self._new, self._error = partial(zstd.ZstdDecompressor, options=options), zstd.ZstdError
        self._frame = self._new()
        self._begun = False
        self._streams = _Streams()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while True:
            if self._frame.eof:
                if not chunk:
                    return
                self._streams.begin()
                self._frame = self._new()
            self._begun = self._begun or bool(chunk)
            try:
                piece = self._frame.decompress(chunk, PIECE)
            except self._error as error:
                raise BrokenCoding(f"zstd: {error}") from error
            yield piece
            chunk = self._frame.unused_data if self._frame.eof else b""
            if not self._frame.eof and self._frame.needs_input:
                return

    def finish(self) -> None:
        if self._begun and not self._frame.eof:
            raise BrokenCoding("zstd: truncated")


_KINDS: Final[dict[str, type[Layer]]] = {
    "gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd,
}  # fmt: skip
