"""One worker process, as the pool sees it: what it has in hand, when it was last heard, and how to ask it for a visit.

Which worker gets a lease, and what happens when one dies, is for `pool`; what the process does is `app.worker`.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from crawler.model.lease import Lease
from crawler.model.settlement import Seen, Unvisited
from crawler.parse.url import origin
from crawler.workers import messages as letters
from crawler.workers.spawn import Child


@dataclass(slots=True)
class Waiting:
    """A visit that a worker has in hand, and what became of it."""

    lease: Lease
    done: anyio.Event = field(default_factory=anyio.Event)
    seen: Seen | Unvisited | None = None  # None, once it is done: the worker died

    def came(self, seen: Seen | Unvisited) -> None:
        """The worker said what became of it."""
        self.seen = seen
        self.done.set()


@dataclass(eq=False, slots=True)
class Worker:
    """A child that visits. `share` is how many of the requests in flight it may have."""

    child: Child
    share: int
    heard: float = field(default_factory=time.monotonic)  # seconds, by our own clock
    waiting: dict[int, Waiting] = field(default_factory=dict)
    is_ready: bool = False
    site: str | None = None  # of `PublishBase`, as the worker knows it

    async def visit(self, number: int, lease: Lease, site: str | None) -> Seen | Unvisited | None:
        """What it saw, or that the crawl ended before; nothing when it died.

        `site` is that of `PublishBase`, if there is one.
        """
        waiting = Waiting(lease)
        if not self.waiting:
            self.heard = time.monotonic()
        self.waiting[number] = waiting
        try:
            if self.site != site:
                await self.tell("site", site)
                self.site = site
            await self.tell("visit", number, letters.written_lease(lease))
            await waiting.done.wait()
        finally:
            self.waiting.pop(number, None)
        return waiting.seen

    async def tell(self, *message: Any) -> None:
        """Nothing happens when it is gone: whoever listens to it sees that, too."""
        with suppress(OSError):
            await self.child.channel.send_json(message)

    def silent(self) -> float:
        """Seconds since it was heard, while it has something to do."""
        return time.monotonic() - self.heard if self.waiting else 0.0

    def has_page_of(self, site: str) -> bool:
        """Whether it has anything to do with that origin. It may ask for a page that was taken back meanwhile."""
        return any(origin(waiting.lease.visit.url) == site for waiting in self.waiting.values())

    def died(self) -> None:
        """Nothing more comes of what it has in hand."""
        for waiting in self.waiting.values():
            waiting.done.set()


def least_busy(workers: Iterable[Worker]) -> Worker:
    """Who has the least to do; whoever has just replaced another comes last."""
    return min(workers, key=lambda worker: (not worker.is_ready, len(worker.waiting)))


def shares(concurrency: int, size: int) -> list[int]:
    """How many requests each of up to `size` workers may have in flight: two at least, so that each can spare one."""
    size = max(1, min(size, concurrency // 2))
    return [concurrency // size + (place < concurrency % size) for place in range(size)]
