"""The engine: the main loop that leases pages, has them visited, and settles them.

    lease -> permitted? -> fetch -> judge -> settle

The loop goes through the phases of `model.phases`; `Crawl.STEPS` says what a member does in each. `pool` has
the tasks, and `visit` takes each URL through the steps above. Only this loop writes to the frontier, in
groups: results that arrive while a group is written form the next one. After a crash, leased pages are
visited again; no URL is lost. The engine depends on rules, the model and ports only, not on concrete classes
or settings.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import ClassVar, Final, TypeAlias

import anyio

from crawler.engine.course import Counters, Course, Limits
from crawler.engine.leader import Leader
from crawler.engine.outages import Outages
from crawler.engine.pool import Pool, Returned
from crawler.engine.seed_reader import Seeding, SeedReader
from crawler.engine.site import CrawledSite
from crawler.engine.visit import Visits
from crawler.errors import Exit, LeadershipLost, ungrouped
from crawler.model.log import log
from crawler.model.phases import VISITING, Event, Phase, after
from crawler.model.run import Interruption, StopReason
from crawler.model.settlement import Settlement, Unvisited
from crawler.ports import Batch, Frontier, Sink, Visitor, reads

GRACE: Final = 8.0  # seconds that pages in flight have to end after a stop
FOLLOW: Final = 1.0  # seconds between two looks at what the leader does
RENEW: Final = 5.0  # seconds at most between two checks of the clock while nothing happens
LOOK: Final = 0.5  # the same after a stop


class Ending(Enum):
    """How a crawl ended."""

    COMPLETE = "complete"
    LIMIT = "limit"  # --max-pages or --max-time
    STOPPED = "stopped"  # by a signal or `stop`
    FAILING = "failing"  # every request to the host fails
    OVER = "over"  # another member ended the run; `Crawl.exit` is its exit code


ENDINGS: Final[Mapping[StopReason, Ending]] = {
    StopReason.MAX_PAGES: Ending.LIMIT,
    StopReason.MAX_TIME: Ending.LIMIT,
    StopReason.ASKED: Ending.STOPPED,
    StopReason.FAILING: Ending.FAILING,
    StopReason.OVER: Ending.OVER,
}


Step: TypeAlias = "Callable[[Crawl], Awaitable[Event | None]]"


@dataclass(eq=False, repr=False)
class Crawl:
    """One crawl of one site. `run` may be called once."""

    frontier: Frontier
    site: CrawledSite
    visitor: Visitor
    stats: Counters
    limits: Limits
    seeding: Seeding | None = None
    sinks: Sequence[Sink] = ()
    clock: Callable[[], float] = time.time
    course: Course = field(init=False)
    # Of the run, if another member ended it.
    exit: Exit | None = field(init=False, default=None)
    _visits: Visits = field(init=False)
    _pool: Pool = field(init=False)
    _outages: Outages = field(init=False)
    _leader: Leader = field(init=False)

    def __post_init__(self) -> None:
        """Creates the parts of the crawl."""
        limits = self.limits
        self.course = Course(limits, self.stats, self.clock)
        self._visits = Visits(
            self.frontier, self.site, self.visitor, self.stats, limits, lambda: self.course.is_stopping
        )
        self._pool = Pool(self._visits, limits.concurrency, self.visitor.prefetch, self.clock)
        self._outages = Outages(self.frontier, self.site, self.course)
        seeds = SeedReader(self.frontier, self.site, self.stats, self._pool, self.seeding)
        self._leader = Leader(self.frontier, self.site, self.stats, seeds)

    def stop(self, why: str) -> None:
        """Stops leasing, settles requests in flight, and returns from `run`. Further calls have no effect."""
        self._stop(Interruption(StopReason.ASKED, why))

    async def run(self) -> Ending:
        """Crawls until every URL is settled, a limit is reached, `stop` is called, or another member ends the
        run.

        Raises `StartUnreachable` or `StartForbidden` if no start URL leads to a page.
        """
        self.course.begin()
        with ungrouped():
            while self.course.phase is not Phase.ENDED:
                async with self._pool.running():
                    await self._drive(VISITING)
                await self._return_leases()
                await self._drive(self.STEPS.keys() - VISITING)
        interruption = self.course.interruption
        if interruption is None or self.course.is_cut_short or self.course.previous is Phase.FINISHING:
            return Ending.COMPLETE
        return ENDINGS[interruption.reason]

    async def _drive(self, phases: Container[Phase]) -> None:
        """The main loop: the step of the phase, and what follows from its event, until none of these phases
        is left.
        """
        while (phase := self.course.phase) in phases:
            try:
                event = await self.STEPS[phase](self)
                if event is not None:
                    await self._enter(after(phase, event))
            except LeadershipLost:
                log.warning("another member leads the run now; going on as a follower")
                self._leader.seeds.cancel()
                await self._enter(after(self.course.phase, Event.LOST))

    async def _enter(self, phase: Phase) -> None:
        self.course.enter(phase)
        await self._leader.enter(phase)

    async def _return_leases(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.frontier.release(self._pool.leases)
            await self.frontier.reopen(self._outages.failed)
        self._pool.clear()

    # -- the steps of the phases -------------------------------------------------------------------------

    async def _open(self) -> Event:
        """Taking over from a leader that died is the same as resuming its run."""
        if self._is_stopping():
            return Event.STOPPED
        return await self._take_leadership() or Event.FOLLOWS

    async def _take_leadership(self) -> Event | None:
        if not await self.frontier.take_leadership():
            return None
        return Event.COMPLETE if await self._leader.is_complete() else Event.LEADS

    async def _follow(self) -> Event | None:
        """Visits what the leader releases."""
        if not self._is_stopping() and self._pool.is_empty:
            await self._look_whether_over()
        if self.course.is_stopping:
            return Event.STOPPED
        batch = await self._lease(None)
        await self._settle(await self._gather(batch.wait))
        return await self._take_leadership() if batch.leads and not self._is_stopping() else None

    async def _look_whether_over(self) -> None:
        self.exit = await self.frontier.read(reads.ExitOfRun())
        if self.exit is not None:
            self._stop(Interruption(StopReason.OVER, "another member ended the run"))

    async def _lead(self) -> Event | None:
        """Visits what is due; the leader says how it goes on once nothing is left."""
        if self._is_stopping():
            return Event.STOPPED
        batch = await self._lease(self._leader.depth)
        if not batch.leads:
            raise LeadershipLost("another member leads the run")
        if self.course.is_stopping:
            return Event.STOPPED
        if batch.finished and self._pool.is_empty and not self._leader.seeds.is_reading:
            return await self._leader.settled(self.course.phase)
        await self._note_waits(batch)
        if batch.rests and self.course.phase is Phase.CRAWLING and await self._leader.release():
            return None
        await self._settle(await self._gather(batch.wait))
        await self._leader.look_around(self._visits.requested)
        return None

    async def _note_waits(self, batch: Batch) -> None:
        """Says what is waited for, if all open work waits."""
        waits = await self.frontier.read(reads.Waits()) if batch.rests else ()
        if self.stats.waits(waits):
            first = waits[0]
            until = datetime.fromtimestamp(first.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            log.info(
                "nothing is due; the crawl waits",
                host=first.origin,
                until=until,
                pages=first.pages,
                hosts=len(waits),
            )

    async def _drain(self) -> Event | None:
        """Settles the pages in flight."""
        if self._pool.is_empty or self.course.time_in_phase > GRACE:
            await self._leader.seeds.end(GRACE - self.course.time_in_phase)
            interruption = self.course.interruption
            if interruption and interruption.reason.is_limit:
                await self.frontier.interrupt(interruption)
            return Event.QUIET
        self._pool.clear_wake()
        await self._settle(await self._gather(LOOK))
        return None

    async def _finish(self) -> Event:
        await self._leader.finish()
        return Event.DONE

    async def _wait(self) -> Event | None:
        """Waits for the leader, unless this member was told to stop."""
        if self._has_ending(StopReason.OVER):
            return Event.DONE
        if await self.frontier.take_leadership():
            return Event.LEADS
        self.exit = await self.frontier.read(reads.ExitOfRun())
        if self._has_ending(StopReason.ASKED):
            return Event.DONE
        if self.exit is not None:
            self._stop(Interruption(StopReason.OVER, self.stats.stopping or ""))
            return Event.DONE
        await anyio.sleep(FOLLOW)
        return None

    async def _close(self) -> Event:
        await self._leader.keep_failing_pages()
        interruption = self.course.interruption
        if interruption and interruption.reason.is_limit and await self.frontier.close_early():
            await self._leader.finish()
            self.course.is_cut_short = True
            return Event.DONE
        if not self._has_ending(StopReason.ASKED):
            self.course.is_stalled = not await self._leader.has_progressed()
        return Event.DONE

    # -- leasing and settling ----------------------------------------------------------------------------

    async def _lease(self, depth: int | None) -> Batch:
        self._pool.clear_wake()
        most, seeds = self.limits.max_pages, self._leader.seeds
        room = self._pool.room(None if most is None else most - self._visits.requested)
        if room <= 0:
            seeds.note_leased(None)
            return Batch()
        asked = time.monotonic()
        batch = await self.frontier.lease(room, depth)
        if self.frontier.is_remote:  # a file is slow only where the machine is, and more leases cost then
            self._pool.note_answer(time.monotonic() - asked, full=len(batch.leases) >= room)
        if batch.voids_numbers:
            self.site.candidates.forget()
        if batch.interruption:
            self._be_interrupted(batch.interruption)
        if batch.leases:
            await self.site.starts.recall()
            await self.site.missing.recall(anew=not batch.leads)
            await self.site.scripted.recall(anew=not batch.leads)
        seeds.note_leased(batch)
        self._pool.add(batch.leases)
        return batch

    def _be_interrupted(self, interruption: Interruption) -> None:
        """Stops as another member did. If hosts only fail, pages that failed here are visited again later,
        too.
        """
        if not interruption.reason.is_limit:
            self._outages.note_down()
        self._stop(interruption)

    async def _gather(self, wait: float | None) -> Sequence[Returned]:
        """Results of visits: at least one, or none after `wait` seconds (None: until something happens)."""
        return await self._pool.gather(min(RENEW, self.course.time_left, RENEW if wait is None else wait))

    async def _settle(self, group: Sequence[Returned]) -> None:
        settlements = [item for item in group if isinstance(item, Settlement)]
        if settlements:
            settled = await self.frontier.settle(settlements)
            self.stats.found(settled.new)
            found = (visit for item in settlements for visit in item.found)
            self.site.candidates.learn(found, settled.known)
            for sink in self.sinks:
                await sink.settled(settlements)
        await self._leader.keep_traps()
        await self._hand_back([item for item in group if isinstance(item, Unvisited)])
        for sentence in await self._outages.watch(settlements):
            interruption = Interruption(StopReason.FAILING, sentence)
            await self.frontier.interrupt(interruption)
            self._stop(interruption)
        self._pool.remove(group)

    async def _hand_back(self, unvisited: Sequence[Unvisited]) -> None:
        """Releases unused leases: their URLs are leased again, in this crawl or when the run is resumed."""
        if unvisited:
            reasons = Counter(item.why.value for item in unvisited)
            log.debug("not visited now; leased again later", reasons=dict(reasons))
            await self.frontier.release([item.lease for item in unvisited])

    # -- stopping ----------------------------------------------------------------------------------------

    def _is_stopping(self) -> bool:
        if reason := self.course.reached(self._visits.requested):
            self._stop(Interruption(reason))
        return self.course.is_stopping

    def _has_ending(self, reason: StopReason) -> bool:
        return self.course.interruption is not None and self.course.interruption.reason is reason

    def _stop(self, interruption: Interruption) -> None:
        if self.course.stop(interruption):
            self.site.access.politeness.end()
            self._pool.interrupt()
            self._outages.stop()
            self._leader.seeds.stop()

    # What a member does in each phase.
    STEPS: ClassVar[Mapping[Phase, Step]] = {
        Phase.OPENING: _open,
        Phase.FOLLOWING: _follow,
        Phase.ARRIVING: _lead,
        Phase.SEEDING: _lead,
        Phase.CRAWLING: _lead,
        Phase.DRAINING: _drain,
        Phase.FINISHING: _finish,
        Phase.WAITING: _wait,
        Phase.CLOSING: _close,
    }
