"""What can happen to the record of one URL, and what the record says afterwards.

A URL is found, and found again; it is settled, kept although it fails, dated, and unlisted as a duplicate or
a repeat. The frontier loads rows, applies these rules and writes the rows back: its SQL selects, orders and
counts. Only `found_again` is also said in SQL (`frontier.discovery`), since two members may find the same URL
at once: a test holds both databases to the rule. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from crawler.model.outcome import Failed, Kept, Listed, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Source, Why

T = TypeVar("T")

HELD, QUEUED, WAITING, LEASED, SETTLED = range(-1, 4)
"""The states of a URL: held for a round, queued, waiting until it is due, leased, settled."""

LISTED: Final = code(Listed())
NOFOLLOW: Final = code(Unlisted(Why.NOFOLLOW))
TOO_DEEP: Final = code(Unlisted(Why.DEPTH))
TOO_MANY_REDIRECTS: Final = code(Failed(Cause.REDIRECTS))
DUPLICATE: Final = code(Unlisted(Why.DUPLICATE))
REPEAT: Final = code(Unlisted(Why.TRAP))


# -- found
# ----------------------------------------------------------------------------------------------------


class Way(NamedTuple):
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
        return known._replace(hops=hops, via=via)
    if known.state == SETTLED:
        return found._replace(hops=hops)
    return known._replace(depth=found.depth, hops=hops, via=found.via)


class Earlier(NamedTuple):
    """What earlier runs know about the content and the date of a page. Dates in seconds since the epoch."""

    outcome: str | None = None
    content: str | None = None  # fingerprint
    header: int | None = None  # Last-Modified
    lastmod: int | None = None
    published_content: str | None = None  # in the last published run that listed the page
    dated_content: str | None = None  # the last content whose date is known
    dated_lastmod: int | None = None  # that date
    dated_header: int | None = None  # Last-Modified when that content was last published


def found_in_new_run(page: Earlier, *, was_published: bool) -> Earlier:
    """What a new run takes over from the run before, when it finds the URL first. `was_published`: that run.

    The content of the previous run becomes the known content if that run was published. Content without a
    date does not replace what is known: the site may have shown error pages, and the earlier content may
    return. A page that fails next keeps its published date, whatever a refused run found.
    """
    if was_published or page.published_content is None:
        lastmod = page.lastmod
    else:
        lastmod = page.dated_lastmod if page.published_content == page.dated_content else None
    if not (was_published and page.outcome == LISTED and page.content is not None):
        return page._replace(lastmod=lastmod)
    kept = page._replace(
        lastmod=lastmod,
        published_content=page.content,
        dated_lastmod=page.dated_lastmod if page.lastmod is None else page.lastmod,
    )
    if page.content == page.dated_content:
        return kept._replace(dated_header=page.dated_header if page.header is None else page.header)
    if page.lastmod is None and page.dated_lastmod is not None:
        return kept
    return kept._replace(dated_content=page.content, dated_header=page.header)


# -- settled and kept
# -----------------------------------------------------------------------------------------

FORBIDDEN: Final = 172_800.0  # seconds for 401 and 403: after two days the login is taken as intended

PASSING: Final = frozenset({
    Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.CONNECT, Cause.TRUNCATED, Cause.PROTOCOL,
    Cause.DNS, Cause.TLS, Cause.CODING, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN,
})  # fmt: skip
"""Failures without a complete, readable response: they may be temporary."""


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


def stays_known(failing: float | None, patience: float, now: float) -> bool:
    """Whether the facts and links of a page that fails since `failing` stay. `patience`: seconds."""
    return patience > 0 and now - (now if failing is None else failing) < patience


def failing_since(failing: float | None, patience: float, now: float, *, answered: bool) -> float | None:
    """The first failure since the last response, after another visit. `patience`: as in `stays_known`."""
    if answered:
        return None
    if patience > 0:
        return now if failing is None else min(failing, now)
    return failing


class Patience(NamedTuple):
    """The two codes of a failure that may pass, and for how many seconds a published page with it is kept."""

    failed: str
    kept: str
    seconds: float

    def outcome(self, failing: float | None, now: float, *, is_published: bool) -> str:
        """The code of a page that failed so, when all pages of its run are known."""
        is_kept = is_published and failing is not None and now - failing < self.seconds
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


# -- dated
# ----------------------------------------------------------------------------------------------------


def first_date(
    sources: Sequence[Source], header: T | None, stated: T | None, changed: T | None = None
) -> tuple[T, Source] | None:
    """The date of a page by the first of its sources that has one.

    `header`: Last-Modified. `stated`: in the page. `changed`: when its content was first seen, by earlier
    runs.
    """
    for source, at in ((Source.HEADER, header), (Source.PAGE, stated), (Source.HISTORY, changed)):
        if at is not None and source in sources:
            return at, source
    return None


class Distrust(NamedTuple):
    """The sources of dates that are not trusted on one origin."""

    header: bool = False  # its Last-Modified headers
    changes: bool = False  # most of its content changed at once
    builds: tuple[tuple[int, int], ...] = ()  # first and last moment of builds of the site

    def is_build(self, at: int) -> bool:
        """Whether the site was built at that time."""
        return any(first <= at <= last for first, last in self.builds)


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

    def date(self, sources: Sequence[Source], distrust: Distrust) -> tuple[int, Source] | None:
        """The lastmod of the page and its source: the first in `sources` that is trusted and has a date."""
        header, changed = self.header, None
        is_same = self.content is not None and self.content == self.dated_content
        if header is not None:
            has_slid = is_same and self.dated_header is not None and header != self.dated_header
            if distrust.header or has_slid or distrust.is_build(header):
                header = None
        if is_same:
            # Content that is unchanged, or has returned, keeps its date.
            if self.dated_lastmod is not None and not distrust.is_build(self.dated_lastmod):
                changed = self.dated_lastmod
        elif self.settled is not None and self._differs_from_published and not distrust.changes:
            changed = int(self.settled)
        return first_date(sources, header, self.stated, changed)

    @property
    def _differs_from_published(self) -> bool:
        known = self.content is not None and self.published_content is not None
        return known and self.content != self.published_content


# -- one of several
# -------------------------------------------------------------------------------------------


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


class Twin(NamedTuple):
    """A listed page with one of the names that pages have in common (`duplicates.resource`)."""

    id: int
    url: str
    group: tuple[str, str]  # that name, and the fingerprint of content and links
    is_canonical: bool  # other pages name it as canonical


def twins(pages: Iterable[Twin]) -> Mapping[int, str]:
    """The pages that are the same as another, with the URL of that one: canonical, or else the shortest."""
    found: dict[int, str] = {}
    for page, best in _behind_first(pages, lambda page: (not page.is_canonical, len(page.url), 0, page.url)):
        found[page.id] = min(best.url, found.get(page.id, best.url))
    return found


class Patterned(NamedTuple):
    """A listed page of a pattern that may be a crawler trap, or of the path of its family without a query."""

    id: int
    url: str
    group: tuple[str, str]  # family, and fingerprint of the content
    closed: int  # 1: its pattern is closed; -1: it has no query
    waited: bool  # it was held for a round
    named: bool  # its pattern is that of canonicals and redirect targets


def repeats(pages: Iterable[Patterned]) -> Mapping[int, str]:
    """The pages of closed patterns that repeat another page of their family, with the URL of that one."""
    first = _behind_first(pages, lambda page: (page.closed, page.waited, not page.named, page.url))
    return {page.id: best.url for page, best in first if page.closed == 1}


P = TypeVar("P", Twin, Patterned)


def _behind_first(
    pages: Iterable[P], rank: Callable[[P], tuple[int, int, int, str]]
) -> Iterator[tuple[P, P]]:
    """The pages of each group that are not its first by rank, each with that first one."""
    groups: dict[object, list[P]] = {}
    for page in pages:
        groups.setdefault(page.group, []).append(page)
    for some in groups.values():
        best = min(some, key=rank)
        yield from ((page, best) for page in some if page.url != best.url)
