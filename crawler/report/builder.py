"""Builds a report in passes over the rows of a state. Pure: rows in, a `SiteReport` out.

No row is stored. The first few items of each finding are chosen during the passes, and the caller looks up
the URLs of the ids in them at the end (`wanted`).
"""

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from crawler.model.reasons import SeedKind
from crawler.model.rows import PUBLISHED, AnchorRow, PageRow, Tallies
from crawler.report.catalogue import FILES, GROUPED, LEADING, Code
from crawler.report.changes import Changes
from crawler.report.clicks import Clicks
from crawler.report.findings import Findings, PageFinding
from crawler.report.history import sought
from crawler.report.inbound_links import FIRST_SOURCES
from crawler.report.overview import Overview
from crawler.report.report import Finding, Item, Known, RuleCount, Said, SiteReport
from crawler.report.site_findings import site_findings
from crawler.report.url_kind import LINK_CODES, is_listed

ITEMS: Final = 100  # items of each finding, by default
RULES: Final = 100  # lines of robots.txt in a report
COUNTED: Final = 10_000  # lines of robots.txt, or folders, that are counted
SLASHES: Final = 3  # in the URL of a top-level page


class _Items(Struct, eq=False):
    """The first few items with a code: the most linked ones or the largest groups first, then by URL."""

    count: int = 0
    new: int = 0
    links: int = 0
    lost: int = 0  # listed before
    heap: list[tuple[int, int, PageFinding]] = field(default_factory=list)
    members: dict[int, list[str]] = field(default_factory=dict)

    def add(self, found: PageFinding, most: int) -> None:
        self.count += 1
        self.new += found.new
        self.links += found.links
        self.lost += is_listed(found.page.was or "")
        if found.group is not None:
            self.members[found.group] = []
        item = (found.size if found.group is not None else found.links, -self.count, found)
        if not most or len(self.heap) < most:
            heapq.heappush(self.heap, item)
        elif (left := heapq.heappushpop(self.heap, item)[2]).group is not None:
            del self.members[left.group]

    def join(self, found: PageFinding) -> None:
        """Add a page to a group that is already known."""
        others = self.members.get(found.group if found.group is not None else -1)
        if others is not None and len(others) < FIRST_SOURCES:
            others.append(found.page.url)

    def shown(self) -> list[PageFinding]:
        return [found for _, _, found in sorted(self.heap, reverse=True)]


class _FindingFolders(Struct, eq=False):
    """Counts the URLs of a finding by their folder."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, key: str) -> None:
        if key in self.counts or len(self.counts) < COUNTED:
            self.counts[key] += 1

    def result(self) -> Sequence[tuple[str, int]]:
        return self.counts.most_common(3)


class _RuleCounts(Struct, eq=False):
    """Counts of linked URLs by the line of robots.txt that disallows them."""

    counts: dict[str, list[int]] = field(default_factory=dict)  # by line: numbers of URLs and links
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, found: PageFinding) -> None:
        line = found.detail
        if line not in self.counts and len(self.counts) >= COUNTED:
            return
        counts = self.counts.setdefault(line, [0, 0])
        counts[0] += 1
        counts[1] += found.links
        self.examples.setdefault(line, found.page.url)

    def result(self) -> list[RuleCount]:
        every = [
            RuleCount(line, urls, links, self.examples[line]) for line, (urls, links) in self.counts.items()
        ]
        return sorted(every, key=lambda rule: (-rule.links, rule.line))[:RULES]


Anchors = Mapping[tuple[int, int], AnchorRow]
"""What links say, by the ids of their page and their target."""
NO_ANCHORS: Final[Anchors] = MappingProxyType({})


class ReportBuilder:
    """`add_page` for every page, the walk of `clicks`, `add_clicks`, `pick` from each of those that may have
    a finding or had one; then `report`.
    """

    def __init__(self, known: Known, findings: Findings, *, most: int = ITEMS) -> None:
        """`findings`: after their first two passes. `most`: items of each to keep; 0 for all."""
        run = known.run
        complete = [other for other in known.runs if other.number < run.number and other.complete]
        before = [one.number for one in complete if one.status == PUBLISHED] or [
            one.number for one in complete
        ]
        self.findings = findings
        self._known, self._most = known, most
        self._overview = Overview(run.number, known.site, frozenset(host.origin for host in known.hosts))
        self._sought = sought(known.settings, checked=known.check is not None)
        self._changes = Changes(run.number, max(before, default=None), run.complete)
        self._starts, self._listed = list[int](), array("I")
        self._picked: dict[Code, _Items] = {}
        self._folders = defaultdict[Code, _FindingFolders](_FindingFolders)
        self._rules = _RuleCounts()

    def add_page(self, page: PageRow) -> None:
        self._overview.add_page(page)
        self._changes.add_page(page)
        if page.run != self._known.run.number:
            return
        if page.seed and page.seed.kind is SeedKind.START:
            self._starts.append(page.id)
        if is_listed(page.outcome):
            self._listed.append(page.id)

    def clicks(self) -> Clicks:
        """The walk over links from the start URLs, which the caller makes."""
        return Clicks(self._starts)

    def add_clicks(self, clicks: Clicks) -> None:
        """Count the clicks to each listed page."""
        for number in self._listed:
            self._overview.add_clicks(clicks.of(number))

    def pick(self, page: PageRow) -> None:
        """Pages come in the order of the report."""
        every = list(self.findings.found(page))
        if self.findings.before:
            now = {found.code for found in every}
            self._changes.add_mended(page, self.findings.before, self._sought, now)
        for found in every:
            picked = self._picked.setdefault(found.code, _Items())
            if found.first:
                picked.add(found, self._most)
            else:
                picked.join(found)
            if found.code in LINK_CODES:
                self._folders[found.code].add(f"{page.url.partition('?')[0].rpartition('/')[0]}/")
            if found.code is Code.ROBOTS_LINKED:
                self._rules.add(found)

    def wanted(self) -> set[int]:
        """The ids whose URLs the report needs."""
        shown = [found for picked in self._picked.values() for found in picked.shown()]
        pages = {number for code in self._picked for number, _ in self.findings.worst_pages(code)}
        return {number for found in shown for number in (*found.sources, *found.hops)} | pages

    def linking(self) -> set[int]:
        """The ids of the pages of which it matters what their links say."""
        picked = (picked for code, picked in self._picked.items() if code in LINK_CODES)
        return {number for some in picked for found in some.shown() for number in found.sources}

    def report(self, names: Mapping[int, str], anchors: Anchors = NO_ANCHORS) -> SiteReport:
        """The finished report. `names`: the URLs of the ids in `wanted`; `anchors`: of those in `linking`."""
        overview, known = self._overview, self._known
        self._changes.close()
        if before := self.findings.before:
            for kind, code in product(known.files, FILES):
                had = before.files(kind, code)
                self._changes.add_mended_files(code, (url for url in had if url not in known.files[kind]))
        site_wide = {finding.code: finding for finding in self.findings.about_site(known)}
        every = (site_wide.get(code) or self._finding(code, names, anchors) for code in Code)
        return SiteReport(
            known,
            [finding for finding in every if finding],
            self._changes,
            overview.lastmod(),
            dict(sorted(overview.clicks.items())),
            overview.unreachable,
            overview.elsewhere,
            overview.folders(),
            dict(sorted(overview.statuses.items())),
            overview.slowest,
            overview.largest,
            self._rules.result(),
            {code: _below_top(folders.result()) for code, folders in self._folders.items()},
        ).cut(self._most)

    def _finding(self, code: Code, names: Mapping[int, str], anchors: Anchors) -> Finding | None:
        picked = self._picked.get(code)
        if picked is None:
            return None
        items = [
            item_of(found, names, picked.members.get(found.group or 0, ()), anchors)
            for found in picked.shown()
        ]
        pages = self.findings.pages_in(code)
        by_page = [
            (names[number], urls) for number, urls in self.findings.worst_pages(code) if number in names
        ]
        return Finding(code, picked.count, picked.new, picked.links, pages, items, by_page, picked.lost)


def _below_top(folders: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    return [(folder, urls) for folder, urls in folders if folder.count("/") > SLASHES]


def item_of(
    found: PageFinding, names: Mapping[int, str], others: Sequence[str] = (), anchors: Anchors = NO_ANCHORS
) -> Item:
    """A finding with URLs in place of ids. `others`: the other pages of its group."""
    sources = [names[number] for number in found.sources if number in names]
    hops = [names[number] for number in found.hops if number in names]
    if found.named_by:
        sources = [found.named_by]
    if found.code in GROUPED:
        sources = list(others)
    detail = " → ".join(hops) if hops else found.detail
    if hops and found.code not in LEADING:
        detail = f"redirects to {detail}"
    page = found.page
    rows = [anchors[number, page.id] for number in found.sources if (number, page.id) in anchors]
    said = {row.id: Said(row.text, row.landmark) for row in rows if row.text or row.landmark}
    places = Counter(one.place for one in said.values() if one.place).most_common(1)
    return Item(
        page.url,
        page.status,
        detail,
        found.links,
        sources,
        found.new,
        found.site_wide,
        found.size,
        places[0][0] if places else "",
        next((one.text for one in said.values() if one.text), ""),
        {names[number]: one for number, one in said.items() if number in names},
    )


# -- the counts alone ---------------------------------------------------------------------------------------

COUNTED_BY_STATE: Final = frozenset({Code.NO_LASTMOD, Code.DUPLICATE_CONTENT, Code.DUPLICATE_TITLE})


class FindingCounts:
    """Findings without their items, for the summary of a crawl and `--fail-on`: `add` those of suspects.

    The passes are those of `Findings`, over fewer rows: pages that are listed and were found by links are
    counted by the state itself (`Tallies`). The counts are those of the whole report; a test compares them.
    """

    def __init__(self, known: Known, findings: Findings) -> None:
        self._known, self._findings = known, findings
        self._counts, self._new, self._links = Counter[Code](), Counter[Code](), Counter[Code]()

    def add(self, found: PageFinding) -> None:
        self._counts[found.code] += 1
        self._new[found.code] += found.new
        self._links[found.code] += found.links

    def findings(self, tallies: Tallies) -> Sequence[Finding]:
        """All findings without their items, the most severe first."""
        known = self._known
        every = {finding.code: finding for finding in (*site_findings(known), *self._findings.files)}
        if known.run.complete:
            every |= {finding.code: finding for finding in _counted(tallies, known)}
        every |= {code: self._finding(code) for code in self._counts if code not in COUNTED_BY_STATE}
        return [every[code] for code in Code if code in every]

    def _finding(self, code: Code) -> Finding:
        pages = self._findings.pages_in(code)
        return Finding(code, self._counts[code], self._new[code], self._links[code], pages)


def _counted(tallies: Tallies, known: Known) -> Sequence[Finding]:
    newly = 0 if known.before is None else tallies.newly_undated
    undated = Finding(Code.NO_LASTMOD, tallies.undated, newly)
    same_content = Finding(Code.DUPLICATE_CONTENT, tallies.content_groups, pages=tallies.content_pages)
    same_title = Finding(Code.DUPLICATE_TITLE, tallies.title_groups, pages=tallies.title_pages)
    return [finding for finding in (undated, same_content, same_title) if finding.count]
