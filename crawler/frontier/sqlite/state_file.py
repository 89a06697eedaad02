"""The state file on disk: opening, migrating and removing it, and the lock that keeps a second run out.

The lock is a separate SQLite database beside the state, held exclusively: this works on every platform, and
the system releases it when the process is killed. The modification time of that file is the heartbeat of the
run.
"""

import itertools
import os
import sqlite3
import sys
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from struct import Struct
from typing import Final

from crawler.errors import FrontierError, NoState, StateBusy
from crawler.frontier import schema
from crawler.frontier.dialect import translated
from crawler.frontier.sqlite.checksum import has_wrong_checksum, remove_checksum, store_checksum
from crawler.frontier.sqlite.database import SqliteDatabase
from crawler.frontier.sqlite.ownership import (
    APPLICATION_ID,
    Owner,
    check_usable,
    leftovers,
    located,
    log_of,
    owner_of,
)
from crawler.frontier.sqlite.read_only import connect, in_memory, open_to_read
from crawler.model.failpoints import failpoint

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

# Whether the file has the bytes that the last session left (`checksum`). No row while a session is open.
CHECKSUM: Final = "CREATE TABLE checksum (value INTEGER);"
HEARTBEAT: Final = 5.0  # seconds between heartbeats
MEMORY: Final = ":memory:"
MAPPED: Final = 1 << 30  # bytes of the file that lists and reports see as memory: a quarter less time
_LOCKED: Final = (
    0x4000_0002,
    510,
)  # where the shared and exclusive locks of SQLite are
_FLOCK: Final = Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, process
_held: set[tuple[int, int]] = set()  # the lock files that this process holds: devices and inodes
_CHANGED: Final = "its bytes are not those that the last run wrote"


class Lock:
    """Held from construction until `release`, or until the process ends."""

    def __init__(self, state: Path) -> None:
        """Raises `StateBusy` if another process holds it, `FrontierError` if it cannot be created."""
        path = self._path = lock_of(state)
        self._last_beat = time.monotonic()
        try:
            state.parent.mkdir(parents=True, exist_ok=True)
            _check_lock(path)
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            self._db.execute("BEGIN EXCLUSIVE")
            self._file = _identity(path.stat())
            _held.add(self._file)
            os.utime(path)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                self._db.close()
                raise StateBusy(
                    f"Another run is using the state {state}: wait for it, or use another --state."
                ) from error
            raise FrontierError(f"The state {state} cannot be locked: {error}.") from error
        except OSError as error:
            raise FrontierError(
                f"The folder of the state {state} cannot be created: {error.strerror}."
            ) from error

    def beat(self) -> bool:
        """Update the heartbeat, at most every `HEARTBEAT` seconds. Returns whether it was due."""
        now = time.monotonic()
        if now - self._last_beat < HEARTBEAT:
            return False
        self._last_beat = now
        with suppress(OSError):  # a folder that was removed is reported elsewhere
            os.utime(self._path)
        return True

    def release(self) -> None:
        self._db.close()
        _held.discard(self._file)


def lock_of(state: Path) -> Path:
    """The lock file beside a state."""
    return state.with_name(state.name + ".lock")


def _check_lock(path: Path) -> None:
    """Lock files are always empty.

    Raises `FrontierError` for a file with content: it belongs to another program.
    """
    if path.exists() and not (path.is_file() and path.stat().st_size == 0):
        raise FrontierError(
            f"{path} stands where the lock file belongs, and was not made by sitemap-crawler: "
            "name another state with --state, or move it away."
        )


def seconds_since_heartbeat(state: str, now: float) -> float | None:
    """Seconds since the last heartbeat of a run on the state; None if there was none."""
    try:
        return now - lock_of(located(state)).stat().st_mtime
    except OSError:
        return None


def is_at_work(state: str, now: float) -> bool:
    """Whether a run works on the state, as far as its heartbeat and its lock tell."""
    silent = seconds_since_heartbeat(state, now)
    return silent is not None and silent < SqliteDatabase.life and not _is_free(lock_of(located(state)))


def _is_free(lock: Path) -> bool:
    """Whether no process holds the lock, if the system can tell without taking it. A copy has none.

    Ours is not opened: to close a file drops all locks that the process has on it.
    """
    if fcntl is None or sys.platform != "linux" or sys.maxsize < 2**32:
        return False
    try:
        seen = lock.stat()
        if seen.st_size or _identity(seen) in _held:
            return False
        with lock.open("rb") as file:
            asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, *_LOCKED, 0)
            found = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    except OSError:
        return False
    return bool(_FLOCK.unpack(found)[0] == fcntl.F_UNLCK)


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino


def open_state(path: str, *, read_only: bool) -> sqlite3.Connection:
    """A connection to the state; a new file gets the tables.

    `path` comes from `check_usable`, or is `:memory:`. An earlier version is migrated in one transaction, for
    reading in an in-memory copy. Raises `FrontierError` for a file that is missing (when reading), damaged,
    or of another version.
    """
    if sqlite3.sqlite_version_info < (3, 39):
        raise FrontierError(f"Python's SQLite is {sqlite3.sqlite_version}; 3.39 or newer is needed.")
    if read_only and not Path(path).is_file():
        raise NoState(f"There is no state at {path}: crawl first, or name it with --state.")
    if not read_only:
        _refuse(leftovers(Path(path)))
    try:
        return _opened_to_read(path) if read_only else _opened(path)
    except (sqlite3.DatabaseError, ValueError) as error:  # ValueError: a text value that is not UTF-8
        raise FrontierError(failure(path, error)) from error


def _opened(path: str) -> sqlite3.Connection:
    is_changed = has_wrong_checksum(Path(path))  # before there is a connection
    if path != MEMORY:
        _make_private(path)
    db = connect(path)
    try:
        _check_version(db, path, read_only=False)
        _prepare(db, is_changed=is_changed)
    except BaseException:
        db.close()
        raise
    return db


def _make_private(path: str) -> None:
    """Create the file for this user alone, as URLs may be secret. SQLite's files beside it get the same."""
    with suppress(OSError):  # it is there, or SQLite says why it cannot be
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _opened_to_read(path: str) -> sqlite3.Connection:
    db = open_to_read(Path(path))
    try:
        db.execute(f"PRAGMA mmap_size = {MAPPED}")
        _check_version(db, path, read_only=True)
        if _version(db) != schema.VERSION:
            db = in_memory(db)
            _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _refuse(logs: Iterable[Path]) -> None:
    for log in logs:
        raise FrontierError(
            f"{log} exists without its database and would be lost: move it away, or name another file "
            "with --state."
        )


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _check_version(db: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    version = _version(db)
    if not _has_tables(db):
        if read_only:
            raise FrontierError(
                f"The state {path} is empty: no crawl has started yet, or it was copied without its log, "
                f"{log_of(Path(path)).name}."
            )
        return
    if version not in {schema.VERSION, *schema.STEPS}:
        raise FrontierError(
            f"The state {path} is of version {version}, and this build reads version {schema.VERSION}: "
            "start over with --fresh, or keep it for the build that wrote it."
        )


def _migrate(db: sqlite3.Connection) -> None:
    """Migrate a state of an earlier version to the current one."""
    steps = "; ".join(schema.STEPS[version] for version in range(_version(db), schema.VERSION))
    # Renaming a column renames it in views too; a view that uses a dropped view could not be read, and would
    # prevent it.
    views = "".join(f"DROP VIEW IF EXISTS {view}; " for view in schema.VIEW_NAMES) + _sql(schema.VIEWS)
    with failpoint("migration"):
        db.executescript(f"BEGIN IMMEDIATE; {steps}; {views} PRAGMA user_version = {schema.VERSION}; COMMIT;")


def _sql(text: str) -> str:
    return translated(SqliteDatabase.dialect, text)


def _prepare(db: sqlite3.Connection, *, is_changed: bool) -> None:
    is_new = not _has_tables(db)
    if is_new:  # so that the application id is in the database file itself, not only in the log
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA temp_store = FILE")
    db.execute("PRAGMA cache_size = -8192")
    if is_new:
        tables = CHECKSUM + _sql(schema.TABLES) + _sql(schema.VIEWS)
        db.executescript(f"BEGIN; PRAGMA user_version = {schema.VERSION}; {tables} COMMIT;")
        return
    if is_changed:
        raise sqlite3.DatabaseError(_CHANGED)
    if (fault := db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(fault)
    if _version(db) != schema.VERSION:
        _migrate(db)
    remove_checksum(db)


def close_state(db: sqlite3.Connection, path: Path) -> None:
    """Close a state that was open for writing, and store its checksum."""
    db.close()
    with suppress(sqlite3.Error, OSError):  # without a checksum, the next session checks the structure only
        store_checksum(path)


def failure(path: str, error: Exception) -> str:
    """The error message for a state: what is wrong, and what to do."""
    # For a damaged file, SQLite's message has two lines.
    words = (str(error).splitlines() or ["no reason given"])[-1]
    if "full" in words:
        return (
            f"The state {path} cannot be written: the disk is full. "
            "Free some space and run again: nothing is lost."
        )
    if "I/O" in words or "unable to open" in words or "readonly" in words or "locked" in words:
        return (
            f"The state {path} cannot be used: {words}. Run again when the disk works again: nothing is lost."
        )
    if "closed database" in words:
        return f"The state {path} is closed: use a job within the block of `open_job`."
    return (
        f"The state {path} is damaged ({words}): start over with --fresh, which keeps the damaged file under "
        "another name."
    )


def remove_state(state: str | Path) -> Path | None:
    """Remove a state, for `--fresh`. A damaged one is renamed instead, and its new path returned.

    Raises `StateBusy` if another run holds it, `FrontierError` for a file that is not ours.
    """
    path = check_usable(state)
    lock = Lock(path)
    try:
        for log in leftovers(path):
            log.replace(_unused(log))
        if owner_of(path) is Owner.NONE:
            return None
        if _is_damaged(path):
            kept = _unused(path)
            _rename(path, kept)
            return kept
        for suffix in _FILES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise FrontierError(f"The state {path} cannot be removed: {error.strerror}.") from error
    finally:
        lock.release()
    return None


# The database last: if the process dies in between, the rest is still recognised as ours.
_FILES: Final = ("-shm", "-wal", "-journal", "")


def _rename(path: Path, to: Path) -> None:
    for suffix in _FILES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(to.with_name(to.name + suffix))


def _unused(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.kept{number or ''}") for number in itertools.count())
    return next(name for name in names if not name.exists())


def _is_damaged(path: Path) -> bool:
    try:
        if has_wrong_checksum(path):
            return True
        with closing(sqlite3.connect(path, timeout=0)) as db:
            return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    except (sqlite3.DatabaseError, ValueError):  # ValueError: the message may have bytes that are not UTF-8
        return True
