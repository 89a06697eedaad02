"""Publishes a sitemap: writes the files, checks them with the guard, and replaces the old files.

Files are first written to a hidden staging folder next to the old ones, so that a refusal or a full disk leaves the old
files as they are. They are then moved by rename, the entry point last, so that a reader never sees a partial file or an
index without its sitemaps. Unchanged files are left untouched. Only one run at a time may publish to a folder.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio.to_thread

from crawler.errors import OutputError, PublishRefused
from crawler.model.facts import Entry, Extras
from crawler.model.failpoints import failpoint
from crawler.parse.url import Url, origin
from crawler.settings.sections import Dates, Guard, Output
from crawler.sitemap.publish import staging, stylesheet
from crawler.sitemap.publish.guard import KEPT, CrawlResult, EarlierPublications
from crawler.sitemap.publish.guard import check as check_guard
from crawler.sitemap.publish.manifest import (
    MANIFEST,
    Last,
    files_of,
    is_foreign,
    last_of,
    left_over,
    publications_before,
    shards_of,
    taken,
    written,
)
from crawler.sitemap.validate.file import Check
from crawler.sitemap.validate.findings import Code
from crawler.sitemap.write.writer import Part, Style, Writer

STDOUT: Final = "-"
SETTLED: Final = "settled.json"  # the manifest after old files are removed
CHUNK: Final = 65_536  # bytes
VALIDATED: Final = frozenset({"xml", "txt"})
BETWEEN: Final = "the old sitemap is still complete: run again"
DONE: Final = "the new sitemap is in place, but old files may remain next to it: run again"


@dataclass(frozen=True, slots=True)
class File:
    """A published file. `size`: bytes on disk."""

    name: str
    urls: int
    size: int
    unchanged: bool
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publication."""

    files: tuple[File, ...]
    urls: int
    folder: str
    robots_line: str  # empty for a format that no search engine reads
    refused: int = 0  # URLs that are not allowed in a sitemap


async def publish(
    entries: AsyncIterator[Sequence[Entry]],
    output: Output,
    dates: Dates,
    guard: Guard,
    site: str,
    *,
    crawled: CrawlResult,
    run_id: str,
    last_check: Callable[[], Awaitable[None]] | None = None,
) -> Published:
    """Publishes the sitemap of `entries`, which are sorted by URL.

    `site` is the crawled origin; its URLs are published below `publish_base`, if that is set. `crawled` is checked by the
    guard, and its outcomes go into the manifest. `last_check` is called just before files are replaced, and may raise. Raises `PublishRefused` if the guard refuses, `OutputError` if files
    cannot be written.
    """
    base = (output.publish_base or site).rstrip("/")
    style = Style(
        form=output.format,
        gzip=output.gzip,
        max_urls=output.max_urls,
        max_bytes=output.max_bytes,
        changefreq=dates.changefreq,
        priority=dates.priority,
        hreflang=dates.hreflang,
        stylesheet=stylesheet.NAME if output.stylesheet else None,
    )
    stylesheet.check(output)

    async def draft(place: Path, style: Style, last: Last, folder: str) -> tuple[list[Part], Published]:
        writer = Writer(place, base, style, shards_of(last, style.form), taken(last, style.form))
        async for chunk in entries:
            await anyio.to_thread.run_sync(writer.add, _rebased(chunk, site, base))
        parts = await anyio.to_thread.run_sync(writer.finish)
        urls = sum(part.urls for part in parts)
        check_guard(guard, urls, EarlierPublications(last.urls, last.recent), crawled)
        if not guard.force and style.form in VALIDATED:
            await anyio.to_thread.run_sync(_validate, place, parts, last)
        return parts, Published((), urls, folder, _robots_line(style, base, parts), writer.refused)

    if output.output == STDOUT:
        with _temporary() as place:
            parts, published = await draft(place, replace(style, gzip=False), Last(), "")
            if not guard.dry_run:
                _print(place, parts)
            return published
    folder = Path(output.output)
    with staging.translated(folder) as folder_state:
        _check_manifest(folder)
        mode = int(output.file_mode, 8)
        async with staging.locked_staging(folder, mode) as place:
            last = await anyio.to_thread.run_sync(last_of, folder)
            parts, published = await draft(place, style, last, str(folder))
            if guard.dry_run:
                return published
            # After --force later publications are compared with this one only.
            before = () if guard.force else publications_before(last, run_id, parts)[-KEPT + 1 :]
            gone = left_over(folder, last, [part.name for part in parts])
            for name, leaving in (MANIFEST, gone), (SETTLED, ()):
                manifest = written(
                    run_id,
                    parts,
                    leaving,
                    complete=crawled.complete,
                    counts=crawled.outcomes,
                    before=before,
                )
                (place / name).write_text(manifest, encoding="utf-8")
            await anyio.to_thread.run_sync(_make_durable, place, parts, mode)
            if last_check:
                await last_check()
            if output.stylesheet and stylesheet.stage(place, folder):
                _replace(place, folder, stylesheet.NAME, mode)
            files = await anyio.to_thread.run_sync(_swap, place, folder, parts, gone, folder_state, mode)
            return replace(published, files=files)


def _robots_line(style: Style, base: str, parts: Sequence[Part]) -> str:
    return f"Sitemap: {base}/{parts[-1].name}" if style.form in VALIDATED else ""


def check_folder(output: Output) -> None:
    """Raises `OutputError` if the folder is not writable: checked before a long crawl, not only after it."""
    folder = Path(output.output)
    if output.output != STDOUT:
        with staging.translated(folder):
            _check_manifest(folder)
            staging.check(folder, int(output.file_mode, 8))


def _check_manifest(folder: Path) -> None:
    if is_foreign(folder):
        raise OutputError(
            f"{folder / MANIFEST} belongs to another program and would be overwritten: choose another folder with --output, "
            "or move that file away."
        )


def _rebased(entries: Sequence[Entry], site: str, base: str) -> Sequence[Entry]:
    """The entries with the crawled origin replaced by the published base. URLs of other origins are unchanged."""
    if site == base:
        return entries

    def moved(url: Url) -> Url:
        return Url(base + url[len(site) :]) if origin(url) == site else url

    return [
        Entry(moved(entry.url), entry.lastmod, entry.extras and _moved(entry.extras, moved))
        for entry in entries
    ]


def _moved(extras: Extras, moved: Callable[[Url], Url]) -> Extras:
    return extras._replace(alternates=tuple((code, moved(url)) for code, url in extras.alternates))


def _validate(place: Path, parts: Sequence[Part], last: Last) -> None:
    """Raises `PublishRefused` if the validator finds an error in a new file.

    Hosts of URLs are not checked: they are determined by the scope of the crawl.
    """
    known = {file.get("sha256") for file in files_of(last.manifest)}
    for part in parts:
        if part.sha256 in known:
            continue
        with open(place / part.name, "rb") as file:
            chunks = iter(lambda: file.read(CHUNK), b"")
            for found in Check(part.name, home=None, now=datetime.now(UTC)).run(chunks):
                if found.severity == "error" and found.code is not Code.LOC_HOST:
                    raise PublishRefused(
                        f"The new sitemap is not valid ({found.place}, line {found.line}: {found.says}); the old files "
                        "are kept. This is a bug: please report it. --force publishes anyway."
                    )


def _make_durable(place: Path, parts: Sequence[Part], mode: int) -> None:
    for name in [*(part.name for part in parts), MANIFEST, SETTLED]:
        with failpoint(f"fsync of {name}"):
            (place / name).chmod(mode)
            _sync(place / name)


def _swap(
    place: Path,
    folder: Path,
    parts: Sequence[Part],
    gone: Sequence[str],
    folder_state: staging.FolderState,
    mode: int,
) -> tuple[File, ...]:
    """Moves the files into place, the entry point last; then removes the files in `gone`.

    The manifest is moved before the entry point, so that after a crash in between the next run assigns the same names.
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


def _replace(place: Path, folder: Path, name: str, mode: int) -> None:
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


def _print(place: Path, parts: Sequence[Part]) -> None:
    if len(parts) > 1:
        raise OutputError(
            f"{len(parts) - 1:,} files cannot be written to stdout: choose a folder with --output."
        )
    try:
        sys.stdout.flush()
        # A separate buffer: after an error, the rest of sys.stdout's would be written again at exit.
        with (
            open(place / parts[0].name, "rb") as file,
            open(sys.stdout.fileno(), "wb", closefd=False) as out,
        ):
            shutil.copyfileobj(file, out)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"The sitemap cannot be written to standard output: {staging.reason(error)}."
        ) from error


@contextmanager
def _temporary() -> Iterator[Path]:
    """A staging folder for output to stdout."""
    folder = Path(tempfile.gettempdir())
    with staging.translated(folder, "nothing was printed"), staging.temporary_folder(folder) as place:
        yield place
