"""Why a URL is not listed, how it failed, where a date came from: enums of reasons.

The value of a member is the stable code used in state, logs and reports; `says` is the sentence shown to
people, in the command line and in programs: it names settings as in a file, without dashes before them.
"""

from enum import Enum
from typing import Self

TRAPS = ("calendar", "depth", "path", "query", "session", "soft-404")  # kinds of crawler traps


class Reason(Enum):
    """An enum of codes, each with a sentence for people."""

    says: str

    def __new__(cls, code: str, says: str) -> Self:
        member = object.__new__(cls)
        member._value_ = code
        member.says = says
        return member

    @classmethod
    def of(cls, code: str) -> Self:
        """The member with that code. Raises `ValueError`."""
        return cls(code)  # type: ignore[call-arg]  # a lookup by value; mypy checks `__new__` instead


class Why(Reason):
    """Why a URL is known but not listed."""

    OFFSITE = "offsite", "on another site"
    EXCLUDED = "excluded", "excluded by include, exclude or the start path"
    DEPTH = "depth", "deeper than max-depth"
    HOSTS = "hosts", "on a host beyond max-hosts"
    NOT_NAMED = "not-named", "found by a link only, and list-only follows none"
    NOFOLLOW = "nofollow", "only linked with nofollow, or where follow = false"
    ROBOTS = "robots", "disallowed by robots.txt"
    ROBOTS_DOWN = "robots-down", "robots.txt could not be read, so nothing may be fetched"
    NOINDEX = "noindex", "marked noindex"
    CANONICAL = "canonical", "canonical URL is another page"
    TYPE = "type", "not a page (by its content type)"
    NO_LIST = "no-list", "excluded by no-list, or list = false"
    SCHEME = "scheme", "served over http while the site uses https, or the reverse"
    TOO_LONG = "too-long", "URL longer than the 2,047 characters allowed in a sitemap"
    TRAP = "trap", "part of a crawler trap (see allow-trap)"
    SOFT_404 = "soft-404", 'looks like the site\'s "not found" page (soft 404)'
    EMPTY = "empty", "empty response"
    DUPLICATE = "duplicate", "duplicate of another listed page"
    UNVISITED = "unvisited", "not visited yet: the run reached its limit; among the first of the next one"
    LOGOUT = "logout", "logout link: fetching it would end the login session"


class SeedOutcome(Reason):
    """What became of a seed: a file of `--input`, or a sitemap."""

    READ = "read", "read"
    PARTLY = "partly", "partly read: broken in the middle"
    FAILED = "failed", "could not be read"
    ROBOTS = "robots", "disallowed by robots.txt"
    ROBOTS_DOWN = "robots-down", "robots.txt could not be read, so nothing may be fetched"
    OFFSITE = "offsite", "on another site"
    ABSENT = "absent", "not there: a usual address where this site has no sitemap"


class Cause(Reason):
    """How the visit of a URL failed."""

    NOT_FOUND = "not-found", "not found (404, 410)"
    FORBIDDEN = "forbidden", "login required or access denied (401, 403)"
    CLIENT_ERROR = "client-error", "other client error (4xx)"
    SERVER_ERROR = "server-error", "server error (5xx)"
    RATE_LIMITED = "rate-limited", "rate limited (429, Retry-After) too often or for too long"
    WALL = "wall", "a firewall answered: let it allow this user agent, or send a secret header with -H"
    INTERSTITIAL = "interstitial", "shows another page without links: a bot check, a login, a consent page?"
    STATUS = "status", "unexpected HTTP status"
    REDIRECT = "redirect", "redirect without a valid target"
    REDIRECT_LOOP = "redirect-loop", "redirect loop"
    REDIRECTS = "redirects", "more redirects than max-redirects"
    DNS = "dns", "host name could not be resolved"
    ADDRESS = "address", "private address or blocked port (see allow-address)"
    CONNECT = "connect", "could not connect"
    TLS = "tls", "certificate or TLS handshake failed"
    TIMEOUT = "timeout", "timed out (timeout, total-timeout, or status 408)"
    TRUNCATED = "truncated", "connection closed in the middle of the response"
    PROTOCOL = "protocol", "invalid HTTP response"
    CODING = "coding", "unknown or broken content coding (compression)"
    TOO_LARGE = "too-large", "larger than max-body"
    PARSE = "parse", "HTML could not be parsed in time"
    CRASHED = "crashed", "HTML crashed the parser, or the page the browser"
    ROBOTS_DOWN = "robots-down", Why.ROBOTS_DOWN.says  # only in `Kept`: nothing was requested


class Source(Reason):
    """Where a lastmod came from."""

    HEADER = "header", "the Last-Modified header"
    PAGE = "page", "the date stated in the page"
    SITEMAP = "sitemap", "the sitemap that the site had before"
    HISTORY = "history", "the run that saw the content change"


class SeedKind(Enum):
    """How a URL was found, if not by a link. If several apply, the first counts."""

    START = 0
    INPUT = 1
    SITEMAP = 2
