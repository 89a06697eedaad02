"""Publication: entries become files, the guard looks at them, and they replace the old ones in one quick step.

All is written into a hidden folder beside the old files first. What the guard refuses, or a disk that is full, costs
that folder and nothing else. Files then move in by rename, the entry point last, so that a reader never meets half
a file; what is the same as before is left untouched.
"""

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from crawler.errors import OutputError, PublishRefused
from crawler.faults import around
from crawler.model import Entry
from crawler.settings import Dates, Guard, Output
from crawler.sitemap.check import Check
from crawler.sitemap.findings import Code
from crawler.sitemap.manifest import (
    MANIFEST,
    Manifest,
    count,
    facts_of,
    files_of,
    names_of,
    read_manifest,
    shards_of,
)
from crawler.sitemap.write import Part, Style, Writer
from crawler.urls import Url, origin

STAGING: Final = ".staging-"
STDOUT: Final = "-"
CHUNK: Final = 65_536  # bytes
VALIDATED: Final = frozenset({"xml", "txt"})


@dataclass(frozen=True, slots=True)
class File:
    """A published file. `size` in bytes, as it lies on the disk."""

    name: str
    urls: int
    size: int
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Published:
    """What came of it."""

    files: tuple[File, ...]
    urls: int
    folder: str
    robots_line: str
    refused: int = 0  # URLs that no sitemap may hold


async def publish(
    entries: AsyncIterator[Sequence[Entry]],
    output: Output,
    dates: Dates,
    guard: Guard,
    site: str,
    *,
    complete: bool,
    counts: Mapping[str, int],
    run_id: str,
) -> Published:
    """Write the sitemap of `entries`, which come in order of their URL.

    `site` is the origin that was crawled; URLs below it are published below `publish_base`, if one is set.
    `complete` says whether the crawl came to its end; `counts`, the outcomes by code, go into the manifest. Raises
    `PublishRefused` when the guard keeps the old files, `OutputError` when the new ones cannot be written.
    """
    base = (output.publish_base or site).rstrip("/")
    style = Style(
        output.format, output.gzip, output.max_urls, output.max_bytes, dates.changefreq, dates.priority
    )
    folder = Path(tempfile.gettempdir() if output.output == STDOUT else output.output)
    with _translated(folder), _staging(folder) as staging:
        if output.output == STDOUT:
            style = Style(
                style.form, False, style.max_urls, style.max_bytes, style.changefreq, style.priority
            )
        old = None if output.output == STDOUT else read_manifest(folder)
        writer = Writer(staging, base, style, shards_of(old, style.form))
        async for chunk in entries:
            await anyio.to_thread.run_sync(writer.add, _moved(chunk, site, base))
        parts = await anyio.to_thread.run_sync(writer.finish)
        urls = sum(part.urls for part in parts)
        _check(guard, urls, old, complete=complete)
        if not guard.force and style.form in VALIDATED:
            await anyio.to_thread.run_sync(_validate, staging, parts, old)
        robots = f"Sitemap: {base}/{parts[-1].name}"
        if output.output == STDOUT:
            _print(staging, parts)
            return Published((), urls, "", robots, writer.refused)
        if guard.dry_run:
            return Published((), urls, str(folder), robots, writer.refused)
        facts = {"run": run_id, "complete": complete, "urls": urls, "outcomes": dict(sorted(counts.items()))}
        files = await anyio.to_thread.run_sync(_swap, staging, folder, parts, facts, old)
        return Published(files, urls, str(folder), robots, writer.refused)


def check_folder(output: Output) -> None:
    """Whether files can be written where they shall go: told before a long crawl, not after. Raises `OutputError`."""
    folder = Path(output.output)
    if output.output != STDOUT:
        with _translated(folder), _staging(folder):
            pass


def _moved(entries: Sequence[Entry], site: str, base: str) -> Sequence[Entry]:
    """The crawled origin replaced by the published one. URLs of other origins stay as they are."""
    if site == base:
        return entries
    return [
        Entry(Url(base + entry.url[len(site) :]), entry.lastmod) if origin(entry.url) == site else entry
        for entry in entries
    ]


def _check(guard: Guard, urls: int, old: Manifest | None, *, complete: bool) -> None:
    """The guard. Raises `PublishRefused` with what, why, and how to override."""
    if urls == 0:
        raise PublishRefused(
            "No page is listed, and an empty sitemap is never published; the old files are kept."
        )
    if guard.force:
        return
    if not complete and not guard.allow_partial:
        raise PublishRefused(
            "The crawl is not complete; the old files are kept. --allow-partial publishes anyway."
        )
    if urls < guard.min_urls:
        raise PublishRefused(
            f"{urls:,} URLs are fewer than --min-urls {guard.min_urls:,}; the old files are kept. "
            "--force publishes anyway."
        )
    before = count(old)
    if urls < before * (1 - guard.max_shrink):
        raise PublishRefused(
            f"{urls:,} URLs where {before:,} are published: {1 - urls / before:.0%} fewer, and --max-shrink is "
            f"{guard.max_shrink:.0%}; the old files are kept. --force publishes anyway."
        )


def _validate(staging: Path, parts: Sequence[Part], old: Manifest | None) -> None:
    """No file is published that our own validator finds an error in. Those published before were looked at then.

    On which hosts its URLs may be is for the scope of the crawl. Raises `PublishRefused`.
    """
    known = {file.get("sha256") for file in files_of(old)}
    for part in parts:
        if part.sha256 in known:
            continue
        with open(staging / part.name, "rb") as file:
            chunks = iter(lambda: file.read(CHUNK), b"")
            for found in Check(part.name, home=None, now=datetime.now(UTC)).run(chunks):
                if found.severity == "error" and found.code is not Code.LOC_HOST:
                    raise PublishRefused(
                        f"The new sitemap is not valid ({found.place}, line {found.line}: {found.says}); the old files "
                        "are kept. This is a bug: please report it. --force publishes anyway."
                    )


def _swap(
    staging: Path,
    folder: Path,
    parts: Sequence[Part],
    facts: Mapping[str, Any],
    old: Manifest | None,
) -> tuple[File, ...]:
    """Move the files in, the entry point last, then the manifest; remove what it no longer names."""
    for part in parts:
        with around(f"fsync of {part.name}"):
            _sync(staging / part.name)
    files = tuple(File(p.name, p.urls, p.size, _is_there(folder / p.name, p)) for p in parts)
    for file in files:
        if not file.unchanged:
            with around(f"rename of {file.name}"):
                (staging / file.name).replace(folder / file.name)
    listed = [facts_of(part) for part in parts]
    manifest = staging / MANIFEST
    manifest.write_text(json.dumps({**facts, "files": listed}, indent=2) + "\n", encoding="utf-8")
    with around("fsync of the manifest"):
        _sync(manifest)
    with around("rename of the manifest"):
        manifest.replace(folder / MANIFEST)
    for name in names_of(old) - {part.name for part in parts}:
        with around(f"removal of {name}"):
            (folder / name).unlink(missing_ok=True)
    with around("fsync of the folder"):
        _sync(folder)
    return files


def _is_there(path: Path, part: Part) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == part.sha256
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    """To the disk, so that a rename never outlives the bytes it names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _print(staging: Path, parts: Sequence[Part]) -> None:
    if len(parts) > 1:
        raise OutputError(f"{len(parts) - 1:,} files do not fit stdout: name a folder with --output.")
    with open(staging / parts[0].name, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A folder on the same disk as `folder` that is gone afterwards, with those that dead runs left."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder != Path(tempfile.gettempdir()):
        for left in folder.glob(STAGING + "*"):
            shutil.rmtree(left, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


_ADVICE: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EACCES: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.EEXIST: "a file is in the way",
    errno.ENOTDIR: "a file is in the way",
}


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """An error of the disk as a sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = _ADVICE.get(error.errno or 0, error.strerror or str(error))
        raise OutputError(
            f"The sitemap cannot be written to {folder}: {reason}; the old files are kept."
        ) from error
