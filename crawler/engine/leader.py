"""What the leader of a run does besides visiting pages: it walks the site level by level, and ends the run.

It is asked when a phase begins, and when nothing is due or leased in it any more. Leasing, visiting and
settling are the same for every member, and stand in `crawl`. A method may raise `LeadershipLost`.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from crawler.engine.course import Counters
from crawler.engine.finish import dating, ignored_parts, soft_404s
from crawler.engine.finish.answers import PROBES
from crawler.engine.seed_reader import SeedReader
from crawler.engine.site import CrawledSite
from crawler.engine.together import together
from crawler.model.log import log
from crawler.model.note import ANSWERED, REDIRECTED
from crawler.model.phases import Event, Phase
from crawler.model.reasons import SeedKind
from crawler.model.seed import Seed
from crawler.model.trap import Trap
from crawler.model.visit import Visit
from crawler.ports import Frontier, SiteRule, reads
from crawler.rules import traps

FIRST_LOOK = 100  # requests after which folders are looked at
LATER = 2  # times as many until the next look


class Leader(Struct, eq=False):
    """The leader of one crawl.

    Start URLs come first, then seeds, then everything; with a depth limit, one level after the other. URLs in
    patterns that may be crawler traps are released in rounds, each after the previous one is settled.
    """

    frontier: Frontier
    site: CrawledSite
    stats: Counters
    seeds: SeedReader
    # Visits are leased down to this depth; None: all.
    depth: int | None = 0
    # Of a partial run, nothing is released before the seeds are read, and levels do not matter.
    _is_partial: bool = False
    _before: int = 0  # URLs that were settled before this member led
    _next_look: int = FIRST_LOOK  # after so many requests

    @property
    def deepest(self) -> int | None:
        """The depth limit."""
        return self.site.candidates.scope.max_depth

    async def enter(self, phase: Phase) -> None:
        if phase is Phase.ARRIVING:
            read = self.frontier.read
            run, self._before, _ = await together(
                read(reads.NewestRun()), read(reads.SettledSoFar()), self.site.starts.recall()
            )
            self._is_partial, self.depth = run is not None and run.follows is not None, 0
            starts = [Visit(url) for url in self.site.candidates.scope.starts]
            self.stats.found(await self.frontier.add(starts, Seed(SeedKind.START)))
        elif phase is Phase.SEEDING:
            self.depth = None if self.deepest is None else 0
            self.seeds.start()
        elif phase is Phase.CRAWLING:
            self.depth = self.deepest if self._is_partial or self.deepest is None else 0

    async def settled(self, phase: Phase) -> Event | None:
        """Nothing is due or leased: the phase is over, or something was released, and it goes on."""
        if phase is Phase.SEEDING:
            # All seeds are read, so that later decisions do not depend on their order.
            self.seeds.check()
            return Event.SETTLED
        if await self.site.scripted.choose():
            return None
        if phase is Phase.ARRIVING:
            if self.site.starts.have_moved and await self.frontier.arrive(self.site.starts.ends):
                return None
            await self._leave_starts()
            return Event.SETTLED
        goes_on = await self._descend() or await self.release() or await self._ask_places()
        return None if goes_on or await self._shorten() else Event.SETTLED

    async def release(self) -> int:
        """Releases the next held URLs, if there are any; while others wait, those of other hosts."""
        if self.site.random.have_no_end:
            await self._unlist_visits()
        found = await self.frontier.advance(self.depth)
        while found.doubtful:
            report(found.closed)
            found = await self.frontier.advance(self.depth, await self.site.values.ask(found.doubtful))
        report(found.closed)
        self.stats.found(found.released)
        return found.released

    async def look_around(self, requested: int) -> None:
        """Asks doubtful folders what they answer to anything, more seldom as the crawl goes on. Soon when a
        run is resumed: it may be stopped again before the next look.
        """
        requested += self._before
        if requested >= self._next_look:
            self._next_look = int(LATER * requested)
            await self._ask_places()
            await self._unlist_visits()

    async def _ask_places(self) -> int:
        site = self.site
        if self._is_partial or site.candidates.traps.allows("soft-404"):
            return 0
        return await site.missing.ask_places(site.starts.ends)

    async def _unlist_visits(self) -> None:
        """Pages that have another address for each visit count as one content each."""
        if self.site.judge.applies("duplicate") and not self._is_partial:
            await self.site.random.unlist_visits(self.site.starts.urls)

    async def _leave_starts(self) -> None:
        if self.site.checks_starts:
            await self.site.starts.check()
        if self.site.starts.have_moved:
            await self._check_filtered_again()
        if self.site.candidates.traps.allows("soft-404"):
            return
        if self._is_partial:
            await self.site.missing.recall_published()
        elif (await self.frontier.read(reads.RunBalance())).open:
            await self.site.missing.ask(self.site.starts.ends)

    async def _descend(self) -> bool:
        """Begins the next level within the limit, if there is one."""
        if self.depth == self.deepest:
            return False
        next_level = await self.frontier.read(reads.LeastDepth())
        self.depth = self.deepest if next_level is None else next_level
        return next_level is not None

    async def _shorten(self) -> bool:
        """Queues what is within the depth limit because its page turned out to be less deep than was assumed;
        whether there is any.

        Which URLs are within the limit must not depend on timing.
        """
        if not await self.frontier.shorten(traps.DEEPEST):
            return False
        await self._check_filtered_again()
        return True

    async def _check_filtered_again(self) -> None:
        """After a start URL redirected to another host, or a shorter path was found."""
        after = ""
        while filtered := await self.frontier.read(reads.Filtered(after)):
            after = filtered[-1].url
            visits = await self.site.checked_again(filtered)
            self.stats.found(await self.frontier.add([visit for visit in visits if visit.filtered is None]))
            self.stats.found(await self.frontier.requeue(visits))

    # -- the end --------------------------------------------------------------------------------------------

    async def is_complete(self) -> bool:
        """Whether everything is settled and the rules were applied, by a leader before this one."""
        run = await self.frontier.read(reads.NewestRun())
        return run is not None and run.complete

    async def finish(self) -> None:
        """Applies the rules over all pages, and completes the run."""
        if await self.is_complete():
            return
        judge = self.site.judge
        # First: a canonical that fails for a night, and stays listed, is no dead one.
        await self.frontier.apply(SiteRule.KEEP_FAILING)
        if judge.applies("canonical"):
            scope = self.site.candidates.scope
            await self.frontier.ignore_canonicals(lambda url: scope.unlisted(url) is None)
        if await self.site.missing.has_places():
            await self.frontier.apply(SiteRule.UNREACHED)
        await self._unlist_repeats()
        await dating.date(self.frontier, judge.date_sources)
        await self.keep_failing_pages()
        await self.frontier.finish()

    async def _unlist_repeats(self) -> None:
        """Answers to nothing, and pages at several URLs: what the site itself shows to be one comes last."""
        site, starts = self.site, self.site.starts.urls
        lists_once = site.judge.applies("duplicate")
        if self._is_partial:
            await self.frontier.apply(SiteRule.RELIST)
            if not await self.frontier.read(reads.HasNews()):
                return
        site.questions_left = await self.frontier.read(reads.QuestionsLeft())
        if lists_once:
            await self.frontier.apply(SiteRule.DUPLICATES)
        render = site.render if site.judge.renders else None
        answers = await soft_404s.answers_of(self.frontier, site.judge, starts, site.fetch, render)
        if not site.candidates.traps.allows("soft-404"):
            shown = await self.frontier.recall(REDIRECTED)
            if render:
                leads = partial(site.target_of, by_scripts=True)
                shown = {**shown, **await soft_404s.led_by_scripts(self.frontier, starts, leads)}
            await soft_404s.unlist_redirected(self.frontier, starts, shown)
            empty = await soft_404s.unlist(self.frontier, site.candidates.traps, starts, answers)
            await soft_404s.unlist_named_errors(self.frontier, site.candidates.traps, starts, answers.fresh())
            await soft_404s.unlist_empty_days(self.frontier, answers.fresh(), empty)
        if lists_once:
            await ignored_parts.unlist(self.frontier, answers.fresh(PROBES // 2), starts, site.random)
        await site.remember_rendered()

    async def keep_failing_pages(self) -> None:
        """Keeps pages that fail, and the traps that were found while the rules were applied."""
        await self.frontier.apply(SiteRule.KEEP_FAILING)
        await self.keep_traps()

    async def keep_traps(self) -> None:
        """Stores and logs new traps, such as those recognised by the text of a URL."""
        traps = self.site.candidates.traps.unreported()
        await self.frontier.store_traps(traps)
        report(traps)

    async def has_progressed(self) -> bool:
        """Whether more pages have responded than when this run last ended unfinished."""
        outcomes = (await self.frontier.read(reads.RunBalance())).outcomes
        answered = sum(count for code, count in outcomes.items() if not code.startswith(("failed:", "kept:")))
        before = await self.frontier.recall(ANSWERED)
        await self.frontier.remember(ANSWERED, answered)
        return answered > before


def report(traps: Sequence[Trap]) -> None:
    """Logs traps."""
    for trap in traps:
        log.warning(
            "crawler trap found; its URLs are skipped",
            kind=trap.kind,
            pattern=trap.pattern,
            example=trap.example,
        )
