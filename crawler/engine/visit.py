"""The walk of one URL, from its lease to its settlement.

    robots.txt -> slot -> visitor (fetch, judge) -> candidates

What is leased, and when settlements are written, is for `crawl`; one exchange and its verdict are for the `Visitor`. Nothing
here writes to the frontier but where a start URL moved, which has to be known before its links are placed.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread

from crawler.engine.aliases import Aliases
from crawler.engine.counters import Counters
from crawler.engine.robots import Meeting
from crawler.engine.start_urls import StartUrls
from crawler.model.lease import Lease
from crawler.model.outcome import Listed, Moved, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Unvisited, Verdict, WhyUnvisited
from crawler.parse.html import MAX_LINK_BYTES, MAX_LINKS
from crawler.parse.url import origin
from crawler.ports import Permits, Politeness, Record, Visitor
from crawler.rules import keep_failing as keeping
from crawler.rules.candidates import Candidates

MANY_LINKS: Final = 2_000  # of one page, from which on a thread takes them: placing each takes microseconds


@dataclass
class Visits:
    """The visits of one crawl. `keep_failing`: seconds that a page that fails is remembered with its links."""

    record: Record
    permits: Permits
    meeting: Meeting
    candidates: Candidates
    aliases: Aliases
    start_urls: StartUrls
    turn: Politeness
    visitor: Visitor
    stats: Counters
    concurrency: int
    keep_failing: float
    has_ended: Callable[[], bool]
    asked: int = field(init=False, default=0)  # pages
    _flying: anyio.CapacityLimiter = field(init=False)

    def __post_init__(self) -> None:
        """As many at a time as may be in flight."""
        self._flying = anyio.CapacityLimiter(self.concurrency)

    async def __call__(self, lease: Lease) -> Settlement | Unvisited:
        """From the lease to the settlement, or to the reason why there is none."""
        url = lease.visit.url
        if self.has_ended():
            return Unvisited(lease, WhyUnvisited.ENDING)
        if await self.meeting.with_stranger(lease):
            return Unvisited(lease, WhyUnvisited.ROBOTS_FIRST)
        permit = self.permits.permit(url)
        if not permit.allowed:
            return await self._placed(lease, Verdict(Unlisted(permit.why or Why.ROBOTS, permit.line)))
        if self.candidates.scope.unfetched(url):
            return Settlement(lease, Verdict(self.candidates.listable(url, Listed())))
        async with self._room():
            verdict = await self._wait(lease) or await self._go(lease)
        if isinstance(verdict, Unvisited):
            return verdict
        if isinstance(verdict.outcome, Moved) and url in self.start_urls.urls:
            await self.start_urls.moved(url, verdict.outcome.to)
        return await self._placed(lease, verdict)

    async def _placed(self, lease: Lease, verdict: Verdict) -> Settlement:
        """The lease closed. A page that fails for now leads where it led, as one that did not change."""
        replayed = verdict.unchanged or keeping.patience(verdict.outcome, self.keep_failing) > 0
        links = await self.record.links(lease) if replayed else verdict.links
        await self.aliases.ask(link.url for link in links)
        if len(links) > MANY_LINKS:
            return await anyio.to_thread.run_sync(self.candidates.settlement, lease, verdict, links)
        return self.candidates.settlement(lease, verdict, links)

    async def _wait(self, lease: Lease) -> Unvisited | None:
        """Wait for the slot. It is worth nothing once its host asked for a pause, or the crawl ends."""
        site = origin(lease.visit.url)
        if not self.turn.is_stale(site, lease.at):
            await self.turn(site, lease.at)
        if self.has_ended():
            return Unvisited(lease, WhyUnvisited.ENDING)
        return Unvisited(lease, WhyUnvisited.HOST_PAUSED) if self.turn.is_stale(site, lease.at) else None

    def _room(self) -> AbstractAsyncContextManager[object]:
        """A visitor may be given more than is in flight, but not what has to wait for its turn: it would go late."""
        return self._flying if self.meeting.slowest and self.visitor.prefetch > 1 else nullcontext()

    async def _go(self, lease: Lease) -> Verdict | Unvisited:
        """The result of the visit, unless the crawl ended before the request."""
        self.stats.asked()
        try:
            seen = await self.visitor.visit(lease)
        finally:
            self.stats.answered()
        if isinstance(seen, Unvisited):
            self.stats.exchanges -= 1
            return seen
        # Not before: that many asked for is an ending, and an ending takes back what waits to be asked for.
        self.asked += 1
        if seen.truncated:
            limit = f"more than {MAX_LINKS:,}, or {MAX_LINK_BYTES:,} bytes of URLs"
            self.candidates.traps.tell("links", limit, lease.visit.url)
        return seen.verdict
