"""`list`: streams the contents of the state: pages, links, images, findings, runs.

Rows are written as they are read, so memory use is small: filters, counts and an order that depend on other
URLs are evaluated in an earlier pass, into a few bytes per URL.
"""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from crawler.app import report as reports
from crawler.app.broken_files import all_pages_with
from crawler.app.features import FEATURES
from crawler.app.finding_rows import finding_rows
from crawler.cli.list_links import FIELDS as LINK_FIELDS
from crawler.cli.list_links import GAP, ROW, Filter, LinkFilter, RowForm, spelt_links
from crawler.cli.output import remark
from crawler.cli.rows import Rows, between, joining, spelling
from crawler.cli.saved_state import opened_state, remark_other_site, start_of, with_state
from crawler.errors import ConfigError, Exit
from crawler.model import rendering
from crawler.model.reasons import Cause, Why
from crawler.model.rendering import Rendering
from crawler.model.rows import PageRow, RunRow
from crawler.parse.credentials import masked
from crawler.parse.publish_base import PublishBase
from crawler.ports import Reads, reads
from crawler.report.catalogue import FILES, Code
from crawler.report.clicks import Clicks
from crawler.report.formatting import iso
from crawler.report.inbound_links import LinkCounts
from crawler.report.printable import printable
from crawler.report.report import Known
from crawler.report.url_kind import is_listed
from crawler.settings.load import nearest
from crawler.settings.sections import Settings

Row = Sequence[Any]
Joined = Callable[[Sequence[str]], str]

WRITTEN: Final = 200  # rows that are written together,
ALIGNED: Final = WRITTEN  # of which the first determine the column widths of the text form
WIDEST: Final = 60  # characters of a column that is not the last
LONGEST: Final = 2_100  # characters of a cell


def _status(page: PageRow) -> int | None:
    """That of the page; of a URL on another site, that of the last answer of its host."""
    return page.external.status if page.external and page.status is None else page.status


PAGE: Final[Mapping[str, Callable[[PageRow], Any]]] = {
    "url": lambda page: page.url,
    "outcome": lambda page: page.outcome or "open",
    "status": _status,
    "detail": lambda page: page.detail,
    "found_at": lambda page: page.depth,
    "lastmod": lambda page: iso(page.lastmod),
    "lastmod_source": lambda page: page.source if page.lastmod is not None else None,
    "was": lambda page: page.was,
    "seed": lambda page: (page.seed.name or page.seed.kind.name.lower()) if page.seed else None,
    "title": lambda page: page.title,
    "type": lambda page: page.type,
    "bytes": lambda page: page.bytes,
    "took": lambda page: page.took,
}
RENDERED: Final[Mapping[str, Callable[[Rendering], Any]]] = {
    "rendered": lambda seen: seen.words,
    "links_before": lambda seen: seen.before.links,
    "links_after": lambda seen: seen.after and seen.after.links,
    "robots_before": lambda seen: seen.before.robots or None,
    "robots_after": lambda seen: (seen.after and seen.after.robots) or None,
    "canonical_before": lambda seen: seen.before.canonical,
    "canonical_after": lambda seen: seen.after and seen.after.canonical,
    "script_requests": lambda seen: seen.requests,
    "script_bytes": lambda seen: seen.bytes,
}
_NOT_RENDERED: Final[Row] = (None,) * len(RENDERED)  # it does not need scripts, or --render was off
PUBLISHED: Final = "published"  # the URL in the sitemap: another one, if a copy of the site was crawled
# Clicks from a start URL, pages that link to it, and URLs to which it links: without links with nofollow.
LINKS: Final = ("clicks", "links_in", "links_out")
LISTS: Final = {feature.name: feature for feature in FEATURES if feature.columns}
FINDING: Final = ("severity", "code", "url", "status", "detail", "links", "new", "group", "text", "place")
RUN: Final[Mapping[str, Callable[[RunRow], Any]]] = {
    "number": lambda run: run.number,
    "started": lambda run: iso(run.started),
    "ended": lambda run: iso(run.ended),
    "status": lambda run: run.status,
    "complete": lambda run: run.complete,
    "exit": lambda run: run.exit,
    "seconds": lambda run: run.seconds,
    "requests": lambda run: run.requests,
    "bytes": lambda run: run.bytes,
    "urls": lambda run: run.discovered,
    "listed": lambda run: run.listed,
    "failed": lambda run: run.counted("failed"),
    "added": lambda run: run.publication.added if run.publication else None,
    "removed": lambda run: run.publication.removed if run.publication else None,
    "changed": lambda run: run.publication.changed if run.publication else None,
}
COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "pages": (*PAGE, *RENDERED, "external", PUBLISHED, *LINKS),
    "links": LINK_FIELDS,
    **{name: feature.columns for name, feature in LISTS.items()},
    "findings": FINDING,
    "runs": tuple(RUN),
}
SHORT: Final[Mapping[str, Sequence[str]]] = {  # default columns of the text form, without --fields
    "pages": ("outcome", "status", "links_in", "links_out", "url"),
    "links": ("outcome", "status", "source", "target"),
    **{name: feature.shown_columns for name, feature in LISTS.items()},
    "findings": ("severity", "code", "status", "url", "detail"),
    "runs": ("number", "started", "status", "urls", "listed", "failed"),
}  # fmt: skip
WITHOUT_PAGES: Final = {
    Code.TRAP: "is about patterns of URLs: see list findings, or unlisted:trap for the URLs",
    Code.LASTMOD_LIES: "is about hosts: see list findings",
    Code.LASTMOD_UNIFORM: "is about all listed pages: see listed",
    Code.ROBOTS_LINE: "is about robots.txt: see list findings",
    Code.VANISHED: "is about pages that this run did not find: see list findings",
}
"""Codes of findings that are not about pages of the run, and what has them."""


async def list_rows(
    settings: Settings, what: str, *, form: str, only: Sequence[str], fields: str, **of_links: Any
) -> Exit:
    """Run `list`. `of_links`: other fields of `LinkFilter`."""
    wanted = _filter(what, only)
    links = LinkFilter(wanted, **of_links)
    if what != "links" and links != LinkFilter(wanted):
        raise ConfigError(f"--to, --from and --all-kinds are for links, not for {what}.")
    columns = _columns(what, fields, form)
    start = start_of(settings)
    settings = with_state(settings, start)
    async with opened_state(settings, start) as frontier:
        known = await reports.read_known(frontier, settings)
        remark_other_site(start, known)
        _check_codes(what, wanted.codes, known)
        spell = _text if form == "text" else spelling(form)
        places, joined = [COLUMNS[what].index(name) for name in columns], joining(form, columns)
        match what:
            case "links":
                are_all = [*columns] == [*LINK_FIELDS]
                cells = RowForm.of(spell, *((joined, between(form)) if are_all else (GAP.join, ROW)))
                found = spelt_links(frontier, settings, known, links, cells)
                await _write(found if are_all else _picked(found, places, joined), columns, form)
                return Exit.OK
            case "pages":
                rows = _pages(frontier, known, wanted, counted=not set(LINKS).isdisjoint(columns))
            case "findings":
                rows = _findings(frontier, known, wanted)
            case "runs":
                rows = _runs(known.runs)
            case _:
                if what not in dict(known.settings):
                    remark(f"The crawl did not read {what}: crawl with --{what}.")
                rows = LISTS[what].rows(frontier)
        await _write(_spelt(rows, places, spell, joined), columns, form)
    return Exit.OK


# -- the filter -------------------------------------------------------------------------------------------


def _filter(what: str, names: Sequence[str]) -> Filter:
    """Parse --only. Raises `ConfigError` for an unknown name."""
    codes = {code.value: code for code in Code}
    outcomes = {"listed", "unlisted", "moved", "failed", "kept", "open"}
    outcomes |= {f"unlisted:{why.value}" for why in Why}
    outcomes |= {f"{kind}:{cause.value}" for kind in ("failed", "kept") for cause in Cause}
    known = codes.keys() | (outcomes if what in {"pages", "links"} else set())
    if names and what in {"runs", *LISTS}:
        raise ConfigError(f"--only does not apply to {what}.")
    for name in names:
        if name not in known:
            kind = "outcome or finding" if len(known) > len(codes) else "finding"
            raise ConfigError(f"--only: there is no {kind} {name}{nearest(name, known)}")
    return Filter(
        tuple(name for name in names if name not in codes),
        frozenset(codes[name] for name in names if name in codes),
    )


def _check_codes(what: str, codes: Collection[Code], known: Known) -> None:
    """Raises `ConfigError` for a finding that is not about such rows: an empty list would say that all is
    well.
    """
    if what not in {"pages", "links"}:
        return
    for code in codes:
        why = WITHOUT_PAGES.get(code, "")
        if code in FILES and what == "links":
            why = "is about files: see list pages for the pages that load them, and list findings"
        if code is Code.NEEDS_SCRIPTS and known.shell:
            why = "is about addresses with the same bytes, as nothing was rendered: see list findings"
        if why:
            raise ConfigError(f"--only: {code.value} {why}.")


def _columns(what: str, fields: str, form: str) -> Sequence[str]:
    known = COLUMNS[what]
    names = [*dict.fromkeys(name.strip() for name in fields.split(",") if name.strip())]
    for name in names:
        if name not in known:
            raise ConfigError(f"--fields: {what} have no field {name}: choose from {', '.join(known)}.")
    return names or (SHORT[what] if form == "text" else known)


# -- the rows ---------------------------------------------------------------------------------------------


async def _pages(rows: Reads, known: Known, only: Filter, *, counted: bool) -> AsyncIterator[Row]:
    """The pages by URL. `counted`: with clicks and the numbers of links, which needs all links."""
    run, base, links = known.run, PublishBase(known.name, known.site), LinkCounts()
    clicks = Clicks(await rows.read(reads.StartNumbers()))
    if counted:
        async for edges in reports.each(rows.stream(reads.Edges())):
            links.add(edges)
        await reports.walk(rows, clicks)
    found = await reports.findings_of(rows, known) if only.codes - FILES else None
    loading = await all_pages_with(rows, only.codes)
    async for page in reports.each(rows.stream(reads.Pages())):
        loads = page.id < len(loading) and loading[page.id]
        if page.run == run.number and (not only or loads or only.admits(page, found)):
            published = base.published(page.url) if is_listed(page.outcome) else None
            row = [value(page) for value in PAGE.values()]
            row += _rendered(page)
            row += page.external and page.external.code, published, clicks.of(page.id), *links.of(page.id)
            yield row


def _rendered(page: PageRow) -> Row:
    if page.rendering is None:
        return _NOT_RENDERED
    seen = rendering.read(page.rendering)
    return [value(seen) for value in RENDERED.values()]


async def _findings(rows: Reads, known: Known, only: Filter) -> AsyncIterator[Row]:
    """All findings in the order of the report; of a group, all its pages."""
    async for code, item, group, _ in finding_rows(rows, known, only.codes):
        found = item.url, item.status, item.detail, item.links, item.new
        yield code.severity.value, code.value, *found, group, item.text, item.place


async def _runs(runs: Sequence[RunRow]) -> AsyncIterator[Row]:
    for run in runs:
        yield [value(run) for value in RUN.values()]


# -- the forms --------------------------------------------------------------------------------------------


async def _spelt(
    rows: AsyncIterator[Row], places: Sequence[int], spell: Callable[[Any], str], joined: Joined
) -> AsyncIterator[Sequence[str]]:
    """The chosen cells of each row as a line, in batches."""
    batch, nothing = list[str](), spell(None)  # as many cells are
    async for row in rows:
        cells = [row[place] for place in places]
        batch.append(joined([nothing if cell is None else spell(cell) for cell in cells]))
        if len(batch) >= WRITTEN:
            yield batch
            batch = []
    yield batch


async def _picked(
    batches: AsyncIterator[Sequence[str]], places: Sequence[int], joined: Joined
) -> AsyncIterator[Sequence[str]]:
    """The chosen cells of each row."""
    async for batch in batches:
        rows = [row.split(GAP) for text in batch for row in text.split(ROW)]
        yield [joined([row[place] for place in places]) for row in rows]


async def _write(batches: AsyncIterator[Sequence[str]], columns: Sequence[str], form: str) -> None:
    if form != "text":
        printed = Rows(form, columns)
        async for batch in batches:
            printed.add_lines(batch)
        printed.end()
    elif sys.stdout.isatty():
        await _write_aligned(batches, columns)
    else:
        async for batch in batches:
            sys.stdout.write("\n".join([*batch, ""]))


async def _write_aligned(batches: AsyncIterator[Sequence[str]], columns: Sequence[str]) -> None:
    """With the names of the columns, and as wide as the first rows need."""
    widths = list[int]()
    async for lines in batches:
        # No cell has a tab or ends a line: it is printable.
        batch = [line.split("\t") for text in lines for line in text.split("\n")]
        if batch and not widths:
            shown = [columns, *batch[:ALIGNED]]
            widths = [min(WIDEST, max(map(len, column))) for column in zip(*shown, strict=True)]
            sys.stdout.write(_aligned(columns, widths))
        sys.stdout.writelines(_aligned(row, widths) for row in batch)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [*(f"{cell:<{width}}" for cell, width in zip(cells[:-1], widths, strict=False)), *cells[-1:]]
    return "  ".join(padded).rstrip() + "\n"


def _text(cell: Any) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case str():
            return printable(masked(cell), LONGEST) or "-"
    return str(cell)
