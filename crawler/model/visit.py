"""A URL to go to, and a URL that a page names.

Made for every link, so named tuples: a frozen dataclass takes four times as long to make.
"""

from typing import NamedTuple

from crawler.model.outcome import Pattern
from crawler.model.reasons import Why
from crawler.parse.url import Url


class Visit(NamedTuple):
    """A URL to go to, and how we came by it."""

    url: Url
    depth: int = 0  # links from a start URL; a redirect adds none
    via: Url | None = None  # the page that linked to it first; None as long as only a seed named it
    hops: int = 0  # redirects in a row that led here
    filtered: Why | None = None  # known and not to be asked for: settled as Unlisted at once
    pattern: Pattern | None = None  # what was found in one waits for the rounds (`Queue.advance`)


class Link(NamedTuple):
    """A URL that a page names."""

    url: Url
    nofollow: bool = False
