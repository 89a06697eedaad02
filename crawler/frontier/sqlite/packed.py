"""A state file as one compressed file, for an object store: made while a crawl goes on, and unpacked again.

The copy is made by SQLite's backup in one step, from a connection of its own: it is what some commit left,
and no writer waits. What is unpacked was written elsewhere: its size and its digest are checked, and it never
gets longer than was said.
"""

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from crawler.frontier.sqlite.ownership import log_of
from crawler.frontier.sqlite.read_only import connect

CHUNK: Final = 1 << 20  # bytes
LEVEL: Final = 1  # of the compression: the fastest makes a state four times smaller
GZIP: Final = 31  # window bits of zlib, with the header and the checksum of gzip


class Pack(Struct, frozen=True):
    """What a packed state must be. `size`: in bytes when it is unpacked."""

    sha256: str
    bytes: int
    size: int


class WrongPack(Exception):  # noqa: N818 - it says what is wrong
    """A packed state is not what it must be; `str(error)` is what is wrong, as a part of a sentence."""


def pack(state: Path, packed: Path, *, is_open: bool) -> Pack:
    """Write the state to the file `packed`. `is_open`: a crawl is working on it.

    A closed one is packed as it is, with its checksum. Raises `sqlite3.Error`, `OSError`.
    """
    if not is_open and not log_of(state).exists():
        return _compress(state, packed)
    copy = packed.with_suffix(".copy")
    copy.unlink(missing_ok=True)
    try:
        with closing(connect(state)) as db, closing(connect(copy)) as to:
            to.execute("PRAGMA synchronous = OFF")  # it does not outlive this process
            db.backup(to)
        return _compress(copy, packed)
    finally:
        copy.unlink(missing_ok=True)


def unpack(packed: Path, to: Path, expected: Pack) -> None:
    """Write the state that the file `packed` holds to `to`. Raises `WrongPack`, `OSError`."""
    size, digest = packed.stat().st_size, hashlib.sha256()
    if size != expected.bytes:
        raise WrongPack(f"it has {size:,} bytes, not {expected.bytes:,}")
    for chunk in _chunks(packed):
        digest.update(chunk)
    if digest.hexdigest() != expected.sha256:
        raise WrongPack("its checksum is wrong")
    written = 0
    with open(to, "wb", opener=_private) as file:
        for piece in _inflated(packed):
            written += len(piece)
            if written > expected.size:
                raise WrongPack(f"unpacked, it has more than {expected.size:,} bytes")
            file.write(piece)
    if written != expected.size:
        raise WrongPack(f"unpacked, it has {written:,} bytes, not {expected.size:,}")


def _compress(state: Path, packed: Path) -> Pack:
    deflate, digest, size = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP), hashlib.sha256(), 0
    with open(packed, "wb", opener=_private) as file:

        def write(piece: bytes) -> None:
            digest.update(piece)
            file.write(piece)

        for chunk in _chunks(state):
            size += len(chunk)
            write(deflate.compress(chunk))
        write(deflate.flush())
        return Pack(digest.hexdigest(), file.tell(), size)


def _inflated(packed: Path) -> Iterator[bytes]:
    inflate = zlib.decompressobj(GZIP)
    try:
        for chunk in _chunks(packed):
            rest = chunk
            while piece := inflate.decompress(rest, CHUNK):
                yield piece
                rest = inflate.unconsumed_tail
    except zlib.error:
        raise WrongPack("it is not compressed by gzip") from None


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
