"""A URL to be visited, its lease to a task, and the links of a page.

Named tuples, as one is made for every link: a frozen dataclass takes four times as long to create.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from crawler.model.facts import Facts
from crawler.model.outcome import Outcome, Pattern
from crawler.model.reasons import Why
from crawler.parse.url import Url


class Visit(Struct, frozen=True):
    """A URL to be visited, and how it was found."""

    url: Url
    depth: int = 0  # links from a start URL; a redirect adds none
    via: Url | None = None  # the first page that linked to it; None if found only in a seed
    hops: int = 0  # consecutive redirects that led here
    filtered: Why | None = None  # why it is not fetched: it is settled as Unlisted at once
    pattern: Pattern | None = None  # if set, it waits for a round of that pattern (`Queue.advance`)


# Seconds of a visit in a browser, which may wait for many slots: less than those of its lease.
LONGEST_VISIT: Final = 840.0


class Lease(Struct, frozen=True):
    """The right to visit one URL, until it is settled or the frontier takes it back."""

    id: int
    token: int
    visit: Visit
    attempt: int = 1  # number of this visit of the URL in this run
    at: float = 0.0  # not before this moment (seconds since the epoch): its slot
    robots_first: bool = False  # the robots.txt of its origin has to be read first
    # Processes that died while they parsed the page, after an earlier visit had failed to end.
    deaths: int = 0
    prior: "Prior | None" = None  # result of the last run, if a conditional request is possible
    missing: "MissingPage | None" = None  # what is shown there for a nonexistent page, if it answers that
    scripted: "ScriptedPages | None" = None  # which pages are rendered, with --render auto


class MissingPage(NamedTuple):
    """What pages have in common that say that there is no such page (`rules.soft_404`)."""

    blocks: tuple[int, ...]  # digests of pieces of text; none: only contents tell (`finish.soft_404s`)
    most: int  # pieces that such a page has
    is_exact: bool = False  # it has no other pieces
    place: str = ""  # the folder, path or calendar, unless it is the origin
    content: str | None = None  # of all such pages, where it is one
    links: tuple[Url, ...] = ()  # to which all of them lead; of an origin: and its start page does not
    instead: tuple[Url, ...] = ()  # true pages that are shown in their place


class ScriptedPages(NamedTuple):
    """Which pages a run renders, beside those that show nothing without scripts."""

    samples: frozenset[Url] = frozenset()
    kinds: frozenset[str] = frozenset()  # of which a sample showed more: `rules.rendering.kinds`


class Prior(Struct, frozen=True):
    """The outcome and the facts of the last run."""

    outcome: Outcome
    facts: Facts
    may_stay: bool = False  # it is published, and has not been unclear for long (`rules.record`)


class Link(NamedTuple):
    """A link of a page."""

    url: Url
    nofollow: bool = False


class Links(NamedTuple):
    """The links of a page, each URL once on a side. Tuples of URLs: pages have hundreds, most are known."""

    followed: tuple[Url, ...] = ()
    avoided: tuple[Url, ...] = ()  # linked only with nofollow, but for what nobody can click

    @classmethod
    def of(cls, links: Iterable[Link]) -> "Links":
        """The same links, in order."""
        sides: tuple[list[Url], list[Url]] = [], []
        for url, nofollow in links:
            sides[nofollow].append(url)
        return cls(*map(tuple, sides))

    @property
    def urls(self) -> Iterator[Url]:
        return chain(self.followed, self.avoided)

    @property
    def distinct(self) -> Iterable[Url]:
        """Each of them once."""
        return dict.fromkeys(self.urls) if self.avoided else self.followed

    @property
    def total(self) -> int:
        return len(self.followed) + len(self.avoided)
