"""What a page told us, small enough to keep, and what the pages of an origin say together."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from crawler.model.reasons import Reason, Source
from crawler.parse.url import Url


class Look(Reason):
    """Why a page, alone, may be all that a crawler gets to see of a site."""

    SHELL = "needs-scripts", "needs JavaScript: without it there is no link to follow and hardly any text"
    LOGIN = "login", "looks like a login form"
    NOFOLLOW = "nofollow", "forbids following its links (nofollow)"


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


class Entry(NamedTuple):
    """One line of the sitemap."""

    url: Url
    lastmod: datetime | None = None
