"""What can happen to the record of one URL, and what the record says afterwards.

A URL is found, and found again; it is settled, kept although it fails, and unlisted as a sort order. Its date
is chosen by `dated`. The frontier loads rows, applies these rules and writes the rows back: its SQL selects,
orders and counts. Only `found_again` is also said in SQL (`frontier.discovery`), since two members may find
the same URL at once: a test holds both databases to the rule. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawler.model.outcome import Failed, Kept, Listed, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Why
from crawler.parse.extract import BYTES

PLANNED, HELD, QUEUED, WAITING, LEASED, SETTLED = range(-2, 4)
"""The states of a URL: planned for a partial run, held for a round, queued, waiting until it is due, leased,
settled.
"""

LISTED: Final = code(Listed())
NOFOLLOW: Final = code(Unlisted(Why.NOFOLLOW))
TOO_DEEP: Final = code(Unlisted(Why.DEPTH))
TOO_MANY_REDIRECTS: Final = code(Failed(Cause.REDIRECTS))
DUPLICATE: Final = code(Unlisted(Why.DUPLICATE))
SOFT_404: Final = code(Unlisted(Why.SOFT_404))
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
        if lastmod is None and dated_lastmod is not None:  # it was withdrawn
            header, stated = (
                0 if at == dated_lastmod and now not in {None, at} else at
                for at, now in ((header, page.header), (stated, page.stated))
            )
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
UNCLEAR_FOR: Final = 172_800.0  # seconds: after two days such an answer is taken as intended

PASSING: Final = frozenset({
    Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.CONNECT, Cause.TRUNCATED, Cause.PROTOCOL,
    Cause.DNS, Cause.TLS, Cause.CODING, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN, Cause.WALL,
    Cause.INTERSTITIAL,
})  # fmt: skip
"""Failures without a complete, readable response of the site: they may be temporary."""

UNCLEAR: Final = frozenset({
    Cause.FORBIDDEN, Cause.CLIENT_ERROR, Cause.STATUS, Cause.REDIRECT, Cause.REDIRECT_LOOP, Cause.REDIRECTS,
})  # fmt: skip
"""Answers that do not say that there is no page: they may be a firewall's, or a fault of the site."""


def keep_for(outcome: Outcome, keep: float) -> float:
    """Seconds from its first failure that a published page with this outcome stays listed; 0: not at all.

    A definite answer of the site (not found, noindex, a redirect, a robots rule) removes it at once. `keep`:
    the seconds of --keep-failing.
    """
    match outcome:
        case Failed(cause) | Kept(cause) if cause in UNCLEAR:
            return min(UNCLEAR_FOR, keep)
        case Failed(cause) | Kept(cause) if cause in PASSING:
            return keep
        case Unlisted(Why.ROBOTS_DOWN):
            return keep
    return 0.0


def stays_unlisted(was: str | None, outcome: Outcome, is_changed: bool | None) -> bool:
    """Whether a page that a partial run visits stays one of several, as it does not visit the others, too.

    `was`: the code of its outcome before. `is_changed`: since then; None: that is not known.
    """
    return was in {DUPLICATE, SOFT_404} and isinstance(outcome, Listed) and is_changed is False


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
        if cause in PASSING | UNCLEAR:
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
    "retries": PASSING - {Cause.TLS, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN, Cause.INTERSTITIAL},
}
"""The limits among the settings, with the failures that a larger value may avert."""


def averted(before: Mapping[str, float], now: Mapping[str, float]) -> frozenset[str]:
    """The codes of the failures that a resumed run asks again. `before`: the limits until now."""
    causes = {cause for name, limit in before.items() if now[name] > limit for cause in AVERTED[name]}
    return frozenset(code(end) for cause in causes for end in (Failed(cause), Kept(cause)))


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
