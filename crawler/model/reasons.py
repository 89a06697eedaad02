"""Why a URL is not listed, how it failed, where a date came from: closed sets of codes.

The value of a member is the stable code used in state, logs and reports; `says` is the sentence shown to people.
"""

from enum import Enum
from typing import Self

TRAPS = ("calendar", "depth", "path", "query", "session", "soft-404")  # kinds of crawler traps


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
