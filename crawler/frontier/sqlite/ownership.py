"""Which program owns the file at the path of a state: this one, another one, or none (nothing is there).

Read-only. The bytes of the file decide, before SQLite opens it, since opening a database may change it (a
log is replayed, a journal is rolled back). The rule: a file without our application id is not used, moved or
removed.
"""

import os
import stat
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

from crawler.errors import FrontierError

APPLICATION_ID: Final = 0x53_4D_43_52  # "SMCR"

# The database header (sqlite.org/fileformat.html 1.3) ends with the application id and versions; then page 1
# begins.
_SQLITE: Final = b"SQLite format 3\0"
_OWNER: Final = slice(68, 72)
_CELLS: Final = slice(103, 105)  # number of entries in sqlite_schema
_HEAD: Final = 105
_OURS: Final = APPLICATION_ID.to_bytes(4, "big")
_UNSET: Final = bytes(4)

# The write-ahead log (same document, 4.1 and 4.2): a header, then pages, each with its own header.
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_FRAMES: Final = 64  # the first transaction of a state writes page 1

# The rollback journal (3.1).
_PAGES_BEFORE: Final = slice(16, 20)


class Owner(Enum):
    """The owner of a file."""

    NONE = "none"  # the file is missing or empty
    OURS = "ours"
    OTHERS = "others"


def located(state: str | Path) -> Path:
    """The path of a state with symbolic links resolved, as SQLite puts its log next to the target."""
    return Path(os.path.realpath(state)) if Path(state).is_symlink() else Path(state)


def owner_of(path: Path) -> Owner:
    """The owner of a file, by its content. Raises `OSError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return Owner.NONE
    if not head:
        return Owner.NONE
    if not head.startswith(_SQLITE) or head[_OWNER] not in (_OURS, _UNSET):
        return Owner.OTHERS
    if head[_OWNER] == _OURS or _is_log_ours(log_of(path)):
        return Owner.OURS
    is_empty = len(head) == _HEAD and not any(head[_CELLS])
    return Owner.NONE if is_empty and not _has_bytes(log_of(path)) else Owner.OTHERS


def log_of(path: Path) -> Path:
    """The write-ahead log beside a database."""
    return path.with_name(path.name + "-wal")


def journal_of(path: Path) -> Path:
    """The rollback journal beside a database."""
    return path.with_name(path.name + "-journal")


def check_usable(state: str | Path) -> Path:
    """The path of a state that may be opened or created. Raises `FrontierError` if another file is there."""
    path = located(state)
    try:
        kind = path.stat().st_mode
    except OSError:
        kind = None
    if str(state).endswith("/") or (kind is not None and stat.S_ISDIR(kind)):
        raise FrontierError(f"The state {state} is a folder: name a file with --state.")
    if kind is not None and not stat.S_ISREG(kind):
        raise FrontierError(f"The state {state} is not a regular file: name another with --state.")
    try:
        owner = owner_of(path)
    except OSError as error:
        raise FrontierError(f"The state {state} cannot be read: {error.strerror}.") from error
    if owner is Owner.OTHERS:
        raise FrontierError(
            f"{state} is not a state file of sitemap-crawler and is left untouched: "
            "name another file with --state."
        )
    return path


def leftovers(path: Path) -> Iterator[Path]:
    """Logs with content next to a missing or empty database, which SQLite would delete."""
    if owner_of(path) is not Owner.NONE:
        return
    if _has_bytes(log_of(path)):
        yield log_of(path)
    if _has_bytes(journal_of(path)) and _pages_before(journal_of(path)):
        yield journal_of(path)


def _pages_before(journal: Path) -> int:
    """The size in pages of the database that a journal restores: 0 if the database was just being created."""
    with journal.open("rb") as file:
        return int.from_bytes(file.read(_PAGES_BEFORE.stop)[_PAGES_BEFORE], "big")


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _is_log_ours(log: Path) -> bool:
    """Whether page 1 in the log has our application id, which may not be in the database file yet."""
    try:
        with log.open("rb") as file:
            size = int.from_bytes(file.read(_LOG_HEADER)[8:12], "big")
            for _ in range(_FRAMES if 512 <= size <= 65_536 else 0):
                frame = file.read(_FRAME_HEADER + size)
                if frame[:4] == b"\0\0\0\1":
                    return frame[_FRAME_HEADER:][_OWNER] == _OURS
    except OSError:
        pass
    return False
