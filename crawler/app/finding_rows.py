"""Every finding of a run as rows, in the order of the report: for lists, and for a report as CSV.

Nothing is cut. Memory stays small: the findings are made again from their pages, a few thousand at a time,
and the pages that link to them are read from the links of all pages, for some millions of links at a time.
"""

from array import array
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from crawler.app import report as reports
from crawler.app.broken_files import pages_with
from crawler.ports import Reads, reads
from crawler.report.builder import Anchors, item_of
from crawler.report.catalogue import FILES, GROUPED, Code
from crawler.report.finding_order import FindingOrder
from crawler.report.findings import Findings, PageFinding
from crawler.report.forms import as_csv
from crawler.report.inbound_links import FIRST_SOURCES
from crawler.report.report import UNKNOWN, Item, Known, Said
from crawler.report.url_kind import BY_KIND, LINK_CODES, OF_READERS

BATCH: Final = 2_000  # findings whose URLs are looked up together
ROWS: Final = 20_000  # for which the links are read together,
LINKS: Final = 4_000_000  # or for so many of them: four bytes each
NAMES: Final = 50_000  # URLs that are remembered
_Pages = Sequence[int] | None
_OF_READERS: Final = frozenset(BY_KIND[kind] for kind in OF_READERS)


class FindingRow(NamedTuple):
    """A finding: of a group, one of its pages."""

    code: Code
    item: Item
    group: str | None = None  # the first page of the group
    number: int = 0  # the id of its URL; 0: it is about the site


async def finding_rows(rows: Reads, known: Known, only: Collection[Code] = ()) -> AsyncIterator[FindingRow]:
    """All findings, or those with a code of `only`; of a group, all its pages."""
    findings, order = await reports.findings_of(rows, known), FindingOrder()
    async for page in reports.pages_of(rows, findings):
        for found in findings.found(page):
            order.add(found)
    about_site = {finding.code: finding for finding in findings.about_site(known)}
    for code in Code:
        if only and code not in only:
            continue
        for item in about_site[code].items if code in about_site else ():
            yield FindingRow(code, item)
        async for row in _of_code(rows, findings, code, order.pages(code)):
            yield row


async def _of_code(
    rows: Reads, findings: Findings, code: Code, ids: Sequence[int]
) -> AsyncIterator[FindingRow]:
    group, first = None, None
    for place in range(0, len(ids), BATCH):
        chosen = list(ids[place : place + BATCH])
        pages = await rows.read(reads.PagesOf(chosen))
        made = (findings.found(pages[number]) for number in chosen if number in pages)
        batch = [found for every in made for found in every if found.code is code]
        names = await reports.names_of(rows, sorted({number for found in batch for number in _named(found)}))
        pages_here = {number for found in batch for number in found.sources if code in LINK_CODES}
        anchors = await reports.anchors_of(rows, sorted(pages_here))
        for found in batch:
            if found.group != group:
                group, first = found.group, found.page.url
            yield FindingRow(code, item_of(found, names, (), anchors), first, found.page.id)


def _named(found: PageFinding) -> Sequence[int]:
    """The ids whose URLs its item needs."""
    return (*found.hops, *(found.sources if found.links <= FIRST_SOURCES else ()))


# -- with all pages that link to them ------------------------------------------------------------------------


async def csv_lines(rows: Reads, known: Known) -> AsyncIterator[str]:
    """A report as CSV with every row: one for each finding and page that links to it."""
    yield as_csv.line(as_csv.FIELDS)
    names = _Names(rows)
    batch, links = list[FindingRow](), 0
    async for row in finding_rows(rows, known):
        batch.append(row)
        links += row.item.links if row.item.links > FIRST_SOURCES else 0
        if len(batch) >= ROWS or links >= LINKS:
            async for line in _lines(rows, batch, names):
                yield line
            batch, links = [], 0
    async for line in _lines(rows, batch, names):
        yield line


async def _lines(rows: Reads, batch: Sequence[FindingRow], names: "_Names") -> AsyncIterator[str]:
    many = [row for row in batch if row.item.links > FIRST_SOURCES]
    linking = await _linking(rows, {row.number: row.code for row in many if row.code not in FILES})
    loading = {
        code: await pages_with(rows, code, {row.item.url for row in many if row.code is code})
        for code in FILES
    }

    def pages_of(row: FindingRow) -> _Pages:
        if row.item.links <= FIRST_SOURCES:  # another finding of the same URL may have more
            return None
        return loading[row.code].get(row.item.url) if row.code in FILES else linking.get(row.number)

    with_pages = ((row, pages_of(row)) for row in batch)
    for some in _in_groups(with_pages):
        named = await names.of({number for _, pages in some for number in pages or ()})
        anchors = await reports.anchors_of(
            rows, [*{number for row, pages in some if row.code in LINK_CODES for number in pages or ()}]
        )
        for row, pages in some:
            for line in _with_pages(row, pages, named, anchors):
                yield line


def _in_groups(rows: Iterable[tuple[FindingRow, _Pages]]) -> Iterator[list[tuple[FindingRow, _Pages]]]:
    """Findings with some of their pages, about `BATCH` pages at a time."""
    group, count = list[tuple[FindingRow, _Pages]](), 0
    for row, pages in rows:
        for place in range(0, len(pages or (0,)), BATCH):
            group.append((row, pages and pages[place : place + BATCH]))
            count += len(pages or (0,))
            if count >= BATCH:
                yield group
                group, count = [], 0
    yield group


def _with_pages(row: FindingRow, pages: _Pages, names: Mapping[int, str], anchors: Anchors) -> Iterator[str]:
    item = row.item
    if row.code in GROUPED:
        if row.group and row.group != item.url:
            yield as_csv.item_line(row.code, item, row.group, item.url)
    elif pages is None:
        for source in item.sources or ("",):
            yield as_csv.item_line(row.code, item, item.url, source, item.said.get(source, UNKNOWN))
    else:
        for number in pages:
            if number in names:
                known = anchors.get((number, row.number)) if row.code in LINK_CODES else None
                name = names[number]
                said = Said(known.text, known.landmark) if known else item.said.get(name, UNKNOWN)
                yield as_csv.item_line(row.code, item, item.url, name, said)


async def _linking(rows: Reads, targets: Mapping[int, Code]) -> "Mapping[int, array[int]]":
    """The pages that link to each of these URLs, by id. `targets`: with their findings."""
    found = {number: array("I") for number in targets}
    if found:
        async for edges in reports.each(rows.stream(reads.Edges())):
            for number in filter(found.__contains__, map(abs, edges.links)):
                if number != edges.id:
                    found[number].append(edges.id)
            for number in map(abs, edges.head):
                # Unless a link with nofollow leads there, too.
                is_first = number in found and found[number][-1:] != array("I", [edges.id])
                if is_first and number != edges.id and targets[number] not in _OF_READERS:
                    found[number].append(edges.id)
    return found


class _Names:
    """URLs by id, some of which are remembered: many findings are on the same pages."""

    def __init__(self, rows: Reads) -> None:
        self._rows, self._names = rows, dict[int, str]()

    async def of(self, ids: Collection[int]) -> Mapping[int, str]:
        """The URLs of these ids, and others."""
        if missing := [number for number in ids if number not in self._names]:
            if len(self._names) + len(missing) > NAMES:
                self._names = {}
                missing = list(ids)
            self._names |= await reports.names_of(self._rows, missing)
        return self._names
