"""A URL to be visited, and the links of a page.

Named tuples, as one is made for every link: a frozen dataclass takes four times as long to create.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from crawler.model.outcome import Pattern
from crawler.model.reasons import Why
from crawler.parse.url import Url


class Visit(NamedTuple):
    """A URL to be visited, and how it was found."""

    url: Url
    depth: int = 0  # links from a start URL; a redirect adds none
    via: Url | None = None  # the first page that linked to it; None if found only in a seed
    hops: int = 0  # consecutive redirects that led here
    filtered: Why | None = None  # why it is not fetched: it is settled as Unlisted at once
    pattern: Pattern | None = None  # if set, it waits for a round of that pattern (`Queue.advance`)


class Link(NamedTuple):
    """A link of a page."""

    url: Url
    nofollow: bool = False


class Links(NamedTuple):
    """The links of a page, each URL once. Tuples of URLs, as pages have hundreds and most are known."""

    followed: tuple[Url, ...] = ()
    avoided: tuple[Url, ...] = ()  # linked only with nofollow

    @classmethod
    def of(cls, links: Iterable[Link]) -> "Links":
        """The same links, in order."""
        sides: tuple[list[Url], list[Url]] = [], []
        for url, nofollow in links:
            sides[nofollow].append(url)
        return cls(*map(tuple, sides))

    @property
    def urls(self) -> Iterator[Url]:
        """All of them."""
        return chain(self.followed, self.avoided)

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.followed) + len(self.avoided)
