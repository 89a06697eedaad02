"""The hidden staging folder in which a sitemap is prepared, next to the files it will replace. One run at a
time.

It is always removed afterwards, along with those of crashed runs. `publish` decides what is written to it and
moved out. This module also turns disk errors into sentences.
"""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct

from crawler.errors import OutputBusy, OutputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

STAGING: Final = ".staging-"
LOCK_PATIENCE: Final = 8.0  # seconds to wait for another run: a signal must take effect within ten
DEFAULT_FILE_MODE: Final = 0o644
LOCK_INTERVAL: Final = 0.1  # seconds between attempts to lock the folder
# Seconds after which a staging folder counts as abandoned, on disks without locks.
ABANDONED_AFTER: Final = 86_400

OLD_FILES_KEPT: Final = "the old files are kept"

_ADVICE: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EACCES: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.EEXIST: "a file is in the way",
    errno.ENOTDIR: "a file is in the way",
    errno.EISDIR: "a folder is in the way",
}


class FolderState(Struct, eq=False):
    """The state of the output folder, for the message of a disk error."""

    says: str = OLD_FILES_KEPT


def is_patient(waited: float) -> bool:
    """Whether to wait on for another run, after so many seconds."""
    return waited < LOCK_PATIENCE


@asynccontextmanager
async def locked_staging(
    folder: Path, mode: int = DEFAULT_FILE_MODE, waits: Callable[[float], bool] = is_patient
) -> AsyncIterator[Path]:
    """A staging folder, with `folder` locked against other runs. Raises `OutputBusy` if another run keeps the
    lock.

    `waits`: whether to wait on, after so many seconds.
    """
    with _opened(folder, mode) as handle:
        if (locked := _lock(handle)) is False:
            locked = await _lock_later(handle, waits)
        if locked is False:
            raise OutputBusy(f"Another run is publishing to {folder}: run again when it is done.")
        _clear(folder, locked)
        with temporary_folder(folder) as place:
            yield place


async def _lock_later(handle: int, waits: Callable[[float], bool]) -> bool | None:
    """As `_lock`, while another run keeps the lock and `waits` allows."""
    from crawler.rules import retries  # noqa: PLC0415 - takes long to import, and is seldom needed

    began = anyio.current_time()
    locking = retries.while_result(
        lambda locked: locked is False and waits(anyio.current_time() - began),
        sleep=anyio.sleep,
        wait=lambda _: LOCK_INTERVAL,
    )
    locked: bool | None = await locking(partial(_lock, handle))
    return locked


@contextmanager
def _opened(folder: Path, mode: int) -> Iterator[int]:
    """A handle of the folder, which is created if missing, and goes again if nothing is written to it.

    `mode`: that of its files.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        path.chmod(mode | (mode & 0o444) >> 2)  # whoever may read the files may list the folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        with suppress(OSError):  # not empty
            for path in missing:
                path.rmdir()
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Locks a folder until the handle is closed, or the process ends.

    False if another process has the lock, None if the file system has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def _clear(folder: Path, locked: bool | None) -> None:
    """Removes staging folders of crashed runs: all with the lock; without locks, old ones."""
    for left in folder.glob(STAGING + "*"):
        with suppress(FileNotFoundError):
            if locked or (locked is None and time.time() - left.stat().st_mtime > ABANDONED_AFTER):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder inside `folder`, and so on the same disk."""
    place = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check(folder: Path, mode: int = DEFAULT_FILE_MODE) -> None:
    """Raises `OSError` if files cannot be written to the folder."""
    if os.path.lexists(folder):
        with _opened(folder, mode) as handle:
            _clear(folder, _lock(handle))
            with temporary_folder(folder):
                pass
    else:  # made only for what is written to it
        there = next(path for path in folder.parents if path.exists())
        with temporary_folder(there) as place:
            (place / folder.relative_to(there)).mkdir(parents=True)


def reason(error: OSError) -> str:
    """A disk error in words."""
    return _ADVICE.get(error.errno or 0, error.strerror or str(error))


@contextmanager
def translated(folder: object, says: str = OLD_FILES_KEPT) -> Iterator[FolderState]:
    """Turns an error of a disk or store into an `OutputError` that says in what state the output is."""
    folder_state = FolderState(says)
    try:
        yield folder_state
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"The sitemap cannot be written to {folder}: {reason(error)}; {folder_state.says}."
        ) from error
