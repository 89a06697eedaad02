"""The seams of a crawl, as Protocols: the page to read first.

`crawl` knows these and nothing concrete; `app` puts the pieces in. To extend the program, wrap a `Fetcher`,
implement a `Frontier`, or add a `Sink`. The frontier is known by its roles: `Queue`, `Hosts`, `Runs`, `Record`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from crawler.model.facts import Entry, Validators
from crawler.model.lease import Lease
from crawler.model.note import Note
from crawler.model.reasons import Source, Why
from crawler.model.reply import Broken, Headers, Reply
from crawler.model.robots import Permit, RobotsFile
from crawler.model.seed import Seed, SeedSettlement
from crawler.model.settlement import Seen, Settlement, Unvisited
from crawler.model.survey import Alike, Balance, Build, Doubts, Evidence, Survey
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Link, Visit
from crawler.parse.url import Url

if TYPE_CHECKING:  # a parser of HTML is not loaded by who only reads the state
    from crawler.parse.html import Page, PageSource

T = TypeVar("T")


class Request(NamedTuple):
    """One GET."""

    url: Url
    validators: Validators = Validators()
    limit: int | None = None  # bytes of decoded body; the fetcher's own limit if None
    cut: bool = False  # a larger body is taken up to there, and is no failure
    seconds: float | None = None  # for the whole exchange; the fetcher's own limit if None
    wants_body: Callable[[int, Headers], bool] | None = None  # asked once status and headers are in


class Fetcher(Protocol):
    """One exchange. A 404 is an answer; no complete answer is a `Broken`; redirects are not followed."""

    async def fetch(self, request: Request) -> Reply:
        """Ask once. Never raises for what the network or the server does."""
        ...


class Visitor(Protocol):
    """One visit, from the request to the verdict, in this process or in another."""

    prefetch: int
    """Visits that it wants in hand for each request in flight. Above 1, it keeps to the limit of these itself."""

    async def visit(self, lease: Lease) -> Seen | Unvisited:
        """Ask for the page and judge it. Never raises for what the page, or the process that reads it, does.

        `Unvisited` when the crawl ended before the page was asked for.
        """
        ...


class Permits(Protocol):
    """What robots.txt allows (RFC 9309)."""

    def knows(self, origin: str) -> bool:
        """Whether the rules of `origin` were learned."""
        ...

    async def ask(self, origin: str) -> RobotsFile:
        """Read /robots.txt over the network."""
        ...

    async def learn(self, origin: str, file: RobotsFile) -> None:
        """Remember the rules in `file`."""
        ...

    def permit(self, url: Url) -> Permit:
        """Whether `url`, of a known origin, may be asked for."""
        ...

    def delay(self, origin: str) -> float | None:
        """The Crawl-delay for us, in seconds."""
        ...

    def sitemaps(self, origin: str) -> list[Url]:
        """The sitemaps that the robots.txt of a known origin names."""
        ...


class Pacer(Protocol):
    """When a host may be asked next. All waiting for a host's sake goes through here."""

    async def slot(self, origin: str) -> float:
        """Book the next slot of `origin`: the moment (seconds since the epoch) to ask at."""
        ...

    async def slow(self, origin: str, until: float) -> None:
        """The host showed strain: no slots before `until`, and longer gaps for a while."""
        ...


Turn: TypeAlias = Callable[[str, float], Awaitable[None]]
"""Waits until a slot of an origin has come (seconds since the epoch)."""


class Politeness(Protocol):
    """The `Turn` of each request, and how far apart they are."""

    async def __call__(self, origin: str, at: float) -> None:
        """Wait until a slot of an origin has come (seconds since the epoch)."""
        ...

    def pace(self, origin: str, gap: float) -> None:
        """Requests to `origin` are to be `gap` seconds apart, however late one of them goes."""
        ...

    def slow(self, origin: str, until: float) -> None:
        """No request to `origin` before `until` (seconds since the epoch)."""
        ...

    def is_stale(self, origin: str, at: float) -> bool:
        """Whether the slot `at` was booked before `origin` had enough: it is not to be taken any more."""
        ...

    def end(self) -> None:
        """The crawl ends: what is in hand and was not asked for is not to be asked for any more."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """A generation: one crawl of the site from start to end."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # crawled to its end already, though not published


@dataclass(frozen=True, slots=True)
class Batch:
    """The answer to `lease`."""

    leases: Sequence[Lease] = ()
    finished: bool = False  # nothing due, nothing waiting, nothing out: the crawl is complete
    is_idle: bool = False  # no visit waits for a slot
    wait: float | None = None  # seconds until something may be due; None: when something settles


@dataclass(frozen=True, slots=True)
class Round:
    """The answer to `advance`."""

    released: int  # visits that are due now
    closed: Sequence[Trap] = ()  # patterns that brought too little: their URLs are not asked for


class Queue(Pacer, Protocol):
    """The open work: what is known, what is due, who has it, and when its host may be asked.

    "This run" is the one that `Runs.begin` answered.
    """

    async def add(self, visits: Sequence[Visit], seed: Seed | None = None) -> int:
        """Make URLs known; those known in this run already are left alone. How many visits were new.

        What a `seed` names is asked for, though links alone would not have been reason enough (nofollow, too deep,
        a trap), and remembers which seed it was: the first by kind and order of naming, whichever was read first.
        """
        ...

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """Up to `limit` due visits (not deeper than `depth`), each host's slots booked.

        Of an origin whose robots.txt is unknown or a day old, one visit at a time, marked `stranger`.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> int:
        """Close leases, keep facts, add what was found: one transaction. Stale leases are dropped.

        How many visits were new; what is set aside or held is not counted.
        """
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Hand leases back unused."""
        ...

    async def reopen(self, pages: Sequence[Url]) -> None:
        """Pages of this run that failed, to be asked for again, after all others."""
        ...

    async def advance(self, depth: int | None = None) -> Round:
        """Release the next visits of patterns that may be crawler traps (not deeper than `depth`).

        To be called when `lease` says finished, until nothing is released: what was found in a pattern (a `Visit` with
        one, and `via` a page) is held until then. What is released depends on what was found and settled by then, and
        not on the order in which that happened.
        """
        ...

    async def tell(self, traps: Sequence[Trap]) -> None:
        """Keep crawler traps that show by the text of a URL, for the length of this run."""
        ...

    async def name_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """Make seeds known that are to be read in this run; those known already are left alone.

        No more than `room` in all of their depth; how many were passed over for that.
        """
        ...

    async def next_seed(self) -> Seed | None:
        """A seed that is still to be read in this run: the first by kind, depth and order of naming."""
        ...

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """A seed was read, and what it names was added. It is not read again in this run.

        The sitemaps `below` it become known as by `name_seeds`, in the same transaction.
        """
        ...

    async def unnamed(self) -> Sequence[tuple[Seed, Sequence[Url]]]:
        """Pages of the last publication that this run has not found, and that sitemaps named which fail for now."""
        ...


class Hosts(Pacer, Protocol):
    """What is known of an origin: its robots.txt and its pace."""

    async def meet(self, origin: str, file: RobotsFile, gap: float) -> None:
        """Remember an origin's robots.txt and its pace, `gap` seconds from slot to slot."""
        ...

    async def robots(self, origin: str, *, stale: bool = False) -> RobotsFile | None:
        """The remembered robots.txt, unless it is a day old; `stale`: also then, if this run read it or began with it."""
        ...


class Runs(Protocol):
    """The life of a run, and the notes that are kept with it."""

    async def begin(self, fingerprint: str, reading: str = "") -> Run:
        """Go on with an unfinished run, or begin a new one.

        `fingerprint` stands for the settings that decide what is found and listed: an unfinished run of another
        is given up. `reading` stands for those that decide what is read from a page: what was learned under
        another is not asked "changed since?".
        """
        ...

    async def run(self) -> Run | None:
        """The newest run, whatever became of it; None before the first."""
        ...

    async def finish(self) -> None:
        """Every URL is settled: the run is complete."""
        ...

    async def mark_published(self, urls: int) -> None:
        """What this run lists, `urls` of them, is published."""
        ...

    async def conclude(self, *, refused: bool = False) -> None:
        """The complete run was published (or `refused` for good): the next `begin` starts a new one.

        Only what a published run saw counts as known when a later one asks what changed.
        """
        ...

    async def remember(self, note: Note[T], value: T) -> None:
        """Keep a note for the length of this run."""
        ...

    async def recall(self, note: Note[T], *, published: bool = False) -> T:
        """A note kept in this run; or in the last one before it that was `published`. `note.absent` if there is none."""
        ...


class Record(Protocol):
    """What became of the pages of a run: what is listed, with which date, and why.

    For the rules over the set of all pages, for the sitemap, and for who asks about a run or a URL.
    """

    async def links(self, lease: Lease) -> Sequence[Link]:
        """What the page linked to when it was read last under these settings."""
        ...

    async def evidence(self) -> Sequence[Evidence]:
        """What this run's answers say of the dates in the headers of each origin."""
        ...

    async def builds(self, window: int, older: int) -> Sequence[Build]:
        """Of each origin the `window` seconds in which the most Last-Modified headers of listed pages lie.

        A page states an older date if that lies more than `older` seconds before its header.
        """
        ...

    async def date(self, ladder: Sequence[Source], doubts: Doubts) -> None:
        """Give every listed page its lastmod by the first rung of `ladder` that holds.

        No rung are what `doubts` names, and headers that moved while the content did not. Content that was dated
        before keeps its date, also when it comes back.
        """
        ...

    async def alike(self, least: int) -> Sequence[Alike]:
        """Groups of at least that many listed pages with the same content; the largest twenty."""
        ...

    async def withdraw(self, pages: Sequence[Url] | Alike, why: Why, detail: str) -> None:
        """Listed pages of this run that are not to be listed after all."""
        ...

    async def unlist_duplicates(self) -> None:
        """Of the listed pages that `duplicates` takes for one page, list one; the others are duplicates of it."""
        ...

    async def unlist_repeats(self) -> int:
        """Of the pages of closed patterns, list those only that show something of their own. How many are not."""
        ...

    async def keep(self) -> None:
        """Decide which failed pages of this run stay listed, by `keep_failing`. Decided anew each time it is called."""
        ...

    async def answered(self, origin: str) -> Url | None:
        """The page of an origin that answered last of those that are listed in this run."""
        ...

    def entries(self, first: str = "", below: str = "\x7f") -> AsyncIterator[Sequence[Entry]]:
        """What this run lists, from `first` on and below `below`, in order of the URL's text, in chunks."""
        ...

    def known(self) -> AsyncIterator[Sequence[Url]]:
        """The URLs of the site that this run knows, whatever became of them, in chunks."""
        ...

    async def balance(self) -> Balance:
        """Where every URL of this run stands."""
        ...

    async def filtered(self) -> int:
        """How many URLs of this run are known and not to be asked for."""
        ...

    async def examples(self, outcome_code: str, limit: int = 3) -> Sequence[Url]:
        """A few URLs of this run with that outcome, the same ones whichever was found first."""
        ...

    async def dated(self) -> Mapping[str, int]:
        """How many of the listed pages have a lastmod, by its source."""
        ...

    async def changed(self) -> Mapping[str, int]:
        """What this run says of the pages in the last publication: how many by outcome code; "" for no outcome yet."""
        ...

    async def traps(self) -> Sequence[Trap]:
        """The crawler traps of this run: those that were told, and the patterns that were closed."""
        ...

    async def sitemaps(self) -> Mapping[str, int]:
        """How many sitemaps of this run came to which `SeedOutcome` (by its code), are "open", or were "passed"."""
        ...

    async def orphans(self) -> Mapping[str, int]:
        """Listed pages that a sitemap names, and no page links to; by sitemap, the largest number first."""
        ...

    async def survey(self, site: str) -> Survey:
        """What this run knows of the site whose origin is `site`. Looks at all of its URLs."""
        ...

    async def first(self) -> Url | None:
        """The URL that this run began with."""
        ...

    async def record(self, url: Url) -> UrlRecord | None:
        """The story of one URL."""
        ...

    async def linking(self, url: Url) -> int:
        """How many pages of this run link to a URL. Looks at all of them: for a person's question only."""
        ...


class History(Runs, Record, Protocol):
    """A run and what became of its pages: for the dates, for publication and for the command line."""


class Frontier(Queue, Hosts, History, Protocol):
    """The one record per URL: dedupe, queue, lease, facts. What a backend implements, in one place or in several.

    Every verb is atomic and durable when it returns. Out of its scope: fetching, judging, and what a site is.
    Whoever uses a frontier names the role that it needs; this union is for those who put the pieces together.
    """

    async def close(self) -> None:
        """Let go of files and connections."""
        ...


class Reader(Protocol):
    """Reads the markup that may hurt whoever reads it."""

    async def read(self, markup: "PageSource") -> "Page | Broken":
        """What the page says, or why that cannot be told. Never raises for what the page does."""
        ...


class Sink(Protocol):
    """Whoever wants to see outcomes, after they are durable."""

    async def settled(self, group: Sequence[Settlement]) -> None:
        """A group was settled. Slow sinks slow the crawl."""
        ...
