"""The composition root: settings in, a crawl that is ready to run out. The only room that names concrete classes.

`open_job` is what the command line and library users stand on. A `Job` holds the frontier of one site, crawls,
and publishes.
"""

import hashlib
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from crawler import fetch, urls
from crawler.crawl import Crawl, Ending, Limits
from crawler.doubts import Doubts, Landing, doubts
from crawler.errors import ConfigError, FrontierError, PublishRefused, first_of
from crawler.fetch.identity import has_login
from crawler.frontier import SqliteFrontier
from crawler.frontier.files import remove_state
from crawler.frontier.ledger import FAR
from crawler.judge import Judge
from crawler.layers import checked
from crawler.model import Entry, Moved, Seed, Settlement
from crawler.places import is_web
from crawler.placing import Placing
from crawler.ports import Fetcher, Run, Sink, Turn, Turns, Visitor
from crawler.publish import STDOUT, Published, publish
from crawler.publish_base import PublishBase
from crawler.reading_log import ReadingLog, Sparing, counted
from crawler.report.tally import Tally
from crawler.robots import Robots
from crawler.scope import Scope
from crawler.seeds import Lines, Seeds, started_by_input
from crawler.settings import DEFAULTS, Settings
from crawler.sitemap.guard import Crawled
from crawler.traps import Traps
from crawler.urls import Url
from crawler.visiting import (
    check_extras,
    normaliser,
    open_fetcher,
    open_visitor,
    product_token,
    publish_base,
    sitemap_of,
    starts_of,
)
from crawler.workers import Home, Team

log = logging.getLogger("crawler")

MEMORY: Final = ":memory:"
PUBLISH_BASE: Final = "publish-base"  # as a word of the run
OUTPUT: Final = "output"  # the same
DEATHS: Final = "deaths"  # of processes, by the page that was being read: the same, as JSON
FOLDER: Final = Path(".sitemap-crawler")
READ: Final = 2  # counts up when more is read from a page: what an earlier version learned is then read anew


def state_path(settings: Settings, start: Url | None) -> str:
    """Where the state of a site lives. Raises `ConfigError` when neither a state nor a start is known."""
    if settings.state.state:
        return settings.state.state
    if start is None:
        raise ConfigError("No state is named: give --state, or the URL that was crawled.")
    return str(FOLDER / (urls.netloc(start).replace(":", "_").strip("[]") + ".db"))


def fingerprint(settings: Settings, starts: Iterable[Url]) -> str:
    """Stands for the settings that decide what is found and listed; pace, limits and output do not.

    An unfinished run is gone on with only under the same.
    """
    scope = asdict(settings.scope)
    for name in ("start", "max_pages", "max_time"):
        del scope[name]
    deciding = [
        sorted(starts),
        scope,
        asdict(settings.urls),
        asdict(settings.verdicts),
        settings.dates.lastmod,
        settings.http.user_agent,
        settings.http.auth_env,
        settings.pace.ignore_robots,
        settings.output.publish_base,
        has_login(settings.http),
    ]
    return _digest(deciding)


def reading(settings: Settings) -> str:
    """Stands for the settings that decide what is read from a page: under others, every page is read anew.

    The scope is not among them: a page that has not changed is held against it again, with its links.
    """
    http = settings.http
    return _digest([
        READ,
        asdict(settings.urls), asdict(settings.verdicts), settings.dates.lastmod, http.user_agent, http.auth_env, http.header,
        http.cookie_file, settings.scope.allow_trap, settings.output.publish_base,
    ])  # fmt: skip


def _digest(deciding: object) -> str:
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:32]


def open_frontier(settings: Settings, start: Url | None, *, read_only: bool = False) -> SqliteFrontier:
    """The frontier of a site. Raises `FrontierError`, `StateBusy` or `ConfigError`."""
    path = state_path(settings, start)
    if "://" in path:
        raise ConfigError(f"--state: {path.partition(':')[0]} is not supported; name a file.")
    begins_anew = settings.state.fresh and path != MEMORY and not read_only
    if begins_anew and (kept := remove_state(path)):
        log.warning("the damaged state is kept under another name", extra={"fields": {"file": str(kept)}})
    gap = 1 / settings.pace.rate if settings.pace.rate else 0.0
    return SqliteFrontier(
        path,
        gap=gap,
        keep_runs=settings.state.keep_runs,
        keep_failing=settings.guard.keep_failing,
        far=far_of(settings),
        clock=time.time,
        read_only=read_only,
    )


def _reading_log(settings: Settings, start: Url) -> Path | None:
    """The file beside the state that names the pages that are being read."""
    state = state_path(settings, start)
    return None if state == MEMORY else Path(f"{state}.reading")


async def _deaths(frontier: SqliteFrontier, reading: ReadingLog) -> dict[str, int]:
    """How many processes of this run died while they read a page, by its URL."""
    known: dict[str, int] = json.loads(await frontier.recall(DEATHS) or "{}")
    if died := reading.died():
        known = counted(known, died)
        await frontier.remember(DEATHS, json.dumps(known))
    return known


def far_of(settings: Settings) -> float:
    """Seconds: what is booked farther ahead was booked by another clock."""
    pace = settings.pace
    return max(FAR, 2 * pace.max_wait, 2 / pace.rate if pace.rate else 0.0)


async def home_of(frontier: SqliteFrontier, start: Url) -> Url:
    """A start URL, or where it moved to."""
    for _ in range(100):
        record = await frontier.record(start)
        if record is None or not isinstance(record.outcome, Moved):
            break
        start = record.outcome.to
    return start


async def output_folder(frontier: SqliteFrontier, settings: Settings) -> Path:
    """Where the sitemap lies: as --output says, else as the newest run was told."""
    told = settings.output.output
    return Path((await frontier.recall(OUTPUT) if told == DEFAULTS.output.output else None) or told)


def _absolute(output: str) -> str:
    return "" if output == STDOUT else str(Path(output).absolute())


async def published_as(
    frontier: SqliteFrontier, settings: Settings, start: Url | None = None
) -> PublishBase | None:
    """How crawled URLs are published: by `--publish-base`, else as the newest run was told.

    `start`: None, or one that the state does not know, is the one that the newest run began with. None if there is no run.
    """
    known = start if start and await frontier.record(start) else await frontier.first()
    if known is None:
        return None
    site = urls.origin(await home_of(frontier, known))
    return PublishBase(settings.output.publish_base or await frontier.recall(PUBLISH_BASE) or site, site)


async def in_published_order(frontier: SqliteFrontier, base: PublishBase) -> AsyncIterator[Sequence[Entry]]:
    """What is listed, in the order of the URLs that are published."""
    for first, below in base.ranges():
        async for chunk in frontier.entries(first, below):
            yield chunk


async def doubts_of(frontier: SqliteFrontier, starts: Sequence[Url]) -> Doubts:
    """What there is to doubt of the newest run."""
    landings = []
    for start in starts:
        url = await home_of(frontier, start)
        record = await frontier.record(url)
        landings.append(Landing(url, record.facts.look if record and record.facts else None, url != start))
    return doubts(landings, await frontier.survey(urls.origin(landings[0].url)))


@dataclass
class Job:
    """The crawl of one site: `crawl` (or `outcomes`), then `publish`. Made by `open_job`."""

    settings: Settings
    starts: tuple[Url, ...]
    frontier: SqliteFrontier
    run: Run
    tally: Tally
    fetcher: Fetcher
    turn: Turns
    judge: Judge
    visitor: Visitor
    traps: Traps
    base: PublishBase | None = None
    inputs: Sequence[Lines] = ()
    sinks: list[Sink] = field(default_factory=list)
    checks_starts: bool = True
    ending: Ending | None = None
    doubts: Doubts = field(default_factory=Doubts)
    _crawl: Crawl | None = None
    _stopped: str | None = None

    async def crawl(self) -> Ending:
        """Crawl until the site is known, a limit is met, or `stop`.

        Raises `StartUnreachable`, `StartForbidden`, `FrontierError`.
        """
        if self.run.complete:
            self.ending = Ending.COMPLETE
            return self.ending
        balance = await self.frontier.balance()
        filtered = await self.frontier.filtered()  # the tally counts what is visited
        self.tally.resume(balance.discovered - filtered, sum(balance.outcomes.values()) - filtered)
        self._crawl = self._assemble()
        if self._stopped:
            self._crawl.stop(self._stopped)
        self.ending = await self._crawl.run()
        return self.ending

    @asynccontextmanager
    async def outcomes(self) -> AsyncIterator[MemoryObjectReceiveStream[Settlement]]:
        """Crawl, and see each URL settle once that is durable. Leaving the block early stops the crawl."""
        send, receive = anyio.create_memory_object_stream[Settlement](256)
        self.sinks.append(_Stream(send))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._crawl_into, send)
                with receive:
                    yield receive
                self.stop("nobody looks any more")
        except BaseExceptionGroup as group:
            raise first_of(group) from group

    async def _crawl_into(self, send: MemoryObjectSendStream[Settlement]) -> None:
        async with send:
            await self.crawl()

    @property
    def stalled(self) -> bool:
        """Whether the crawl ended unfinished, and no page more had answered than the last time it did."""
        return self._crawl is not None and self._crawl.stalled

    def stop(self, why: str) -> None:
        """Let what is in flight end; `crawl` then returns. The state can be resumed."""
        self._stopped = why
        if self._crawl:
            self._crawl.stop(why)

    async def publish(self) -> Published:
        """Write the sitemap of what is listed. Raises `PublishRefused`, `OutputError`, `FrontierError`.

        A complete run that was published, or refused by the guard, is over: the next crawl begins a new one. One
        that could not be written is published by the next call, without crawling again.
        """
        self.tally.phase = "publishing"
        balance = await self.frontier.balance()
        if not balance.balanced:
            raise FrontierError(
                f"The state does not balance: {balance.discovered:,} URLs were discovered, "
                f"{balance.open + sum(balance.outcomes.values()):,} are accounted for. It is damaged: begin anew with --fresh."
            )
        complete = self.ending is Ending.COMPLETE or self.run.complete
        over = complete and not self.settings.guard.dry_run
        try:
            site = urls.origin(await home_of(self.frontier, self.starts[0]))
            base = PublishBase(self.settings.output.publish_base or site, site)
            self.doubts = await doubts_of(self.frontier, self.starts)
            published = await publish(
                in_published_order(self.frontier, base),
                self.settings.output,
                self.settings.dates,
                self.settings.guard,
                base.site,
                crawled=Crawled(complete, balance.outcomes, await self.frontier.changed(), self.doubts.doubt),
                run_id=str(self.run.number),
            )
        except PublishRefused:
            if over:
                await self.frontier.conclude(refused=True)
            raise
        if not self.settings.guard.dry_run:
            await self.frontier.mark_published(published.urls)
        if over:
            await self.frontier.conclude()
        return published

    def _assemble(self) -> Crawl:
        settings = self.settings
        pace, agent = settings.pace, product_token(settings.http.user_agent)
        robots = Robots(
            agent,
            self.fetcher,
            self.frontier,
            now=time.time,
            turn=self.turn,
            ignore=pace.ignore_robots,
        )
        return Crawl(
            frontier=self.frontier,
            fetcher=self.fetcher,
            permits=robots,
            judge=self.judge,
            placing=Placing(
                Scope.of(self.starts, settings.scope, logged_in=has_login(settings.http)), self.traps
            ),
            tally=self.tally,
            turn=self.turn,
            visitor=self.visitor,
            limits=Limits(
                concurrency=pace.concurrency,
                gap=1 / pace.rate if pace.rate else 0.0,
                max_wait=pace.max_wait,
                keep_failing=settings.guard.keep_failing,
                max_pages=settings.scope.max_pages,
                max_time=settings.scope.max_time,
            ),
            sinks=[self.tally, *self.sinks],
            checks_starts=self.checks_starts,
            seeding=_Seeding(settings, self.fetcher, robots, self.turn, self.base, self.inputs),
            base=self.base,
        )


class _Stream:
    """A `Sink` that hands settlements to whoever iterates; a reader that left is no reason to stop."""

    def __init__(self, send: MemoryObjectSendStream[Settlement]) -> None:
        self._send = send

    async def settled(self, group: Sequence[Settlement]) -> None:
        try:
            for settlement in group:
                await self._send.send(settlement)
        except anyio.BrokenResourceError:
            pass


@dataclass(frozen=True, slots=True)
class _Seeding:
    """The seeds that the settings name: files of input first, then sitemaps."""

    settings: Settings
    fetcher: Fetcher
    robots: Robots
    turn: Turn
    base: PublishBase | None
    inputs: Sequence[Lines]

    async def __call__(self, crawl: Crawl) -> AsyncGenerator[tuple[Seed, Sequence[Url]], None]:
        seeds = Seeds(
            crawl.frontier,
            self.fetcher,
            normaliser(self.settings, base=self.base),
            crawl.starts[0],
            permit=crawl.meeting.permit,
            on_site=crawl.on_site,
            turn=self.turn,
            after_pages=crawl.after_pages,
            inputs=self.inputs,
        )
        async with aclosing(seeds.read(await self._sitemaps(crawl))) as groups:
            async for found in groups:
                yield found

    async def _sitemaps(self, crawl: Crawl) -> Sequence[str]:
        chosen = sitemap_of(self.settings)
        if chosen == "off":
            return []
        if chosen == "auto":
            found = await self._named_by_robots(crawl)
        elif is_web(chosen):
            found = [Url(chosen)]
        else:
            return [chosen]
        return [self.base.crawled(url) for url in found] if self.base else found

    async def _named_by_robots(self, crawl: Crawl) -> list[Url]:
        found: list[Url] = []
        for site in dict.fromkeys(urls.origin(url) for url in crawl.starts):
            await crawl.meeting.permit(Url(site + "/"))  # its robots.txt is known afterwards
            found += self.robots.sitemaps(site)
        return found


@asynccontextmanager
async def open_job(
    settings: Settings, *, clock: Callable[[], float] = time.monotonic, sinks: Sequence[Sink] = ()
) -> AsyncIterator[Job]:
    """Everything that one crawl needs, opened; closed again on the way out.

    Raises `ConfigError`, `FrontierError` or `StateBusy` before anything is asked of the network.
    """
    settings = checked(settings)
    check_extras(settings)
    sitemap_of(settings)  # as above: wrong is wrong at once
    scope, pace = settings.scope, settings.pace
    tally = Tally(clock, max_pages=scope.max_pages, max_time=scope.max_time, concurrency=pace.concurrency)
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
        turn = fetch.Turns(time.time, anyio.sleep, far=far_of(settings))
        plain = await stack.enter_async_context(
            open_fetcher(settings)
        )  # what is wrong shows before state is touched
        frontier = open_frontier(settings, starts[0])
        stack.push_async_callback(frontier.close)
        run = await frontier.begin(fingerprint(settings, starts), reading(settings))
        await frontier.remember(PUBLISH_BASE, base.base if base else "")
        await frontier.remember(OUTPUT, _absolute(settings.output.output))
        pacer = fetch.Pacing(frontier, turn)
        log_of_reading = ReadingLog(_reading_log(settings, starts[0]))
        stack.callback(log_of_reading.close)
        deaths = await _deaths(frontier, log_of_reading)
        here = await stack.enter_async_context(
            open_visitor(
                settings,
                plain,
                pacer,
                turn,
                tally.strained,
                traps.session,
                base,
                reading=log_of_reading.reading,
            )
        )
        visitor = here.visitor
        if pace.processes > (most := max(1, pace.concurrency // 2)):
            log.warning(
                "--processes is above its bound: each needs two requests in flight, so a larger --concurrency allows more",
                extra={
                    "fields": {"processes": pace.processes, "used": most, "concurrency": pace.concurrency}
                },
            )
        if settings.pace.processes > 1 and not run.complete:
            home = Home(pacer, turn, tally.strained, traps.session, turn.ended, base)
            visitor = await stack.enter_async_context(Team(settings, settings.pace.processes, home).running())
        if deaths:
            visitor = Sparing(visitor, deaths)
        yield Job(
            settings,
            starts,
            frontier,
            run,
            tally,
            here.fetcher,
            turn,
            here.judge,
            visitor,
            traps,
            base,
            inputs,
            list(sinks),
            checks_starts=bool(scope.start),
        )
