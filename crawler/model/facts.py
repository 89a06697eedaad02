"""The facts that are stored about a page, and its entry in the sitemap."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from crawler.model.reasons import Reason, Source
from crawler.model.rendering import Rendering
from crawler.parse.url import Url


class Obstacle(Reason):
    """What may keep a crawler from seeing more of a site than this page."""

    SHELL = "needs-scripts", "needs JavaScript: without it there is no link to follow and hardly any text"
    LOGIN = "login", "looks like a login form"
    NOFOLLOW = "nofollow", "forbids following its links (nofollow)"


@dataclass(frozen=True, slots=True)
class Lastmod:
    """When the content last changed, in UTC, and the source of that date."""

    at: datetime
    source: Source


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators for conditional requests, exactly as the server sent them (RFC 9110 8.8)."""

    etag: str | None = None
    modified: str | None = None

    def __bool__(self) -> bool:
        """Whether there is any validator."""
        return bool(self.etag or self.modified)


class Facts(NamedTuple):
    """The facts that are stored about a page. Its links are stored separately in the frontier."""

    status: int
    validators: Validators = Validators()
    lastmod: Lastmod | None = None
    header: datetime | None = None  # the credible date of Last-Modified
    fresh: bool = False  # that date is the time of the request
    stated: datetime | None = None  # the credible date that the page states
    content: str | None = (
        None  # fingerprint of the visible content; or a digest of the bytes, with the prefix =
    )
    unordered: str | None = None  # fingerprint of content and links, independent of their order
    variant: Url | None = None  # another URL of the page, from Content-Location
    obstacle: Obstacle | None = None
    title: str | None = None  # white space folded, cut to `html.LONGEST_TITLE`
    type: str | None = None  # essence of the media type
    bytes: int | None = None  # of the decoded body; None if it was not read
    took: int | None = None  # milliseconds from the request to the last byte
    canonical: Url | None = None  # another URL that the page names as its canonical one
    alternates: str | None = None  # its language versions: lines of code and URL (`rules.hreflang`)
    rendering: Rendering | None = None  # if it needs scripts, and `--render` is on


class Version(NamedTuple):
    """A page as far as its language versions are concerned."""

    url: Url
    outcome: str  # its code
    alternates: str | None = None
    id: int = 0
    was: str | None = None  # code of the outcome in the run before


class Image(NamedTuple):
    """An image that pages show."""

    id: int
    url: Url


class Extras(NamedTuple):
    """What an entry has beside its URL and date."""

    changefreq: str | None = None  # None: that of all entries
    priority: float | None = None  # None: that of all entries
    alternates: tuple[tuple[str, Url], ...] = ()  # language versions by code, with the page itself
    images: tuple[Url, ...] = ()


class Entry(NamedTuple):
    """One URL of the sitemap."""

    url: Url
    lastmod: datetime | None = None
    extras: Extras | None = None
