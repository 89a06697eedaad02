"""Opens a state for reading, even where nothing can be written: a read-only mount, another user's folder.

Even to read a database in WAL mode, SQLite writes the index of the log beside it. Where that fails, a
database without a log is opened as immutable, and one with a log is copied, so that the content of the log is
read too.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from crawler.errors import FrontierError
from crawler.frontier.sqlite.ownership import journal_of, log_of

_UNWRITABLE: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_PRIMARY: Final = 0xFF  # mask for the primary part of an extended error code


def connect(path: str | Path, *, uri: bool = False) -> sqlite3.Connection:
    """A connection for use by one thread at a time, with explicit transactions."""
    return sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False, uri=uri)


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection for reading. Raises `sqlite3.DatabaseError`, or `FrontierError` if no copy can be made."""
    db = _connect_to_read(path)
    try:
        _touch(db)
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode & _PRIMARY not in _UNWRITABLE:
            raise
        return _unwritable(path)
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that does not delete another process's log; a writable one would when it closes.

    If there is no log, SQLite creates an empty one to read, which only a writable connection deletes.
    """
    if log_of(path).exists():
        return connect(path.absolute().as_uri() + "?mode=ro", uri=True)
    return connect(path)


def in_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """A copy of the database in memory; `db` is closed."""
    copy = connect(":memory:")
    with closing(db):
        db.backup(copy)
    return copy


def _touch(db: sqlite3.Connection) -> None:
    """Read once, which opens the file and its log."""
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _unwritable(path: Path) -> sqlite3.Connection:
    logs = [log for log in (log_of(path), journal_of(path)) if log.exists() and log.stat().st_size]
    if not logs:
        return connect(path.absolute().as_uri() + "?mode=ro&immutable=1", uri=True)
    import shutil  # noqa: PLC0415 - seldom needed, and `status` runs each minute

    from crawler import scratch  # noqa: PLC0415 - as above

    try:
        with scratch.folder() as folder:
            for file in (path, *logs):
                shutil.copyfile(file, folder / file.name)
            return in_memory(connect(folder / path.name))
    except OSError as error:
        raise FrontierError(
            f"The state {path} is in a read-only place, and cannot be copied in order to read it "
            f"({error.strerror}): set TMPDIR to a folder with enough space."
        ) from error
