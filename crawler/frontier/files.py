"""The state file on disk: opening it, telling whose it is, and the lock that keeps a second run out.

The lock is an SQLite database of its own beside the state, held exclusively: it works on every platform, and the
system takes it back when its holder is killed. The time of that file is the run's pulse.
"""

import itertools
import json
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from crawler import twins
from crawler.errors import FrontierError, StateBusy
from crawler.faults import around
from crawler.frontier import schema

PULSE: Final = 5.0  # seconds between two beats

# The head of a database file (sqlite.org/fileformat.html 1.3): its first bytes, and at the end of it who made it.
_SQLITE: Final = b"SQLite format 3\0"
_MARK: Final = 68
_OURS: Final = schema.APPLICATION_ID.to_bytes(4, "big")
_HEAD: Final = _MARK + len(_OURS)


class Lock:
    """Held from construction until `release`, or until the process is gone."""

    def __init__(self, state: Path) -> None:
        """Raises `StateBusy` when another process holds it, `FrontierError` when it cannot be made."""
        path = self._path = _lock_of(state)
        self._beaten = time.monotonic()
        try:
            state.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            self._db.execute("BEGIN EXCLUSIVE")
            os.utime(path)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                self._db.close()
                raise StateBusy(
                    f"Another run holds the state {state}: wait for it, or use another --state."
                ) from error
            raise FrontierError(f"The state {state} cannot be locked: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise FrontierError(f"The lock {path} is damaged: remove that file. ({error})") from error
        except OSError as error:
            raise FrontierError(
                f"The folder of the state {state} cannot be made: {error.strerror}."
            ) from error

    def beat(self) -> None:
        """Say that the holder is alive; costs nothing when that was said a moment ago."""
        now = time.monotonic()
        if now - self._beaten >= PULSE:
            self._beaten = now
            with suppress(OSError):  # a folder that is taken away shows elsewhere
                os.utime(self._path)

    def release(self) -> None:
        """Let others in."""
        self._db.close()


def _lock_of(state: Path) -> Path:
    return state.with_name(state.name + ".lock")


def silence(state: str, now: float) -> float | None:
    """For how many seconds no run has worked on the state; None when none ever did."""
    try:
        return now - _lock_of(Path(state)).stat().st_mtime
    except OSError:
        return None


def open_state(path: str, *, read_only: bool) -> sqlite3.Connection:
    """A connection to our tables, made if the file is new.

    A state of an earlier version is migrated, in one transaction; for a reader, in a copy in memory. Raises
    `FrontierError` for a file that is missing (when reading), damaged, another program's, or of a newer version.
    """
    if sqlite3.sqlite_version_info < (3, 38):
        raise FrontierError(f"Python's SQLite is {sqlite3.sqlite_version}; 3.38 or newer is needed.")
    if read_only and not Path(path).is_file():
        raise FrontierError(f"There is no state at {path}: crawl first, or name it with --state.")
    db = None
    try:
        db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        _check_owner(db, path)
        _teach(db)
        if not read_only:
            _prepare(db)
        elif _version(db) != schema.VERSION:
            db = _copied(db)
            _migrate(db)
    except (sqlite3.DatabaseError, ValueError) as error:  # ValueError: a text that is no text
        if db:
            db.close()
        raise FrontierError(failure(path, error)) from error
    except FrontierError:
        if db:
            db.close()
        raise
    return db


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _copied(db: sqlite3.Connection) -> sqlite3.Connection:
    """The same database in memory."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with closing(db):
        db.backup(copy)
    return copy


def _migrate(db: sqlite3.Connection) -> None:
    """Make a state of an earlier version one of ours."""
    steps = "; ".join(schema.MIGRATIONS[version] for version in range(_version(db), schema.VERSION))
    with around("migration"):
        db.executescript(f"BEGIN IMMEDIATE; {steps}; PRAGMA user_version = {schema.VERSION}; COMMIT;")


def _check_owner(db: sqlite3.Connection, path: str, *, any_version: bool = False) -> None:
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    version = _version(db)
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and owner != schema.APPLICATION_ID:
        raise FrontierError(f"{path} is another program's database: name another file with --state.")
    if not tables or any_version:
        return
    if version > schema.VERSION:
        raise FrontierError(
            f"The state {path} was written by a newer sitemap-crawler (version {version} of the state, "
            f"{schema.VERSION} here): upgrade, or name another file with --state."
        )
    if version not in {schema.VERSION, *schema.MIGRATIONS}:
        raise FrontierError(
            f"The state {path} is of version {version}, which cannot be migrated: begin anew with --fresh."
        )


def _is_another_programs(path: Path) -> bool:
    """A database that can be read and is not ours. One that cannot be read is a damaged one of ours."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        with closing(sqlite3.connect(path, timeout=0)) as db:
            _check_owner(db, str(path), any_version=True)
    except sqlite3.DatabaseError:
        return False
    except FrontierError:
        return True
    return False


def _says_it_is_ours(path: Path) -> bool:
    """By its first bytes; or it is empty, or not there. The mark of a new one may still lie in the log beside it."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return True
    return not head or (head.startswith(_SQLITE) and head[_MARK:] in {_OURS, bytes(len(_OURS)), b""})


def _unused(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.kept{number or ''}") for number in itertools.count())
    return next(name for name in names if not name.exists())


def _teach(db: sqlite3.Connection) -> None:
    """The functions that statements use."""
    db.create_function("resource", 2, twins.resource, deterministic=True)
    db.create_function("unsorted", 1, lambda url: json.dumps(twins.unsorted(url)), deterministic=True)


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA temp_store = FILE")
    db.execute("PRAGMA cache_size = -8192")
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.executescript(
            f"BEGIN; PRAGMA application_id = {schema.APPLICATION_ID}; "
            f"PRAGMA user_version = {schema.VERSION}; {schema.TABLES} COMMIT;"
        )
    elif (fault := db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(fault)
    elif _version(db) != schema.VERSION:
        _migrate(db)


def failure(path: str, error: Exception) -> str:
    """What went wrong with a state, and what to do."""
    words = str(error)
    if Path(path).is_dir():
        return f"The state {path} is a folder: name a file with --state."
    if "full" in words:
        return f"The state {path} cannot be written: the disk is full. Make room, and run again: nothing is lost."
    if "I/O" in words or "unable to open" in words or "readonly" in words or "locked" in words:
        return f"The state {path} cannot be used: {words}. Run again when the disk is well: nothing is lost."
    return f"The state {path} is damaged ({words}): keep a copy if you wish, then begin anew with --fresh."


def remove_state(path: Path) -> None:
    """Forget a state: `--fresh`. A file that may be somebody else's is kept beside, under another name.

    Raises `StateBusy` when another run holds it, `FrontierError` for another program's database.
    """
    if _is_another_programs(path):
        raise FrontierError(f"{path} is another program's database: name another file with --state.")
    lock = Lock(path)
    try:
        if not _says_it_is_ours(path):
            path.replace(_unused(path))
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise FrontierError(f"The state {path} cannot be removed: {error.strerror}.") from error
    finally:
        lock.release()
