"""Counts over all pages of a run, for the rules that are applied at the end of a crawl."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from msgspec import Struct, field

from crawler.model.rendering import Rendering
from crawler.parse.url import Url

LONG_AGO: Final = 5_184_000  # seconds, 60 days: a build is followed by another one within that time
LATELY: Final = 604_800  # seconds, a week: what is built each night, or in parts, was built within that time


class Evidence(Struct, frozen=True):
    """How reliable the Last-Modified headers of one origin are. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    fresh: int  # of `dated`: the header is the time of the request
    compared: int  # with the same content as in an earlier run, but for links
    slid: int  # of `compared`: the header changed nevertheless
    known: int = 0  # with content that was also read in an earlier run
    changed: int = 0  # of `known`: the content has changed
    reworded: int = 0  # of `changed`: in more than links
    announced: int = 0  # with a date in a sitemap of the site, and another one to compare it with
    too_new: int = 0  # of `announced`: the content is known to be older
    recent: int = 0  # of `dated`: the header is not older than `LATELY`, and the page does not state the same
    stating: int = 0  # with the same content as in an earlier run, and a date that they state
    restated: int = 0  # of `stating`: another one than before
    stale: int = 0  # of `reworded`: they state the date that they stated before
    followed: int = 0  # of `reworded`: they state another one
    noisy: int = 0  # on which only noise changed
    again: int = 0  # that changed in this run where they had changed before, and not in the run before
    anew: int = 0  # that did where they had not
    since: int = 0  # the first moment of this run, in seconds since the epoch
    days: int = 0  # of the pages visited in this run, all together: from one visit to the next, on average


class Turns(Struct, frozen=True):
    """What is known of texts that the pages of one origin show in turn; see `rules.shown_in_turn`."""

    gone: tuple[tuple[int, int], ...] = ()  # a digest of a text, and the id of the page that lost it last
    runs: tuple[tuple[int, int], ...] = ()  # of a run: changes where pages had changed, and of these, such
    pages: tuple[int, ...] = ()  # ids of the pages to which such a text came since it is known
    is_known: bool = False


class Restless(Struct, frozen=True):
    """Changes in place on the pages of one origin, in the last runs."""

    runs: tuple[tuple[int, int, int], ...] = ()  # the first moment of a run, `Evidence.again`, `anew`
    first: int = 0  # what was dated from this moment until `last`, before it was known, is doubtful
    last: int = 0
    # Of a run: `Evidence.reworded`, but for blocks, `days`, or `known` if these are more, and `noisy`.
    edits: tuple[tuple[int, int, int], ...] = ()
    turns: Turns = Turns()  # texts that are shown in turn
    templates: tuple[int, ...] = ()  # digests of texts that many pages got, or lost; see `rules.rolled_out`


class Build(Struct, frozen=True):
    """The ten minutes with the most dates of an origin, of one source. Counts of listed pages."""

    origin: str
    dated: int  # with a credible date
    first: int  # the earliest of these dates, in seconds since the epoch
    last: int
    within: int  # with a date from `first` to `last`
    stating: int  # of `within`: the page itself states a date
    older: int  # of `stating`: that date is well before the other
    agreeing: int = 0  # of `stating`: it is about the same
    age: int = LONG_AGO  # seconds from `last` to the newest response


class NewBlock(Struct, frozen=True):
    """Listed pages of an origin that changed in the same way, so far as is known."""

    origin: str
    new: str  # digests of what is new and gone, as in `rules.noise`
    pages: int
    change: str = ""  # of a single page: a `noise.LastChange`
    page: int = 0  # its id
    before: int = 0  # pages whose last change was the same one, in earlier runs


class DatesSeen(Struct, frozen=True):
    """What all pages of a run tell about their dates."""

    origins: Sequence[Evidence]
    headers: Sequence[Build]
    sitemaps: Sequence[Build]
    stated: Sequence[Build]
    blocks: Sequence[NewBlock]


class Doubts(Struct, frozen=True):
    """Sources of dates that are not trusted."""

    unreliable: tuple[str, ...] = ()  # origins with unreliable headers
    changing: tuple[str, ...] = ()  # origins on which most content changed at once
    builds: tuple[tuple[str, int, int], ...] = ()  # origin, first and last moment of a build
    linking: tuple[str, ...] = ()  # origins on which links alone changed at once: links are no content
    sitemaps: tuple[str, ...] = ()  # origins with a sitemap whose dates are not those of the pages
    stated: tuple[str, ...] = ()  # origins whose pages state dates that are not theirs
    stated_first: tuple[tuple[str, int, int], ...] = ()  # origin, first and last moment: `note.STATED_FIRST`
    stale: tuple[str, ...] = ()  # origins whose pages state dates that do not follow changes
    noisy: tuple[str, ...] = ()  # origins of which many pages have noise
    unseen: tuple[str, ...] = ()  # origins of which most pages have noise, or a block that changed
    blocks: tuple[tuple[str, str], ...] = ()  # origin, and digest of a change that is one of a template
    # The same, if that is known since this run, and from when on it may have dated pages.
    rolled: tuple[tuple[str, str, int], ...] = ()
    # Origins whose pages change again and again in the same places; the first and last doubtful date.
    restless: tuple[tuple[str, int, int], ...] = ()
    everywhere: tuple[str, ...] = ()  # of these, where most pages do
    # Origin, digest of a change of a page that shows texts in turn, and whether it is the first one known.
    turning: tuple[tuple[str, str, bool], ...] = ()


class SitemapCounts(Struct, frozen=True):
    """What became of the sitemaps of a run."""

    outcomes: Mapping[str, int]  # by the code of their `SeedOutcome`, or "open", or "passed" (skipped)
    orphans: Mapping[str, int]  # listed pages that no page links to, by sitemap, largest first


class Knowledge(Struct, frozen=True):
    """How old the knowledge of the pages in the sitemap is, after a run that did not visit all of them."""

    pages: int
    visited: int  # of `pages`: in this run
    mean_days: float  # since the last visit
    oldest_days: float
    waiting: int  # new URLs, not visited yet
    max_age: float  # days that a page is to go unvisited, at most

    @property
    def budget(self) -> int:
        """Pages a day that must be visited, so that none goes unvisited for longer than `max_age`."""
        return ceil((self.pages + self.waiting) / self.max_age) if self.max_age else self.pages


class Survey(Struct, frozen=True):
    """Counts over all URLs of a run."""

    outcomes: Mapping[str, int]  # by `code`, of the URLs on the site's own origin
    obstacles: Mapping[str, int]  # listed pages, by the code of their `Obstacle`
    elsewhere: tuple[str, int] | None = None  # the other origin that most pages name as canonical; how many


class PagesOfKind(Struct, frozen=True):
    """Pages whose scripts may treat them alike."""

    kind: str
    pages: int
    first: Url  # the smallest URL


class ScriptedKinds(Struct, frozen=True):
    """The kinds of pages with scripts."""

    plain: Sequence[PagesOfKind]  # of listed pages that were not rendered; the largest first
    # By URL: pages that were rendered as samples, their fact `scripts`, and what was seen of them.
    samples: Sequence[tuple[Url, str, Rendering]]
    # Of the links that scripts made there: listed pages that no page without scripts led to first.
    new: frozenset[Url] = frozenset()


class WithContent(Struct, frozen=True):
    """Pages of an origin with the same content, whose URLs begin alike."""

    origin: str
    content: str  # a fingerprint, or after = the digest of the bytes
    prefix: str
    spared: tuple[Url, ...]  # pages that are not meant


class RepeatedPage(Struct, frozen=True):
    """A listed page that may be the same as another one."""

    origin: str
    content: str  # its fingerprint, or after = the digest of its bytes
    url: Url
    title: str | None
    echoing: str | None = None  # the same with what repeats its address, if `content` is without it

    def is_like(self, other: "RepeatedPage") -> bool:
        """Whether both say the same."""
        return not self.contents.isdisjoint(other.contents)

    @property
    def contents(self) -> frozenset[str]:
        """With and without what repeats its address."""
        return frozenset((self.content, self.echoing or self.content))


class SameContent(Struct, frozen=True):
    """Listed pages of one origin with the same content."""

    origin: str
    content: str  # their fingerprint
    count: int
    example: Url


class DoubtfulPlace(Struct):
    """The listed pages of a place that grows from within."""

    is_small: bool = False  # there are few, and other places have pages of the same title
    pages: list[Url] = field(default_factory=list)


class Balance(Struct, frozen=True):
    """The state of all URLs of a run: `discovered` is counted when URLs are added, the rest from records."""

    discovered: int
    outcomes: Mapping[str, int]  # by `code`
    open: int = 0  # queued, waiting or leased
    filtered: int = 0  # not to be requested
    # Pages of the sitemap with a lastmod, by its source.
    dated: Mapping[str, int] = field(default_factory=dict)
    date: int | None = None  # that all listed pages have; None: they differ
    # As `outcomes`, of those that this run has visited.
    visited: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Pages that failed and stay listed."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("kept:"))

    @property
    def listed(self) -> int:
        """Pages in the sitemap, including `kept`."""
        return self.outcomes.get("listed", 0) + self.kept

    @property
    def balanced(self) -> bool:
        """Whether every discovered URL is counted exactly once."""
        return self.discovered == self.open + sum(self.outcomes.values())


class Failures(Struct, frozen=True):
    """The URLs of a run that failed, by outcome code, as far as they count for a publication."""

    counts: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)  # many links on one page weigh little


class SiteHealth(Struct, frozen=True):
    """Pages that had answered well in a run, asked again at its end: how many, and how many still answer."""

    asked: int
    answered: int
    silent: Sequence[str] = ()  # the others, with what they answered


class LinkingPages(Struct, frozen=True):
    """Pages that link to a URL."""

    count: int = 0
    first: Sequence[Url] = ()
    # Of these, what the link says, and where on the page it stands, if that is known.
    said: Mapping[Url, tuple[str, str]] = field(default_factory=dict)


class VanishedPage(NamedTuple):
    """A published page to which no link leads any more."""

    url: Url
    outcome: str  # the code that it would have; empty: unknown
    target: str = ""  # of its redirect

    @property
    def is_alive(self) -> bool:
        """Whether it may still be indexed."""
        return self.outcome == "listed"


class AlikePages(Struct, frozen=True):
    """How many published pages say what others say now, unlike before, and one of them."""

    count: int = 0
    example: str | None = None
    earlier: int = 0  # how many of them an earlier run visited, which was refused


class VanishedPages(Struct, frozen=True):
    """How many published pages no link leads to any more, those of them that were asked, and others.

    `passing`: how many of them came lately with others through one page: they count as one.
    """

    count: int = 0
    asked: Sequence[VanishedPage] = ()
    others: Sequence[Url] = ()
    passing: int = 0


NONE_VANISHED: Final = VanishedPages()
