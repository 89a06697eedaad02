"""The engine: the main loop that leases pages, has them visited, and settles them.

    lease -> permitted? -> fetch -> judge -> settle

`pool` has the tasks, and `visit` takes each URL through these steps. Only the main loop writes to the frontier, in groups:
results that arrive while a group is written form the next one. After a crash, leased pages are visited again; no URL is lost. This module
depends on rules, the model and ports only, not on concrete classes or settings.
"""

import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

import anyio

from crawler.engine import start_check
from crawler.engine.aliases import Aliases
from crawler.engine.counters import Counters
from crawler.engine.finish import dating, duplicates, trap_listing
from crawler.engine.pool import Pool, Returned
from crawler.engine.robots import FirstContact
from crawler.engine.start_urls import StartUrls
from crawler.engine.stored_links import StoredLinks
from crawler.engine.visit import Visits
from crawler.errors import Exit, LeadershipLost, StartForbidden, StartUnreachable, first_of
from crawler.model.note import ANSWERED
from crawler.model.reasons import SeedKind
from crawler.model.reply import Reply, Response
from crawler.model.run import Interruption
from crawler.model.seed import Seed
from crawler.model.settlement import Settlement, Unvisited
from crawler.model.trap import Trap
from crawler.model.visit import Visit
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, origin
from crawler.ports import Batch, Fetcher, Frontier, Permits, Politeness, Request, Sink, Visitor
from crawler.rules import trap_patterns
from crawler.rules.candidates import Candidates
from crawler.rules.circuit_breaker import CircuitBreaker
from crawler.rules.judge import Judge

GRACE: Final = 8.0  # seconds that pages in flight have to end after a stop
PROBE: Final = (
    60.0  # seconds in which a page must respond before the site counts as down, plus the crawl delay
)
FOLLOW: Final = 1.0  # seconds between two looks at what the leader does
RENEW: Final = 5.0  # seconds at most between two checks of the clock while nothing happens

Seeding: TypeAlias = Callable[["Crawl"], AsyncGenerator[tuple[Seed, Sequence[Url]], None]]

log = logging.getLogger("crawler.crawl")


class Ending(Enum):
    """How a crawl ended."""

    COMPLETE = "complete"
    LIMIT = "limit"  # --max-pages or --max-time
    STOPPED = "stopped"  # by a signal or `stop`
    FAILING = "failing"  # every request to the host fails
    OVER = "over"  # another member ended the run; `Crawl.exit` is its exit code


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a crawl. Times in seconds."""

    concurrency: int = 16
    delay: float = 0.0  # between slots of one host
    max_wait: float = 600.0  # the longest Crawl-delay that is obeyed
    keep_failing: float = 0.0  # how long a failing page is kept with its links
    max_pages: int | None = None
    max_time: float | None = None


@dataclass
class Crawl:
    """One crawl of one site. `run` may be called once."""

    frontier: Frontier
    fetcher: Fetcher
    permits: Permits
    judge: Judge
    candidates: Candidates
    stats: Counters
    turn: Politeness
    visitor: Visitor
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    limits: Limits = Limits()
    sinks: Sequence[Sink] = ()
    seeding: Seeding | None = None
    base: PublishBase | None = None
    checks_starts: bool = True  # at least one start URL must lead to a page
    clock: Callable[[], float] = time.time
    exit: Exit | None = field(init=False, default=None)  # of the run, if another member ended it

    first_contact: FirstContact = field(init=False)
    aliases: Aliases = field(init=False)
    start_urls: StartUrls = field(init=False)
    visits: Visits = field(init=False)
    _pool: Pool = field(init=False)
    _ending: Ending | None = field(init=False, default=None)
    _is_waiting: bool = field(init=False, default=False)  # for the leader to end the run
    _knows_starts: bool = field(init=False, default=False)
    _deadline: float = field(init=False, default=float("inf"))
    _failed: dict[Url, None] = field(init=False, default_factory=dict)  # while the host was down
    _responsive: set[str] = field(
        init=False, default_factory=set
    )  # origins that responded though many pages failed
    stalled: bool = field(
        init=False, default=False
    )  # no more pages responded than when the run last ended unfinished
    _probe: anyio.CancelScope | None = field(init=False, default=None)
    _is_seeding: bool = field(init=False, default=False)
    _seeded: anyio.Event = field(init=False)  # all seeds are read
    _leased: anyio.Event | None = field(init=False, default=None)  # set when pages were leased

    def __post_init__(self) -> None:
        """Creates the parts of the crawl."""
        limits = self.limits
        self.first_contact = FirstContact(
            self.frontier,
            self.permits,
            self.turn,
            self.stats.pace,
            delay=limits.delay,
            max_wait=limits.max_wait,
        )
        self.aliases = Aliases(
            self.frontier,
            self.frontier,
            self.fetcher,
            self.first_contact.permit,
            self.turn,
            self.candidates,
        )
        self.start_urls = StartUrls(self.frontier, self.candidates, self.aliases, self.base)
        self.visits = Visits(
            StoredLinks(self.frontier),
            self.permits,
            self.first_contact,
            self.candidates,
            self.aliases,
            self.start_urls,
            self.turn,
            self.visitor,
            self.stats,
            limits.concurrency,
            limits.keep_failing,
            lambda: self._ending is not None,
            self.frontier.holds,
        )
        self._pool = Pool(self.visits, limits.concurrency, self.visitor.prefetch, self.clock)

    @property
    def starts(self) -> Sequence[Url]:
        """The start URLs and the targets of their redirects."""
        return self.start_urls.urls

    def stop(self, why: str) -> None:
        """Stops leasing, finishes and settles requests in flight, and returns from `run`. Further calls have no effect."""
        self._end(Ending.STOPPED, why)

    async def run(self) -> Ending:
        """Crawls until every URL is settled, a limit is reached, `stop` is called, or another member ends the run.

        Raises `StartUnreachable` or `StartForbidden` if no start URL leads to a page.
        """
        if self.limits.max_time is not None:
            self._deadline = self.clock() + self.limits.max_time
        while True:
            try:
                async with self._pool.running():
                    while await self._follow() and not await self._crawl_as_leader():
                        _log_lost_leadership()
                await self._return_leases()
                return await self._finish()
            except LeadershipLost:
                _log_lost_leadership()
            except BaseExceptionGroup as group:
                raise first_of(group) from group

    async def _return_leases(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.frontier.release(self._pool.leases)
            await self.frontier.reopen(list(self._failed))
        self._pool.clear()

    async def _finish(self) -> Ending:
        """Ends the run. Raises `LeadershipLost`."""
        if self._ending is None:
            if not await self._is_complete():
                await self._apply_rules()
                await self._keep_failing_pages()
                await self.frontier.finish()
            return Ending.COMPLETE
        if await self._ends_the_run():
            await self._keep_failing_pages()
            if self._ending is not Ending.STOPPED:
                self.stalled = not await self._has_progressed()
        return self._ending

    async def _keep_failing_pages(self) -> None:
        await self.frontier.keep_failing()
        await self._keep_traps()

    async def _ends_the_run(self) -> bool:
        """Whether this member leads when the crawl is stopped. If not, it waits for the leader, unless it was told to stop."""
        self._is_waiting = True
        if self._ending is Ending.LIMIT:
            await self.frontier.interrupt(Interruption(self.stats.stopping or ""))
        while self._ending is not Ending.OVER and not await self.frontier.take_leadership():
            self.exit = await self.frontier.exit_of_run()
            if self._ending is Ending.STOPPED:
                return False
            if self.exit is not None:
                self._ending = Ending.OVER
            else:
                await anyio.sleep(FOLLOW)
        self._is_waiting = False
        return self._ending is not Ending.OVER

    async def _is_complete(self) -> bool:
        """Whether a leader before this one found everything settled and applied the rules: only publication is left."""
        run = await self.frontier.run()
        return run is not None and run.complete

    async def _apply_rules(self) -> None:
        """The rules over all pages."""
        await duplicates.soft_404s(
            self.frontier, self.judge, self.candidates.traps, self.starts, self._fetch_now
        )
        await duplicates.duplicates(self.frontier, self.judge)
        await trap_listing.unlist_repeats(self.frontier)
        await dating.date(self.frontier, self.judge.date_sources)

    async def _has_progressed(self) -> bool:
        """Whether more pages have responded than when this run last ended unfinished."""
        outcomes = (await self.frontier.balance()).outcomes
        answered = sum(count for code, count in outcomes.items() if not code.startswith(("failed:", "kept:")))
        before = await self.frontier.recall(ANSWERED)
        await self.frontier.remember(ANSWERED, answered)
        return answered > before

    async def _fetch_now(self, url: Url) -> Reply | None:
        """Fetches a page outside the queue, if robots.txt allows it."""
        if not (await self.first_contact.permit(url)).allowed:
            return None
        await self.turn(origin(url), await self.frontier.slot(origin(url)))
        return await self.fetcher.fetch(Request(url, wants_body=self.judge.wants_body))

    async def _keep_traps(self) -> None:
        """Stores and logs new traps, such as those recognised by the text of a URL."""
        traps = self.candidates.traps.unreported()
        await self.frontier.store_traps(traps)
        _report(traps)

    # -- the main loop ------------------------------------------------------------------------------------

    async def _check_starts(self) -> None:
        """Raises if no start URL leads to a page. The run is then closed: the next crawl begins a new one."""
        try:
            await start_check.check(self.frontier, self.frontier, self.candidates.scope.starts)
        except (StartUnreachable, StartForbidden):
            await self.frontier.conclude()
            raise

    async def _follow(self) -> bool:
        """Visits what the leader releases. True once this member leads; False when its part of the crawl is over.

        Taking over from a leader that died is the same as resuming its run.
        """
        group: Sequence[Returned] = ()
        stopped_at = float("inf")
        batch = Batch()
        while self._is_ending() or not (batch.leads and await self.frontier.take_leadership()):
            self.stats.phase = "following"
            await self._settle(group)
            if self._ending is None and self._pool.is_empty:
                await self._look_whether_over()
            if self._ending:
                stopped_at = min(stopped_at, self.clock())
                if self._pool.is_empty or self.clock() - stopped_at > GRACE:
                    return False
            self._pool.rest()
            batch = Batch() if self._ending else await self._lease(None)
            group = await self._gather(0.5 if self._ending else batch.wait)
        await self._settle(group)
        return True

    async def _look_whether_over(self) -> None:
        self.exit = await self.frontier.exit_of_run()
        if self.exit is not None:
            self._end(Ending.OVER, "another member ended the run")

    async def _crawl_as_leader(self) -> bool:
        """Walks the site. False if the leadership was lost: pages in flight are settled by `_follow`."""
        try:
            if not await self._is_complete():
                await self._crawl_all()
        except LeadershipLost:
            return False
        except BaseExceptionGroup as group:
            if not isinstance(first_of(group), LeadershipLost):
                raise
            return False
        finally:
            self._is_seeding = False
        return True

    async def _crawl_all(self) -> None:
        """Crawls start URLs first, then seeds, then everything; with a depth limit, one level after the other.

        URLs in patterns that may be crawler traps are released in rounds, each after the previous one is settled.
        """
        self.stats.phase = "arriving"
        await self._recall_starts()
        starts = [Visit(url) for url in self.candidates.scope.starts]
        self.stats.found(await self.frontier.add(starts, Seed(SeedKind.START)))
        await self._rounds(depth=0)
        if self._ending:
            return
        if self.checks_starts:
            await self._check_starts()
        if self.start_urls.have_moved:
            await self._recheck_filtered()
        await self._seed()
        if self._ending:
            return
        self.stats.phase = "crawling"
        # Finish a level before the next begins: which URLs are within the limit must not depend on timing.
        deepest = self.candidates.scope.max_depth
        for depth in (None,) if deepest is None else range(deepest + 1):
            await self._rounds(depth=depth)
            if self._ending or not (await self.frontier.balance()).open:
                break
        while not self._ending and await self.frontier.shorten(trap_patterns.DEEPEST):
            await self._recheck_filtered()
            await self._rounds(depth=deepest)

    async def _recheck_filtered(self) -> None:
        """Checks filtered URLs again, after a start URL redirected to another host or a shorter path was found."""
        after = ""
        while filtered := await self.frontier.list_filtered(after):
            after = filtered[-1].url
            await self.aliases.check(visit.url for visit in filtered)
            ours = [visit._replace(url=self.candidates.scope.ours(visit.url)) for visit in filtered]
            visits = [self.candidates.visit(*visit[:4]) for visit in ours]
            self.stats.found(await self.frontier.add([visit for visit in visits if visit.filtered is None]))
            self.stats.found(await self.frontier.requeue(visits))

    async def _rounds(self, *, depth: int | None) -> None:
        """Visits what is due, then releases held URLs round by round until none are left."""
        released = 1
        while released:
            await self._drain(depth=depth)
            if self._ending:
                return
            answer = await self.frontier.advance(depth)
            _report(answer.closed)
            released = answer.released
            self.stats.found(released)

    async def _drain(self, *, depth: int | None) -> None:
        """Leases and settles until nothing is due or leased."""
        group: Sequence[Returned] = ()
        stopped_at: float | None = None
        while True:
            await self._settle(group)
            self._pool.rest()
            batch = Batch() if self._is_ending() else await self._lease(depth)
            if not batch.leads:
                raise LeadershipLost("another member leads the run")
            if self._ending:
                stopped_at = stopped_at or self.clock()
                if self._pool.is_empty or self.clock() - stopped_at > GRACE:
                    return
            elif batch.finished and self._pool.is_empty and not self._is_seeding:
                return
            group = await self._gather(0.5 if self._ending else batch.wait)

    async def _lease(self, depth: int | None) -> Batch:
        most = self.limits.max_pages
        room = self._pool.room(None if most is None else most - self.visits.requested)
        if room <= 0:
            if self._leased:
                self._leased.set()
            return Batch()
        batch = await self.frontier.lease(room, depth)
        if batch.forgets:
            self.candidates.forget()
        if batch.interruption:
            self._be_interrupted(batch.interruption)
        if batch.leases:
            await self._recall_starts()
        if self._leased and (batch.leases or batch.is_idle):
            self._leased.set()
        self._pool.add(batch.leases)
        return batch

    def _be_interrupted(self, interruption: Interruption) -> None:
        """Stops as another member did. If hosts only fail, pages that failed here are visited again later, too."""
        if not interruption.is_limit:
            for site in {origin(url) for url in self.starts}:
                self._failed.update(dict.fromkeys(self.circuit_breaker.recent(site)))
        self._end(Ending.LIMIT if interruption.is_limit else Ending.FAILING, interruption.why)

    async def _recall_starts(self) -> None:
        """Restores what is known about the start URLs: before the walk, and before a follower visits its first page."""
        if not self._knows_starts:
            self._knows_starts = True
            await self.start_urls.recall()

    async def _gather(self, wait: float | None) -> Sequence[Returned]:
        """Results of visits: at least one, or none after `wait` seconds (None: as long as nothing happens)."""
        # After the crawl has ended, the deadline no longer matters.
        deadline = float("inf") if self._ending else self._deadline
        return await self._pool.gather(min(RENEW, deadline - self.clock(), RENEW if wait is None else wait))

    async def _settle(self, group: Sequence[Returned]) -> None:
        settlements = [item for item in group if isinstance(item, Settlement)]
        if settlements:
            settled = await self.frontier.settle(settlements)
            self.stats.found(settled.new)
            self.candidates.learn((visit for item in settlements for visit in item.found), settled.numbers)
            for sink in self.sinks:
                await sink.settled(settlements)
        await self._keep_traps()
        await self._hand_back([item for item in group if isinstance(item, Unvisited)])
        await self._watch(settlements)
        self._pool.remove(group)

    async def _hand_back(self, unvisited: Sequence[Unvisited]) -> None:
        """Releases unused leases: their URLs are leased again, in this crawl or when the run is resumed."""
        if unvisited:
            reasons = Counter(item.why.value for item in unvisited)
            log.debug("not visited now; leased again later", extra={"fields": {"reasons": dict(reasons)}})
            await self.frontier.release([item.lease for item in unvisited])

    async def _watch(self, settlements: Sequence[Settlement]) -> None:
        """Ends the crawl if a host is down. The pages that failed meanwhile are fetched again when the run is resumed."""
        sites = {origin(url) for url in self.starts}
        for settlement in settlements:
            url = settlement.lease.visit.url
            row = self.circuit_breaker.note(url, settlement.verdict) if origin(url) in sites else None
            if row and not self._ending and await self._still_responds(origin(url)):
                self.circuit_breaker.clear(origin(url))
            elif row:
                self._failed.update(dict.fromkeys(row))
                why = f"every request to {origin(url)} fails"
                await self.frontier.interrupt(Interruption(why, is_limit=False))
                self._end(Ending.FAILING, why)

    async def _still_responds(self, site: str) -> bool:
        """Whether a page that responded earlier in this run still does, so that one broken section does not end the run."""
        page = self.circuit_breaker.last_good(site) or await self.frontier.last_answered(site)
        reply = None
        left = min(PROBE + 2 * self.first_contact.slowest, max(0.0, self._deadline - self.clock()))
        with anyio.move_on_after(left) as self._probe:
            reply = await self._fetch_now(page) if page else None
        self._probe = None
        responds = isinstance(reply, Response) and reply.status < 400
        if responds and site not in self._responsive:
            self._responsive.add(site)
            fields = {"origin": site, "requested": page}
            log.warning("many pages in a row fail, but the site still responds", extra={"fields": fields})
        return responds

    def _is_ending(self) -> bool:
        if self._ending is None and self.clock() >= self._deadline:
            self._end(Ending.LIMIT, "--max-time")
        full = self.limits.max_pages is not None and self.visits.requested >= self.limits.max_pages
        if self._ending is None and full:
            self._end(Ending.LIMIT, "--max-pages")
        return self._ending is not None

    def _end(self, ending: Ending, why: str) -> None:
        if self._ending is None or (self._is_waiting and ending is Ending.STOPPED):
            self._ending = ending
            self.stats.stopping = why
            self.turn.end()
            self._pool.interrupt()
            if self._probe:
                self._probe.cancel()
            if self._leased:
                self._leased.set()

    # -- seeds --------------------------------------------------------------------------------------------

    async def _seed(self) -> None:
        """Reads seeds (sitemaps and --input) while pages are visited; with a depth limit, only those of the first level.

        All seeds are read when this returns, so that later decisions do not depend on the order.
        """
        if self.seeding is None:
            return
        self.stats.phase = "seeds"
        self._is_seeding, self._seeded = True, anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_seeds, self.seeding)
            await self._drain(depth=None if self.candidates.scope.max_depth is None else 0)
            if self._is_seeding:  # when the crawl ends, the open sitemap is read completely, so that each session makes progress
                with anyio.move_on_after(GRACE):
                    await self._seeded.wait()
            tasks.cancel_scope.cancel()

    async def _read_seeds(self, seeding: Seeding) -> None:
        async with aclosing(seeding(self)) as groups:
            async for seed, urls in groups:
                await self.aliases.check(urls)
                scope = self.candidates.scope
                visits = [self.candidates.visit(scope.ours(url), 0, None) for url in urls]
                self.stats.found(await self.frontier.add(visits, seed))
                self._pool.wake()
        self._is_seeding = False
        self._seeded.set()
        self._pool.wake()

    async def after_pages(self) -> None:
        """Waits until pages were leased or none are due; otherwise sitemaps would use all slots of a slow host.

        Does not return once the crawl ends, so that no further sitemap is fetched.
        """
        if not self._ending:
            self._leased = anyio.Event()
            self._pool.wake()
            await self._leased.wait()
        if self._ending:
            self._seeded.set()
            await anyio.sleep_forever()

    async def on_site(self, urls: Sequence[Url]) -> Sequence[Url]:
        """The URLs that are on a host of the site, in any folder."""
        await self.aliases.check(urls)
        return [url for url in urls if self.candidates.scope.on_site(url)]


def _log_lost_leadership() -> None:
    log.warning("another member leads the run now; going on as a follower")


def _report(traps: Sequence[Trap]) -> None:
    for trap in traps:
        fields = {"kind": trap.kind, "pattern": trap.pattern, "example": trap.example, "flag": trap.flag}
        log.warning("crawler trap found; its URLs are skipped", extra={"fields": fields})
