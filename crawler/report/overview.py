"""What a site looks like as a whole: how deep, which folders, statuses, dates, the slowest and the largest pages.

Fed with every page once, in bounded memory: a site that makes up folders without end fills one bucket with them.
"""

import heapq
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from crawler.model.rows import PageRow
from crawler.report.kinds import FAILED, Kind, is_listed, kind_of
from crawler.report.words import folders_of

FOLDERS: Final = 10_000  # that are told apart
SHOWN: Final = 60  # folders in a report
DEEPEST: Final = 50  # clicks; what lies deeper counts as that
MOST: Final = 20  # slowest, and largest
CROWDED: Final = 0.9  # of all URLs in one folder: its own folders say more
ELSEWHERE: Final = "(more)"
DAY: Final = 86_400  # seconds
_OFF_SITE: Final = "unlisted:offsite"


class Folder(NamedTuple):
    """URLs of the site below one folder."""

    name: str
    urls: int
    listed: int
    failed: int


class Measured(NamedTuple):
    """A URL and its milliseconds, or bytes."""

    url: str
    value: int


@dataclass(frozen=True, slots=True)
class Extremes:
    """The largest of many numbers, and what is usual."""

    median: int
    p95: int
    items: Sequence[Measured]


@lru_cache(maxsize=4_096)
def _month(day: int) -> str:
    """Of a day since the epoch."""
    return datetime.fromtimestamp(day * DAY, UTC).strftime("%Y-%m")


class _Largest:
    def __init__(self) -> None:
        self._all = array("Q")
        self._top: list[tuple[int, int, str]] = []

    def add(self, value: int, url: str) -> None:
        item = (value, -len(self._all), url)
        self._all.append(value)
        if len(self._top) < MOST:
            heapq.heappush(self._top, item)
        else:
            heapq.heappushpop(self._top, item)

    def told(self) -> Extremes | None:
        if not self._all:
            return None
        values = sorted(self._all)
        items = [Measured(url, value) for value, _, url in sorted(self._top, reverse=True)]
        return Extremes(values[len(values) // 2], values[(len(values) * 95) // 100], items)


class _FolderCounts:
    """By name, in bounded memory."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, name: str, *, listed: bool, failed: bool) -> None:
        if name not in self._counts and len(self._counts) >= FOLDERS:
            name = ELSEWHERE
        counts = self._counts.setdefault(name, [0, 0, 0])
        counts[0] += 1
        counts[1] += listed
        counts[2] += failed

    def told(self) -> list[Folder]:
        """The largest first; the rest is one."""
        every = [Folder(name, *counts) for name, counts in self._counts.items()]
        every.sort(key=lambda folder: (-folder.urls, folder.name))
        rest = every[SHOWN:]
        if not rest:
            return every
        sums = (sum(f.urls for f in rest), sum(f.listed for f in rest), sum(f.failed for f in rest))
        return [*every[:SHOWN], Folder(ELSEWHERE, *sums)]


@dataclass
class Overview:
    """Counts over the newest run."""

    run: int
    site: str  # origin
    depths: Counter[int] = field(default_factory=Counter)  # listed pages
    statuses: Counter[int] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)  # of the dates of listed pages; "none"
    months: Counter[str] = field(default_factory=Counter)  # of the same: 2026-11
    _first: _FolderCounts = field(default_factory=_FolderCounts)
    _second: _FolderCounts = field(default_factory=_FolderCounts)
    _slow: _Largest = field(default_factory=_Largest)
    _large: _Largest = field(default_factory=_Largest)

    def look(self, page: PageRow) -> None:
        """One more page."""
        if page.run != self.run or page.outcome == _OFF_SITE:
            return
        listed, kind = is_listed(page.outcome), kind_of(page.outcome)
        for counts, name in zip((self._first, self._second), folders_of(page.url, self.site), strict=True):
            counts.add(name, listed=listed, failed=kind in FAILED)
        if kind is Kind.OPEN:
            return
        if page.status is not None:
            self.statuses[page.status] += 1
        if page.took is not None:
            self._slow.add(page.took, page.url)
        if page.bytes is not None:
            self._large.add(page.bytes, page.url)
        if listed:
            self.depths[min(page.depth, DEEPEST)] += 1
            self._date(page)

    def _date(self, page: PageRow) -> None:
        self.sources[page.source or "none" if page.lastmod is not None else "none"] += 1
        if page.lastmod is not None:
            self.months[_month(page.lastmod // DAY)] += 1

    def folders(self) -> Sequence[Folder]:
        """By first folder, the largest first; by the first two where nearly all lie in one."""
        first = self._first.told()
        every = sum(folder.urls for folder in first)
        return self._second.told() if first and first[0].urls > CROWDED * every else first

    @property
    def slowest(self) -> Extremes | None:
        """In milliseconds, from the request to the last byte."""
        return self._slow.told()

    @property
    def largest(self) -> Extremes | None:
        """In bytes, decoded."""
        return self._large.told()

    def lastmod(self) -> Mapping[str, Mapping[str, int]]:
        """The dates of listed pages, by source and by month."""
        return {"sources": dict(self.sources.most_common()), "months": dict(sorted(self.months.items()))}
