"""The composition root: builds a crawl from settings. Only this package names concrete classes.

The command line and library users start from `open_job`. A `Job` owns the frontier of one site, crawls and publishes.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from crawler.app.compose import access_of, check_extras, open_fetcher, open_visitor, traffic_of
from crawler.app.delivery import deliver
from crawler.app.external import check as check_external
from crawler.app.external import check_links
from crawler.app.history import doubts_of, final_start, in_published_order
from crawler.app.images import site_wide_images, writes_images
from crawler.app.rendering import permission
from crawler.app.resume import avoids_logout, fingerprint, reading, terms
from crawler.app.robots_line import ask_published
from crawler.app.seeding import Lines, Seeding, started_by_input
from crawler.app.starts import normaliser, publish_base, sitemap_of, starts_of
from crawler.app.state import AWAY, far_of, is_database, is_file, opened, state_path
from crawler.app.submission import Submitted, submit
from crawler.engine.course import Limits
from crawler.engine.crawl import Crawl, Ending
from crawler.engine.reading_log import ReadingLog, SkipCrashing, counted
from crawler.engine.site import CrawledSite
from crawler.errors import SUCCESS, CrawlerError, Exit, FrontierError, PublishRefused, first_of
from crawler.fetch import politeness
from crawler.fetch.request_headers import fitting_cookies
from crawler.fetch.routes import Transport
from crawler.model.external import ExternalCheck
from crawler.model.note import DEATHS, OUTPUT, PUBLISH_BASE, PUBLISHED_BY, ROBOTS_LINE, SETTINGS, WRITER
from crawler.model.phases import Phase
from crawler.model.rows import PublicationRow
from crawler.model.run import Run, SessionEnd, StopReason
from crawler.model.settlement import Settlement
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, Politeness, Runs, Sink, Visitor
from crawler.report.stats import Stats
from crawler.report.traffic import Traffic
from crawler.rules.candidates import Candidates
from crawler.rules.doubts import Doubts
from crawler.rules.judge import Judge
from crawler.rules.page_rules import PageRules
from crawler.rules.scope import Scope
from crawler.rules.traps import Traps
from crawler.settings.load import checked
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings
from crawler.settings.shown import changed
from crawler.sitemap.publish import staging
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import STDOUT, publish
from crawler.sitemap.publish.published import Published
from crawler.workers.pool import Coordinator, WorkerPool

OF_THE_RUN: Final = frozenset(
    {Exit.OK, Exit.UNREACHABLE, Exit.ROBOTS, Exit.GUARD, Exit.PARTIAL, Exit.FINDINGS}
)
"""Exit codes that are the same for all members. With others, only one of them leaves."""

log = logging.getLogger("crawler")


def _reading_log(settings: Settings, start: Url) -> Path | None:
    """The file beside the state that names the pages that are being parsed."""
    return Path(f"{state_path(settings, start)}.reading") if is_file(settings) else None


async def _deaths(runs: Runs, reading: ReadingLog) -> Mapping[str, int]:
    """How many processes of this run died while parsing a page, by its URL."""
    known = await runs.recall(DEATHS)
    if died := reading.died():
        known = counted(known, died)
        await runs.remember(DEATHS, known)
    return known


def _absolute(output: str) -> str:
    if output == STDOUT:
        return ""
    return output if is_object_url(output) else str(Path(output).absolute())


@dataclass
class Job:
    """The crawl of one site: `crawl` (or `outcomes`), then `publish`. Made by `open_job`."""

    settings: Settings
    starts: tuple[Url, ...]
    frontier: Frontier
    run: Run
    stats: Stats
    fetcher: Fetcher
    turn: Politeness
    judge: Judge
    visitor: Visitor
    traps: Traps
    base: PublishBase | None = None
    inputs: Sequence[Lines] = ()
    sinks: list[Sink] = field(default_factory=list)
    traffic: Traffic | None = None  # counted for the metrics
    checks_starts: bool = True
    ending: Ending | None = None
    doubts: Doubts = field(default_factory=Doubts)
    submitted: Submitted | None = None
    _crawl: Crawl | None = None
    _stopped: str | None = None
    _refused: str | None = None
    _is_ended: bool = False

    async def crawl(self) -> Ending:
        """Crawls until every URL is settled, a limit is reached, `stop` is called, or another member ends the run.

        May be called again after `publish` raised `LeadershipLost`: this member then follows the one that leads.

        Raises `StartUnreachable`, `StartForbidden`, `FrontierError`.
        """
        if self.run.over is not None:
            self.ending = Ending.OVER
        elif self.run.complete and await self.frontier.take_leadership():
            self.ending = Ending.COMPLETE
        else:
            self.ending = await self._crawl_rest()
        return self.ending

    async def _crawl_rest(self) -> Ending:
        balance = await self.frontier.balance()
        filtered = await self.frontier.filtered()  # `Stats` counts visited URLs only
        self.stats.resume(balance.discovered - filtered, sum(balance.outcomes.values()) - filtered)
        self._crawl = self._assemble()
        if self._stopped:
            self._crawl.stop(self._stopped)
        return await self._crawl.run()

    @property
    def over(self) -> Exit | None:
        """The exit code of the run, if another member ended it."""
        if self.run.over is not None:
            return Exit(self.run.over)
        return self._crawl.exit if self._crawl else None

    @asynccontextmanager
    async def outcomes(self) -> AsyncIterator[MemoryObjectReceiveStream[Settlement]]:
        """Crawls, and streams each outcome once it is durable. Leaving the block early stops the crawl."""
        send, receive = anyio.create_memory_object_stream[Settlement](256)
        self.sinks.append(_Stream(send))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._crawl_into, send)
                with receive:
                    yield receive
                self.stop("the caller stopped reading outcomes")
        except BaseExceptionGroup as group:
            raise first_of(group) from group

    async def _crawl_into(self, send: MemoryObjectSendStream[Settlement]) -> None:
        async with send:
            await self.crawl()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the crawl ended unfinished."""
        interruption = self._crawl.course.interruption if self._crawl else None
        return interruption.reason if interruption else None

    @property
    def stalled(self) -> bool:
        """Whether the crawl ended unfinished again, and no more pages responded than the last time."""
        return self._crawl is not None and self._crawl.stalled

    def stop(self, why: str) -> None:
        """Finishes requests in flight; `crawl` then returns. The run can be resumed."""
        self._stopped = why
        if self._crawl:
            self._crawl.stop(why)

    async def publish(self) -> Published:
        """Writes the sitemap of the listed pages. Raises `PublishRefused`, `OutputError`, `FrontierError`, `LeadershipLost`.

        A complete run is closed once it is published, or refused by the guard: the next crawl begins a new one. If writing
        failed, the next call publishes the run without crawling again.
        """
        self.stats.phase = Phase.PUBLISHING
        balance = await self.frontier.balance()
        if not balance.balanced:
            raise FrontierError(
                f"The state does not balance: {balance.discovered:,} URLs were discovered, "
                f"{balance.open + sum(balance.outcomes.values()):,} are accounted for. It is damaged: start over with --fresh."
            )
        complete = self.ending is Ending.COMPLETE or self.run.complete
        over = complete and not self.settings.guard.dry_run
        try:
            base = await self._published_base()
            self.doubts = await doubts_of(self.frontier, self.starts)
            site_wide = await site_wide_images(self.frontier) if writes_images(self.settings) else ()
            published = await publish(
                in_published_order(self.frontier, base, self.settings, site_wide),
                self.settings.output,
                self.settings.dates,
                self.settings.guard,
                base.site,
                crawled=CrawlResult(
                    complete, balance.outcomes, await self.frontier.published_outcomes(), self.doubts.doubt
                ),
                run_id=str(self.run.number),
                writer=await self._writer(),
                last_check=self.frontier.check_leadership,
                waits=self._waits_for_folder,
            )
        except PublishRefused as refusal:
            self._refused = str(refusal)
            if over:
                await self.frontier.conclude(refused=True)
            raise
        published = replace(published, site_wide=len(site_wide))
        await self.frontier.remember(ROBOTS_LINE, published.robots_line)
        if not self._stopped:
            await ask_published(self.frontier, self.fetcher, published.robots_line, base.site)
        if not self.settings.guard.dry_run:
            last = await self.frontier.last_publication()
            await self.frontier.mark_published(
                PublicationRow(
                    published.urls,
                    len(published.files),
                    sum(file.size for file in published.files),
                    base=base.base,
                    folder=_absolute(self.settings.output.output),
                    files_changed=_files_changed(published, last),
                    delivered=last.delivered if last else None,
                )
            )
            await self.frontier.remember(PUBLISHED_BY, self.frontier.name)
        if over:
            await self.frontier.conclude()
        return published

    def _waits_for_folder(self, waited: float) -> bool:
        """A member that is frozen while it publishes keeps the folder locked: others wait for it as for the database."""
        is_patient = is_database(self.settings) and not self._stopped
        return waited < AWAY if is_patient else staging.is_patient(waited)

    async def deliver(self, published: Published) -> bool:
        """Runs `publish_command`, if files changed since it last succeeded; whether it was run. Raises `OutputError`."""
        return await deliver(self.frontier, self.settings.output, published)

    async def submit(self) -> Submitted:
        """Tells search engines which pages changed since the last submission, after a complete run was published.

        Raises `ConfigError`, `NotSubmitted`, `FrontierError`.
        """
        base = await self._published_base()
        self.submitted = await submit(self.frontier, self.settings, base, on_counted=self._is_submitting)
        return self.submitted

    async def _writer(self) -> str:
        if not is_object_url(self.settings.output.output):
            return ""
        return await self.frontier.amend(WRITER, lambda known: known or token_hex(8))

    async def check_links(self) -> ExternalCheck | None:
        """Asks the URLs on other sites that pages link to whether they answer; call it after `crawl`, best after `publish`.

        None if the settings do not ask for it, or too little of the site is known. Raises `FrontierError`.
        """
        scope = self.settings.scope
        is_limited = self.stop_reason is StopReason.MAX_PAGES
        if not self.settings.external.check_external or not (self.ending is Ending.COMPLETE or is_limited):
            return None
        left = float("inf") if scope.max_time is None else max(0.0, scope.max_time - self.stats.elapsed)
        return await check_links(self.frontier, self.settings, self.run.number, left)

    def _is_submitting(self, submitted: Submitted) -> None:
        self.submitted = submitted  # also of use if it fails half-way

    async def _published_base(self) -> PublishBase:
        site = urls.origin(await final_start(self.frontier, self.starts[0]))
        return PublishBase(self.settings.output.publish_base or site, site)

    async def end(self, code: Exit) -> None:
        """Records in the state that this session ended, and how. A second call only changes the exit code."""
        stats = self.stats
        goes_on = self.ending is Ending.STOPPED or code not in OF_THE_RUN
        did = (0.0, 0, 0) if self._is_ended else (round(stats.elapsed, 1), stats.exchanges, stats.bytes)
        self._is_ended = True
        succeeded = time.time() if code in SUCCESS else self.run.succeeded
        await self.frontier.end_session(SessionEnd(int(code), *did, self._refused, succeeded, goes_on))

    async def _end_as_it_is(self) -> None:
        if not self._is_ended:
            refused = Exit.GUARD if self._refused else None
            await self.end(refused or (Exit.OK if self.ending is Ending.COMPLETE else Exit.PARTIAL))

    def _assemble(self) -> Crawl:
        settings = self.settings
        access = access_of(settings, self.frontier, self.fetcher, self.turn, self.stats.pace)
        scope = Scope.of(
            self.starts, settings.scope, PageRules(settings.rules.rule), logged_in=avoids_logout(settings)
        )
        site = CrawledSite(
            self.frontier,
            access,
            Candidates(scope, self.traps),
            self.judge,
            self.base,
            checks_starts=self.checks_starts,
        )
        return Crawl(
            self.frontier,
            site,
            self.visitor,
            self.stats,
            Limits(
                settings.pace.concurrency,
                settings.guard.keep_failing,
                settings.scope.max_pages,
                settings.scope.max_time,
            ),
            Seeding(settings, self.frontier, site, self.inputs),
            [self.stats, *self.sinks],
            self.frontier.clock,
        )


async def _another_slot(frontier: Frontier, origin: str) -> float | None:
    """Another slot for one that was missed, if other members have the next ones."""
    return await frontier.slot(origin) if frontier.is_shared else None


def _files_changed(published: Published, last: PublicationRow | None) -> float | None:
    if any(not file.unchanged for file in published.files):
        return time.time()
    return last.files_changed if last else None


def _check_cookies(settings: Settings, starts: Sequence[Url]) -> None:
    path, hosts = settings.http.cookie_file, [urls.host(url) for url in starts]
    if path is not None and not fitting_cookies(path, hosts):
        log.warning(
            "no cookie of --cookie-file is for a start host, or all are expired",
            extra={"fields": {"file": path, "hosts": hosts}},
        )


class _Stream:
    """A `Sink` that passes settlements to an iterator; it does not matter if the consumer stops."""

    def __init__(self, send: MemoryObjectSendStream[Settlement]) -> None:
        self._send = send

    async def settled(self, group: Sequence[Settlement]) -> None:
        try:
            for settlement in group:
                await self._send.send(settlement)
        except anyio.BrokenResourceError:
            pass


@asynccontextmanager
async def open_job(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sinks: Sequence[Sink] = (),
    transport: Transport | None = None,
) -> AsyncIterator[Job]:
    """Opens everything that a crawl needs, and closes it on exit.

    `transport`: any `httpx.AsyncBaseTransport` in place of the default one, or a function that takes the default one and
    returns one that wraps it (docs/use/library.md says which guarantees then still hold). It is closed with the job.

    Raises `ConfigError`, `FrontierError` or `StateBusy` before the first request.
    """
    settings = checked(settings)
    check_extras(settings)
    check_external(settings)
    sitemap_of(settings)  # raises early for a wrong --seed-sitemaps
    scope, pace = settings.scope, settings.pace
    stats = Stats(clock, max_pages=scope.max_pages, max_time=scope.max_time, concurrency=pace.concurrency)
    async with AsyncExitStack() as stack:
        inputs = [Lines(name, normaliser(settings)) for name in dict.fromkeys(scope.input)]
        for lines in inputs:
            stack.callback(lines.close)
        if inputs and not scope.start:
            settings = replace(settings, scope=await started_by_input(scope, inputs))
        starts = starts_of(settings)
        base = publish_base(settings, starts)
        for lines in inputs:
            lines.normalise = normaliser(settings, base=base)
        traps = Traps(settings.scope.allow_trap)
        _check_cookies(settings, starts)
        # Open before the state, so that wrong settings raise before it is changed.
        plain = await stack.enter_async_context(open_fetcher(settings, transport))
        frontier = await opened(settings, starts[0])
        stack.push_async_callback(frontier.close)
        run = await frontier.begin(fingerprint(settings, starts), reading(settings), terms(settings))
        turn = politeness.Politeness(
            frontier.clock, anyio.sleep, far=far_of(settings), rebook=partial(_another_slot, frontier)
        )
        if run.over is None:
            await frontier.remember(PUBLISH_BASE, base.base if base else "")
            await frontier.remember(SETTINGS, changed(settings))
            await frontier.remember(OUTPUT, _absolute(settings.output.output))
        pacer = politeness.Pacing(frontier, turn)
        log_of_reading = ReadingLog(_reading_log(settings, starts[0]))
        stack.callback(log_of_reading.close)
        traffic = traffic_of(settings)
        deaths = await _deaths(frontier, log_of_reading)
        here = await stack.enter_async_context(
            open_visitor(
                settings,
                plain,
                pacer,
                turn,
                stats.throttled,
                traps.session,
                base,
                traffic=traffic,
                reading=log_of_reading.reading,
                clock=frontier.clock,
                suspect=frontier.suspect,
                permits=lambda fetcher: permission(settings, access_of(settings, frontier, fetcher, turn)),
            )
        )
        visitor = here.visitor
        if pace.processes > (most := max(1, pace.concurrency // 2)):
            log.warning(
                "--processes reduced: each process needs two requests in flight (raise --concurrency for more)",
                extra={
                    "fields": {"processes": pace.processes, "used": most, "concurrency": pace.concurrency}
                },
            )
        if settings.pace.processes > 1 and not run.complete:
            home = Coordinator(
                pacer,
                turn,
                stats.throttled,
                traps.session,
                turn.ended,
                base,
                traffic,
                lambda: frontier.clock() - time.time(),
            )
            visitor = await stack.enter_async_context(
                WorkerPool(settings, settings.pace.processes, home).running()
            )
        if deaths or is_database(settings):
            visitor = SkipCrashing(visitor, deaths)
        job = Job(
            settings,
            starts,
            frontier,
            run,
            stats,
            here.fetcher,
            turn,
            here.judge,
            visitor,
            traps,
            base,
            inputs,
            list(sinks),
            traffic,
            checks_starts=bool(scope.start),
        )
        try:
            yield job
        except CrawlerError as error:
            with suppress(FrontierError):  # the first error counts
                await job.end(error.exit)
            raise
        await job._end_as_it_is()  # noqa: SLF001 - a method of this module
