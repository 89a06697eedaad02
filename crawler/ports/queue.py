"""The first role of the frontier: the open work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crawler.model.lease import Lease
from crawler.model.seed import Seed, SeedSettlement
from crawler.model.settlement import Settlement
from crawler.model.trap import Trap
from crawler.model.visit import Visit
from crawler.parse.url import Url


class Pacer(Protocol):
    """Schedules the requests to a host: all politeness delays come from here."""

    async def slot(self, origin: str) -> float:
        """Books the next slot of `origin`: the time of the request (seconds since the epoch)."""
        ...

    async def slow(self, origin: str, until: float) -> None:
        """Throttles an overloaded host: no slots before `until`, and longer delays for a while."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of `lease`."""

    leases: Sequence[Lease] = ()
    finished: bool = False  # nothing is due, waiting or leased: the crawl is complete
    is_idle: bool = False  # no visit is waiting for a slot
    wait: float | None = None  # seconds until something may be due; None: once something is settled


@dataclass(frozen=True, slots=True)
class Round:
    """The result of `advance`."""

    released: int  # visits that are due now
    closed: Sequence[Trap] = ()  # patterns without enough news: their URLs are not fetched


class Queue(Pacer, Protocol):
    """The open work: known URLs, due visits, leases and slots.

    "This run" is the one that `Runs.begin` returned.
    """

    async def add(self, visits: Sequence[Visit], seed: Seed | None = None) -> int:
        """Adds URLs; those already known in this run are unchanged. Returns the number of new visits.

        URLs in a `seed` are fetched even if links alone would not be sufficient (nofollow, too deep, a trap). Their seed is
        stored: the first by kind and order of naming, whichever was read first.
        """
        ...

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """Leases up to `limit` due visits (not deeper than `depth`), with their slots booked.

        For an origin whose robots.txt is unknown or a day old, one visit at a time, marked `robots_first`.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> int:
        """Closes leases, stores facts and adds discovered URLs in one transaction. Stale leases are ignored.

        Returns the number of new visits, without filtered and held ones.
        """
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Returns unused leases."""
        ...

    async def reopen(self, pages: Sequence[Url]) -> None:
        """Reopens failed pages of this run, to be fetched again after all others."""
        ...

    async def shorten(self, deepest: int) -> int:
        """Give all URLs of this run the depth of the shortest way, if any was set aside for lying below `deepest` links.

        To be called when `lease` says finished. How many of those set aside lie nearer.
        """
        ...

    async def set_aside(self, after: str = "") -> Sequence[Visit]:
        """URLs of this run that were set aside as no part of the site, or as too deep, the next ones behind `after` in their order."""
        ...

    async def take_up(self, visits: Sequence[Visit]) -> int:
        """URLs that were set aside, and are to be asked for after all. How many of them are due."""
        ...

    async def advance(self, depth: int | None = None) -> Round:
        """Releases the next visits of patterns that may be crawler traps (not deeper than `depth`).

        Called when `lease` returns finished, until nothing is released: visits with a pattern that were found by links
        are held until then. What is released depends on the URLs found and settled so far, but not on their order.
        """
        ...

    async def tell(self, traps: Sequence[Trap]) -> None:
        """Stores crawler traps that were obvious from a URL, for this run."""
        ...

    async def name_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """Adds seeds to be read in this run; those already known are unchanged.

        At most `room` in total at their depth. Returns how many were skipped because of that limit.
        """
        ...

    async def next_seed(self) -> Seed | None:
        """The next seed to be read in this run, by kind, depth and order of naming."""
        ...

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """Closes a seed whose URLs were added; it is not read again in this run.

        The sitemaps `below` it are added as by `name_seeds`, in the same transaction.
        """
        ...

    async def unnamed(self) -> Sequence[tuple[Seed, Sequence[Url]]]:
        """Pages of the last publication not found in this run, from sitemaps that are failing temporarily."""
        ...
