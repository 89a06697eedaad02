"""`diff`: the differences between two sitemaps, with reasons from a state."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from crawler.app.publication import published_as
from crawler.cli.output import remark
from crawler.cli.rows import Rows
from crawler.cli.saved_state import at_state, opened_state, why_unknown
from crawler.cli.sitemap_sources import opened_sources, source_named
from crawler.errors import ConfigError, Exit
from crawler.model.outcome import Listed, Moved, code, says
from crawler.model.protocol import MAX_BYTES
from crawler.model.rows import UrlRecord
from crawler.model.run import Run
from crawler.parse.dates import read_w3c, w3c
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, are_plain, is_plain
from crawler.ports import Record, reads
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.settings.sections import Settings
from crawler.sitemap.diff import NEW, OLD, Comparison, EntryChange
from crawler.sitemap.read import Found, read
from crawler.sitemap.tree import Places, Unreadable, is_web, resolve, walk

SIGNS: Final = {"+": "added", "-": "removed", "~": "changed"}
FIELDS: Final = ("change", "url", "old", "new", "reason")
BATCH: Final = 1_000  # entries whose URLs are looked at together
STATE: Final = b"SQLite format 3\0"


async def compare(settings: Settings, old: str, new: str, *, form: str) -> Exit:
    """Prints the differences. Exit 8 if there are any."""
    signs: Counter[str] = Counter()
    rows = None if form == "text" else Rows(form, FIELDS, "changes")
    old, new = source_named(old), source_named(new)
    state = new if _is_state(new) else settings.state.state
    async with AsyncExitStack() as stack:
        web = [place for place in (old, new) if is_web(place)]
        places = await stack.enter_async_context(opened_sources(settings, web))
        comparison = stack.enter_context(Comparison())
        for side, place in ((OLD, old), (NEW, new)):
            await _load(comparison, side, place, places, settings)
        reasons = _Reasons()
        if state:
            frontier = await stack.enter_async_context(opened_state(at_state(settings, state), None))
            reasons = _Reasons(
                frontier, await frontier.read(reads.NewestRun()), await published_as(frontier, settings)
            )
        for change in comparison.changes(_date):
            signs[change.sign] += 1
            _show(change, await reasons.of(change), rows)
        totals = {OLD: comparison.count(OLD), NEW: comparison.count(NEW)}
    facts = {"added": signs["+"], "removed": signs["-"], "changed": signs["~"]}
    if rows:
        rows.end(totals=totals | facts)
    else:
        words = ", ".join(f"{count:,} {word}" for word, count in facts.items())
        before = counted(totals[OLD], "URL")
        remark(f"{before} before, {totals[NEW]:,} after: {words}.")
    return Exit.FINDINGS if signs else Exit.OK


def _is_state(place: str) -> bool:
    try:
        with open(place, "rb") as file:
            return file.read(len(STATE)) == STATE
    except OSError:
        return False


async def _load(comparison: Comparison, side: str, place: str, places: Places, settings: Settings) -> None:
    if not _is_state(place):
        await _load_sitemap(comparison, side, place, places)
        return
    async with opened_state(at_state(settings, place), None) as frontier:
        base = await published_as(frontier, settings)
        async for chunk in frontier.stream(reads.ListedEntries()):
            entries = ((base.published(e.url) if base else e.url, e.lastmod) for e in chunk)
            comparison.load(side, ((url, w3c(lastmod) if lastmod else None) for url, lastmod in entries))


async def _load_sitemap(comparison: Comparison, side: str, place: str, places: Places) -> None:
    try:
        for node in walk(resolve(place)):
            place = node.index or node.loc  # which is named if the file cannot be located
            place = places.locate(node)
            node.children = await _load_file(comparison, side, place, places)
    except (Unreadable, OSError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{place} cannot be read: {reason}.") from error


async def _load_file(comparison: Comparison, side: str, place: str, places: Places) -> list[str]:
    """Load one file; the sitemaps that it names if it is an index."""
    children: list[str] = []
    reading = read(await places.open(place), _limit(place))
    comparison.load(side, _pages(reading, children, place))
    if not reading.is_sitemap:
        raise ConfigError(
            f"{place} is not a sitemap: "
            f"it {reading.malformed or 'has no entries and the wrong root element'}."
        )
    if reading.malformed:
        remark(f"{printable(place)}: {printable(reading.malformed)}; only the readable part was compared.")
    return children


def _limit(place: str) -> int:
    """The size limit in bytes. None in effect for JSON lines, which are not split into files."""
    return 1 << 40 if ".jsonl" in Path(place).suffixes and not is_web(place) else MAX_BYTES


def _pages(found: Iterable[Found], children: list[str], place: str) -> Iterator[tuple[str, str | None]]:
    """Normalised URLs, and dates as written; the sitemaps of an index are added to `children`."""
    normalise, base = Normaliser(strip=()), place if is_web(place) else None
    rest = iter(found)
    while batch := list(islice(rest, BATCH)):
        children += [item.loc for item in batch if item.kind == "sitemap"]
        pages = [(item.loc, item.lastmod) for item in batch if item.kind == "page"]
        if are_plain([loc for loc, _ in pages]):  # as nearly always
            yield from pages
            continue
        for loc, date in pages:
            if url := loc if is_plain(loc) else normalise(loc, base):
                yield url, date


def _date(text: str) -> str | None:
    """A date as it is compared; None if it is none."""
    at = read_w3c(text)
    return w3c(at) if at else None


class _Reasons(Struct, frozen=True):
    """Why URLs were added or removed, according to a state, if there is one."""

    pages: Record | None = None
    newest: Run | None = None
    base: PublishBase | None = None

    async def of(self, change: EntryChange) -> str:
        """May be empty."""
        if self.pages is None or change.sign == "~":
            return ""
        url = self.base.crawled(Url(change.url), exactly=True) if self.base else Url(change.url)
        record = await self.pages.read(reads.RecordOf(url))
        if self.newest and (unknown := why_unknown(record, self.newest)):
            return unknown
        if record is None:
            return "no page links to it, and no seed contains it"
        if self.newest and record.run < self.newest.number:
            return f"no longer linked: run {record.run} was the last to find it"
        return _outcome_words(record, self.base, change)


def _outcome_words(record: UrlRecord, base: PublishBase | None, change: EntryChange) -> str:
    match record.outcome if record.state == "settled" else None:
        case None:
            return record.state
        case Listed():
            return "listed" if change.sign == "-" else f"{record.was} before" if record.was else "new"
        case Moved(to):
            return f"moved to {base.published(to) if base else to}"
        case outcome:
            return f"{code(outcome)}: {says(code(outcome))}"


def _show(change: EntryChange, reason: str, rows: Rows | None) -> None:
    if rows:
        values = SIGNS[change.sign], change.url, change.old, change.new, reason or None
        rows.add(dict(zip(FIELDS, values, strict=True)))
        return
    words = f"{change.old or 'no date'} → {change.new or 'no date'}" if change.sign == "~" else reason
    click.echo(
        f"{change.sign} {printable(change.url, 2_100)}" + (f"  ({printable(words, 300)})" if words else "")
    )
