"""The first word with an origin: its robots.txt is read before anything else is asked for, and says how slow to be.

What the file means is for `robots`, when a slot comes for the frontier; here is the order of things, and what becomes of
a file that fails.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from crawler.model import Lease, Permit
from crawler.ports import Frontier, Permits, Turns
from crawler.urls import Url, origin

CUT_DELAY: Final = 30.0  # seconds kept of a Crawl-delay that no crawl could keep: most say that at most

log = logging.getLogger("crawler.crawl")


@dataclass
class Meeting:
    """What one crawl does when it comes to an origin. Times in seconds."""

    frontier: Frontier
    permits: Permits
    turn: Turns
    paced: Callable[[float], None]  # hears how far apart the requests to the slowest origin are
    gap: float  # from slot to slot, at least
    max_wait: float  # the longest Crawl-delay that is kept
    slowest: float = field(init=False, default=0.0)

    async def with_stranger(self, lease: Lease) -> bool:
        """Learn an origin's robots.txt; whether that took the slot, so that the page must wait for another."""
        site = origin(lease.visit.url)
        if not lease.stranger and self.permits.knows(site):
            return False
        if await self._recalled(site):
            return False
        await self.turn(site, lease.at)
        await self._ask(site)
        return True

    async def permit(self, url: Url) -> Permit:
        """Whether robots.txt lets us ask for a URL that is no visit (a sitemap)."""
        site = origin(url)
        if not self.permits.knows(site) and not await self._recalled(site):
            await self.turn(site, await self.frontier.slot(site))
            await self._ask(site)
        return self.permits.permit(url)

    async def _recalled(self, site: str) -> bool:
        file = await self.frontier.robots(site)
        if file is not None:
            await self.permits.learn(site, file)
            self._set_pace(site)
        return file is not None

    async def _ask(self, site: str) -> None:
        """A file that fails later in a run leaves what was read before (RFC 9309 2.4)."""
        file = await self.permits.ask(site)
        if file.failed and (before := await self.frontier.robots(site, stale=True)) and not before.failed:
            log.warning("robots.txt fails; as before", extra={"fields": {"origin": site, "now": file.detail}})
            file = replace(before, fetched=file.fetched)
        await self.permits.learn(site, file)
        await self.frontier.meet(site, file, self._set_pace(site))

    def _set_pace(self, site: str) -> float:
        delay = self.permits.delay(site) or 0.0
        if delay > self.max_wait:
            log.warning(
                "a Crawl-delay is longer than --max-wait and was cut",
                extra={"fields": {"origin": site, "delay": delay, "kept": CUT_DELAY}},
            )
            delay = min(CUT_DELAY, self.max_wait)
        gap = max(self.gap, delay)
        self.turn.pace(site, gap)
        self.slowest = max(self.slowest, gap)
        self.paced(self.slowest)
        return gap
