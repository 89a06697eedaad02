"""The hidden folder where a sitemap is made ready, beside the files it will replace: one run at a time has it.

It is gone afterwards, whatever happened, and with it those that dead runs left. What is written there and how it moves
in is for `publish`; here is also how an error of the disk becomes a sentence that is true.
"""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from crawler.errors import OutputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

STAGING: Final = ".staging-"
PATIENCE: Final = 8.0  # seconds for which another run may have the folder: a signal is heeded within ten
FILE_MODE: Final = 0o644
TURN: Final = 0.1  # seconds until it is asked for again
DEAD: Final = 86_400  # seconds after which a run is over, where no lock can tell

KEPT: Final = "the old files are kept"

_ADVICE: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EACCES: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.EEXIST: "a file is in the way",
    errno.ENOTDIR: "a file is in the way",
    errno.EISDIR: "a folder is in the way",
}


@dataclass
class Truth:
    """What can be said of the folder if the disk fails at this moment."""

    says: str = KEPT


@asynccontextmanager
async def alone(folder: Path, mode: int = FILE_MODE) -> AsyncIterator[Path]:
    """A staging folder, while no other run publishes into `folder`. Raises `OutputError` when another does not end."""
    with _opened(folder, mode) as handle:
        deadline = anyio.current_time() + PATIENCE
        while (locked := _lock(handle)) is False:
            if anyio.current_time() >= deadline:
                raise OutputError(f"Another run is publishing to {folder}: run again when it is done.")
            await anyio.sleep(TURN)
        _clear(folder, locked)
        with beside(folder) as place:
            yield place


@contextmanager
def _opened(folder: Path, mode: int) -> Iterator[int]:
    """A handle of the folder, which is made if need be; `mode` is that of the files that go in."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        path.chmod(mode | (mode & 0o444) >> 2)  # who may read the files may look into the folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Take a folder until the handle is closed: False while another has it, None where such a lock cannot be had.

    The system takes it back from a process that dies.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some disks of a network
        return None
    return True


def _clear(folder: Path, locked: bool | None) -> None:
    """Remove what dead runs left: all that is there for who has the lock; without locks, what is old."""
    for left in folder.glob(STAGING + "*"):
        with suppress(FileNotFoundError):
            if locked or (locked is None and time.time() - left.stat().st_mtime > DEAD):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A folder on the same disk as `folder` that is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check(folder: Path, mode: int = FILE_MODE) -> None:
    """Whether files can be written there. Raises `OSError`."""
    with _opened(folder, mode) as handle:
        _clear(folder, _lock(handle))
        with beside(folder):
            pass


def reason(error: OSError) -> str:
    """In words, as far as they are known."""
    return _ADVICE.get(error.errno or 0, error.strerror or str(error))


@contextmanager
def translated(folder: Path, says: str = KEPT) -> Iterator[Truth]:
    """An error of the disk as a sentence, and what is true of the folder all the same."""
    truth = Truth(says)
    try:
        yield truth
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"The sitemap cannot be written to {folder}: {reason(error)}; {truth.says}."
        ) from error
