"""The folder for the files of the browser and its driver: the profile, with what pages have stored.

It is locked while its process lives. A process that is killed leaves it behind; the next one removes it.
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

PREFIX: Final = "sitemap-crawler-browser-"
# The driver passes on messages, nearly all of which is garbage at once: with a nursery of a megabyte and not
# 16 it takes 88 MB and not 110, in the same time.
LITTLE_GARBAGE: Final = "--max-semi-space-size=1"


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed on exit, as are those whose processes were killed."""
    _remove_abandoned()
    while True:
        place = Path(tempfile.mkdtemp(prefix=PREFIX))
        with _locked(place, wait=True):
            if not place.exists():  # another process took it for abandoned before it was locked
                continue
            try:
                yield place
            finally:
                shutil.rmtree(place, ignore_errors=True)
        return


def _remove_abandoned() -> None:
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if fcntl else ():
        with suppress(OSError):
            if place.lstat().st_uid == os.geteuid():
                with _locked(place, wait=False):
                    shutil.rmtree(place)


@contextmanager
def _locked(place: Path, *, wait: bool) -> Iterator[None]:
    """Raises `OSError` if another process has locked it, or if it is a symbolic link."""
    if fcntl is None:
        yield
        return
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)


@contextmanager
def environment_of_driver(place: Path) -> Iterator[None]:
    """Processes that are started meanwhile keep their temporary files there, and Node.js little garbage.

    This process has chosen its own place before (`tempfile` remembers it).
    """
    options = os.environ.get("NODE_OPTIONS", "")
    new = {"TMPDIR": str(place), "NODE_OPTIONS": f"{LITTLE_GARBAGE} {options}".strip()}
    if "PLAYWRIGHT_NODEJS_PATH" in os.environ:  # another version may refuse the option
        new["NODE_OPTIONS"] = options
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
