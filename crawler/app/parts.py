"""Opens the parts of a crawl in the main process, in the order in which they need each other.

`compose` has those that a worker process needs, too; `job` says what is done with them.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from crawler.app.compose import access_of, open_visitor, traffic_of
from crawler.app.delivery import folder_of
from crawler.app.input_files import InputFile, started_by_input
from crawler.app.own_folder import own_folder_of
from crawler.app.report import found_before
from crawler.app.seeding import Seeding
from crawler.app.settings_digests import avoids_logout, fingerprint, identity, most_pages, reading, terms
from crawler.app.settings_urls import normaliser, publish_base, starts_of
from crawler.app.state import far_of, is_database, is_file, state_path
from crawler.engine.course import Limits
from crawler.engine.crawl import Crawl
from crawler.engine.reading_log import ReadingLog, SkipCrashing, counted
from crawler.engine.robots import Access
from crawler.engine.site import CrawledSite
from crawler.engine.together import together
from crawler.fetch.politeness import Pacing, Politeness
from crawler.fetch.request_headers import fitting_cookies
from crawler.model.log import log
from crawler.model.note import DEATHS, FOUND_BEFORE, IDENTITY, OUTPUT, PUBLISH_BASE, SETTINGS
from crawler.model.reasons import Why
from crawler.model.reply import Permit
from crawler.model.run import Run
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, Reader, Runs, Sink, Visitor
from crawler.report.stats import Stats
from crawler.report.traffic import Traffic
from crawler.rules.candidates import Candidates
from crawler.rules.judge import Judge
from crawler.rules.logout import ends_session
from crawler.rules.page_rules import PageRules
from crawler.rules.scope import SiteScope
from crawler.rules.traps import Traps
from crawler.settings.load import changed
from crawler.settings.sections import Settings
from crawler.workers.surroundings import Surroundings

if TYPE_CHECKING:
    from crawler.workers.pool import WorkerPool


class Given(Struct, frozen=True):
    """The settings of a job, and what follows from them alone."""

    settings: Settings
    starts: tuple[Url, ...]
    base: PublishBase | None
    inputs: Sequence[InputFile]
    # The start URLs come from --input: none of them has to lead to a page.
    starts_are_input: bool

    @property
    def most_pages(self) -> int | None:
        """How many pages a run may visit."""
        return most_pages(self.settings.scope)

    def stats(self, clock: Callable[[], float]) -> Stats:
        """The counters of a crawl, on the monotonic `clock`."""
        limits, tasks, names = self.settings.scope, self.settings.pace.concurrency, self.settings.state.site
        pages, site = self.most_pages, names[-1] if names else urls.origin(self.starts[0])
        return Stats(clock, max_pages=pages, max_time=limits.max_time, concurrency=tasks, site=site)


class Parts(Struct, frozen=True):
    """What a crawl is made of, besides its state."""

    given: Given
    # As long as the block lasts: then its processes end, and return their memory.
    visiting: Callable[[], AbstractAsyncContextManager[Visitor]]
    fetcher: Fetcher
    judge: Judge
    reader: Reader
    politeness: Politeness
    traps: Traps
    traffic: Traffic | None

    def crawl(
        self, frontier: Frontier, visitor: Visitor, run: Run, stats: Stats, sinks: Sequence[Sink]
    ) -> Crawl:
        """A crawl of the site. The frontier of a partial run counts its pages."""
        settings = self.given.settings
        pace, chosen = settings.pace, settings.scope
        rules, logged_in = PageRules(settings.rules.rule), avoids_logout(settings)
        site = CrawledSite(
            frontier,
            access_of(settings, frontier, self.fetcher, self.politeness, stats.pace),
            Candidates(SiteScope.of(self.given.starts, chosen, rules, logged_in=logged_in), self.traps),
            self.judge,
            self.given.base,
            checks_starts=not self.given.starts_are_input,
        )
        return Crawl(
            frontier,
            site,
            visitor,
            stats,
            Limits(
                pace.concurrency,
                settings.guard.keep_failing,
                self.given.most_pages if run.follows is None else None,
                chosen.max_time,
            ),
            Seeding(settings, frontier, site, self.given.inputs),
            [stats, *sinks],
            frontier.clock,
        )


async def open_given(settings: Settings, stack: AsyncExitStack) -> Given:
    """Opens --input, which may name the start URLs. Raises `ConfigError`."""
    chosen = settings.scope
    inputs = [InputFile(name, normaliser(settings)) for name in dict.fromkeys(chosen.input)]
    for lines in inputs:
        stack.callback(lines.close)
    if inputs and not chosen.start:
        settings = replace(settings, scope=await started_by_input(chosen, inputs))
    starts = starts_of(settings)
    base = publish_base(settings, starts)
    for lines in inputs:
        lines.map_to(normaliser(settings, base=base))
    _check_cookies(settings, starts)
    settings = own_folder_of(settings, starts)
    return Given(settings, starts, base, inputs, starts_are_input=not chosen.start)


def _check_cookies(settings: Settings, starts: Sequence[Url]) -> None:
    path, hosts = settings.http.cookie_file, [urls.host(url) for url in starts]
    if path is not None and not fitting_cookies(path, hosts):
        log.warning(
            "no cookie of cookie-file is for a start host, or all are expired", file=path, hosts=hosts
        )


async def begin_run(frontier: Frontier, given: Given) -> Run:
    """Begins or resumes a run, and notes for other commands how it is published."""
    settings, base = given.settings, given.base
    before = await found_before(frontier)
    run = await frontier.begin(fingerprint(settings, given.starts), reading(settings), terms(settings))
    if run.over is None:
        await together(
            frontier.remember(PUBLISH_BASE, base.base if base else ""),
            frontier.remember(SETTINGS, changed(settings)),
            frontier.remember(IDENTITY, asdict(identity(settings, given.starts))),
            frontier.remember(OUTPUT, folder_of(settings.output)),
            *(() if run.resumed else (frontier.remember(FOUND_BEFORE, before),)),
        )
    return run


@asynccontextmanager
async def open_parts(
    given: Given, plain: Fetcher, frontier: Frontier, stats: Stats, *, crawls: bool
) -> AsyncIterator[Parts]:
    """The parts of a crawl that uses the fetcher `plain`. `crawls`: worker processes may be needed."""
    settings = given.settings
    traps, traffic = Traps(settings.scope.allow_trap), traffic_of(settings)
    async with AsyncExitStack() as stack:
        politeness = Politeness(
            frontier.clock, anyio.sleep, far=far_of(settings), rebook=partial(_another_slot, frontier)
        )
        # A file beside the state names the pages that are being parsed.
        beside = f"{state_path(settings, given.starts[0])}.reading" if is_file(settings) else None
        reading_log = ReadingLog(Path(beside) if beside else None)
        stack.callback(reading_log.close)
        deaths = await _deaths(frontier, reading_log)
        around = Surroundings(
            Pacing(frontier, politeness),
            politeness,
            stats.throttled,
            traps.session,
            given.base,
            traffic,
            frontier.clock,
            reading=reading_log.reading,
            suspect=frontier.suspect,
            permits=lambda fetcher: _Permission(
                access_of(settings, frontier, fetcher, politeness), is_logged_in=avoids_logout(settings)
            ),
        )
        here = await stack.enter_async_context(open_visitor(settings, plain, around))

        @asynccontextmanager
        async def visiting() -> AsyncIterator[Visitor]:
            async with AsyncExitStack() as processes:
                visitor = here.visitor
                if settings.pace.processes > 1 and crawls:
                    pool = _worker_pool(settings, around, politeness)
                    visitor = await processes.enter_async_context(pool.running())
                yield SkipCrashing(visitor, deaths) if deaths or is_database(settings) else visitor

        yield Parts(given, visiting, here.fetcher, here.judge, here.reader, politeness, traps, traffic)


async def _another_slot(frontier: Frontier, origin: str) -> float | None:
    """Another slot for one that was missed, if other members have the next ones."""
    return await frontier.slot(origin) if frontier.is_shared else None


async def _deaths(runs: Runs, reading_log: ReadingLog) -> Mapping[str, int]:
    """How many processes of this run died while parsing a page, by its URL."""
    known = await runs.recall(DEATHS)
    if died := reading_log.died():
        known = counted(known, died)
        await runs.remember(DEATHS, known)
    return known


class _Permission(Struct, frozen=True):
    """Which requests the scripts of rendered pages may make: what robots.txt of any origin allows.

    With a login, requests that would end its session are not made either.
    """

    access: Access
    is_logged_in: bool

    async def __call__(self, url: Url) -> Permit:
        if self.is_logged_in and ends_session(url):
            return Permit(allowed=False, why=Why.LOGOUT)
        return await self.access.permit(url)


def _worker_pool(settings: Settings, around: Surroundings, politeness: Politeness) -> "WorkerPool":
    from crawler.workers.pool import WorkerPool  # noqa: PLC0415 - most crawls have one process

    pace = settings.pace
    if pace.processes > (most := max(1, pace.concurrency // 2)):
        log.warning(
            "processes reduced: each needs two requests in flight (raise concurrency for more)",
            processes=pace.processes,
            used=most,
            concurrency=pace.concurrency,
        )
    return WorkerPool(settings, pace.processes, around, politeness.ended)
