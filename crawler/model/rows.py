"""The contents of the state, row by row: for reports, lists and other uses of all URLs at once.

Named tuples, since there is one for every URL. Rows hold data only; values that the state does not store are
None. `UrlRecord` has the details of one URL.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from crawler.model.external import ExternalRow
from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Outcome
from crawler.model.seed import Seed
from crawler.model.visit import Visit
from crawler.parse.url import Url

PUBLISHED = "concluded"  # a value of `RunRow.status`
COMPLETE_RUNS = frozenset({"complete", PUBLISHED, "refused"})  # others


class PageRow(NamedTuple):
    """A URL that the newest run or an earlier one found. Times in seconds since the epoch."""

    id: int
    url: Url
    run: int  # the last run that found it
    outcome: str  # its code in that run; "" while it is open
    detail: str = ""  # redirect target, canonical URL, line of robots.txt, or error
    status: int | None = None
    depth: int = 0  # where the crawl found it: links from a start URL, or from a seed that contains it
    was: str | None = None  # the code of its outcome in the run before
    lastmod: int | None = None
    source: str | None = None  # source of lastmod: the value of a `Source`
    was_lastmod: int | None = None
    content: str | None = None  # fingerprint of the content, with what repeats its address
    seed: Seed | None = None  # the seed that contains it, even if pages link to it
    title: str | None = None
    type: str | None = None  # essence of the media type
    bytes: int | None = None  # decoded
    took: int | None = None  # milliseconds, from the request to the last byte
    barred: str | None = None  # crawlers of other search engines that are not to index it
    rendering: str | None = None  # as stored: `model.rendering.read`
    digest: str | None = None  # of the bytes of an HTML page
    external: ExternalRow | None = None  # the last answer of its host, if it is on another site
    redirect: int = 0  # the id of its target; 0: it does not redirect


class TargetRow(NamedTuple):
    """What a link leads to."""

    url: Url
    outcome: str  # as of `PageRow`
    status: int | None = None  # of a URL on another site: that of the last answer of its host
    external: str | None = None  # the code of that answer
    redirect: int = 0  # the id of its target; 0: it does not redirect


class FeatureRow(Struct, frozen=True):
    """A settled URL of the newest run, and what an optional feature read of its page."""

    id: int
    url: Url
    outcome: str  # its code
    was: str | None = None  # the code of its outcome in the run before
    read: tuple[LabelledUrl, ...] = ()


class EdgeRow(Struct, frozen=True):
    """The links of a URL. Other URLs are given by `PageRow.id`."""

    id: int
    url: Url
    links: Sequence[int] = ()  # negative: nofollow
    redirect: int = 0  # 0: none
    canonical: int = 0  # 0: none, or itself
    head: Sequence[int] = ()  # of link elements, which nobody can click; negative: nofollow


class AnchorRow(NamedTuple):
    """What a link with a finding said when its page was last read for that, and where it stands."""

    id: int  # of the page
    target: int  # the id of the URL to which it leads
    text: str = ""  # cut to `parse.anchors.LONGEST_TEXT`
    landmark: str = ""  # a `parse.anchors.Place`
    version: str = ""  # of the content of the page


class LinksRow(Struct, frozen=True):
    """Where a URL leads a visitor, by `PageRow.id`."""

    links: Sequence[int] = ()  # negative: nofollow
    redirect: int = 0  # 0: none
    named: Sequence[int] = ()  # where it leads nobody who clicks: redirect, canonical, link elements


class Tallies(Struct, frozen=True):
    """Counts over listed pages. A group: pages of one origin with the same text."""

    undated: int = 0  # without a date
    newly_undated: int = 0  # of these, those that were not undated in the run before
    content_groups: int = 0
    content_pages: int = 0
    title_groups: int = 0
    title_pages: int = 0


class HostRow(NamedTuple):
    """An origin that was asked for pages in the newest run."""

    origin: str
    urls: int  # of the run, that were to be asked for
    delay: float  # seconds between requests
    robots: str | None = None  # robots.txt: rules, none, down; None: not read
    detail: str = ""  # why it is down


class PublicationRow(NamedTuple):
    """A publication of a run."""

    urls: int
    files: int | None = None
    bytes: int | None = None
    added: int | None = None
    removed: int | None = None
    changed: int | None = None
    base: str | None = None  # base URL of the published sitemaps
    folder: str | None = None  # absolute, or the URL of an object store; "" for standard output
    delivered: str | None = None  # what --publish-command delivered last (`app.delivery`)
    # Seconds since the epoch: when this or an earlier publication last changed a file.
    files_changed: float | None = None


class RunRow(Struct, frozen=True):
    """A run. Times in seconds since the epoch."""

    number: int
    started: float
    status: str  # crawling, complete, concluded (published), refused, abandoned, or interrupted (killed)
    discovered: int = 0  # URLs
    ended: float | None = None
    exit: int | None = None
    seconds: float | None = None  # working time, over all sessions
    requests: int | None = None
    bytes: int | None = None  # of the pages that were read, decoded
    outcomes: Mapping[str, int] | None = None  # URLs by code
    publication: PublicationRow | None = None
    refused: str | None = None  # why the guard kept the published sitemap
    succeeded: float | None = None  # when a session of this or an earlier run last ended with success

    @property
    def complete(self) -> bool:
        """Whether the crawl was completed."""
        return self.status in COMPLETE_RUNS

    @property
    def listed(self) -> int | None:
        """URLs in the sitemap: as published, else as far as the outcomes are known."""
        return self.publication.urls if self.publication else self.counted("listed")

    def counted(self, kind: str) -> int | None:
        """Number of URLs with this kind of outcome (the code up to the colon), if the outcomes are known."""
        if self.outcomes is None:
            return None
        return sum(count for code, count in self.outcomes.items() if code.partition(":")[0] == kind)


class InPattern(NamedTuple):
    """The pattern that a URL belongs to, which may be a crawler trap."""

    text: str
    fetched: int  # pages fetched in its rounds, without those that a seed names
    closed: bool  # they brought too little new content

    def __str__(self) -> str:
        state = "closed: too few new pages" if self.closed else "still open"
        pages = "1 page" if self.fetched == 1 else f"{self.fetched:,} pages"
        return f"{self.text} ({pages} fetched in its rounds; {state})"


class UrlRecord(Struct, frozen=True):
    """All that is known about one URL."""

    visit: Visit
    run: int
    state: str  # "held" for a round of its pattern, "queued", "waiting", "leased" or "settled"
    outcome: Outcome | None
    facts: Facts | None
    attempts: int
    settled: float | None  # seconds since the epoch
    was: str | None = None  # code of the outcome in the run before
    was_lastmod: datetime | None = None
    failing: float | None = None  # seconds since the epoch: its first failure since its last success
    seed: Seed | None = None  # that contains it; None: found only by links
    pattern: InPattern | None = None
