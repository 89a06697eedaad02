"""Adds the URLs of seeds (sitemaps and --input) to the queue while pages are visited.

`app.seeding` fetches and parses the seeds. This task shares the slots of a slow host with the pages, and ends
with the crawl: the open sitemap is read to its end, so that each session makes progress.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio
from msgspec import Struct, field

from crawler.engine.course import Counters
from crawler.engine.pool import Pool
from crawler.engine.site import CrawledSite
from crawler.errors import LeadershipLost
from crawler.model.seed import Seed, SeedUrls
from crawler.ports import Batch, Queue

Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
Seeding: TypeAlias = Callable[[Turn], AsyncGenerator[tuple[Seed, SeedUrls], None]]
"""Yields the URLs of all seeds. It is given `SeedReader.turn`, which is entered for each request."""


class SeedReader(Struct, eq=False):
    """Reads the seeds of one crawl in a task of the pool."""

    queue: Queue
    site: CrawledSite
    stats: Counters
    pool: Pool
    seeding: Seeding | None
    is_reading: bool = False
    _is_stopping: bool = False
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    # Set when all seeds are read, or no further one will be.
    _read: anyio.Event = field(default_factory=anyio.Event)
    # Set when pages were leased.
    _leased: anyio.Event | None = None
    _lost: LeadershipLost | None = None

    def start(self) -> None:
        """Begins to read, if there are seeds."""
        if self.seeding is not None:
            self.is_reading, self._lost = True, None
            self._scope, self._read = anyio.CancelScope(), anyio.Event()
            self.pool.start(partial(self._read_all, self._scope))

    async def _read_all(self, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self._add_all()
            except LeadershipLost as error:
                self._lost = error
            self._ended()

    async def _add_all(self) -> None:
        if self.seeding is None:
            return
        async with aclosing(self.seeding(self.turn)) as groups:
            async for seed, urls in groups:
                visits = await self.site.seeded(list(urls))
                dated = zip(visits, urls.values(), strict=True)
                dates = {visit.url: at for visit, at in dated if at is not None}
                self.stats.found(await self.queue.add(visits, seed, dates))
                self.pool.wake()

    def _ended(self) -> None:
        self.is_reading = False
        self._read.set()
        self.pool.wake()

    def check(self) -> None:
        """Raises `LeadershipLost` if reading did."""
        if self._lost:
            raise self._lost

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Waits until pages were leased or none are due, and then for a place among the requests in flight;
        otherwise sitemaps would use all slots of a slow host.

        Does not begin once the crawl ends, so that no further sitemap is fetched.
        """
        await self._after_pages()
        async with self.pool.turn():
            yield

    async def _after_pages(self) -> None:
        if not self._is_stopping:
            self._leased = anyio.Event()
            self.pool.wake()
            await self._leased.wait()
        if self._is_stopping:
            self._read.set()
            await anyio.sleep_forever()

    def note_leased(self, batch: Batch | None) -> None:
        """Records what was leased. None: there was no room for further leases."""
        if self._leased and (batch is None or batch.leases or batch.is_idle):
            self._leased.set()

    def stop(self) -> None:
        """From now on no further sitemap is fetched."""
        self._is_stopping = True
        if self._leased:
            self._leased.set()

    async def end(self, grace: float) -> None:
        """Waits, `grace` seconds at most, until the open sitemap is read, and ends the task."""
        if self.is_reading:
            with anyio.move_on_after(grace):
                await self._read.wait()
        self.cancel()

    def cancel(self) -> None:
        """Ends the task now."""
        self.is_reading = False
        self._scope.cancel()
