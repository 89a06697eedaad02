"""What can happen to the record of one URL, and what the record says afterwards.

A URL is found, and found again; it is settled, kept although it fails, dated, and unlisted as a sort order.
The frontier loads rows, applies these rules and writes the rows back: its SQL selects, orders and counts.
Only `found_again` is also said in SQL (`frontier.discovery`), since two members may find the same URL at
once: a test holds both databases to the rule. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from crawler.model.outcome import Failed, Kept, Listed, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Source, Why
from crawler.model.survey import LONG_AGO
from crawler.parse.extract import BYTES, wording
from crawler.rules.noise import HEAD, MOST_RUNS, LastChange, has_restless

T = TypeVar("T")
_NOTHING_KNOWN: Final = frozenset({"", LastChange.UNKNOWN, LastChange.FIRST})

PLANNED, HELD, QUEUED, WAITING, LEASED, SETTLED = range(-2, 4)
"""The states of a URL: planned for a partial run, held for a round, queued, waiting until it is due, leased,
settled.
"""

LISTED: Final = code(Listed())
NOFOLLOW: Final = code(Unlisted(Why.NOFOLLOW))
TOO_DEEP: Final = code(Unlisted(Why.DEPTH))
TOO_MANY_REDIRECTS: Final = code(Failed(Cause.REDIRECTS))
DUPLICATE: Final = code(Unlisted(Why.DUPLICATE))
UNVISITED: Final = code(Unlisted(Why.UNVISITED))


# -- found -----------------------------------------------------------------------------------------------


class Way(Struct, frozen=True):
    """How a URL was found, and its state since."""

    depth: int  # links from a start URL
    hops: int  # redirects since the last link
    via: int | None  # id of the page that links to it; None: it is in a seed
    state: int = QUEUED
    outcome: str | None = None  # its code; None: it is to be visited

    @property
    def is_nofollow(self) -> bool:
        """Whether only nofollow links lead to it."""
        return self.outcome == NOFOLLOW


def found_again(known: Way, found: Way) -> Way:
    """The way to a URL of this run that another page leads to: fewest links and fewest redirects.

    A link that is followed takes precedence over nofollow. The order in which ways are found does not
    matter, except for `via`: that is the first page with the least depth.
    """
    if found.is_nofollow:
        return known
    if known.is_nofollow:
        return found
    hops, via = min(known.hops, found.hops), found.via if known.via is None else known.via
    if known.state == SETTLED and known.outcome == TOO_MANY_REDIRECTS and hops < known.hops:
        return Way(known.depth, hops, via)
    if found.depth >= known.depth or not (known.state in {HELD, QUEUED} or known.outcome == TOO_DEEP):
        return replace(known, hops=hops, via=via)
    if known.state == SETTLED:
        return replace(found, hops=hops)
    return replace(known, depth=found.depth, hops=hops, via=found.via)


class Earlier(NamedTuple):
    """What earlier runs know about the content and the date of a page. Dates in seconds since the epoch."""

    outcome: str | None = None
    content: str | None = None  # its fingerprint, or after = the digest of its bytes
    header: int | None = None  # Last-Modified
    lastmod: int | None = None
    published_content: str | None = None  # in the last published run that listed the page
    dated_content: str | None = None  # the last content whose date is known
    dated_lastmod: int | None = None  # that date
    # Last-Modified when that content was first published; 0: it came later, and was not believed
    dated_header: int | None = None
    stated: int | None = None  # in the page
    dated_stated: int | None = None  # the same when that content was first published; 0: as above


def found_in_new_run(page: Earlier, *, was_published: bool) -> Earlier:
    """What a new run takes over from the run before, when it finds the URL first. `was_published`: that run.

    The content of the previous run becomes the known content if that run was published. Content without a
    date does not replace what is known: the site may have shown error pages, and the earlier content may
    return. A page that fails next keeps its published date, whatever a refused run found. A date that the
    published run did not give to the same content any more is withdrawn, and a digest of bytes never returns.
    """
    content, lastmod, dated_lastmod = page.content, page.lastmod, page.dated_lastmod
    dated = page.dated_content, dated_lastmod, page.dated_header, page.stated, page.dated_stated
    if not was_published and page.published_content is not None:
        lastmod = dated_lastmod if page.published_content == page.dated_content else None
    if not (was_published and page.outcome == LISTED and content is not None):
        return Earlier(page.outcome, content, page.header, lastmod, page.published_content, *dated)
    if content == page.dated_content:
        header = _first(page, page.header) if page.dated_header is None else page.dated_header
        stated = _first(page, page.stated) if page.dated_stated is None else page.dated_stated
        dated = content, lastmod, header, page.stated, stated
    elif lastmod is not None or dated_lastmod is None or _is_read_closer(page.dated_content, content):
        header = _first(page, page.header) if page.dated_header == 0 else page.header
        dated = content, lastmod, header, page.stated, page.stated
    return Earlier(page.outcome, content, page.header, lastmod, content, *dated)


def _is_read_closer(before: str | None, now: str) -> bool:
    return before is not None and before.startswith(BYTES) and not now.startswith(BYTES)


def _first(page: Earlier, at: int | None) -> int | None:
    """A date that a page with known content has for the first time; 0 if that was not believed."""
    return at if at is None or page.lastmod in {at, page.header} else 0


# -- settled and kept ------------------------------------------------------------------------------------

DAY: Final = 86_400  # seconds
FORBIDDEN: Final = 172_800.0  # seconds for 401 and 403: after two days the login is taken as intended

PASSING: Final = frozenset({
    Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.CONNECT, Cause.TRUNCATED, Cause.PROTOCOL,
    Cause.DNS, Cause.TLS, Cause.CODING, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN, Cause.WALL,
})  # fmt: skip
"""Failures without a complete, readable response of the site: they may be temporary."""


def keep_for(outcome: Outcome, keep: float) -> float:
    """Seconds from its first failure that a published page with this outcome stays listed; 0: not at all.

    A definite answer of the site (not found, noindex, a redirect, a robots rule) removes it at once. `keep`:
    the seconds of --keep-failing.
    """
    match outcome:
        case Failed(Cause.FORBIDDEN) | Kept(Cause.FORBIDDEN):
            return min(FORBIDDEN, keep)
        case Failed(cause) | Kept(cause) if cause in PASSING:
            return keep
        case Unlisted(Why.ROBOTS_DOWN):
            return keep
    return 0.0


class Failing(NamedTuple):
    """The first failure of a page, or of a seed, since its last response."""

    since: float  # seconds since the epoch
    run: int  # its number

    @classmethod
    def read(cls, since: float | None, run: int | None) -> "Failing | None":
        return None if since is None or run is None else cls(since, run)


class RunTime(NamedTuple):
    """When a run judges what fails."""

    now: float  # seconds since the epoch
    run: int  # its number
    interval: float  # seconds that a run counts for, at most
    started: float = 0.0  # seconds since the epoch: the run

    def lasted(self, failing: Failing | None) -> float:
        """Seconds since the first failure.

        Bounded by the runs since then: no wrong clock of one run ends the patience with a page.
        """
        if failing is None:
            return 0.0
        runs = self.run - failing.run + 1
        return max(0.0, min(self.now - failing.since, runs * self.interval))

    def failing(self, before: Failing | None, patience: float, *, answered: bool) -> Failing | None:
        """The first failure since the last response, after another visit. `patience`: of `keep_for`."""
        if answered or (patience <= 0 and before is None):
            return None
        if patience <= 0:
            return before
        return (
            Failing(self.now, self.run)
            if before is None
            else Failing(min(before.since, self.now), before.run)
        )


def interval_of(starts: Sequence[float]) -> float:
    """The usual seconds between runs that started at these times, at least a day.

    One of several may be wrong.
    """
    gaps = sorted(after - before for before, after in pairwise(sorted(starts)))
    return max(DAY, gaps[(len(gaps) - 1) // 2]) if len(gaps) > 1 else float(DAY)


class Patience(NamedTuple):
    """The two codes of a failure that may pass, and for how many seconds a published page with it is kept."""

    failed: str
    kept: str
    seconds: float

    def outcome(self, failing: Failing | None, at: RunTime, *, is_published: bool) -> str:
        """The code of a page that failed so, when all pages of its run are known."""
        is_kept = is_published and failing is not None and at.lasted(failing) < self.seconds
        return self.kept if is_kept else self.failed


def patience_by_code(keep: float) -> Mapping[str, Patience]:
    """The failures that may pass, by both codes of each. `keep`: the seconds of --keep-failing."""
    rows: dict[str, Patience] = {}
    for cause in Cause:
        if cause in PASSING or cause is Cause.FORBIDDEN:
            failure = Unlisted(Why.ROBOTS_DOWN) if cause is Cause.ROBOTS_DOWN else Failed(cause)
            one = Patience(code(failure), code(Kept(cause)), keep_for(failure, keep))
            rows |= {one.failed: one, one.kept: one}
    return rows


# -- asked again -----------------------------------------------------------------------------------------

AVERTED: Final[Mapping[str, frozenset[Cause]]] = {
    "timeout": frozenset({Cause.TIMEOUT}),
    "total-timeout": frozenset({Cause.TIMEOUT}),
    "max-body": frozenset({Cause.TOO_LARGE}),
    "max-redirects": frozenset({Cause.REDIRECTS}),
    "max-wait": frozenset({Cause.RATE_LIMITED}),
    "retries": PASSING - {Cause.TLS, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN},
}
"""The limits among the settings, with the failures that a larger value may avert."""


def averted(before: Mapping[str, float], now: Mapping[str, float]) -> frozenset[str]:
    """The codes of the failures that a resumed run asks again. `before`: the limits until now."""
    causes = {cause for name, limit in before.items() if now[name] > limit for cause in AVERTED[name]}
    return frozenset(code(end) for cause in causes for end in (Failed(cause), Kept(cause)))


# -- dated -----------------------------------------------------------------------------------------------


def first_date(
    sources: Sequence[Source],
    header: T | None,
    stated: T | None,
    sitemap: T | None = None,
    changed: T | None = None,
) -> tuple[T, Source] | None:
    """The date of a page by the first of its sources that has one.

    `header`: Last-Modified. `stated`: in the page. `sitemap`: in one that the site had before. `changed`:
    when its content was first seen, by earlier runs.
    """
    dates = (header, stated, sitemap, changed)
    for source, at in zip((Source.HEADER, Source.PAGE, Source.SITEMAP, Source.HISTORY), dates, strict=True):
        if at is not None and source in sources:
            return at, source
    return None


class Distrust(Struct, frozen=True):
    """The sources of dates that are not trusted on one origin."""

    header: bool = False  # its Last-Modified headers
    changes: bool = False  # most of its content changed at once
    builds: tuple[tuple[int, int], ...] = ()  # first and last moment of builds of the site
    sitemap: bool = False  # the dates in its sitemap
    links: bool = False  # they changed on most pages at once, and are no content
    blocks: frozenset[str] = frozenset()  # digests of what was new on many pages at once
    noisy: bool = False  # many of its pages have noise
    unseen: bool = False  # so have most: a change is noise, unless it is known what is new
    stated: bool = False  # the dates in its pages
    stale: bool = False  # they do not follow changes
    # Its pages change again and again in the same places; what they were dated in that time is doubtful.
    restless: tuple[int, int] | None = None
    everywhere: bool = False  # most of them do
    turning: Mapping[str, bool] = {}  # see `shown_in_turn.doubtful`

    def is_build(self, at: int) -> bool:
        """Whether the site was built at that time."""
        return any(first <= at <= last for first, last in self.builds)

    def withdraws(self, page: "Datable") -> bool:
        """Whether the known date of a page came from a source that has proved unreliable since.

        What such a source said of a time long ago was true more often than not.
        """
        at, now = page.dated_lastmod, page.settled
        if at is None or now is None or now - at > LONG_AGO:
            return False
        is_restless = self.everywhere or has_restless(page.watched)
        if self.restless and self.restless[0] <= at < self.restless[1] and is_restless:
            return at not in {page.dated_header, page.dated_stated}
        return (self.header and at == page.dated_header) or (self.stated and at == page.dated_stated)


class Datable(NamedTuple):
    """What is known about the date of a listed page: values as in `Earlier`."""

    header: int | None
    stated: int | None
    settled: float | None
    content: str | None
    published_content: str | None
    dated_content: str | None
    dated_lastmod: int | None
    dated_header: int | None
    sitemap_date: int | None = None
    dated_stated: int | None = None
    watched: str | None = None
    visits: int = 0  # that could see a change, and those that saw one
    changes: int = 0
    first_visit: float | None = None  # when the run began in which it was

    def date(
        self, sources: Sequence[Source], distrust: Distrust, since: float = 0
    ) -> tuple[int, Source] | None:
        """The lastmod of the page and its source: the first in `sources` that is trusted and has a date.

        `since`: the time of the last publication.
        """
        if distrust.links:
            self = self._by_wording()  # noqa: PLW0642 - the same page, without its links
        header = None if distrust.header or self._has_slid(distrust, since) else self.header
        stated = None if distrust.stated or not self._may_state(since) else self.stated
        changed = self._changed(distrust)
        if distrust.stale and stated is not None and changed is not None and changed > stated:
            stated = None
        sitemap = None if distrust.sitemap else self._date_in_sitemap(since)
        return first_date(sources, header, stated, sitemap, changed)

    @property
    def _is_same(self) -> bool:
        return self.content is not None and self.content == self.dated_content

    def _has_slid(self, distrust: Distrust, since: float) -> bool:
        """Whether Last-Modified changed while the content did not, or is the time of a build."""
        if self.header is None or distrust.is_build(self.header):
            return True
        if not self._is_same:
            # What was not believed then is believed no more than before.
            return self.dated_header == 0 and self.header <= since
        return self.header != self.dated_header and (
            self.dated_header is not None or self._is_later(self.header, since)
        )

    def _is_later(self, at: int, since: float) -> bool:
        """Whether a date is later than this content, which had none when it was first seen. So a date to come
        does not become true by waiting.
        """
        first = since if self.first_visit is None else self.first_visit
        if self._is_same and self.dated_lastmod is not None:
            return at > max(first, self.dated_lastmod)
        return at > (since if self.changes else first)

    def _may_state(self, since: float) -> bool:
        """Whether the content agrees with the stated date: what is unchanged has the date it had first."""
        if self.stated is None or not self._is_same:
            return True
        if self.dated_stated is None:
            return not self._is_later(self.stated, since) or self.published_content is None
        return self.stated // DAY == self.dated_stated // DAY

    def _changed(self, distrust: Distrust) -> int | None:
        """When the content was first seen, by earlier runs or this one."""
        head = (self.watched or "")[:HEAD]
        change, turn = head[:1], distrust.turning.get(head[1:])
        is_doubtful = head[1:] in distrust.blocks or turn is not None
        if distrust.restless is not None:
            is_doubtful |= change in {LastChange.AGAIN, LastChange.REPEATED}
            # Where most pages are restless, another one that changes so often probably is as well.
            is_often = distrust.everywhere and self.changes * MOST_RUNS >= self.visits
            is_doubtful |= is_often and change in _NOTHING_KNOWN
        if self._is_same or (is_doubtful and self.published_content == self.dated_content):
            # Content that is unchanged, or has returned, keeps its date; so does that of a doubtful change.
            at = self.dated_lastmod
            # A text in turn that returns has no date: that of its first turn was withdrawn.
            is_false_turn = turn or (turn is not None and self._differs_from_published and self._is_same)
            is_noise = change == LastChange.LEARNED or is_false_turn
            is_noise = is_noise and at not in {self.dated_header, self.dated_stated}
            is_false = at is None or distrust.is_build(at) or distrust.withdraws(self)
            return None if is_noise or is_false else at
        if self.settled is None or not self._differs_from_published or distrust.changes:
            return None
        is_noise = is_doubtful or (distrust.noisy and change == LastChange.REPEATED)
        is_noise |= distrust.unseen and change in {"", LastChange.UNKNOWN}
        return None if is_noise else int(self.settled)

    def _by_wording(self) -> "Datable":
        """The page with versions that do not depend on its links."""
        versions = (self.content, self.published_content, self.dated_content)
        now, published, dated = (version and wording(version) for version in versions)
        return self._replace(content=now, published_content=published, dated_content=dated)

    def _date_in_sitemap(self, since: float) -> int | None:
        """The date in the sitemap of the site, unless the history of the page contradicts it.

        A page that is unchanged since the last publication has no later date than that; one that is not has
        no earlier one, so that a sitemap that is not kept up to date, or was once published by us, gives no
        date. A day may stand for its last second.
        """
        at = self.sitemap_date
        if at is None or self.content is None or self.published_content is None:
            return at
        if self.content == self.dated_content and self.dated_lastmod is not None:
            return at if at == self.dated_lastmod else None
        last = at + DAY - 1 if at % DAY == 0 else at
        if self._differs_from_published:
            return at if last >= since else None
        return None if self._is_later(at, since) else at

    @property
    def _differs_from_published(self) -> bool:
        known = self.content is not None and self.published_content is not None
        return known and self.content != self.published_content


# -- one of several --------------------------------------------------------------------------------------


class SortOrder(NamedTuple):
    """A listed page, and another one with the same content and links that it may be a sort order of."""

    id: int
    host: int
    base: str  # URL of the other page
    place: int  # in `duplicates.unsorted`: the shortest base is first
    sorting: str  # names of the parameters that are removed; empty: known sort orders
    is_reordered: bool  # the pages differ in the order of their content


def sort_orders(pairs: Iterable[SortOrder]) -> Mapping[int, str]:
    """The pages that are sort orders of another one, with the URL of that one.

    Some parameters are known to sort; others prove it on pages whose order differs.
    """
    pairs = sorted(pairs, key=lambda pair: pair.place, reverse=True)
    proven = {(pair.host, pair.sorting) for pair in pairs if pair.is_reordered}
    return {pair.id: pair.base for pair in pairs if not pair.sorting or (pair.host, pair.sorting) in proven}
