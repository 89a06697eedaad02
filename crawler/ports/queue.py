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
    """When a host may be asked next. All waiting for a host's sake goes through here."""

    async def slot(self, origin: str) -> float:
        """Book the next slot of `origin`: the moment (seconds since the epoch) to ask at."""
        ...

    async def slow(self, origin: str, until: float) -> None:
        """The host showed strain: no slots before `until`, and longer gaps for a while."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The answer to `lease`."""

    leases: Sequence[Lease] = ()
    finished: bool = False  # nothing due, nothing waiting, nothing out: the crawl is complete
    is_idle: bool = False  # no visit waits for a slot
    wait: float | None = None  # seconds until something may be due; None: when something settles


@dataclass(frozen=True, slots=True)
class Round:
    """The answer to `advance`."""

    released: int  # visits that are due now
    closed: Sequence[Trap] = ()  # patterns that brought too little: their URLs are not asked for


class Queue(Pacer, Protocol):
    """The open work: what is known, what is due, who has it, and when its host may be asked.

    "This run" is the one that `Runs.begin` answered.
    """

    async def add(self, visits: Sequence[Visit], seed: Seed | None = None) -> int:
        """Make URLs known; those known in this run already are left alone. How many visits were new.

        What a `seed` names is asked for, though links alone would not have been reason enough (nofollow, too deep,
        a trap), and remembers which seed it was: the first by kind and order of naming, whichever was read first.
        """
        ...

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """Up to `limit` due visits (not deeper than `depth`), each host's slots booked.

        Of an origin whose robots.txt is unknown or a day old, one visit at a time, marked `stranger`.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> int:
        """Close leases, keep facts, add what was found: one transaction. Stale leases are dropped.

        How many visits were new; what is set aside or held is not counted.
        """
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Hand leases back unused."""
        ...

    async def reopen(self, pages: Sequence[Url]) -> None:
        """Pages of this run that failed, to be asked for again, after all others."""
        ...

    async def set_aside(self, after: str = "") -> Sequence[Visit]:
        """URLs of this run that were set aside as no part of the site, the next ones behind `after` in their order."""
        ...

    async def take_up(self, visits: Sequence[Visit]) -> int:
        """URLs that were set aside, and are to be asked for after all. How many of them are due."""
        ...

    async def advance(self, depth: int | None = None) -> Round:
        """Release the next visits of patterns that may be crawler traps (not deeper than `depth`).

        To be called when `lease` says finished, until nothing is released: what was found in a pattern (a `Visit` with
        one, and `via` a page) is held until then. What is released depends on what was found and settled by then, and
        not on the order in which that happened.
        """
        ...

    async def tell(self, traps: Sequence[Trap]) -> None:
        """Keep crawler traps that show by the text of a URL, for the length of this run."""
        ...

    async def name_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """Make seeds known that are to be read in this run; those known already are left alone.

        No more than `room` in all of their depth; how many were passed over for that.
        """
        ...

    async def next_seed(self) -> Seed | None:
        """A seed that is still to be read in this run: the first by kind, depth and order of naming."""
        ...

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """A seed was read, and what it names was added. It is not read again in this run.

        The sitemaps `below` it become known as by `name_seeds`, in the same transaction.
        """
        ...

    async def unnamed(self) -> Sequence[tuple[Seed, Sequence[Url]]]:
        """Pages of the last publication that this run has not found, and that sitemaps named which fail for now."""
        ...
