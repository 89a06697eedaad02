"""The composition root: builds a crawl from settings. Only this package names concrete classes.

The command line and library users start from `open_job`. A `Job` crawls one site, and publishes.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec import Struct, field
from msgspec.structs import replace

from crawler.app.compose import access_of, open_fetcher
from crawler.app.delivery import deliver, folder_of
from crawler.app.features import writing
from crawler.app.link_texts import read_link_texts
from crawler.app.own_folder import own_folder_of
from crawler.app.pages import OutcomeStream, Page, pages_of
from crawler.app.parts import Parts, begin_run, open_given, open_parts
from crawler.app.preflight import preflight
from crawler.app.publication import doubts_of, final_site, in_published_order, result_of, with_examples
from crawler.app.robots_line import ask_published
from crawler.app.site_health import SiteCheck, Stop
from crawler.app.state import AWAY, is_database, new_file, opened, remove_files
from crawler.engine.crawl import Crawl, Ending
from crawler.engine.robots import Access
from crawler.engine.together import together
from crawler.errors import (
    SUCCESS,
    ConfigError,
    CrawlerError,
    Exit,
    FrontierError,
    PublishRefused,
    StartUnreachable,
    ungrouped,
    worded,
)
from crawler.model.facts import Entry
from crawler.model.note import PUBLISHED_BY, ROBOTS_LINE, WRITER
from crawler.model.phases import Phase
from crawler.model.rows import PublicationRow
from crawler.model.run import Run, SessionEnd, StopReason
from crawler.model.settlement import Settlement
from crawler.model.survey import NONE_VANISHED, Balance
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, Sink, reads
from crawler.report.stats import Stats
from crawler.rules.incomplete_site import SiteDoubts
from crawler.settings.load import in_python
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings
from crawler.sitemap.publish import staging
from crawler.sitemap.publish.guard import suspects_failures
from crawler.sitemap.publish.publish import CrawlToPublish, publish, rebased
from crawler.sitemap.publish.published import Published

if TYPE_CHECKING:
    from pathlib import Path

    from crawler.app.submission import Submitted
    from crawler.fetch.routes import Transport
    from crawler.model.external import ExternalCheck

OF_THE_RUN: Final = frozenset(
    {Exit.OK, Exit.UNREACHABLE, Exit.ROBOTS, Exit.GUARD, Exit.PARTIAL, Exit.FINDINGS}
)
"""Exit codes that are the same for all members. With others, only one of them leaves."""


class Job(Struct, eq=False):
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
    submitted: "Submitted | None" = None
    _crawl: Crawl | None = None
    _stopped: Stop = field(default_factory=Stop)
    _refused: str | None = None
    _is_ended: bool = False
    _is_concluded: bool = False

    async def crawl(self) -> Ending:
        """Crawls until all is settled, a limit is reached, `stop` is called, or another member ends the run.

        May be called again after `publish` raised `LeadershipLost`: this member then follows. A job whose run
        is published cannot crawl again. Raises `StartUnreachable`, `StartForbidden`, `FrontierError`,
        `ConfigError`.
        """
        if self._is_concluded:
            raise ConfigError("The run of this job is published: open another job for the next crawl.")
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
        async with self.parts.visiting() as visitor:
            self._crawl = self.parts.crawl(self.frontier, visitor, self.run, self.stats, self.sinks)
            if self._stopped.why:
                self._crawl.stop(self._stopped.why)
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
        self.sinks.append(OutcomeStream(send))
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._crawl_into, send)
                with receive:
                    yield receive
                self.stop("the caller stopped reading outcomes")

    async def _crawl_into(self, send: MemoryObjectSendStream[Settlement]) -> None:
        async with send:
            await self.crawl()

    def pages(self) -> AsyncIterator[Page]:
        """The URLs of the run that are settled, by URL, from the state: all of them after `crawl`.

        Raises `FrontierError`, as does `entries`.
        """
        return pages_of(self.frontier, self.run.number)

    async def entries(self) -> AsyncIterator[Entry]:
        """The entries that `publish` writes, in its order."""
        base = await self._published_base()
        async for chunk in in_published_order(self.frontier, base, self.settings):
            for entry in rebased(chunk, base):
                yield entry

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
        self._stopped(why)
        if self._crawl:
            self._crawl.stop(why)

    async def publish(self) -> Published:
        """Writes the sitemap of the listed pages. A complete run is then closed: the next begins anew.

        It is also closed if the guard refuses it. If writing failed, the next call publishes the run without
        crawling again. Raises `PublishRefused`, `OutputError`, `FrontierError`, `LeadershipLost`, and, if it
        is stopped, `Interrupted`.
        """
        self._check_crawled()
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
        # Once more: another site may have been published into the default folder since the start.
        self.settings = own_folder_of(self.settings, self.starts)
        try:
            published = await self._write(base, balance, complete=complete)
        except PublishRefused as refusal:
            named = await with_examples(self.frontier, refusal)
            self._refused = str(named)
            if over:
                await self._conclude(refused=True)
            raise named from None
        await self._note_published(published, base)
        if over:
            await self._conclude()
        return published

    def _check_crawled(self) -> None:
        if self.ending is None and not self.run.complete:
            raise ConfigError("Nothing was crawled yet: call crawl() first, or read all of outcomes().")

    async def _conclude(self, *, refused: bool = False) -> None:
        await self.frontier.conclude(refused=refused)
        self._is_concluded = True

    async def _write(self, base: PublishBase, balance: Balance, *, complete: bool) -> Published:
        settings, frontier = self.settings, self.frontier
        self.doubts = await doubts_of(frontier, self.starts)
        check = SiteCheck(frontier, self._access(), self.parts.judge, self._stopped)
        vanished = await check.vanished() if complete else NONE_VANISHED
        result = await result_of(frontier, base, balance, self.doubts, vanished, complete=complete)
        if suspects_failures(settings.guard, result):
            result = replace(result, health=await check.health())
        return await publish(
            in_published_order(frontier, base, settings),
            settings,
            CrawlToPublish(
                base.site,
                result,
                str(self.run.number),
                await self._writer(),
                [one.namespace for one in writing(settings) if one.namespace],
            ),
            last_check=frontier.check_leadership,
            waits=self._waits_for_folder,
        )

    def _access(self) -> Access:
        return access_of(self.settings, self.frontier, self.parts.fetcher, self.parts.politeness)

    async def _note_published(self, published: Published, base: PublishBase) -> None:
        """Notes in the state what was published, and what robots.txt says of it."""
        _, last = await together(
            self.frontier.remember(ROBOTS_LINE, published.robots_line),
            self.frontier.read(reads.LastPublication()),
        )
        if not self._stopped.why:
            await ask_published(self.frontier, self.parts.fetcher, published.robots_line, base.site)
        if self.settings.guard.dry_run:
            return
        is_same = all(file.unchanged for file in published.files)
        await self.frontier.mark_published(
            PublicationRow(
                published.urls,
                len(published.files),
                sum(file.size for file in published.files),
                *published.changes,
                base=base.base,
                folder=folder_of(self.settings.output),
                files_changed=last and last.files_changed if is_same else time.time(),
                delivered=last.delivered if last else None,
            )
        )
        await self.frontier.remember(PUBLISHED_BY, self.frontier.name)

    def _waits_for_folder(self, waited: float) -> bool:
        """A member that is frozen while it publishes keeps the folder locked: others wait for it."""
        is_patient = is_database(self.settings) and not self._stopped.why
        return waited < AWAY if is_patient else staging.is_patient(waited)

    async def deliver(self, published: Published) -> bool:
        """Runs `publish_command` if files changed since it succeeded; whether it ran.

        Raises `OutputError`.
        """
        return await deliver(self.frontier, self.settings.output, published)

    async def submit(self) -> "Submitted":
        """Tells search engines which pages changed since the last submission. The run must be published.

        Raises `ConfigError`, `NotSubmitted`, `FrontierError`.
        """
        from crawler.app.submission import submit  # noqa: PLC0415 - few crawls submit

        self._check_crawled()
        base = await self._published_base()
        self.submitted = await submit(self.frontier, self.settings, base, on_counted=self._is_submitting)
        return self.submitted

    def _is_submitting(self, submitted: "Submitted") -> None:
        self.submitted = submitted  # also of use if it fails half-way

    async def _writer(self) -> str:
        if not is_object_url(self.settings.output.output):
            return ""
        return await self.frontier.amend(WRITER, lambda known: known or token_hex(8))

    async def check_links(self) -> "ExternalCheck | None":
        """Asks the URLs on other sites, and files of pages, whether they answer. Best called after `publish`.

        None if the settings do not ask for it, or too little of the site is known. Raises `FrontierError`.
        """
        is_limited = self.stop_reason is StopReason.MAX_PAGES
        if not self.settings.external.check_external or not (self.ending is Ending.COMPLETE or is_limited):
            return None
        from crawler.app.external import check_links  # noqa: PLC0415 - few crawls check them
        from crawler.app.file_check import check_files  # noqa: PLC0415 - as above

        run = self.run.number
        checked = await check_links(self.frontier, self.settings, run, self._time_left())
        await check_files(self.frontier, self.settings, self._access(), run, self._time_left())
        return checked

    async def read_link_texts(self) -> int:
        """Reads pages with broken links again, for what these say, after `check_links`. How many."""
        if self.ending is not Ending.COMPLETE or self.stop_reason:
            return 0
        run, asked, left = self.run.number, self.stats.exchanges, self._time_left()
        return await read_link_texts(self.frontier, self.parts, self._access(), run, asked, left)

    def _time_left(self) -> float:
        most = self.settings.scope.max_time
        return float("inf") if most is None else max(0.0, most - self.stats.elapsed)

    async def _published_base(self) -> PublishBase:
        site = await final_site(self.frontier, self.starts[0])
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


@asynccontextmanager
async def open_job(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sinks: Sequence[Sink] = (),
    transport: "Transport | None" = None,
) -> AsyncIterator[Job]:
    """Opens everything that a crawl needs, and closes it on exit.

    `transport`: any `httpx.AsyncBaseTransport` in place of the default one, or a function that takes the
    default one and returns one that wraps it (docs/use/library.md says which guarantees then still hold). It
    is closed with the job. Raises `ConfigError`, `FrontierError` or `StateBusy` before the first request.
    """
    with worded(in_python):
        chosen = preflight(settings)
        async with open_checked_job(chosen, clock=clock, sinks=sinks, transport=transport) as job:
            yield job


@asynccontextmanager
async def open_checked_job(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sinks: Sequence[Sink] = (),
    transport: "Transport | None" = None,
    left: Callable[[], float] | None = None,
) -> AsyncIterator[Job]:
    """As `open_job`, for what `preflight` returned; errors name flags. `left`: see `opened`."""
    async with AsyncExitStack() as stack:
        given = await open_given(settings, stack)
        stats = given.stats(clock)
        # Opened before the state, so that wrong settings raise before it is changed.
        plain = await stack.enter_async_context(open_fetcher(given.settings, transport))
        begun = new_file(given.settings, given.starts[0])
        stack.callback(remove_files, unused := list["Path"]())
        frontier = await opened(given.settings, given.starts[0], left)
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
            if begun and isinstance(error, StartUnreachable):
                unused.append(begun)
            raise
        await job.end_as_it_is()
