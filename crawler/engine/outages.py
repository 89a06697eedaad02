"""Notices that a host of the site is down, so that the crawl ends instead of sending it requests.

`rules.circuit_breaker` says when to suspect it. Then a page that responded earlier is fetched, so that one
broken section does not end the run. Pages that failed meanwhile are fetched again when the run is resumed.
"""

from collections.abc import Sequence
from typing import Final

import anyio
from msgspec import Struct, field

from crawler.engine.course import Course
from crawler.engine.site import CrawledSite
from crawler.model.log import log
from crawler.model.outcome import Failed, Outcome
from crawler.model.reasons import Cause
from crawler.model.reply import Response
from crawler.model.run import StopReason
from crawler.model.settlement import Settlement
from crawler.parse.url import Url, origin
from crawler.ports import Record, reads
from crawler.rules.circuit_breaker import CircuitBreaker

# Seconds in which a page must respond before the site counts as down, plus the crawl delay.
PROBE: Final = 60.0


class Outages(Struct, eq=False):
    """The outages of one crawl."""

    record: Record
    site: CrawledSite
    course: Course
    _breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    # Pages that failed while their host was down.
    _failed: dict[Url, None] = field(default_factory=dict)
    # Origins that responded though many pages failed.
    _responsive: set[str] = field(default_factory=set)
    _probe: anyio.CancelScope | None = None

    @property
    def failed(self) -> Sequence[Url]:
        """The pages that are to be fetched again."""
        return list(self._failed)

    async def watch(self, settlements: Sequence[Settlement]) -> Sequence[str]:
        """Looks at the outcomes of pages. Returns a sentence for each origin that is down."""
        down, origins = dict[str, str](), self.site.origins
        for settlement in settlements:
            url = settlement.lease.visit.url
            site = origin(url)
            failed = self._breaker.note(url, settlement.verdict) if site in origins else None
            if failed and not down and self._may_ask() and await self._still_responds(site):
                self._breaker.clear(site)
            elif failed:
                self._failed.update(dict.fromkeys(failed))
                down[site] = f"every request to {site} fails{_because(settlement.verdict.outcome)}"
        return list(down.values())

    def _may_ask(self) -> bool:
        """Not if the crawl is to end now; after --max-pages, the next session would repeat what failed."""
        stop = self.course.interruption
        return stop is None or stop.reason is StopReason.MAX_PAGES

    def note_down(self) -> None:
        """Another member found a host down: pages that failed here are fetched again, too."""
        for site in self.site.origins:
            self._failed.update(dict.fromkeys(self._breaker.recent(site)))

    async def _still_responds(self, site: str) -> bool:
        """Whether a page that responded earlier in this run still does."""
        page = self._breaker.last_good(site) or await self.record.read(reads.LastAnswered(site))
        reply = None
        left = min(PROBE + 2 * self.site.access.slowest, max(0.0, self.course.time_left))
        with anyio.move_on_after(left) as self._probe:
            reply = await self.site.fetch(page) if page else None
        self._probe = None
        responds = isinstance(reply, Response) and reply.status < 400
        if responds and site not in self._responsive:
            self._responsive.add(site)
            log.warning("many pages in a row fail, but the site still responds", origin=site, requested=page)
        return responds

    def stop(self) -> None:
        """Does not wait for a page that is being fetched to find out."""
        if self._probe:
            self._probe.cancel()


def _because(outcome: Outcome) -> str:
    """Which firewall it is, and what to do about it."""
    if isinstance(outcome, Failed) and outcome.cause is Cause.WALL:
        return f": {outcome.cause.says} ({outcome.detail})"
    return ""
