"""The checksum of a state file, over all its bytes: whether they are those that the last session left.

SQLite recognises a damaged structure, not a damaged value: with one bit changed, a date or a URL would go
into the sitemap as it is. The checksum is stored when a session closes the state, and removed when the next
one opens it: after a kill there is none. All functions open the file themselves and expect that the caller
holds the lock and no connection to it, because closing a file drops all locks that the process has on it
(sqlite.org/howtocorrupt.html 2.2).
"""

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Final

from crawler.frontier.sqlite.ownership import log_of
from crawler.frontier.sqlite.read_only import connect
from crawler.model.failpoints import failpoint

# Fields of the header that change with the row itself (sqlite.org/fileformat.html 1.3): the file change
# counter, and, at the end, the value of the counter and the version of the library that wrote it.
_VOLATILE: Final = (slice(24, 28), slice(92, 100))
_PAGES_AT_ONCE: Final = 256


def has_wrong_checksum(path: Path) -> bool:
    """Whether the file has a checksum, and other bytes than when it was computed.

    Raises `sqlite3.DatabaseError`.
    """
    if not path.is_file():
        return False
    with closing(connect(path)) as db:
        try:
            found = _read(db)
        except UnicodeDecodeError:  # in a damaged schema, of which sqlite3 reads the text
            return True
    return found is not None and found[0] != _compute(path, *found[1])


def remove_checksum(db: sqlite3.Connection) -> None:
    """Before the first change of a session."""
    db.execute("DELETE FROM checksum")


def store_checksum(path: Path) -> None:
    """Store the checksum of a closed state.

    Without effect if a reader still needs the log. Raises `sqlite3.Error`, `OSError`.
    """
    log = log_of(path)
    if log.exists() and log.stat().st_size:
        return
    with closing(connect(path)) as db:
        place = _place(db)
    if place is None:
        return
    value = _compute(path, *place)
    with closing(connect(path)) as db, failpoint("commit of checksum"):
        db.execute("INSERT INTO checksum VALUES (?)", (value,))


def _read(db: sqlite3.Connection) -> tuple[int, tuple[int, int]] | None:
    """The stored checksum, and its place."""
    place = _place(db)
    row = db.execute("SELECT value FROM checksum").fetchone() if place else None
    return (row[0], place) if row and place else None


def _place(db: sqlite3.Connection) -> tuple[int, int] | None:
    """The page of the table, and the size of a page in bytes."""
    row = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'checksum'").fetchone()
    return (row[0], db.execute("PRAGMA page_size").fetchone()[0]) if row else None


def _compute(path: Path, page: int, page_size: int) -> int:
    """CRC-32 of the file, with zeros for the page of the checksum and the volatile fields of the header."""
    value = position = 0
    own = (page - 1) * page_size
    chunk = bytearray(page_size * _PAGES_AT_ONCE)
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(chunk):
            if position == 0:
                for field in _VOLATILE:
                    chunk[field] = bytes(field.stop - field.start)
            if position <= own < position + size:
                chunk[own - position : own - position + page_size] = bytes(page_size)
            value = zlib.crc32(memoryview(chunk)[:size], value)
            position += size
    return value
