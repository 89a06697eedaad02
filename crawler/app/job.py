"""The composition root: builds a crawl from settings. Only this package names concrete classes.

The command line and library users start from `open_job`. A `Job` crawls one site, and publishes.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from crawler.app.compose import open_fetcher
from crawler.app.delivery import deliver
from crawler.app.external import check_links
from crawler.app.features import writing
from crawler.app.history import doubts_of, final_start, in_published_order
from crawler.app.parts import Parts, begin_run, folder_of, open_given, open_parts
from crawler.app.preflight import preflight
from crawler.app.robots_line import ask_published
from crawler.app.state import AWAY, is_database, opened
from crawler.app.submission import Submitted, submit
from crawler.engine.crawl import Crawl, Ending
from crawler.errors import SUCCESS, CrawlerError, Exit, FrontierError, PublishRefused, ungrouped
from crawler.fetch.routes import Transport
from crawler.model.external import ExternalCheck
from crawler.model.note import PUBLISHED_BY, ROBOTS_LINE, WRITER
from crawler.model.phases import Phase
from crawler.model.rows import PublicationRow
from crawler.model.run import Run, SessionEnd, StopReason
from crawler.model.settlement import Settlement
from crawler.model.survey import Balance
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, Sink, reads
from crawler.report.stats import Stats
from crawler.report.traffic import Traffic
from crawler.rules.doubts import SiteDoubts
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings
from crawler.sitemap.publish import staging
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import CrawlToPublish, publish
from crawler.sitemap.publish.published import Published

OF_THE_RUN: Final = frozenset(
    {Exit.OK, Exit.UNREACHABLE, Exit.ROBOTS, Exit.GUARD, Exit.PARTIAL, Exit.FINDINGS}
)
"""Exit codes that are the same for all members. With others, only one of them leaves."""

log = logging.getLogger("crawler")


@dataclass
class Job:
    """The crawl of one site: `crawl` (or `outcomes`), then `publish`. Made by `open_job`."""

    settings: Settings
    starts: tuple[Url, ...]
    frontier: Frontier
    run: Run
    stats: Stats
    parts: Parts
    sinks: list[Sink] = field(default_factory=list)
    ending: Ending | None = None
    doubts: SiteDoubts = field(default_factory=SiteDoubts)
    submitted: Submitted | None = None
    _crawl: Crawl | None = None
    _stopped: str | None = None
    _refused: str | None = None
    _is_ended: bool = False

    async def crawl(self) -> Ending:
        """Crawls until all is settled, a limit is reached, `stop` is called, or another member ends the run.

        May be called again after `publish` raised `LeadershipLost`: this member then follows.

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
        balance = await self.frontier.read(reads.RunBalance())
        filtered = balance.filtered  # `Stats` counts visited URLs only
        self.stats.resume(balance.discovered - filtered, sum(balance.outcomes.values()) - filtered)
        self._crawl = self.parts.crawl(self.frontier, self.stats, self.sinks)
        if self._stopped:
            self._crawl.stop(self._stopped)
        return await self._crawl.run()

    @property
    def traffic(self) -> Traffic | None:
        """The requests, counted for the metrics."""
        return self.parts.traffic

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
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._crawl_into, send)
                with receive:
                    yield receive
                self.stop("the caller stopped reading outcomes")

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
        return self._crawl is not None and self._crawl.course.is_stalled

    def stop(self, why: str) -> None:
        """Finishes requests in flight; `crawl` then returns. The run can be resumed."""
        self._stopped = why
        if self._crawl:
            self._crawl.stop(why)

    async def publish(self) -> Published:
        """Writes the sitemap of the listed pages. A complete run is then closed: the next begins anew.

        It is also closed if the guard refuses it. If writing failed, the next call publishes the run without
        crawling again. Raises `PublishRefused`, `OutputError`, `FrontierError`, `LeadershipLost`.
        """
        self.stats.phase = Phase.PUBLISHING
        balance = await self.frontier.read(reads.RunBalance())
        if not balance.balanced:
            raise FrontierError(
                f"The state does not balance: {balance.discovered:,} URLs were discovered, "
                f"{balance.open + sum(balance.outcomes.values()):,} are accounted for. "
                "It is damaged: start over with --fresh."
            )
        complete = self.ending is Ending.COMPLETE or self.run.complete
        over = complete and not self.settings.guard.dry_run
        base = await self._published_base()
        try:
            published = await self._write(base, balance, complete=complete)
        except PublishRefused as refusal:
            self._refused = str(refusal)
            if over:
                await self.frontier.conclude(refused=True)
            raise
        await self._note_published(published, base)
        if over:
            await self.frontier.conclude()
        return published

    async def _write(self, base: PublishBase, balance: Balance, *, complete: bool) -> Published:
        settings, frontier = self.settings, self.frontier
        self.doubts = await doubts_of(frontier, self.starts)
        before = await frontier.read(reads.PublishedOutcomes())
        return await publish(
            in_published_order(frontier, base, settings),
            settings,
            CrawlToPublish(
                base.site,
                CrawlResult(complete, balance.outcomes, before, self.doubts.doubt),
                str(self.run.number),
                await self._writer(),
                [feature.namespace for feature in writing(settings)],
            ),
            last_check=frontier.check_leadership,
            waits=self._waits_for_folder,
        )

    async def _note_published(self, published: Published, base: PublishBase) -> None:
        """Notes in the state what was published, and what robots.txt says of it."""
        await self.frontier.remember(ROBOTS_LINE, published.robots_line)
        if not self._stopped:
            await ask_published(self.frontier, self.parts.fetcher, published.robots_line, base.site)
        if self.settings.guard.dry_run:
            return
        last = await self.frontier.read(reads.LastPublication())
        await self.frontier.mark_published(
            PublicationRow(
                published.urls,
                len(published.files),
                sum(file.size for file in published.files),
                base=base.base,
                folder=folder_of(self.settings.output.output),
                files_changed=_files_changed(published, last),
                delivered=last.delivered if last else None,
            )
        )
        await self.frontier.remember(PUBLISHED_BY, self.frontier.name)

    def _waits_for_folder(self, waited: float) -> bool:
        """A member that is frozen while it publishes keeps the folder locked: others wait for it."""
        is_patient = is_database(self.settings) and not self._stopped
        return waited < AWAY if is_patient else staging.is_patient(waited)

    async def deliver(self, published: Published) -> bool:
        """Runs `publish_command` if files changed since it succeeded; whether it ran.

        Raises `OutputError`.
        """
        return await deliver(self.frontier, self.settings.output, published)

    async def submit(self) -> Submitted:
        """Tells search engines which pages changed since the last submission. The run must be published.

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
        """Asks the URLs on other sites that pages link to whether they answer. Best called after `publish`.

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

    async def end_as_it_is(self) -> None:
        """As `end`, with the exit code that follows from the crawl, unless it was called."""
        if not self._is_ended:
            refused = Exit.GUARD if self._refused else None
            await self.end(refused or (Exit.OK if self.ending is Ending.COMPLETE else Exit.PARTIAL))


def _files_changed(published: Published, last: PublicationRow | None) -> float | None:
    if any(not file.unchanged for file in published.files):
        return time.time()
    return last.files_changed if last else None


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

    `transport`: any `httpx.AsyncBaseTransport` in place of the default one, or a function that takes the
    default one and returns one that wraps it (docs/use/library.md says which guarantees then still hold). It
    is closed with the job.

    Raises `ConfigError`, `FrontierError` or `StateBusy` before the first request.
    """
    async with open_checked_job(preflight(settings), clock=clock, sinks=sinks, transport=transport) as job:
        yield job


@asynccontextmanager
async def open_checked_job(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sinks: Sequence[Sink] = (),
    transport: Transport | None = None,
) -> AsyncIterator[Job]:
    """As `open_job`, for settings that `preflight` returned."""
    limits, pace = settings.scope, settings.pace
    stats = Stats(clock, max_pages=limits.max_pages, max_time=limits.max_time, concurrency=pace.concurrency)
    async with AsyncExitStack() as stack:
        given = await open_given(settings, stack)
        # Opened before the state, so that wrong settings raise before it is changed.
        plain = await stack.enter_async_context(open_fetcher(given.settings, transport))
        frontier = await opened(given.settings, given.starts[0])
        stack.push_async_callback(frontier.close)
        run = await begin_run(frontier, given)
        parts = await stack.enter_async_context(
            open_parts(given, plain, frontier, stats, crawls=not run.complete)
        )
        job = Job(given.settings, given.starts, frontier, run, stats, parts, list(sinks))
        try:
            yield job
        except CrawlerError as error:
            with suppress(FrontierError):  # the first error counts
                await job.end(error.exit)
            raise
        await job.end_as_it_is()
