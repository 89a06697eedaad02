"""Replaces the sitemap files of a folder by rename: parts, manifest, entry point; then removes obsolete
files.

A reader sees the old sitemap or the new one, never an index without its sitemaps. What is replaced is decided
by `publish`; the same for an object store is `upload`.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawler.model.failpoints import failpoint
from crawler.sitemap.publish import staging
from crawler.sitemap.publish.manifest import MANIFEST
from crawler.sitemap.publish.published import File
from crawler.sitemap.write.writer import Part

SETTLED: Final = "settled.json"  # the manifest after old files are removed
BETWEEN: Final = "the old sitemap is still complete: run again"
DONE: Final = "the new sitemap is in place, but old files may remain next to it: run again"


def make_durable(place: Path, parts: Sequence[Part], mode: int) -> None:
    """Syncs the prepared files to disk, with their permissions."""
    for name in [*(part.name for part in parts), MANIFEST, SETTLED]:
        with failpoint(f"fsync of {name}"):
            (place / name).chmod(mode)
            _sync(place / name)


def swap(
    place: Path,
    folder: Path,
    parts: Sequence[Part],
    gone: Sequence[str],
    folder_state: staging.FolderState,
    mode: int,
) -> tuple[File, ...]:
    """Moves the files into place, the entry point last; then removes the files in `gone`.

    The manifest is moved before the entry point, so that after a crash in between the next run assigns the
    same names.
    """
    names = [part.name for part in parts]
    files = tuple(File(p.name, p.urls, p.size, _is_there(folder / p.name, p), p.sha256) for p in parts)
    unchanged = {file.name for file in files if file.unchanged}
    for name in [*names[:-1], MANIFEST, names[-1]]:
        if name in unchanged:
            with suppress(OSError):  # it may belong to another user
                (folder / name).chmod(mode)
            continue
        with failpoint(f"rename of {name}"):
            (place / name).replace(folder / name)
        folder_state.says = BETWEEN
    folder_state.says = DONE
    with failpoint("fsync of the folder"):
        _sync(folder)
    for name in gone:
        with failpoint(f"removal of {name}"):
            (folder / name).unlink(missing_ok=True)
    if gone:
        with failpoint(f"rename of {SETTLED}"):
            (place / SETTLED).replace(folder / MANIFEST)
    return files


def move(place: Path, folder: Path, name: str, mode: int) -> None:
    """Moves one file out of the staging folder."""
    (place / name).chmod(mode)
    _sync(place / name)
    with failpoint(f"rename of {name}"):
        (place / name).replace(folder / name)


def _is_there(path: Path, part: Part) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == part.sha256
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    """Syncs a file to disk, so that a rename is never durable before the content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
