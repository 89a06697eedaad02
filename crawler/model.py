"""The words that flow through a crawl, frozen, and the numbers of the Sitemap protocol.

    str -> Url -> Visit -> Lease -> Response | Broken -> Outcome -> Entry -> files

Values only: they say what happened, never what to do, and no method here does I/O. Reasons are enums whose value
is the stable code used in state, logs and reports, and whose `says` is the sentence shown to people. What is made for
every page or link is a named tuple: a frozen dataclass takes four times as long to make.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple, Self, TypeAlias, assert_never

from crawler.urls import Url

# The Sitemap protocol (sitemaps.org/protocol.html), each limit in one place.
MAX_ENTRIES = 50_000  # URLs in a sitemap, sitemaps in an index
MAX_BYTES = 52_428_800  # bytes of one file before compression
MAX_LOC = 2_047  # characters of a loc: "less than 2,048"
REDIRECTS = frozenset({301, 302, 303, 307, 308})  # statuses that send elsewhere (RFC 9110 15.4); 304 does not
HTML = frozenset({"text/html", "application/xhtml+xml"})
TRAPS = ("calendar", "depth", "path", "query", "session", "soft-404")  # kinds of crawler traps
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class Reason(Enum):
    """A closed set of codes, each with the words a person reads."""

    says: str

    def __new__(cls, code: str, says: str) -> Self:
        """`code` is the value; `says` goes along."""
        member = object.__new__(cls)
        member._value_ = code
        member.says = says
        return member

    @classmethod
    def of(cls, code: str) -> Self:
        """The member with that code. Raises `ValueError`."""
        return cls(code)  # type: ignore[call-arg]  # looked up by value; the checker sees `__new__`


class Why(Reason):
    """Why a URL is known, and not listed."""

    OFFSITE = "offsite", "on another site"
    EXCLUDED = "excluded", "left out by --include, --exclude or the start path"
    DEPTH = "depth", "deeper than --max-depth"
    NOT_NAMED = "not-named", "linked, but not named, and --list-only follows no links"
    NOFOLLOW = "nofollow", "linked with nofollow only"
    ROBOTS = "robots", "forbidden by robots.txt"
    ROBOTS_DOWN = "robots-down", "robots.txt could not be read, so nothing may be asked"
    NOINDEX = "noindex", "says noindex"
    CANONICAL = "canonical", "names another page as canonical"
    TYPE = "type", "not a page (by its content type)"
    NO_LIST = "no-list", "left out by --no-list"
    SCHEME = "scheme", "answers under http where the site is https, or the reverse"
    TOO_LONG = "too-long", "longer than the 2,047 characters of a sitemap loc"
    TRAP = "trap", "in a crawler trap (see --allow-trap)"
    SOFT_404 = "soft-404", "shows what the site answers for a page that cannot be"
    EMPTY = "empty", "answered without content"
    DUPLICATE = "duplicate", "another URL that is listed shows the same page"
    LOGOUT = "logout", "would end the session of the login that is given"


class SeedOutcome(Reason):
    """What became of a seed: a file of `--input`, or a sitemap."""

    READ = "read", "read"
    PARTLY = "partly", "read up to where it breaks"
    FAILED = "failed", "could not be read"
    ROBOTS = "robots", "forbidden by robots.txt"
    ROBOTS_DOWN = "robots-down", "robots.txt could not be read, so nothing may be asked"
    OFFSITE = "offsite", "on another site"


class Cause(Reason):
    """How the visit of a URL failed."""

    NOT_FOUND = "not-found", "not found (404, 410)"
    FORBIDDEN = "forbidden", "needs a login or is forbidden (401, 403)"
    CLIENT_ERROR = "client-error", "answered another 4xx status"
    SERVER_ERROR = "server-error", "answered a 5xx status"
    RATE_LIMITED = "rate-limited", "asked us to come back later (429, Retry-After) too often or too late"
    STATUS = "status", "answered a status that a page cannot have"
    REDIRECT = "redirect", "redirects nowhere valid"
    REDIRECT_LOOP = "redirect-loop", "redirects to itself"
    REDIRECTS = "redirects", "the end of more redirects than --max-redirects"
    DNS = "dns", "the host name has no address"
    ADDRESS = "address", "the address or port is not to be asked (see --allow-address)"
    CONNECT = "connect", "no connection"
    TLS = "tls", "the certificate or the TLS handshake failed"
    TIMEOUT = "timeout", "took longer than --timeout or --total-timeout, or the server says so (408)"
    TRUNCATED = "truncated", "the connection broke in the middle of the answer"
    PROTOCOL = "protocol", "not valid HTTP"
    CODING = "coding", "the content coding is unknown or broken"
    TOO_LARGE = "too-large", "larger than --max-body"
    PARSE = "parse", "the markup could not be read in time"
    CRASHED = "crashed", "the markup made the parser crash"
    ROBOTS_DOWN = "robots-down", Why.ROBOTS_DOWN.says  # of `Kept` only: nothing was asked


class Source(Reason):
    """Where a lastmod came from."""

    HEADER = "header", "the Last-Modified header"
    PAGE = "page", "the date that the page states"
    HISTORY = "history", "the run that saw the content change"


class SeedKind(Enum):
    """How a URL came in, if not by a link. The first of these is the one that counts."""

    START = 0
    INPUT = 1
    SITEMAP = 2


class Seed(NamedTuple):
    """Names URLs, so that no page has to: the start URLs together, a file of `--input`, a sitemap."""

    kind: SeedKind
    name: str = ""  # a sitemap: its URL, or its path on disk; a file of --input: as it was given
    depth: int = 0  # indexes above it

    def __str__(self) -> str:
        """For people."""
        match self.kind:
            case SeedKind.START:
                return "a start URL"
            case SeedKind.INPUT:
                return f"--input {self.name}"
            case SeedKind.SITEMAP:
                return f"the sitemap {self.name}"


class SeedSettlement(NamedTuple):
    """What became of a seed that was to be read."""

    seed: Seed
    outcome: SeedOutcome
    detail: str = ""
    entries: int = 0  # URLs that it names, taken or not
    below: tuple[Seed, ...] = ()  # sitemaps that it names
    gone: bool = False  # it failed in a way that will not pass

    @property
    def may_pass(self) -> bool:
        """Whether it failed, wholly or in part, and may be well the next time: it named more than was read."""
        failed = {SeedOutcome.FAILED, SeedOutcome.PARTLY, SeedOutcome.ROBOTS_DOWN}
        return self.seed.kind is SeedKind.SITEMAP and self.outcome in failed and not self.gone


class Look(Reason):
    """Why a page, alone, may be all that a crawler gets to see of a site."""

    SHELL = "needs-scripts", "says nothing without scripts: no link to follow, and hardly any text"
    LOGIN = "login", "looks like a login form"
    NOFOLLOW = "nofollow", "lets none of its links be followed (nofollow)"


class Pattern(NamedTuple):
    """What the text of a URL has in common with others that may be a crawler trap."""

    kind: str  # calendar or query
    text: str
    family: str  # the patterns of one place: the queries of one path, the calendars of one origin
    named: bool = False  # for URLs that another page names as canonical, or redirects to: judged apart


class Visit(NamedTuple):
    """A URL to go to, and how we came by it."""

    url: Url
    depth: int = 0  # links from a start URL; a redirect adds none
    via: Url | None = None  # the page that linked to it first; None as long as only a seed named it
    hops: int = 0  # redirects in a row that led here
    aside: Why | None = None  # known and not to be asked for: settled as Unlisted at once
    pattern: Pattern | None = None  # what was found in one waits for the rounds (`Frontier.advance`)


@dataclass(frozen=True, slots=True)
class Lastmod:
    """When the content last changed, in UTC, and how we know."""

    at: datetime
    source: Source


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave us to ask "changed since?" with, exactly as it came (RFC 9110 8.8)."""

    etag: str | None = None
    modified: str | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to ask with."""
        return bool(self.etag or self.modified)


class Facts(NamedTuple):
    """What a page told us, small enough to keep. The links stay with the frontier."""

    status: int
    validators: Validators = Validators()
    lastmod: Lastmod | None = None
    header: datetime | None = None  # the credible date of Last-Modified
    fresh: bool = False  # that date is the time of the request
    stated: datetime | None = None  # the credible date that the page states
    content: str | None = None  # fingerprint of what the page says
    unordered: str | None = None  # fingerprint of what it says and where it leads, the same in any order
    variant: Url | None = None  # another name of the page, which Content-Location announces
    look: Look | None = None


class Lease(NamedTuple):
    """A visit in our hands until `settle` or until the frontier takes it back."""

    id: int
    token: int
    visit: Visit
    attempt: int = 1  # the how-manieth visit of this URL in this run
    at: float = 0.0  # not before this moment (seconds since the epoch): the slot that was booked
    stranger: bool = False  # its origin's robots.txt is to be read first
    prior: "Prior | None" = None  # what the last run learned, when it may be asked "changed since?"


@dataclass(frozen=True, slots=True)
class Prior:
    """The outcome and the facts of the last run."""

    outcome: "Outcome"
    facts: Facts


class Headers:
    """Header fields of one answer: names without case, repeated fields kept apart (RFC 9110 5.2, 5.3)."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields: dict[str, list[str]] = {}
        for name, value in fields:
            self._fields.setdefault(name.lower(), []).append(value)

    def get(self, name: str) -> str | None:
        """The first field of that (lower-case) name."""
        values = self._fields.get(name)
        return values[0] if values else None

    def all(self, name: str) -> list[str]:
        """Every field of that (lower-case) name, in order."""
        return self._fields.get(name, [])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name and value pairs."""
        return ((name, value) for name, values in self._fields.items() for value in values)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer: a 404 is one, too."""

    status: int
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""  # decoded


@dataclass(frozen=True, slots=True)
class Broken:
    """No complete answer."""

    cause: Cause
    detail: str = ""
    transient: bool = False  # worth another try


Reply: TypeAlias = Response | Broken


@dataclass(frozen=True, slots=True)
class Listed:
    """Goes into the sitemap."""

    lastmod: Lastmod | None = None


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Known, and left out on purpose."""

    why: Why
    detail: str = ""  # the canonical URL, the robots.txt line, the content type…


@dataclass(frozen=True, slots=True)
class Moved:
    """The server sent us elsewhere; the new place is a visit of its own."""

    to: Url


@dataclass(frozen=True, slots=True)
class Later:
    """The server asked for patience; the frontier offers the URL again."""

    until: float  # seconds since the epoch
    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Asked for, and no page came."""

    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Failed in a way that may pass, and listed all the same: it is in the last publication, and stays for a while."""

    cause: Cause
    detail: str = ""
    lastmod: Lastmod | None = None  # the date it was published with


Outcome: TypeAlias = Listed | Unlisted | Moved | Later | Failed | Kept


class Link(NamedTuple):
    """A URL that a page names."""

    url: Url
    nofollow: bool = False


class Verdict(NamedTuple):
    """What the judge makes of a reply."""

    outcome: Outcome
    facts: Facts | None = None
    links: tuple[Link, ...] = ()
    unchanged: bool = False  # a 304: the links are those that the frontier remembers
    truncated: bool = False  # the page has more links, or bytes of them, than are looked at


class Seen(NamedTuple):
    """What a visit brought."""

    verdict: Verdict
    truncated: bool = False  # the page has more links than are looked at


class Settlement(NamedTuple):
    """A lease closed, and the visits it led to."""

    lease: Lease
    verdict: Verdict
    found: tuple[Visit, ...] = ()
    listable: bool = True  # False: the scope lists no such page, whatever it answers


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """What an origin said when asked for /robots.txt (RFC 9309 2.3.1)."""

    status: (
        str  # "rules": text holds them · "none": all allowed · "down", "unreachable": nothing may be asked
    )
    text: bytes = b""
    detail: str = ""
    fetched: float = 0.0  # seconds since the epoch

    @property
    def failed(self) -> bool:
        """Whether it could not be read."""
        return self.status in {"down", "unreachable"}


class Permit(NamedTuple):
    """Whether robots.txt lets us ask for a URL, and the line that says so."""

    allowed: bool
    why: Why | None = None
    line: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answers of one origin say of its Last-Modified headers. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    fresh: int  # of these, with the time of the request
    compared: int  # whose content is the same as in an earlier run
    slid: int  # of these, whose header moved all the same
    known: int = 0  # whose content was read in an earlier run, too
    changed: int = 0  # of these, whose content is another now


@dataclass(frozen=True, slots=True)
class Build:
    """The ten minutes in which most Last-Modified headers of an origin lie. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    first: int  # the earliest header within, in seconds since the epoch
    last: int
    within: int  # with a header from `first` to `last`
    stating: int  # of these, that state a date
    older: int  # of these, that state one well before the header


@dataclass(frozen=True, slots=True)
class Doubts:
    """What is not believed when dates are chosen."""

    lying: tuple[str, ...] = ()  # origins whose headers
    changing: tuple[str, ...] = ()  # origins whose changes of content
    builds: tuple[tuple[str, int, int], ...] = ()  # dates of an origin, from a moment to another


class Entry(NamedTuple):
    """One line of the sitemap."""

    url: Url
    lastmod: datetime | None = None


class Survey(NamedTuple):
    """Counts over all that a run knows of its site."""

    outcomes: Mapping[str, int]  # by `code`, of the URLs of the site's own origin
    looks: Mapping[str, int]  # listed pages, by the code of their `Look`
    elsewhere: tuple[str, int] | None = None  # the other origin that most pages name as canonical; how many


@dataclass(frozen=True, slots=True)
class Alike:
    """Listed pages of one origin that say the same."""

    origin: str
    content: str  # their fingerprint
    count: int
    example: Url


def code(outcome: Outcome) -> str:
    """The stable code of an outcome: `listed`, `unlisted:noindex`, `moved`, `later:…`, `failed:dns`, `kept:dns`."""
    match outcome:
        case Listed():
            return "listed"
        case Unlisted(why):
            return f"unlisted:{why.value}"
        case Moved():
            return "moved"
        case Later(_, cause):
            return f"later:{cause.value}"
        case Failed(cause):
            return f"failed:{cause.value}"
        case Kept(cause):
            return f"kept:{cause.value}"
        case _:
            assert_never(outcome)


def says(outcome_code: str) -> str:
    """The words for people behind an outcome's code."""
    kind, _, reason = outcome_code.partition(":")
    if kind == "listed":
        return "in the sitemap"
    if kind == "moved":
        return "redirects to another URL"
    if kind == "kept":
        return f"stays in the sitemap for now: {Cause.of(reason).says}"
    return (Why.of(reason) if kind == "unlisted" else Cause.of(reason)).says


@dataclass(frozen=True, slots=True)
class Balance:
    """Where every URL of a run stands. `discovered` is counted as URLs come in, `outcomes` from the records."""

    discovered: int
    outcomes: Mapping[str, int]  # by `code`
    open: int = 0  # queued, waiting or leased

    @property
    def kept(self) -> int:
        """Pages that are listed although they failed."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("kept:"))

    @property
    def listed(self) -> int:
        """Pages in the sitemap, with those that were kept."""
        return self.outcomes.get("listed", 0) + self.kept

    @property
    def balanced(self) -> bool:
        """Every discovered URL is in exactly one place."""
        return self.discovered == self.open + sum(self.outcomes.values())
