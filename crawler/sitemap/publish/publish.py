"""Publishes a sitemap: writes the files, checks them with the guard, and replaces the old files.

Files are first written to a hidden staging folder next to the old ones, so that a refusal or a full disk
leaves the old files as they are. They are then moved by rename, the entry point last, so that a reader never
sees a partial file or an index without its sitemaps (`swap`), or put into an object store (`upload`).
Unchanged files are left untouched. Only one run at a time may publish to a place.
"""

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import asdict, replace

from crawler import scratch
from crawler.errors import ConfigError, OutputError, PublishRefused
from crawler.model.facts import Entry
from crawler.parse.publish_base import PublishBase
from crawler.rules.failures import COMPARED
from crawler.rules.page_rules import SitemapSections
from crawler.settings.object_url import ObjectUrl, is_object_url, parsed
from crawler.settings.sections import DEFAULTS, HTML, Guard, Output, Settings
from crawler.settings.tables import SitemapSection
from crawler.sitemap.publish import staging, stylesheet
from crawler.sitemap.publish.difference import Difference, compare
from crawler.sitemap.publish.guard import CrawlResult, EarlierPublications
from crawler.sitemap.publish.guard import check as check_guard
from crawler.sitemap.publish.identity import SitemapIdentity
from crawler.sitemap.publish.manifest import (
    MANIFEST,
    SECTIONS,
    Last,
    PublicationRecord,
    files_of,
    is_foreign,
    last_of,
    left_over,
    old_files,
    publications_before,
)
from crawler.sitemap.publish.published import Published
from crawler.sitemap.publish.swap import SETTLED, make_durable, move, swap
from crawler.sitemap.tree import read_file
from crawler.sitemap.validate.file import Check
from crawler.sitemap.validate.findings import FaultCode
from crawler.sitemap.write.shards import OldFiles
from crawler.sitemap.write.writer import FORMS, HTML_PAGE, Part, Style, Writer

if TYPE_CHECKING:
    from crawler.sitemap.publish.object_store import Store
    from crawler.sitemap.write.html_pages import HtmlPages

MIRROR: Final = ".published"  # folder with a copy of what is in an object store
VALIDATED: Final = frozenset({"xml", "txt"})

LastCheck = Callable[[], Awaitable[None]]
FilesOf = Callable[[Sequence[str]], Sequence[Path]]


class CrawlToPublish(Struct, frozen=True):
    """The crawl whose sitemap is published."""

    site: str  # the crawled origin: its URLs are published below `publish_base`, if that is set
    result: CrawlResult  # is checked by the guard; its outcomes go into the manifest
    run_id: str
    # Names the run in an object store: attempts with the same one take over from each other.
    writer: str | None = None
    namespaces: Sequence[tuple[str, str]] = ()  # of the optional elements: prefix and URI


async def publish(
    entries: AsyncIterator[Sequence[Entry]],
    settings: Settings,
    crawl: CrawlToPublish,
    *,
    last_check: LastCheck | None = None,
    waits: Callable[[float], bool] = staging.is_patient,
) -> Published:
    """Publishes the sitemap of `entries`, which are sorted by URL.

    `last_check` is called just before files are replaced, and may raise. `waits`: whether to wait on for a
    run that has locked the folder, after so many seconds. Raises `PublishRefused` if the guard refuses,
    `OutputError` if files cannot be written, `OutputBusy` if another run is publishing there.
    """
    output, dates = settings.output, settings.dates
    check_settings(output)
    # What is one file has no sections.
    sections = settings.split.section if FORMS[output.form].splits and not output.is_stdout else ()
    style = Style(
        form=output.form,
        gzip=output.gzip and not output.is_stdout,
        max_urls=output.max_urls,
        max_bytes=output.max_bytes,
        changefreq=dates.changefreq,
        priority=dates.priority,
        namespaces=tuple(crawl.namespaces),
        stylesheet=stylesheet.NAME if output.stylesheet else None,
        sections=tuple(section.name for section in sections),
    )
    base = PublishBase((output.publish_base or crawl.site).rstrip("/"), crawl.site)
    draft = _Draft(entries, style, settings.guard, base, crawl, sections, output.format == HTML)
    if output.is_stdout:
        return await _print_draft(draft)
    if url := parsed(output.output):
        return await _put_draft(draft, output, url, last_check)
    return await _move_draft(draft, output, last_check, waits)


def check_settings(output: Output) -> None:
    """Raises `ConfigError` for settings that this kind of output cannot have."""
    stylesheet.check(output)
    if output.format == HTML and output.is_stdout:
        raise ConfigError("--format html is several files: choose a folder with --output.")
    if not is_object_url(output.output):
        if output.cache_control:
            raise ConfigError(
                "--cache-control is for object stores (s3://, gs://, az://): for a folder, set it in the web "
                "server."
            )
    elif output.file_mode != DEFAULTS.output.file_mode:
        raise ConfigError(
            f"--file-mode is for folders: who may read {output.output} is set where the bucket is "
            "administered."
        )


class _Draft(Struct, eq=False):
    """The sitemap of the entries, before it is published."""

    entries: AsyncIterator[Sequence[Entry]]
    style: Style
    guard: Guard
    base: PublishBase
    crawl: CrawlToPublish
    sections: Sequence[SitemapSection] = ()
    has_pages: bool = False  # for people

    async def write(
        self, place: Path, last: Last, output: str, published: "FilesOf | None" = None
    ) -> tuple[list[Part], Published]:
        """Writes the files, and checks them. Raises `PublishRefused`.

        `published`: makes those of these published files that are there readable, and returns their paths.
        """
        form, base = self.style.form, self.base
        writer = Writer(place, base.base, self.style, self._old_files(last))
        sections = SitemapSections(self.sections)
        pages = self._html_pages(place, last) if self.has_pages else None
        async for chunk in self.entries:
            for name, entries in sections.grouped(chunk).items():
                await anyio.to_thread.run_sync(writer.add, rebased(entries, base), name)
            if pages:
                await anyio.to_thread.run_sync(pages.add, rebased(chunk, base))
        parts = await anyio.to_thread.run_sync(writer.finish)
        if pages:
            parts = [*await anyio.to_thread.run_sync(pages.finish), *parts]
        urls = sum(part.urls for part in parts)
        found = Difference()
        if published:
            found = await anyio.to_thread.run_sync(_difference, place, parts, last, published)
        identity = SitemapIdentity.read((last.manifest or {}).get("site"))
        before = EarlierPublications(last.urls, last.recent, identity, found)
        check_guard(self.guard, urls, before, self.crawl.result)
        if not self.guard.force and form in VALIDATED:
            await anyio.to_thread.run_sync(_validate, place, parts, last)
        line = f"Sitemap: {base.base}/{parts[-1].name}" if form in VALIDATED else ""
        changes = {"added": found.added, "removed": found.removed, "changed": found.changed}
        return parts, Published((), urls, output, line, writer.refused, optional=writer.optional, **changes)

    def _html_pages(self, place: Path, last: Last) -> "HtmlPages":
        from crawler.sitemap.write.html_pages import HtmlPages  # noqa: PLC0415 - few sitemaps have them

        return HtmlPages(place, self.base.base, old_files(last, HTML))

    def _old_files(self, last: Last) -> Mapping[str, OldFiles]:
        """The files of each section; if the sections changed, only their numbers, as ranges may shrink."""
        suffix = FORMS[self.style.form].suffix
        old = {name: old_files(last, suffix, name) for name in ("", *self.style.sections)}
        if (last.manifest or {}).get(SECTIONS, []) == self._facts():
            return old
        return {
            name: OldFiles(taken={*files.taken, *(shard.number for shard in files.shards)})
            for name, files in old.items()
        }

    def _facts(self) -> list[Mapping[str, str]]:
        return [asdict(section) for section in self.sections]

    def record(self, last: Last, parts: Sequence[Part]) -> PublicationRecord:
        """What manifests say of these parts."""
        run_id, crawled = self.crawl.run_id, self.crawl.result
        before = publications_before(last, run_id, parts)[-COMPARED + 1 :]
        most = max(before, default=0) - crawled.vanished.passing
        before = tuple(min(count, most) for count in before)
        urls, usual = sum(part.urls for part in parts), 1 - DEFAULTS.guard.max_shrink
        is_redesigned = self.guard.max_shrink >= 1 and urls < usual * max(before, default=0)
        # Otherwise the next night would be refused.
        recent = () if self.guard.force or is_redesigned else before
        return PublicationRecord(
            run_id, parts, crawled.complete, crawled.outcomes, recent, crawled.identity, self._facts()
        )


async def _print_draft(draft: _Draft, folder: str = "") -> Published:
    """Prints the sitemap, which is made in a temporary folder. `folder`: where a dry run would write."""
    with _temporary("nothing was printed") as place:
        parts, published = await draft.write(place, Last(), folder)
        if not draft.guard.dry_run:
            _print(place, parts)
        return published


async def _move_draft(
    draft: _Draft, output: Output, last_check: LastCheck | None, waits: Callable[[float], bool]
) -> Published:
    folder, mode = Path(output.output), int(output.file_mode, 8)
    if draft.guard.dry_run and not await anyio.Path(folder).exists():  # nothing is written, not even a folder
        return await _print_draft(draft, str(folder))
    with staging.translated(folder) as state:
        _check_manifest(folder)
        _check_page(output, folder)
        async with staging.locked_staging(folder, mode, waits) as place:
            last = await anyio.to_thread.run_sync(last_of, folder)
            parts, published = await draft.write(
                place, last, str(folder), lambda names: [folder / name for name in names]
            )
            if draft.guard.dry_run:
                return published
            names = left_over(last, [part.name for part in parts])
            gone = [name for name in names if (folder / name).is_file() and not _is_of_others(folder, name)]
            record = draft.record(last, parts)
            for name, leaving in (MANIFEST, gone), (SETTLED, []):
                (place / name).write_text(record.manifest(leaving), encoding="utf-8")
            await anyio.to_thread.run_sync(make_durable, place, parts, mode)
            if last_check:
                await last_check()
            if output.stylesheet and not (folder / stylesheet.NAME).exists():
                move(place, folder, stylesheet.stage(place), mode)
            files = await anyio.to_thread.run_sync(swap, place, folder, parts, gone, state, mode)
            return replace(published, files=files)


async def _put_draft(
    draft: _Draft, output: Output, url: ObjectUrl, last_check: LastCheck | None
) -> Published:
    from crawler.sitemap.publish import upload  # noqa: PLC0415 - most sitemaps are put into a folder
    from crawler.sitemap.publish.object_store import connect  # noqa: PLC0415 - as above

    store, dry = connect(url, output.publish_timeout), draft.guard.dry_run
    writer = draft.crawl.writer or token_hex(8)
    with _temporary() as place:
        with staging.translated(url):
            before = await anyio.to_thread.run_sync(upload.look, store, mirror := place / MIRROR)
            _check_manifest(mirror, url)
            await anyio.to_thread.run_sync(_check_page, output, mirror, store)
            if not dry:
                upload.check_unclaimed(store, before, writer, datetime.now(UTC))
        with staging.translated(url):
            parts, published = await draft.write(
                place, before.last, str(url), partial(upload.mirrored, store, mirror)
            )
        if dry:
            return published
        if last_check:
            await last_check()
        with staging.translated(url) as state:
            await anyio.to_thread.run_sync(upload.check_conditions, store, before.manifest)
            record = draft.record(before.last, parts)
            put = upload.Upload(store, place, parts, before, record, writer, output, state)
            return replace(published, files=await anyio.to_thread.run_sync(put))


async def check_output(output: Output) -> None:
    """Raises `OutputError` if files cannot be written: checked before a long crawl, not only after it."""
    if url := parsed(output.output):
        from crawler.sitemap.publish.object_store import abandonable  # noqa: PLC0415 - as above

        await abandonable(partial(_check_store, url, output.publish_timeout))
    elif not output.is_stdout:
        check_folder(output)


def check_folder(output: Output) -> None:
    """The same for a folder."""
    folder = Path(output.output)
    with staging.translated(folder):
        _check_manifest(folder)
        _check_page(output, folder)
        staging.check(folder, int(output.file_mode, 8))


def _check_store(url: ObjectUrl, seconds: float) -> None:
    from crawler.sitemap.publish import upload  # noqa: PLC0415 - as above
    from crawler.sitemap.publish.object_store import connect  # noqa: PLC0415 - as above

    store = connect(url, seconds)
    with _temporary() as place, staging.translated(url):
        manifest = store.get(MANIFEST)
        (place / MANIFEST).write_bytes(manifest.body if manifest else b"")
        _check_manifest(place, url)
        upload.check_conditions(store, manifest)


def _check_manifest(folder: Path, place: object = None) -> None:
    """`place`: what to call it, if the folder is a copy."""
    if is_foreign(folder):
        raise OutputError(
            f"{place or folder}/{MANIFEST} belongs to another program and would be overwritten: choose "
            "another place with --output, or move that file away."
        )


def _is_of_others(folder: Path, name: str) -> bool:
    """Whether a file that the manifest names was put there by others."""
    from crawler.sitemap.write import html_pages  # noqa: PLC0415 - few sitemaps have pages

    return name == HTML_PAGE and html_pages.is_foreign(folder)


def _check_page(output: Output, folder: Path, store: "Store | None" = None) -> None:
    """Raises `OutputError` if a page of others would be overwritten. `folder`: a copy of what a store has."""
    if output.format != HTML:
        return
    from crawler.sitemap.write.html_pages import check_place  # noqa: PLC0415 - few sitemaps have pages

    if store:
        store.download(HTML_PAGE, folder / HTML_PAGE)
    check_place(folder, store and store.url)


def rebased(entries: Sequence[Entry], base: PublishBase) -> Sequence[Entry]:
    """The entries as they are published."""
    return [entry.mapped(base.published) for entry in entries] if base.maps else entries


def _difference(place: Path, parts: Sequence[Part], last: Last, published: FilesOf) -> Difference:
    """What the new files change. Those that are there already are not read."""
    digests = {part.sha256 for part in parts if part.urls}
    names = [name for name, digest in last.digests.items() if digest not in digests]
    known = frozenset(last.digests.values())
    left = {part.name: place / part.name for part in parts if part.urls and part.sha256 not in known}
    unchanged = sum(part.urls for part in parts if part.urls and part.sha256 in known)
    if not last.digests:
        return Difference(added=sum(part.urls for part in parts))
    found = compare(dict(zip(names, published(names), strict=True)), left, unchanged)
    forms = {name.removesuffix(".gz").rpartition(".")[2] for name in [*names, *left]}
    return found if len(forms) < 2 else found._replace(changed=0)


def _validate(place: Path, parts: Sequence[Part], last: Last) -> None:
    """Raises `PublishRefused` if the validator finds an error in a new file.

    Hosts of URLs are not checked: they are determined by the scope of the crawl.
    """
    known = {file.get("sha256") for file in files_of(last.manifest)}
    for part in parts:
        if part.sha256 in known or part.name.endswith(f".{HTML}"):
            continue
        check = Check(part.name, home=None, now=datetime.now(UTC))
        for found in check.run(read_file(str(place / part.name))):
            if found.severity == "error" and found.code is not FaultCode.LOC_HOST:
                raise PublishRefused(
                    f"The new sitemap is not valid ({found.place}, line {found.line}: {found.says}); the old "
                    "files are kept. This is a bug: please report it. --force publishes anyway."
                )


def _print(place: Path, parts: Sequence[Part]) -> None:
    if len(parts) > 1:
        raise OutputError(
            f"{len(parts) - 1:,} files cannot be written to stdout: choose a folder with --output."
        )
    try:
        sys.stdout.flush()
        # A separate buffer: after an error, the rest of sys.stdout's would be written again at exit.
        stdout = sys.stdout.fileno()
        with open(place / parts[0].name, "rb") as file, open(stdout, "wb", closefd=False) as out:
            shutil.copyfileobj(file, out)
    except BrokenPipeError:
        raise
    except OSError as error:
        words = f"The sitemap cannot be written to standard output: {staging.reason(error)}."
        raise OutputError(words) from error


@contextmanager
def _temporary(says: str = staging.OLD_FILES_KEPT) -> Iterator[Path]:
    """A folder for files of an output that is no folder. `says`: about the output, after a disk error."""
    with staging.translated(tempfile.gettempdir(), says), scratch.folder() as place:
        yield place
