"""One worker process as seen by the pool: its open visits, the time of its last message, and how to send it a
lease.

`pool` replaces workers that die; the process itself runs `app.worker`.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from crawler.model.settlement import Unvisited, VisitResult
from crawler.model.visit import Lease
from crawler.parse.url import origin
from crawler.workers.messages import Message, ReceivedUrls, SetSite, VisitPage, received_urls
from crawler.workers.spawn import Child


@dataclass(eq=False, repr=False, slots=True)
class Waiting:
    """A visit sent to a worker, and its result."""

    lease: Lease
    done: anyio.Event = field(default_factory=anyio.Event)
    result: VisitResult | Unvisited | None = None  # None when `done` is set: the worker died

    def finish(self, result: VisitResult | Unvisited) -> None:
        """Stores the result sent by the worker."""
        self.result = result
        self.done.set()


@dataclass(eq=False, repr=False, slots=True)
class Worker:
    """A worker process. `share`: its limit of requests in flight."""

    child: Child
    share: int
    last_message_at: float = field(default_factory=time.monotonic)  # of the monotonic clock
    waiting: dict[int, Waiting] = field(default_factory=dict)
    is_ready: bool = False
    site: str | None = None  # of `PublishBase`, as last sent to the worker
    urls: ReceivedUrls = field(default_factory=received_urls)  # that it has sent

    async def visit(self, number: int, lease: Lease, site: str | None) -> VisitResult | Unvisited | None:
        """The result of the visit, `Unvisited` if the crawl ended before, or None if the worker died.

        `site` is that of `PublishBase`, if there is one.
        """
        waiting = Waiting(lease)
        if not self.waiting:
            self.last_message_at = time.monotonic()
        self.waiting[number] = waiting
        try:
            if site is not None and site != self.site:
                await self.send(SetSite(site))
                self.site = site
            await self.send(VisitPage.of(number, lease))
            await waiting.done.wait()
        finally:
            self.waiting.pop(number, None)
        return waiting.result

    async def send(self, message: Message) -> None:
        """Sends a message. Does nothing if the worker has exited: the pool notices that itself."""
        with suppress(OSError):
            await self.child.channel.post(message)

    def silent(self) -> float:
        """Seconds since its last message; 0 if it has no open visits."""
        return time.monotonic() - self.last_message_at if self.waiting else 0.0

    def has_page_of(self, site: str) -> bool:
        """Whether it has an open visit of that origin. A late message may be about a closed one."""
        return any(origin(waiting.lease.visit.url) == site for waiting in self.waiting.values())

    def died(self) -> None:
        """Ends its open visits without a result."""
        for waiting in self.waiting.values():
            waiting.done.set()


def least_busy(workers: Iterable[Worker]) -> Worker:
    """The worker with the fewest open visits; those that are not ready yet come last."""
    return min(workers, key=lambda worker: (not worker.is_ready, len(worker.waiting)))


def shares(concurrency: int, size: int) -> list[int]:
    """The requests in flight of each of up to `size` workers: at least two, to give up one."""
    size = max(1, min(size, concurrency // 2))
    return [concurrency // size + (place < concurrency % size) for place in range(size)]
