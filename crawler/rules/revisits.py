"""Which known pages a partial run visits: how often each one changes, and what a visit is expected to bring.

The rate of changes of a page is estimated by how many of its visits saw one (Cho and Garcia-Molina,
Estimating frequency of change, 2003), and drawn towards that of the site, the less the longer the page was
watched. The age of a page counts more than its rate, since an old page may have changed long ago. One edit
often changes several pages of a list, and is followed by others: so what changed beside a page since its last
visit counts, too, and when the page itself last changed. Pure: times are given, and taken in whole hours, so
that some seconds more or less choose no other pages.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple, Self
from zlib import crc32

from crawler.model.facts import Facts
from crawler.parse.url import Url, target

HOUR: Final = 3_600  # seconds
DAY: Final = 24  # hours
FIRST_SITE_RATE: Final = (0.5, 200.0)  # changes in so many days, before anything is known
DRAWN: Final = 80.0  # days for which a page is watched until its own rate counts as much as that of the site
AGE: Final = 2.0  # exponent
FIRST_HUB_RATE: Final = (0.5, 2.5)  # the same for a page that led to others
ANNOUNCED: Final = 10.0  # pages that must have changed until what sitemaps announce counts half
LEAST_HUB: Final = 0.02  # probability that a hub has changed, from which on it is visited first
HUBS: Final = 8  # one in so many pages of a run, at most, is a hub that is visited first
MORE_HUBS: Final = 4  # and one in so many, if those lead to new pages
LED: Final = 20.0  # how much likelier a hub leads to new pages if all others of many that were visited do
LED_FEW: Final = 2  # so many of which tell half of that
SPARED: Final = 8  # one in so many pages of a run, at least, is a known one, however many are new
FEWEST: Final = 10  # known pages that are released together, of those that are left
BESIDE: Final = 80.0  # how much likelier a page has changed if all others of many in its list have
BESIDE_FEW: Final = 10  # so many of which tell half of that
AGAIN: Final = 10.0  # how much likelier a page changes on the day after a change
LATELY: Final = 32  # days, until which that has worn off
GONE: Final = 0.01  # how often a page returns that was not found, beside how often others change
MOST: Final = 1_000  # the same without a limit on pages, or with a large one


class Watched(NamedTuple):
    """What the visits of a page have seen. Times in seconds since the epoch, of the start of a run."""

    visits: int = 0  # after the first one, as far as the page answered
    changes: int = 0  # how many of them saw one
    first: float | None = None  # the time of the first visit
    last: float | None = None  # of the last one, whatever it brought

    def after(self, at: float, is_changed: bool | None) -> Self:
        """After another visit. `is_changed`: None: it did not show, as the page failed or is new."""
        first = at if self.first is None else self.first
        if is_changed is None:
            return self._replace(first=first, last=at)
        return self._replace(visits=self.visits + 1, changes=self.changes + is_changed, first=first, last=at)


class Version(NamedTuple):
    """What is stored of a page to tell whether it has changed."""

    content: str | None
    digest: str | None
    header: int | None  # Last-Modified, in seconds since the epoch

    def is_changed(self, now: Facts) -> bool | None:
        """Whether the page differs now. Bytes alone may differ where nothing has changed, as by a nonce."""
        if self.content and now.content:
            return self.content != now.content
        if not (self.digest and now.digest):
            return None
        header = now.header and int(now.header.timestamp())
        return self.digest != now.digest and (header is None or header != self.header)


class VisitHistory(NamedTuple):
    """What is known of when a page changed."""

    # a published page that fails, of which nothing is known that can be relied on, or whose text may be noise
    is_urgent: bool
    visits: int
    changes: int
    first: float
    last: float
    visited: int  # the run of the last visit
    was_announced: bool  # a sitemap of the site gives it a date after the first visit
    is_announced: bool  # and after the last one
    is_gone: bool  # it was not found

    def days(self, now: float) -> float:
        """Since the last visit; infinite if the clock was set back since, as nobody knows."""
        hours = round((now - self.last) / HOUR)
        return math.inf if hours < 0 else hours / DAY

    @property
    def watched(self) -> float:
        """Days."""
        return max(0.0, round((self.last - self.first) / HOUR) / DAY)

    def rate(self, changes: float, days: float) -> float:
        """Changes a day. The rate before anything is known of the page: `changes` in `days`.

        By the visits that saw at least one change, of all that could.
        """
        seen = -math.log((self.visits - self.changes + 0.5) / (self.visits + 0.5)) * self.visits
        return (seen + changes) / (self.watched + days)


class Revisit(NamedTuple):
    """A known page that may be visited, with its `VisitHistory`."""

    id: int
    url: Url
    is_urgent: bool
    visits: int
    changes: int
    first: float
    last: float
    visited: int
    was_announced: bool = False
    is_announced: bool = False
    is_gone: bool = False
    found: int = 0  # how many URLs were found on it first
    depth: int = 0

    @property
    def history(self) -> VisitHistory:
        """Equal for pages between which nothing chooses."""
        row: tuple[Any, ...] = self
        return VisitHistory._make(row[HISTORY])


HISTORY: Final = slice(2, 11)  # of a `Revisit`


class Announcements:
    """How far the dates in the site's sitemaps have told which pages change.

    By how many of the pages that changed since their first visit, and of those that did not, sitemaps gave a
    date after it, and a visit followed: dates of pages that change have been right, dates of all say nothing.
    """

    def __init__(self) -> None:
        self._pages = {True: 0, False: 0}  # that changed, that did not
        self._announced = {True: 0, False: 0}  # of those

    def add(self, known: VisitHistory, pages: int) -> None:
        """Count pages with this history."""
        if known.visits and not known.is_announced:
            self._pages[known.changes > 0] += pages
            self._announced[known.changes > 0] += pages * known.was_announced

    def ratios(self) -> tuple[float, float]:
        """How much likelier a page that changed is not to be announced, and to be, than one that did not."""
        unchanged = (self._announced[False] + 1) / (self._pages[False] + 2)
        changed = (self._announced[True] + ANNOUNCED * unchanged) / (self._pages[True] + ANNOUNCED)
        return min(1.0, (1 - changed) / (1 - unchanged)), max(1.0, changed / unchanged)


class Sighting(NamedTuple):
    """When pages were visited last, and last changed, as far as that is known."""

    via: int | None  # the page that led to it first
    last: float
    changed: float | None
    pages: int


class SiteRate(NamedTuple):
    """What all pages tell of each."""

    site: float  # changes in `DRAWN` days
    silent: float  # `Announcements.ratios`
    announced: float


def plan(
    pages: Collection[tuple[Any, ...]],
    now: float,
    max_age: float,
    most: int,
    seen: Iterable[Sighting] = (),
) -> list[int]:
    """The ids of the pages to visit, the first one first.

    `pages`: id, URL, the values of `VisitHistory`, the page that led to it first, and the time of its last
    change, if that is known and not more than `LATELY` ago. `seen`: of those that this run has visited.
    `max_age`: seconds. Urgent ones are first, and those that were not visited for `max_age`, the oldest
    first. The others, and what was not found, follow by the days for which a change is expected to have been
    missed, also by what sitemaps announce, and by the pages beside them. Of equal ones those that are
    announced come first, each in an order that nobody chose.
    """
    alike = _grouped(pages, now, seen)
    of_all = _site_rate(alike)

    def place(known: tuple[Any, ...]) -> tuple[int, float, int, bool, tuple[Any, ...]]:
        history = VisitHistory._make(known[:-2])
        age = history.days(now)
        if history.is_urgent or (age * DAY * HOUR >= max_age and not history.is_gone):
            return 1 - bool(history.is_urgent), -age, history.visited, False, known
        ratio = known[-1] * (of_all.announced if history.is_announced else of_all.silent)
        rate = history.rate(of_all.site, DRAWN) * known[-2] * (GONE if history.is_gone else 1)
        ratio /= 1 - math.expm1(-rate * age) * (ratio - 1)  # by Bayes' theorem
        return 2, -rate * ratio * age**AGE, history.visited, not history.is_announced, known

    found = list[tuple[Any, ...]]()
    for known in sorted(alike, key=place):
        if len(found) >= most:
            break
        found += _shuffled(alike[known], most - len(found))
    return [page[0] for page in found]


def _grouped(
    pages: Iterable[tuple[Any, ...]], now: float, seen: Iterable[Sighting]
) -> Mapping[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The pages between which nothing chooses, by their history, and how much likelier they have changed."""
    equal = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for page in pages:
        equal[page[2:]].append(page)
    sightings = (
        Sighting(via, known[4], changed, len(some)) for (*known, via, changed), some in equal.items()
    )
    likelier = _likelier(chain(sightings, seen))
    alike = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for (*known, via, changed), some in equal.items():
        alike[(*known, _soon_again(now, changed), likelier(via, known[4]))] += some
    return alike


def _site_rate(alike: Mapping[tuple[Any, ...], Sequence[object]]) -> SiteRate:
    changes, days = FIRST_SITE_RATE
    announcements = Announcements()
    for known, group in alike.items():
        history = VisitHistory._make(known[:-2])
        announcements.add(history, len(group))
        changes += history.changes * len(group)
        days += history.watched * len(group)
    return SiteRate(changes / days * DRAWN, *announcements.ratios())


def _likelier(pages: Iterable[Sighting]) -> Callable[[int | None, float], float]:
    """How much likelier a page has changed since its last visit, by the pages that the same one led to: how
    many of those that were visited later have changed since.
    """
    visits, changes = defaultdict[int | None, list[float]](list), defaultdict[int | None, list[float]](list)
    for via, last, changed, count in pages:
        visits[via] += [last] * count
        if changed is not None:
            changes[via] += [changed] * count
    for times in (*visits.values(), *changes.values()):
        times.sort()

    @cache
    def likelier(via: int | None, last: float) -> float:
        changed, visited = (len(some[via]) - bisect_right(some[via], last) for some in (changes, visits))
        return 1 + BESIDE * min(changed, visited) / (visited + BESIDE_FEW)

    return likelier


def _soon_again(now: float, changed: float | None) -> float:
    """How much likelier a page changes that did lately."""
    days = LATELY if changed is None else max(1, round((now - changed) / HOUR / DAY))
    return 1 + AGAIN * max(0.0, 1 / days - 1 / LATELY)


def _shuffled(pages: Sequence[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """The first pages in an order that depends on no origin, and that no folder is first in.

    Numbers alone are sorted fast, so only pages that may be among the first are sorted by URL as well.
    """
    marks = [crc32(target(page[1]).encode("utf-8", "surrogatepass")) for page in pages]
    last = sorted(marks)[:most][-1]
    first = sorted((mark, page[1], page) for mark, page in zip(marks, pages, strict=True) if mark <= last)
    return [page for _, _, page in first[:most]]


def hubs(
    pages: Iterable[Revisit], now: float, budget: int | None, asked: int = 0, led: int = 0
) -> list[Revisit]:
    """The pages that led to others, and are visited first: those that may lead to more by now.

    `led`: how many of those that were `asked` in this run led to new pages. Often several do on the same day,
    so then the others are likelier to, and more of them are visited.
    """
    likelier = 1 + LED * led / (asked + LED_FEW)

    def likely(page: Revisit) -> float:
        history = page.history
        return -math.expm1(-history.rate(*FIRST_HUB_RATE) * max(1.0, history.days(now))) * likelier

    ranked = sorted(((-likely(page), -page.found, page.url, page) for page in pages), key=lambda one: one[:3])
    most = len(ranked)
    if budget is not None:
        most = max(1, budget // HUBS) if not led else max(0, budget // HUBS + budget // MORE_HUBS - asked)
    return [page for probability, _, _, page in ranked[:most] if -probability >= LEAST_HUB]


def portion(left: int | None, budget: int | None) -> int | None:
    """How many known pages are chosen at once: half of those that are left, since what changed among them
    tells of the others, until few are. In a large site that takes time.
    """
    if left is None or budget is None or left <= max(FEWEST, budget // (4 if budget <= MOST else 2)):
        return left
    return left - left // 2


def batch(left: int | None) -> int:
    """How many known pages are visited before new URLs are next. `left`: pages; None: any number."""
    return MOST if left is None else min(left, MOST, max(FEWEST, left // 2))
