"""Folders for temporary files: a sitemap that is being made, a copy of a state, the files of a browser.

Each is locked while its process lives, and removed on exit. A process that is killed leaves its folders
behind; the next one removes them, but never those of a living process or of another user.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves stays
    fcntl = None  # type: ignore[assignment]

PREFIX: Final = "sitemap-crawler-process-"


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder in `TMPDIR`, else `/tmp`. Raises `OSError`."""
    _remove_abandoned()
    place, handle = _made()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _made() -> tuple[Path, int | None]:
    """A folder, and the handle that has it locked: none if there are no locks."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):
            handle = _locked(place)
            if place.exists():
                return place, handle
            if handle is not None:
                os.close(handle)
        # another process took it for abandoned before it was locked


def _locked(place: Path) -> int | None:
    if fcntl is None:
        return None
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    with suppress(OSError):  # some network file systems: then no process can lock it, nor remove it
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _remove_abandoned() -> None:
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if fcntl else ():
        with suppress(OSError):
            if place.lstat().st_uid == os.geteuid():
                _remove(place)


def _remove(place: Path) -> None:
    """Raises `OSError` if another process has locked it, or if it is a symbolic link."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place)
    finally:
        os.close(handle)
