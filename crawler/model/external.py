"""What other sites answered for the URLs that pages link to (`--check-external`), and the progress of asking
them.

Such a URL is never visited and never listed: its outcome stays "on another site". What is stored here is kept
beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from crawler.model.reasons import Cause, Reason
from crawler.parse.url import Url

OK: Final = "ok"
BROKEN: Final = "broken"
UNKNOWN: Final = "unknown"


class Answer(Reason):
    """What the check of a URL of another site found: `ok`, or `broken` or `unknown` with a reason."""

    OK = "ok", "answers"
    NOT_FOUND = "broken:not-found", Cause.NOT_FOUND.says
    CLIENT_ERROR = "broken:client-error", Cause.CLIENT_ERROR.says
    SERVER_ERROR = "broken:server-error", Cause.SERVER_ERROR.says
    PAGE = "broken:page", "a web page answers in its place"  # of an image, script or style sheet
    REDIRECT = "broken:redirect", Cause.REDIRECT.says
    REDIRECT_LOOP = "broken:redirect-loop", Cause.REDIRECT_LOOP.says
    REDIRECTS = "broken:redirects", Cause.REDIRECTS.says
    DNS = "broken:dns", Cause.DNS.says
    CONNECT = "broken:connect", Cause.CONNECT.says
    TLS = "broken:tls", Cause.TLS.says
    TIMEOUT = "broken:timeout", "timed out"
    TRUNCATED = "broken:truncated", Cause.TRUNCATED.says
    PROTOCOL = "broken:protocol", Cause.PROTOCOL.says
    REFUSED = "unknown:refused", "refuses to tell a crawler (401, 403, 429, 451, 999 or 503 with Retry-After)"
    WALL = "unknown:wall", "a firewall or bot check answered in its place"
    STATUS = "unknown:status", Cause.STATUS.says
    COOKIES = "unknown:cookies", "its redirects need cookies"
    SCHEME = "unknown:scheme", "redirects to something other than http"
    ROBOTS = "unknown:robots", "not requested: disallowed by robots.txt of its host"
    ROBOTS_DOWN = "unknown:robots-down", "not requested: robots.txt of its host could not be read"
    ADDRESS = "unknown:address", "not requested: private address or blocked port (see allow-address)"
    SILENT = "unknown:silent", "not requested: its host stopped answering"

    @property
    def kind(self) -> str:
        """`ok`, `broken` or `unknown`."""
        return kind_of(self.value)


def kind_of(code: str) -> str:
    """The kind of an answer by its code."""
    return code.partition(":")[0]


def says(code: str) -> str:
    """The sentence for a code; the code itself if it comes from a newer version."""
    try:
        return Answer.of(code).says
    except ValueError:
        return code


class DueLink(Struct, frozen=True):
    """A URL of another site that is to be checked."""

    id: int
    url: Url
    checked: float = 0.0  # before: seconds since the epoch; 0: never
    is_file: bool = False  # an image, script or style sheet: a web page in its place is none


class CheckedLink(NamedTuple):
    """The answer for one."""

    id: int
    code: str  # of an `Answer`
    status: int | None  # of the last response
    detail: str  # what went wrong, or the target of its redirects
    checked: float  # seconds since the epoch


class ExternalRow(NamedTuple):
    """What is stored of one."""

    code: str  # of an `Answer`
    status: int | None
    detail: str
    checked: float  # seconds since the epoch
    round: int  # of the last check of it
    was: str | None = None  # the code of the check before


def external_of(values: Sequence[Any]) -> ExternalRow | None:
    """The row with these values; None if they are those of an outer join without one."""
    return None if values[0] is None else ExternalRow(*values)


class BrokenFile(NamedTuple):
    """An image, script or style sheet that does not answer, or that robots.txt of the site disallows."""

    code: str  # of an `Answer`
    status: int | None = None  # of the last response
    since: int = 0  # the run in which that was found; 0: in the first that asked for its kind
    text: str | None = None  # what stands for it on the first page that shows it; None: that was not read
    place: str = ""  # `parse.anchors.Place`
    line: str = ""  # of robots.txt that disallows it


class ExternalCheck(NamedTuple):
    """A check of the links to other sites. One that was interrupted is continued by the next run."""

    round: int  # number of the run in which it began; each URL is checked once in a round
    began: float  # seconds since the epoch
    finished: bool = False  # it was not interrupted
    left: int = 0  # URLs that were not checked
    because: str = ""  # why; a setting


class ExternalCounts(Struct, frozen=True):
    """The links of a run to other sites, by what is known of them."""

    codes: Mapping[str, int]  # by code of the answer, of this or an earlier check
    unchecked: int  # never checked

    def of(self, kind: str) -> int:
        """How many have an answer of this kind."""
        return sum(count for code, count in self.codes.items() if kind_of(code) == kind)
