"""The facts that are stored about a page, and its entry in the sitemap.

The types of the fields bound what a worker process may send: it has read hostile markup.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from crawler.model.reasons import Reason, Source
from crawler.model.rendering import Count, Rendering
from crawler.parse.url import ReceivedUrl, Url

LONGEST_HEADER: Final = 1_024  # characters that are kept of a header field, such as an ETag
LONGEST_LABEL: Final = 40  # characters that are kept of the code of a language version
LONGEST_WATCHED: Final = 5_008  # characters, for a thousand pieces of text (`rules.noise`)
LAST_SECOND: Final = 253_402_300_799  # of the year 9999

Moment = Annotated[float, Meta(ge=0, le=LAST_SECOND)]  # seconds since the epoch
Date = Annotated[datetime, Meta(tz=True)]
TEXT_PATTERN: Final = r"\A[^\x00-\x08\x0a-\x1f\x7f]*\Z"
HeaderText = Annotated[str, Meta(max_length=LONGEST_HEADER, pattern=TEXT_PATTERN)]  # safe in a header field


class Obstacle(Reason):
    """What may keep a crawler from seeing more of a site than this page."""

    SHELL = "needs-scripts", "needs JavaScript: without it there is no link to follow and hardly any text"
    HASH_ROUTES = "hash-routes", "links only to addresses like #/about, which are no pages of their own"
    EMPTY = "empty", "has no link to follow and hardly any text, even after its scripts ran"
    LOGIN = "login", "looks like a login form"
    NOFOLLOW = "nofollow", "forbids following its links (nofollow)"


class Lastmod(NamedTuple):
    """When the content last changed, in UTC, and the source of that date."""

    at: Date
    source: Source


class Validators(NamedTuple):
    """The validators for conditional requests, exactly as the server sent them (RFC 9110 8.8)."""

    etag: HeaderText | None = None
    modified: HeaderText | None = None

    def __bool__(self) -> bool:
        """Whether there is any validator."""
        return bool(self.etag or self.modified)


class Facts(NamedTuple):
    """The facts that are stored about a page. Its links are stored separately in the frontier."""

    status: Annotated[int, Meta(ge=100, le=999)]
    validators: Validators = Validators()
    lastmod: Lastmod | None = None
    header: Date | None = None  # the credible date of Last-Modified
    fresh: bool = False  # that date is the time of the request
    stated: Date | None = None  # the credible date that the page states
    digest: HeaderText | None = None  # of the bytes of an HTML page
    # Version of its visible content, if a question needs it: a fingerprint, since which only noise changed.
    content: HeaderText | None = None
    # Fingerprint of content and links, independent of their order; with `content`.
    unordered: HeaderText | None = None
    variant: ReceivedUrl | None = None  # another URL of the page, from Content-Location
    obstacle: Obstacle | None = None
    title: HeaderText | None = None  # white space folded, cut to `html.LONGEST_TITLE`
    type: HeaderText | None = None  # essence of the media type
    bytes: Count | None = None  # of the decoded body; None if it was not read
    took: Count | None = None  # milliseconds from the request to the last byte
    canonical: ReceivedUrl | None = None  # another URL that the page names as its canonical one
    scripts: HeaderText | None = None  # which pages its scripts may treat alike: `rules.rendering.kinds`
    rendering: Rendering | None = None  # if it needs scripts, and `--render` is on
    until: Date | None = None  # when it stops being indexed (unavailable_after), if that is still to come
    barred: HeaderText | None = None  # crawlers of other search engines that are not to index it
    # What `rules.noise` watches of the text, if that changed in the last run.
    watched: Annotated[str, Meta(max_length=LONGEST_WATCHED, pattern=TEXT_PATTERN)] | None = None
    # Of a page whose `content` is without what repeats the URL (`rules.content_digest`): the same with it, if
    # that is another one. So it is recognised beside a page whose content is with it.
    echoing: HeaderText | None = None


LabelledUrl: TypeAlias = tuple[Annotated[str, Meta(max_length=LONGEST_LABEL, pattern=r"\A[!-~]*\Z")], Url]
"""A URL that an optional feature reads of a page, and what the page says of it: a language code."""


class Element(Struct, frozen=True):
    """An XML element that an optional feature adds to an entry: a URL between two texts."""

    before: str
    url: Url
    after: str
    is_optional: bool = False  # it is left out if the URL is not valid, or if a file has no room for it


class Extras(Struct, frozen=True):
    """What an entry has beside its URL and date."""

    changefreq: str | None = None  # None: that of all entries
    priority: float | None = None  # None: that of all entries
    elements: tuple[Element, ...] = ()

    def with_elements(self, more: Iterable[Element]) -> "Extras":
        """The same, with more elements."""
        return replace(self, elements=(*self.elements, *more))


class Entry(Struct, frozen=True):
    """One URL of the sitemap."""

    url: Url
    lastmod: datetime | None = None
    extras: Extras | None = None
    is_day: bool = False  # the page or a sitemap states a day without a time, read as midnight UTC
    title: str | None = None  # of the page, if it was asked for

    def mapped(self, to: Callable[[Url], Url]) -> "Entry":
        """The same with the URLs that `to` returns, also in its elements."""
        elements = [replace(one, url=to(one.url)) for one in self.extras.elements] if self.extras else ()
        extras = self.extras and replace(self.extras, elements=tuple(elements))
        return replace(self, url=to(self.url), extras=extras)
