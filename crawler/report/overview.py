"""Statistics of a whole site: clicks, folders, statuses, dates, the slowest and the largest pages.

Takes every page once, in bounded memory: beyond a limit, all further folders are counted as one.
"""

import heapq
from array import array
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, field

from crawler.model.rows import PageRow
from crawler.parse.url import origin
from crawler.report.formatting import folders_of
from crawler.report.url_kind import FAILED, OFF_SITE, UrlKind, is_listed, kind_of

UNFOLLOWED: Final = "unlisted:nofollow"
FOLDERS: Final = 10_000  # folders that are counted separately
SHOWN: Final = 60  # folders in a report
DEEPEST: Final = 50  # clicks; deeper pages are counted here too
MOST: Final = 20  # number of slowest and of largest pages to keep
CROWDED: Final = 0.9  # if this fraction of all URLs is in one folder, its subfolders are shown
ELSEWHERE: Final = "(more)"
DAY: Final = 86_400  # seconds


class Folder(NamedTuple):
    """URLs of the site below one folder."""

    name: str
    urls: int
    listed: int
    failed: int


class Measured(NamedTuple):
    """A URL with its milliseconds or bytes."""

    url: str
    value: int


class Extremes(Struct, frozen=True):
    """The largest of many numbers, and typical ones."""

    median: int
    p95: int
    items: Sequence[Measured]


@lru_cache(maxsize=4_096)
def _month(day: int) -> str:
    """The month of a day, which is given in days since the epoch."""
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

    def result(self) -> Extremes | None:
        if not self._all:
            return None
        values = sorted(self._all)
        items = [Measured(url, value) for value, _, url in sorted(self._top, reverse=True)]
        return Extremes(values[len(values) // 2], values[(len(values) * 95) // 100], items)


class _FolderCounts:
    """Counts by folder, in bounded memory."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, name: str, *, listed: bool, failed: bool) -> None:
        if name not in self._counts and len(self._counts) >= FOLDERS:
            name = ELSEWHERE
        counts = self._counts.setdefault(name, [0, 0, 0])
        counts[0] += 1
        counts[1] += listed
        counts[2] += failed

    def result(self) -> list[Folder]:
        """The largest folders first; the rest are combined."""
        every = [Folder(name, *counts) for name, counts in self._counts.items()]
        every.sort(key=lambda folder: (-folder.urls, folder.name))
        rest = every[SHOWN:]
        if not rest:
            return every
        sums = (sum(f.urls for f in rest), sum(f.listed for f in rest), sum(f.failed for f in rest))
        return [*every[:SHOWN], Folder(ELSEWHERE, *sums)]


class Overview(Struct, eq=False):
    """Counts over the newest run."""

    run: int
    site: str  # origin
    hosts: Container[str] = ()  # other origins of the site
    clicks: Counter[int] = field(default_factory=Counter)  # to listed pages
    unreachable: int = 0  # listed pages to which no links lead
    elsewhere: int = 0  # URLs on other sites
    statuses: Counter[int] = field(default_factory=Counter)
    # Of the dates of listed pages; "none" without a date.
    sources: Counter[str] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)  # of the dates of listed pages: 2026-11
    _first: _FolderCounts = field(default_factory=_FolderCounts)
    _second: _FolderCounts = field(default_factory=_FolderCounts)
    _slow: _Largest = field(default_factory=_Largest)
    _large: _Largest = field(default_factory=_Largest)

    def add_page(self, page: PageRow) -> None:
        if page.run != self.run:
            return
        # Of links with nofollow, nobody asked whether another host belongs to the site.
        if page.outcome == OFF_SITE or (page.outcome == UNFOLLOWED and not self._is_own(origin(page.url))):
            self.elsewhere += 1
            return
        listed, kind = is_listed(page.outcome), kind_of(page.outcome)
        names = folders_of(page.url, self.site)
        for counts, name in zip((self._first, self._second), names, strict=True):
            counts.add(name, listed=listed, failed=kind in FAILED)
        if kind is UrlKind.OPEN:
            return
        if page.status is None:  # it was not asked, or did not answer: what is known is of an earlier run
            return
        self.statuses[page.status] += 1
        if page.took is not None:
            self._slow.add(page.took, page.url)
        if page.bytes is not None:
            self._large.add(page.bytes, page.url)
        if listed:
            self._date(page)

    def _is_own(self, site: str) -> bool:
        return site == self.site or site in self.hosts

    def add_clicks(self, clicks: int | None) -> None:
        """Count the clicks to a listed page; None if no links lead to it."""
        if clicks is None:
            self.unreachable += 1
        else:
            self.clicks[min(clicks, DEEPEST)] += 1

    def _date(self, page: PageRow) -> None:
        self.sources[page.source or "none" if page.lastmod is not None else "none"] += 1
        if page.lastmod is not None:
            self.months[_month(page.lastmod // DAY)] += 1

    def folders(self) -> Sequence[Folder]:
        """Top-level folders, the largest first; two levels if nearly all URLs are in one folder."""
        first = self._first.result()
        every = sum(folder.urls for folder in first)
        return self._second.result() if first and first[0].urls > CROWDED * every else first

    @property
    def slowest(self) -> Extremes | None:
        """Response times in milliseconds, from the request to the last byte."""
        return self._slow.result()

    @property
    def largest(self) -> Extremes | None:
        """Sizes in bytes, decoded."""
        return self._large.result()

    def lastmod(self) -> Mapping[str, Mapping[str, int]]:
        return {"sources": dict(self.sources.most_common()), "months": dict(sorted(self.months.items()))}
