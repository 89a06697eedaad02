"""The steps of one visit, from the lease of a URL to its settlement.

    robots.txt -> slot -> visitor (fetch, judge) -> candidates

`crawl` leases URLs and writes settlements; the `Visitor` makes the request and the verdict. The only thing
that this module writes to the frontier is the redirect of a start URL, which must be stored before its links
are checked.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
import anyio.to_thread
from msgspec import Struct, field

from crawler.engine.course import Counters, Limits
from crawler.engine.site import CrawledSite
from crawler.engine.visitor import MANY_LINKS
from crawler.model.outcome import Listed, Moved, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Unvisited, Verdict, WhyUnvisited
from crawler.model.visit import Lease, Link, Links
from crawler.parse.page_links import MAX_LINK_BYTES
from crawler.parse.parsed_page import MAX_LINKS
from crawler.parse.url import origin
from crawler.ports import Frontier, Reads, Visitor, reads
from crawler.rules import interstitials
from crawler.rules.record import UNCLEAR_FOR, keep_for

# Links of one page, above which they are checked in a thread: each takes microseconds.


class _Group(Struct, eq=False):
    """Pages whose links are read in one call."""

    leases: list[Lease] = field(default_factory=list)
    # By lease, once they are read.
    links: dict[int, Sequence[Link]] | None = None


class StoredLinks:
    """Reads the stored links of unchanged pages, for several pages at a time: `await stored_links(lease)`.

    Requests that arrive during one call are combined in the next: a call takes as long for thirty pages as
    for one.
    """

    def __init__(self, rows: Reads) -> None:
        self._rows, self._next, self._reading = rows, _Group(), anyio.Lock()

    async def __call__(self, lease: Lease) -> Sequence[Link]:
        """The links of a page, as in `reads.LinksToFollow`."""
        group = self._next
        group.leases.append(lease)
        async with self._reading:
            if group.links is None:
                if group is self._next:
                    self._next = _Group()
                links = await self._rows.read(reads.LinksToFollow(group.leases))
                group.links = {lease.id: found for lease, found in zip(group.leases, links, strict=True)}
        return group.links[lease.id]


class Visits:
    """The visits of one crawl."""

    def __init__(
        self,
        frontier: Frontier,
        site: CrawledSite,
        visitor: Visitor,
        stats: Counters,
        limits: Limits,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.frontier, self.site, self.visitor, self.stats = frontier, site, visitor, stats
        self.limits, self.is_stopping = limits, is_stopping
        self.requested = 0  # pages
        self._stored_links = StoredLinks(frontier)
        self._in_flight = anyio.CapacityLimiter(limits.concurrency)

    async def __call__(self, lease: Lease) -> Settlement | Unvisited:
        """Makes the visit. Returns its settlement, or `Unvisited` if the lease is to be returned."""
        url, site = lease.visit.url, self.site
        why = self._obstacle(lease)
        if why is None and await site.access.read_robots(lease):
            why = WhyUnvisited.ROBOTS_FIRST
        if why is not None:
            return Unvisited(lease, why)
        permit = site.access.permits.permit(url)
        if not permit.allowed:
            return await self._settlement(lease, Verdict(Unlisted(permit.why or Why.ROBOTS, permit.line)))
        if site.candidates.scope.unfetched(url):
            return Settlement(lease, Verdict(site.candidates.listable(url, Listed())))
        async with self._limiter():
            verdict = await self._wait(lease) or await self._fetch(lease)
        return verdict if isinstance(verdict, Unvisited) else await self._judged(lease, verdict)

    def _obstacle(self, lease: Lease) -> WhyUnvisited | None:
        if self.is_stopping():
            return WhyUnvisited.ENDING
        return None if self.frontier.is_lease_valid(lease) else WhyUnvisited.VOID

    async def _judged(self, lease: Lease, verdict: Verdict) -> Settlement:
        if interstitials.is_suspected(lease, verdict) and await self._is_hidden(lease):
            verdict = interstitials.failure(verdict)
        self.site.starts.answered(lease.visit.url)
        if isinstance(verdict.outcome, Moved) and lease.visit.url in self.site.starts.urls:
            await self.site.starts.moved(lease.visit.url, verdict.outcome.to)
        if isinstance(verdict.outcome, Unlisted) and verdict.outcome.why is Why.SOFT_404:
            site = origin(lease.visit.url)
            said = f"pages of {site} that say that there is no such page"
            self.site.candidates.traps.report("soft-404", said, verdict.outcome.detail)
        return await self._settlement(lease, verdict)

    async def _is_hidden(self, lease: Lease) -> bool:
        """Whether what is suspected hides a page. What a start page hides is judged at the end."""
        if self.limits.keep_failing < UNCLEAR_FOR or lease.visit.url in self.site.starts.urls:
            return False
        return await self.frontier.read(reads.KnownLinks(lease.id)) >= interstitials.FEWEST_BEFORE

    async def _settlement(self, lease: Lease, verdict: Verdict) -> Settlement:
        """The settlement. A page that fails temporarily keeps its stored links, like an unchanged page."""
        keeps_links = verdict.unchanged or keep_for(verdict.outcome, self.limits.keep_failing) > 0
        links = Links.of(await self._stored_links(lease)) if keeps_links else verdict.links
        await self.site.starts.ask_before(lease.visit.url, links.urls)
        await self.site.aliases.check(links.urls)
        if links.total > MANY_LINKS:
            return await anyio.to_thread.run_sync(self.site.candidates.settlement, lease, verdict, links)
        return self.site.candidates.settlement(lease, verdict, links)

    async def _wait(self, lease: Lease) -> Unvisited | None:
        """Waits for the slot, which is void if the host was paused or the crawl ends meanwhile."""
        host, politeness = origin(lease.visit.url), self.site.access.politeness
        if not politeness.is_stale(host, lease.at):
            await politeness(host, lease.at)
        # Looked at after the wait, too: this process may have been frozen.
        if why := self._obstacle(lease):
            return Unvisited(lease, why)
        return Unvisited(lease, WhyUnvisited.HOST_PAUSED) if politeness.is_stale(host, lease.at) else None

    def _limiter(self) -> AbstractAsyncContextManager[object]:
        """Limits visits in flight if there is a crawl delay.

        Otherwise a visitor that prefetches would request pages after their slot.
        """
        is_limited = self.site.access.slowest and self.visitor.prefetch > 1
        return self._in_flight if is_limited else nullcontext()

    async def _fetch(self, lease: Lease) -> Verdict | Unvisited:
        """The result of the visit, unless the crawl ended before the request."""
        self.stats.request_started()
        try:
            lease = self.site.scripted.prepared(lease)
            result = await self.visitor.visit(self.site.missing.prepared(lease, self.site.starts.urls))
        finally:
            self.stats.request_ended()
        if isinstance(result, Unvisited):
            self.stats.exchanges -= 1
            return result
        # Count only after the visit: reaching --max-pages ends the crawl and would cancel requests not sent
        # yet.
        self.requested += 1
        if result.truncated:
            limit = f"more than {MAX_LINKS:,}, or {MAX_LINK_BYTES:,} bytes of URLs"
            self.site.candidates.traps.report("links", limit, lease.visit.url)
        return result.verdict
