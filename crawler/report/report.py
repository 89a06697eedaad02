"""The report of a run: one object, from which every form is made. Values only; `gathering` makes them.

What a report shows is cut to the first few of each, and says how many more there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crawler.model.rows import RunRow
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.report.catalogue import GROUPED, Code
from crawler.report.changes import Changes
from crawler.report.overview import Extremes, Folder
from crawler.report.words import counted


@dataclass(frozen=True, slots=True)
class Item:
    """One URL of a finding; where the code is of groups, the first of a group, with the others as `sources`."""

    url: str
    status: int | None = None
    detail: str = ""
    links: int = 0  # pages that link to it
    sources: Sequence[str] = ()  # the first of them, or what else names it
    new: bool = False
    site_wide: bool = False  # nearly every page links to it
    size: int = 1  # pages of the group


@dataclass(frozen=True, slots=True)
class Finding:
    """All that is found under one code."""

    code: Code
    count: int
    new: int = 0
    links: int = 0  # to all of them
    pages: int = 0  # that hold those links; of groups, all pages in them
    items: Sequence[Item] = ()

    @property
    def more(self) -> int:
        """That are not shown."""
        return self.count - len(self.items)

    @property
    def says(self) -> str:
        """One sentence, with its consequences in numbers."""
        if self.code in GROUPED:
            return f"{self.code.says} {counted(self.pages, 'page')} in all."
        if not self.links:
            return self.code.says
        where = f" on {counted(self.pages, 'page')}" if self.pages else ""
        verb = "leads" if self.links == 1 else "lead"
        return f"{self.code.says} {counted(self.links, 'link')}{where} {verb} here."


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of robots.txt, and what it keeps away."""

    line: str
    urls: int
    links: int
    example: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a report needs to be told beside the rows of pages."""

    site: str  # origin
    run: RunRow
    balance: Balance
    runs: Sequence[RunRow] = ()  # the newest last
    traps: Sequence[Trap] = ()
    lies: Mapping[str, str] = field(
        default_factory=dict
    )  # origins whose Last-Modified is not believed, and why
    robots_line: str | None = None  # that robots.txt should have
    robots_names: bool | None = None  # whether it has it; None: not known
    settings: Sequence[tuple[str, str]] = ()  # those that are not the default, masked
    program: str = ""  # name and version
    robots_ignored: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A run, told. What is not known is None."""

    known: Known
    findings: Sequence[Finding]
    changes: Changes
    lastmod: Mapping[str, Mapping[str, int]]
    depths: Mapping[int, int]
    folders: Sequence[Folder]
    statuses: Mapping[int, int]
    slowest: Extremes | None
    largest: Extremes | None
    rules: Sequence[Rule]

    def cut(self, most: int) -> "Report":
        """The same with no more than `most` items of each finding; 0 for all there are."""
        if not most:
            return self
        return replace(self, findings=[replace(one, items=one.items[:most]) for one in self.findings])

    def finding(self, code: Code) -> Finding | None:
        """What was found under a code."""
        return next((finding for finding in self.findings if finding.code is code), None)
