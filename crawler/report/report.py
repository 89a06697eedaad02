"""The report of a run: one object, from which every form is made. Values only; `builder` makes them.

Lists are cut to their first few items, with the number of those left out.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.model.external import ExternalCheck, ExternalCounts
from crawler.model.rows import HostRow, RunRow
from crawler.model.survey import NONE_VANISHED, Balance, Knowledge, PagesOfKind, VanishedPages
from crawler.model.trap import Trap
from crawler.report.catalogue import FILES, GROUPED, NOUNS, Code, Severity
from crawler.report.changes import Changes
from crawler.report.formatting import counted
from crawler.report.overview import Extremes, Folder


class Said(NamedTuple):
    """What a link says, and where on its page it stands: `parse.anchors.Place`."""

    text: str = ""
    place: str = ""


UNKNOWN: Final = Said()
NOTHING: Final[Mapping[str, Said]] = MappingProxyType({})


class Item(Struct, frozen=True):
    """One URL of a finding; of a finding about groups, the first page of a group, before `sources`."""

    url: str
    status: int | None = None
    detail: str = ""
    links: int = 0  # pages that link to it
    sources: Sequence[str] = ()  # the first of these pages, or what else names it
    new: bool = False
    site_wide: bool = False  # nearly every page links to it
    size: int = 1  # pages of the group
    place: str = ""  # of the page, where most of the links stand that are known
    text: str = ""  # of the first of them
    said: Mapping[str, Said] = NOTHING  # by the pages of `sources`, where that is known


class Finding(Struct, frozen=True):
    """All items with one code."""

    code: Code
    count: int
    new: int = 0
    links: int = 0  # to all items
    pages: int = 0  # with these links; for groups, all their pages
    items: Sequence[Item] = ()
    by_page: Sequence[tuple[str, int]] = ()  # pages with most links to different items, and how many
    lost: int = 0  # of the items: pages that the sitemap listed before

    @property
    def more(self) -> int:
        """Number of items that are not shown."""
        return self.count - len(self.items)

    @property
    def says(self) -> str:
        """One sentence about the finding, with its numbers."""
        if self.code in GROUPED or (self.links and self.code in FILES):
            return f"{self.code.says} {counted(self.pages, 'page')} in all."
        if not self.links:
            return self.code.says
        where = f" on {counted(self.pages, 'page')}" if self.pages else ""
        verb = "leads" if self.links == 1 else "lead"
        return f"{self.code.says} {counted(self.links, 'link')}{where} {verb} here."


class RuleCount(Struct, frozen=True):
    """A line of robots.txt, and the URLs that it disallows."""

    line: str
    urls: int
    links: int
    example: str


class Known(Struct, frozen=True):
    """The input of a report besides the rows of pages."""

    site: str  # origin
    run: RunRow
    balance: Balance
    base: str = ""  # where the site is published, as in --publish-base; as `site` without
    hosts: Sequence[HostRow] = ()  # the busiest first
    runs: Sequence[RunRow] = ()  # the newest last
    traps: Sequence[Trap] = ()
    unreliable: Mapping[str, str] = field(
        default_factory=dict
    )  # origins whose Last-Modified is not trusted, and why
    robots_line: str | None = None  # the Sitemap line that robots.txt should have
    robots_names: bool | None = None  # whether robots.txt has that line; None: unknown
    robots_others: Sequence[str] = ()  # other sitemaps that it names, and that are not written here
    check: ExternalCheck | None = None  # of links to other sites; None: they were not checked
    left_out: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # as in the note
    vanished: VanishedPages = NONE_VANISHED
    before: Mapping[str, str] | None = None  # the findings of the run before, as in the note
    files: Mapping[str, Collection[str]] = field(default_factory=dict)  # by kind: broken, or who knows
    shell: PagesOfKind | None = None  # the most addresses with the same bytes, which run scripts
    external: ExternalCounts | None = None  # what is known of these links
    settings: Sequence[tuple[str, str]] = ()  # those that are not the default, masked
    program: str = ""  # name and version
    state_words: str = ""  # those that name the state to another command; empty if it is not kept
    robots_ignored: bool = False
    partial: Knowledge | None = None  # of a run that a limit ended before it had visited all pages

    @property
    def name(self) -> str:
        """The published site."""
        return self.base or self.site

    @property
    def published(self) -> RunRow | None:
        """The run whose sitemap stands published."""
        return next((run for run in reversed(self.runs) if run.publication), None)

    @property
    def sitemap_page(self) -> str:
        """The URL of the sitemap's page for people; empty if this run published none."""
        has_page = ("format", "html") in self.settings and self.run.publication
        return f"{self.name.rstrip('/')}/sitemap.html" if has_page else ""

    @property
    def is_copy(self) -> bool:
        """Whether a copy of the published site was crawled."""
        return self.name != self.site


class SeverityCounts(NamedTuple):
    """How many findings of a severity there are, how many of them are new, and how many were mended."""

    total: int
    new: int
    mended: int


class SiteReport(Struct, frozen=True):
    """The report of a run. Unknown values are None."""

    known: Known
    findings: Sequence[Finding]
    changes: Changes
    lastmod: Mapping[str, Mapping[str, int]]
    clicks: Mapping[int, int]  # from the start URLs, to listed pages
    unreachable: int  # listed pages to which no links lead
    elsewhere: int  # URLs on other sites
    folders: Sequence[Folder]
    statuses: Mapping[int, int]
    slowest: Extremes | None
    largest: Extremes | None
    rules: Sequence[RuleCount]
    failing_folders: Mapping[Code, Sequence[tuple[str, int]]]  # those with most URLs of a finding

    def counts(self, severity: Severity) -> SeverityCounts:
        """How many URLs, or groups of them, have findings of that severity."""
        found = [finding for finding in self.findings if finding.code.severity is severity]
        mended = (some.count for code, some in self.changes.mended.items() if code.severity is severity)
        return SeverityCounts(sum(one.count for one in found), sum(one.new for one in found), sum(mended))

    def cut(self, most: int) -> "SiteReport":
        """The same report with at most `most` items of each finding; 0 for all."""
        if not most:
            return self
        return replace(self, findings=[replace(one, items=one.items[:most]) for one in self.findings])


def measure(finding: Finding) -> str:
    """`47 URLs (2 new), 10,268 links on 10,137 pages`."""
    if finding.code in GROUPED:
        return f"{counted(finding.count, 'group')}, {counted(finding.pages, 'page')}"
    words = counted(finding.count, NOUNS.get(finding.code, "URL"))
    if finding.new:
        words += f" ({finding.new:,} new)"
    if finding.code in FILES:
        words += f" on {counted(finding.pages, 'page')}"
    elif finding.links:
        words += f", {counted(finding.links, 'link')}"
        words += f" on {counted(finding.pages, 'page')}" if finding.pages else ""
    return words
