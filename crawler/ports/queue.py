"""A role of the frontier: the open work."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct

from crawler.model.run import Interruption
from crawler.model.seed import NO_DATES, Seed, SeedSettlement
from crawler.model.settlement import Settled, Settlement
from crawler.model.trap import DoubtfulPattern, ImpossibleValues, Trap
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports.reads import Reads

NOTHING_SHOWN: Final[Mapping[int, ImpossibleValues]] = MappingProxyType({})


class Pacer(Protocol):
    """Schedules the requests to a host: all politeness delays come from here."""

    async def slot(self, origin: str) -> float:
        """Books the next slot of `origin`: the time of the request (seconds since the epoch)."""

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        """Throttles an overloaded host: no slots before `until`, and longer delays for a while.

        `once`: not if this run has done so before, in any process. Returns whether it does.
        """


class Batch(Struct, frozen=True):
    """The result of `lease`."""

    leases: Sequence[Lease] = ()
    finished: bool = False  # nothing is due, waiting or leased: the crawl is complete
    is_idle: bool = False  # no visit is waiting for a slot
    wait: float | None = None  # seconds until something may be due; None: once something is settled
    rests: bool = False  # no member has a lease, and nothing is due for some seconds
    leads: bool = True  # False: another member leads this run
    interruption: Interruption | None = None  # all members stop
    # The state may lack its last commits: record numbers known to this process are void.
    voids_numbers: bool = False


class Round(Struct, frozen=True):
    """The result of `advance`."""

    released: int  # visits that are due now
    closed: Sequence[Trap] = ()  # patterns that brought too little new: their URLs are not fetched
    # Nothing is released before it is known what the site shows for values that these cannot have.
    doubtful: Sequence[DoubtfulPattern] = ()


class Queue(Pacer, Reads, Protocol):
    """The open work: known URLs, due visits, leases and slots.

    "This run" is the one that `Runs.begin` returned.
    """

    async def add(
        self, visits: Sequence[Visit], seed: Seed | None = None, dates: Mapping[Url, datetime] = NO_DATES
    ) -> int:
        """Adds URLs; those already known in this run are unchanged. Returns the number of new visits.

        URLs in a `seed` are fetched even if links alone would not be sufficient (nofollow, too deep, a trap).
        If several seeds contain a URL, the first by kind and by order in the settings is stored, regardless
        of which was read first. `dates`: what the seed says of when pages changed; the latest one counts.
        """

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """Leases up to `limit` due visits (not deeper than `depth`), with their slots booked.

        For an origin whose robots.txt is unknown or a day old, one visit at a time, marked `robots_first`.
        """

    async def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Closes leases, stores facts and adds discovered URLs in one transaction. Stale leases are ignored.

        Returns how many visits are new, and the record numbers of all that were found, for
        `Settlement.links`.
        """

    async def release(self, leases: Sequence[Lease]) -> None:
        """Returns unused leases."""

    async def suspect(self, lease: Lease) -> None:
        """Notes that the page of a lease is being parsed: it may be the cause if this process dies now."""

    async def reopen(self, pages: Sequence[Url]) -> None:
        """Reopens failed pages of this run, to be fetched again after all others."""

    async def read_again(self, pages: Sequence[Url], *, once: bool = True) -> int:
        """Reopens listed pages, since they are judged in another way now; how many.

        `once`: not those that were requested twice in this run.
        """

    async def shorten(self, deepest: int) -> int:
        """Recomputes all depths from the shortest path, if a URL was filtered as deeper than `deepest` links.

        Call it when `lease` returns finished. Returns how many filtered URLs are less deep than was assumed.
        """

    async def requeue(self, visits: Sequence[Visit]) -> int:
        """Queues filtered URLs that are to be fetched after all. Returns how many of them are due."""

    async def arrive(self, pages: Sequence[Url]) -> int:
        """Queues those of these URLs, to which start URLs redirect, that are held or, in a partial run, were
        not visited; how many are due.

        All else that is held waits until the whole queue is empty, also when another leader takes over.
        """

    async def advance(
        self, depth: int | None = None, shown: Mapping[int, ImpossibleValues] = NOTHING_SHOWN
    ) -> Round:
        """Releases the next visits of patterns that may be crawler traps (not deeper than `depth`).

        `shown`: what the patterns that were doubtful, by id, show for impossible values; it is stored.
        Called when `lease` returns finished, until nothing is released: visits with a pattern that were found
        by links are held until then. What is released depends on the URLs found and settled so far, but not
        on their order. Called while other visits wait, it releases those of hosts that have none to lease.
        """

    async def store_traps(self, traps: Sequence[Trap]) -> None:
        """Stores crawler traps that were obvious from a URL, for this run."""

    async def add_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """Adds seeds to be read in this run; those already known are unchanged.

        At most `room` in total at their depth. Returns how many were skipped because of that limit.
        """

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """Closes a seed whose URLs were added; it is not read again in this run.

        The sitemaps `below` it are added as by `add_seeds`, in the same transaction.
        """
