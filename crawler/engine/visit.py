"""The steps of one visit, from the lease of a URL to its settlement.

    robots.txt -> slot -> visitor (fetch, judge) -> candidates

`crawl` leases URLs and writes settlements; the `Visitor` makes the request and the verdict. The only thing that this
module writes to the frontier is the redirect of a start URL, which must be stored before its links are checked.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread

from crawler.engine.aliases import Aliases
from crawler.engine.counters import Counters
from crawler.engine.robots import FirstContact
from crawler.engine.start_urls import StartUrls
from crawler.engine.stored_links import StoredLinks
from crawler.model.lease import Lease
from crawler.model.outcome import Listed, Moved, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Unvisited, Verdict, WhyUnvisited
from crawler.model.visit import Links
from crawler.parse.html import MAX_LINK_BYTES, MAX_LINKS
from crawler.parse.url import origin
from crawler.ports import Permits, Politeness, Visitor
from crawler.rules.candidates import Candidates
from crawler.rules.record import keep_for

MANY_LINKS: Final = 2_000  # of one page, above which they are checked in a thread: each takes microseconds


@dataclass
class Visits:
    """The visits of one crawl. `keep_failing`: seconds that a failing page is kept with its links."""

    stored_links: StoredLinks
    permits: Permits
    first_contact: FirstContact
    candidates: Candidates
    aliases: Aliases
    start_urls: StartUrls
    turn: Politeness
    visitor: Visitor
    stats: Counters
    concurrency: int
    keep_failing: float
    has_ended: Callable[[], bool]
    holds: Callable[[Lease], bool]
    requested: int = field(init=False, default=0)  # pages requested
    _in_flight: anyio.CapacityLimiter = field(init=False)

    def __post_init__(self) -> None:
        """Creates the limiter of requests in flight."""
        self._in_flight = anyio.CapacityLimiter(self.concurrency)

    async def __call__(self, lease: Lease) -> Settlement | Unvisited:
        """Makes the visit. Returns its settlement, or `Unvisited` if the lease is to be returned."""
        url = lease.visit.url
        if self.has_ended():
            return Unvisited(lease, WhyUnvisited.ENDING)
        if not self.holds(lease):
            return Unvisited(lease, WhyUnvisited.VOID)
        if await self.first_contact.read_robots(lease):
            return Unvisited(lease, WhyUnvisited.ROBOTS_FIRST)
        permit = self.permits.permit(url)
        if not permit.allowed:
            return await self._settlement(lease, Verdict(Unlisted(permit.why or Why.ROBOTS, permit.line)))
        if self.candidates.scope.unfetched(url):
            return Settlement(lease, Verdict(self.candidates.listable(url, Listed())))
        async with self._limiter():
            verdict = await self._wait(lease) or await self._fetch(lease)
        if isinstance(verdict, Unvisited):
            return verdict
        if isinstance(verdict.outcome, Moved) and url in self.start_urls.urls:
            await self.start_urls.moved(url, verdict.outcome.to)
        return await self._settlement(lease, verdict)

    async def _settlement(self, lease: Lease, verdict: Verdict) -> Settlement:
        """The settlement. A page that fails temporarily keeps its stored links, like an unchanged page."""
        replayed = verdict.unchanged or keep_for(verdict.outcome, self.keep_failing) > 0
        links = Links.of(await self.stored_links(lease)) if replayed else verdict.links
        await self.aliases.check(links.urls)
        if links.total > MANY_LINKS:
            return await anyio.to_thread.run_sync(self.candidates.settlement, lease, verdict, links)
        return self.candidates.settlement(lease, verdict, links)

    async def _wait(self, lease: Lease) -> Unvisited | None:
        """Waits for the slot, which is void if the host was paused or the crawl ends meanwhile."""
        site = origin(lease.visit.url)
        if not self.turn.is_stale(site, lease.at):
            await self.turn(site, lease.at)
        if self.has_ended():
            return Unvisited(lease, WhyUnvisited.ENDING)
        if not self.holds(lease):  # looked at after the wait, too: this process may have been frozen
            return Unvisited(lease, WhyUnvisited.VOID)
        return Unvisited(lease, WhyUnvisited.HOST_PAUSED) if self.turn.is_stale(site, lease.at) else None

    def _limiter(self) -> AbstractAsyncContextManager[object]:
        """Limits visits in flight if there is a crawl delay: a prefetching visitor would request pages after their slot."""
        return self._in_flight if self.first_contact.slowest and self.visitor.prefetch > 1 else nullcontext()

    async def _fetch(self, lease: Lease) -> Verdict | Unvisited:
        """The result of the visit, unless the crawl ended before the request."""
        self.stats.request_started()
        try:
            result = await self.visitor.visit(lease)
        finally:
            self.stats.request_ended()
        if isinstance(result, Unvisited):
            self.stats.exchanges -= 1
            return result
        # Count only after the visit: reaching --max-pages ends the crawl and would cancel requests not sent yet.
        self.requested += 1
        if result.truncated:
            limit = f"more than {MAX_LINKS:,}, or {MAX_LINK_BYTES:,} bytes of URLs"
            self.candidates.traps.report("links", limit, lease.visit.url)
        return result.verdict
