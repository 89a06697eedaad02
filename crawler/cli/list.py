"""`list`: streams the contents of the state: pages, links, images, findings, runs.

Rows are written as they are read, so memory use is small: filters, counts and an order that depend on other
URLs are evaluated in an earlier pass, into a few bytes per URL.
"""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from crawler.app import report as reports
from crawler.app.features import FEATURES
from crawler.app.finding_rows import finding_rows
from crawler.cli.output import Rows
from crawler.cli.saved_state import opened_state, start_of, with_state
from crawler.cli.typed_url import url_in_state
from crawler.errors import ConfigError, Exit
from crawler.model import rendering
from crawler.model.reasons import Cause, SeedKind, Why
from crawler.model.rendering import Rendering
from crawler.model.rows import EdgeRow, PageRow, RunRow
from crawler.parse.credentials import masked
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, Reads, reads
from crawler.report.catalogue import Code
from crawler.report.clicks import Clicks
from crawler.report.findings import Findings
from crawler.report.formatting import iso
from crawler.report.inbound_links import LONGEST as LONGEST_CHAIN
from crawler.report.inbound_links import LinkCounts
from crawler.report.printable import printable
from crawler.report.report import Known
from crawler.report.url_kind import is_listed
from crawler.settings.load import nearest
from crawler.settings.sections import Settings

Row = Sequence[Any]

BATCH: Final = 10_000  # links whose targets are looked up together
REMEMBERED: Final = 100_000  # targets
ALIGNED: Final = 200  # rows that determine the column widths of the text form
WIDEST: Final = 60  # characters of a column that is not the last
LONGEST: Final = 2_100  # characters of a cell


def _rendered(page: PageRow, read: Callable[[Rendering], Any]) -> Any:
    """What is stored of the rendering of a page; None if it does not need scripts, or --render was off."""
    return None if page.rendering is None else read(rendering.read(page.rendering))


def _status(page: PageRow) -> int | None:
    """That of the page; of a URL on another site, that of the last answer of its host."""
    return page.external.status if page.external and page.status is None else page.status


def _external(page: PageRow) -> str | None:
    return page.external.code if page.external else None


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
    "rendered": lambda page: _rendered(page, lambda seen: seen.words),
    "links_before": lambda page: _rendered(page, lambda seen: seen.before.links),
    "links_after": lambda page: _rendered(page, lambda seen: seen.after and seen.after.links),
    "robots_before": lambda page: _rendered(page, lambda seen: seen.before.robots or None),
    "robots_after": lambda page: _rendered(page, lambda seen: (seen.after and seen.after.robots) or None),
    "canonical_before": lambda page: _rendered(page, lambda seen: seen.before.canonical),
    "canonical_after": lambda page: _rendered(page, lambda seen: seen.after and seen.after.canonical),
    "script_requests": lambda page: _rendered(page, lambda seen: seen.requests),
    "script_bytes": lambda page: _rendered(page, lambda seen: seen.bytes),
    "external": _external,
}
PUBLISHED: Final = "published"  # the URL in the sitemap: another one, if a copy of the site was crawled
# Clicks from a start URL, pages that link to it, and URLs to which it links: without links with nofollow.
LINKS: Final = ("clicks", "links_in", "links_out")
LINK: Final = (
    "source", "target", "kind", "nofollow", "outcome", "status", "external", "final_url", "final_status",
    "text", "place",
)  # fmt: skip
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
    "pages": (*PAGE, PUBLISHED, *LINKS),
    "links": LINK,
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


class Filter(Struct, frozen=True):
    """The filter of --only: outcome codes or kinds of outcomes, and codes of findings."""

    outcomes: tuple[str, ...] = ()
    codes: frozenset[Code] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.codes)

    def admits(self, page: PageRow, found: Findings | None) -> bool:
        """Whether a page is to be shown."""
        outcome = page.outcome or "open"
        if any(outcome == name or outcome.startswith(f"{name}:") for name in self.outcomes):
            return True
        return found is not None and any(one.code in self.codes for one in found.found(page))


class LinkFilter(Struct, frozen=True):
    """Which links to show."""

    only: Filter
    all_kinds: bool = False  # also redirects and canonicals
    to: str | None = None  # a URL as typed
    from_: str | None = None


async def list_rows(
    settings: Settings, what: str, *, form: str, only: Sequence[str], fields: str, **of_links: Any
) -> Exit:
    """Run `list`. `of_links`: the fields of `LinkFilter`."""
    wanted = _filter(what, only)
    links = LinkFilter(wanted, **of_links)
    if what != "links" and links != LinkFilter(wanted):
        raise ConfigError(f"--to, --from and --all-kinds are for links, not for {what}.")
    columns = _columns(what, fields, form)
    start = start_of(settings)
    settings = with_state(settings, start)
    async with opened_state(settings, start) as frontier:
        known = await reports.read_known(frontier, settings)
        match what:
            case "pages":
                rows = _pages(frontier, known, wanted, counted=not set(LINKS).isdisjoint(columns))
            case "links":
                rows = _links(frontier, settings, known, links)
            case "findings":
                rows = _findings(frontier, known, wanted)
            case "runs":
                rows = _runs(known.runs)
            case _:
                rows = LISTS[what].rows(frontier)
        places = [COLUMNS[what].index(name) for name in columns]
        await _write(rows, columns, places, form)
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
    run, base, links, clicks = known.run, PublishBase(known.name, known.site), LinkCounts(), Clicks((), 0)
    if counted:
        async for edges in reports.each(rows.stream(reads.Edges())):
            links.add(edges)
        clicks = await _clicks(rows, run.number)
    found = await reports.findings_of(rows, known) if only.codes else None
    async for page in reports.each(rows.stream(reads.Pages())):
        if page.run == run.number and (not only or only.admits(page, found)):
            published = base.published(page.url) if is_listed(page.outcome) else None
            values = (value(page) for value in PAGE.values())
            yield [*values, published, clicks.of(page.id), *links.of(page.id)]


async def _clicks(rows: Reads, run: int) -> Clicks:
    """The shortest ways from the start URLs of the run."""
    starts, highest = list[int](), 0
    async for page in reports.each(rows.stream(reads.Pages())):
        highest = max(highest, page.id)
        if page.run == run and page.seed and page.seed.kind is SeedKind.START:
            starts.append(page.id)
    clicks = Clicks(starts, highest)
    await reports.walk(rows, clicks)
    return clicks


async def _links(rows: Frontier, settings: Settings, known: Known, links: LinkFilter) -> AsyncIterator[Row]:
    wanted = await _targets(rows, known, links.only) if links.only else None
    target = await _known_url(rows, settings, links.to, "--to") if links.to else None
    number = await rows.read(reads.NumberOf(target)) if target else 0
    page = await _known_url(rows, settings, links.from_, "--from") if links.from_ else None
    targets = _Targets(rows)
    async for chunk in rows.stream(reads.Edges(page, f"{page} ") if page else reads.Edges()):
        found = [
            (edges, to, kind) for edges in chunk for kind, to in _of(edges, all_kinds=links.all_kinds)
            if (not number or abs(to) == number)
            and (wanted is None or (abs(to) < len(wanted) and wanted[abs(to)]))
        ]  # fmt: skip
        for place in range(0, len(found), BATCH):
            batch = found[place : place + BATCH]
            leads = await targets.of({abs(to) for _, to, _ in batch})
            anchors = await reports.anchors_of(rows, list(dict.fromkeys(source.id for source, _, _ in batch)))
            for source, to, kind in batch:
                if found_row := leads.get(abs(to)):
                    url, *answer = found_row
                    said = anchors.get((source.id, abs(to))) if kind == "link" else None
                    words = (said.text or None, said.landmark or None) if said else (None, None)
                    yield source.url, url, kind, to < 0, *answer, *words


async def _known_url(rows: Frontier, settings: Settings, text: str, flag: str) -> Url:
    """A URL as typed. Raises `ConfigError` if the state does not know it."""
    url = await url_in_state(rows, settings, text)
    if not await rows.read(reads.NumberOf(url)):
        raise ConfigError(f"{flag}: the state does not know {url}.")
    return url


async def _targets(rows: Reads, known: Known, only: Filter) -> bytearray:
    """Whether to show links to a URL, by its id."""
    found = await reports.findings_of(rows, known) if only.codes else None
    wanted = bytearray(1024)
    async for page in reports.each(rows.stream(reads.Pages())):
        if page.run == known.run.number and only.admits(page, found):
            if page.id >= len(wanted):
                wanted.extend(bytes(max(len(wanted), page.id + 1 - len(wanted))))
            wanted[page.id] = 1
    return wanted


def _of(edges: EdgeRow, *, all_kinds: bool) -> Iterable[tuple[str, int]]:
    yield from (("link", to) for to in edges.links)
    if all_kinds:
        yield from (
            (kind, to) for kind, to in (("redirect", edges.redirect), ("canonical", edges.canonical)) if to
        )


class _Targets:
    """What links lead to, by id, of which some are remembered: many pages link to the same."""

    def __init__(self, rows: Reads) -> None:
        self._rows, self._known = rows, dict[int, Row]()

    async def of(self, ids: Collection[int]) -> Mapping[int, Row]:
        """The values of `LINK` that are those of the target; of these ids, and of others."""
        missing = [number for number in ids if number not in self._known]
        if len(self._known) + len(missing) > REMEMBERED:
            self._known, missing = {}, list(ids)
        if missing:
            pages = await self._rows.read(reads.PagesOf(sorted(missing)))
            ends = await _ends(self._rows, pages)
            self._known |= {number: _answer(page, ends.get(number)) for number, page in pages.items()}
        return self._known


def _answer(page: PageRow, end: PageRow | None) -> Row:
    final = (end.url, _status(end)) if end else (None, None)
    return page.url, page.outcome or "open", _status(page), _external(page), *final


async def _ends(rows: Reads, pages: Mapping[int, PageRow]) -> Mapping[int, PageRow]:
    """Where the redirects of each page end; none for those without an end."""
    known = dict(pages)
    for _ in range(LONGEST_CHAIN):
        due = {page.redirect for page in known.values() if page.redirect} - known.keys()
        if not due:
            break
        known |= await rows.read(reads.PagesOf(sorted(due)))
    ends: dict[int, PageRow] = {}
    for number, page in pages.items():
        at: PageRow | None = page
        for _ in range(LONGEST_CHAIN):
            if at is None or not at.redirect:
                break
            at = known.get(at.redirect)
        if at is not None and not at.redirect:
            ends[number] = at
    return ends


async def _findings(rows: Reads, known: Known, only: Filter) -> AsyncIterator[Row]:
    """All findings in the order of the report; of a group, all its pages."""
    async for code, item, group, _ in finding_rows(rows, known, only.codes):
        found = item.url, item.status, item.detail, item.links, item.new
        yield code.severity.value, code.value, *found, group, item.text, item.place


async def _runs(runs: Sequence[RunRow]) -> AsyncIterator[Row]:
    for run in runs:
        yield [value(run) for value in RUN.values()]


# -- the forms --------------------------------------------------------------------------------------------


async def _write(rows: AsyncIterator[Row], columns: Sequence[str], places: Sequence[int], form: str) -> None:
    out, waiting = sys.stdout, list[Row]()
    if form != "text":
        await _write_rows(rows, columns, places, form)
        return
    aligned = out.isatty()
    widths: Sequence[int] | None = None
    async for row in rows:
        cells = [row[place] for place in places]
        if not aligned:
            out.write("\t".join(map(_text, cells)) + "\n")
        elif widths is None:
            waiting.append([_text(cell) for cell in cells])
            if len(waiting) >= ALIGNED:
                widths = _show(columns, waiting)
        else:
            out.write(_aligned([_text(cell) for cell in cells], widths))
    if waiting and widths is None:
        _show(columns, waiting)


def _show(columns: Sequence[str], waiting: Sequence[Row]) -> Sequence[int]:
    """Writes the names of the columns and the first rows, and returns the widths."""
    shown = [columns, *waiting]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*shown, strict=True)]
    sys.stdout.writelines(_aligned(row, widths) for row in shown)
    return widths


def _aligned(cells: Row, widths: Sequence[int]) -> str:
    padded = [*(f"{cell:<{width}}" for cell, width in zip(cells[:-1], widths, strict=False)), *cells[-1:]]
    return "  ".join(padded).rstrip() + "\n"


async def _write_rows(
    rows: AsyncIterator[Row], columns: Sequence[str], places: Sequence[int], form: str
) -> None:
    printed = Rows(form, columns)
    async for row in rows:
        cells = [row[place] for place in places]
        if form == "csv":  # whose cells are masked when they are written
            printed.add_cells(cells)
        else:
            cells = [masked(cell) if isinstance(cell, str) else cell for cell in cells]
            printed.add(dict(zip(columns, cells, strict=True)))
    printed.end()


def _text(cell: Any) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case str():
            return printable(masked(cell), LONGEST) or "-"
    return str(cell)
