"""The frontier on PostgreSQL, shared by all members of a crawl. The one class that plays its six roles.

Every verb is one transaction on one connection, run in a worker thread so that the event loop never waits for the
database, and tried again while the database is away. What a verb does is in the module of its noun; longer than most, as
this is the list of all verbs and nothing else.
"""

import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import anyio
import anyio.to_thread
import psycopg

from crawler.errors import Exit, FrontierError
from crawler.frontier.pace import FAR
from crawler.frontier.postgres import dates, duplicates, ledger, overview, pages, publications, streams
from crawler.frontier.postgres.address import parsed
from crawler.frontier.postgres.clock import ServerClock
from crawler.frontier.postgres.connection import begin, connect, failure, is_passing, prepare
from crawler.frontier.postgres.database import CHUNK, Database, statement
from crawler.frontier.postgres.discovery import Discovery
from crawler.frontier.postgres.distances import Distances
from crawler.frontier.postgres.heartbeat import Heartbeat
from crawler.frontier.postgres.hosts import HostTable
from crawler.frontier.postgres.leases import Leases
from crawler.frontier.postgres.members import Members
from crawler.frontier.postgres.patterns import PatternTable
from crawler.frontier.postgres.retention import Retention
from crawler.frontier.postgres.rounds import Rounds
from crawler.frontier.postgres.runs import RunTable
from crawler.frontier.postgres.seeds import SeedTable
from crawler.frontier.postgres.settlements import Settlements
from crawler.model.facts import Entry, Version
from crawler.model.failpoints import failpoint
from crawler.model.lease import Lease
from crawler.model.ledger import LedgerHead, LedgerRow
from crawler.model.note import Note
from crawler.model.progress import Member
from crawler.model.reasons import Source, Why
from crawler.model.robots import RobotsFile
from crawler.model.rows import EdgeRow, HostRow, PageRow, PublicationRow, RunRow, Tallies
from crawler.model.run import Interruption, Run, SessionEnd, Terms
from crawler.model.seed import Seed, SeedSettlement
from crawler.model.serialise import moment
from crawler.model.settlement import Settled, Settlement
from crawler.model.survey import Alike, Balance, Build, Doubts, Evidence, Survey
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Link, Visit
from crawler.parse.url import Url
from crawler.ports import Batch, Hosts, Ledger, Queue, Record, Round, Rows, Runs
from crawler.rules.traps import MAX_REPORTED

P = ParamSpec("P")
T = TypeVar("T")

ANY_DEPTH: Final = (1 << 31) - 1
ABOVE_ALL: Final = "\x7f"  # in order behind every text that begins as a URL
KEEP_FAILING: Final = 604_800.0  # seconds
AWAY: Final = 120.0  # seconds for which the database may be away
LEAVING: Final = 0.2  # seconds until it is looked again whether the members of the last run have left

log = logging.getLogger("crawler.frontier")


class PostgresFrontier(Queue, Hosts, Runs, Record, Rows, Ledger):
    """A `Frontier` in a schema of a database.

    `gap` is the pace of a host not met yet, in seconds from slot to slot; `keep_failing`, for how many seconds a
    published page that fails stays listed; `clock`, seconds since the epoch, the database's own unless a test has one.
    """

    def __init__(
        self,
        state: str,
        *,
        gap: float = 0.0,
        keep_runs: int = 10,
        keep_failing: float = KEEP_FAILING,
        far: float = FAR,
        clock: Callable[[], float] | None = None,
        read_only: bool = False,
        away: float = AWAY,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open or create the crawl at `state`. `away`: seconds for which the database may be away.

        `ticks`: seconds of a clock that runs on while this process is frozen.

        Raises `FrontierError` when it cannot be used, `ConfigError` when `state` is no address.
        """
        self._address, self._read_only, self._away = parsed(state), read_only, away
        self._keep_failing = float(keep_failing)
        self._away_since: float | None = None  # tick of the first failure since the last answer
        self._turn = anyio.CapacityLimiter(1)
        self._heart: Heartbeat | None = None
        self._ticks, self._leads = ticks, False
        self._server_clock = ServerClock()
        connection = self._connected(create=not read_only)
        self.clock = clock or self._server_clock
        db = self._db = Database(connection, self.clock)
        hosts = self._hosts = HostTable(db, float(gap))
        patterns = self._patterns = PatternTable(db)
        seeds = self._seeds = SeedTable(db, keep_failing)
        members = self._members = Members(db)
        self._runs = RunTable(db, members, seeds)
        self._retention = Retention(db, keep_runs)
        self._discovery = Discovery(db, hosts, patterns, seeds)
        self._leases = Leases(db, members, far)
        self._settlements = Settlements(
            db, self._discovery, hosts, patterns, self._leases, self._keep_failing
        )
        self._rounds = Rounds(db, patterns)
        self._transact(_newest, db)

    def _connected(self, *, create: bool) -> "psycopg.Connection[Any]":
        try:
            connection = connect(self._address)
            try:
                prepare(connection, self._address, create=create)
                self._server_clock.measure(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise FrontierError(failure(self._address, error)) from error
        return connection

    # -- Queue: the open work --------------------------------------------------------------------------------

    async def add(self, visits: Sequence[Visit], seed: Seed | None = None) -> int:
        """See `ports.Queue.add`. Only the leader reads seeds."""
        add = self._leading(self._discovery.add) if seed else self._discovery.add
        return await self._call(add, visits, seed)

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """See `ports.Queue.lease`."""
        token = secrets.randbits(31)  # the same when it is tried again
        member, started = self._db.member, self._ticks()
        batch = await self._call(self._leases.lease, limit, ANY_DEPTH if depth is None else depth, token)
        self._note_rejoined(member, started)
        return batch

    def _note_rejoined(self, member: int, started: float) -> None:
        """Our process was taken for dead, and is another member now. `started`: when it began to join."""
        if self._heart and member != self._db.member:
            self._heart.renew(started)
            self._leads = False
            log.warning("this process was silent for too long, and joined the crawl again")

    async def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """See `ports.Queue.settle`."""
        return await self._call(self._settlements.settle, settlements)

    async def release(self, leases: Sequence[Lease]) -> None:
        """See `ports.Queue.release`."""
        await self._call(self._leases.release, leases)

    async def suspect(self, lease: Lease) -> None:
        """See `ports.Queue.suspect`."""
        await self._call(self._leases.suspect, lease)

    async def reopen(self, pages: Sequence[Url]) -> None:
        """See `ports.Queue.reopen`."""
        if pages:
            await self._call(self._leases.reopen, pages)

    async def shorten(self, deepest: int) -> int:
        """See `ports.Queue.shorten`."""
        return await self._call(self._leading(Distances(self._db).shorten), deepest)

    async def list_filtered(self, after: str = "") -> Sequence[Visit]:
        """See `ports.Queue.list_filtered`."""
        return await self._call(self._discovery.list_filtered, after)

    async def requeue(self, visits: Sequence[Visit]) -> int:
        """See `ports.Queue.requeue`."""
        return await self._call(self._leading(self._discovery.requeue), visits)

    async def advance(self, depth: int | None = None) -> Round:
        """See `ports.Queue.advance`."""
        return await self._call(self._leading(self._rounds.advance), ANY_DEPTH if depth is None else depth)

    async def store_traps(self, traps: Sequence[Trap]) -> None:
        """See `ports.Queue.store_traps`."""
        if traps:
            await self._call(self._patterns.store_traps, traps)

    async def add_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """See `ports.Queue.add_seeds`."""
        return await self._call(self._leading(self._seeds.add_seeds), seeds, room)

    async def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        return await self._call(self._seeds.next_seed)

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        return await self._call(self._leading(self._seeds.settle_seed), read, room)

    async def pages_of_failing_seeds(self) -> Sequence[tuple[Seed, Sequence[Url]]]:
        """See `ports.Queue.pages_of_failing_seeds`."""
        return await self._call(self._seeds.pages_of_failing_seeds)

    # -- Hosts: what is known of an origin -------------------------------------------------------------------

    async def store_robots(self, origin: str, file: RobotsFile, gap: float) -> None:
        """See `ports.Hosts.store_robots`."""
        await self._call(self._hosts.store_robots, origin, file, gap)

    async def robots(self, origin: str, *, stale: bool = False) -> RobotsFile | None:
        """See `ports.Hosts.robots`."""
        return await self._call(self._hosts.robots, origin, stale=stale)

    async def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`."""
        return await self._call(self._hosts.slot, origin)

    async def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        await self._call(self._hosts.slow, origin, until)

    # -- Runs: the life of a run -----------------------------------------------------------------------------

    async def begin(self, fingerprint: str, reading: str = "", terms: Terms = Terms()) -> Run:
        """See `ports.Runs.begin`."""
        if self._heart:
            self._heart.stop()
        while (run := await self._call(self._runs.begin, fingerprint, reading, terms)) is None:  # noqa: ASYNC110 - others end it
            await anyio.sleep(LEAVING)
        if run.over is None:
            self._heart = Heartbeat(self._address, self._db, self._server_clock.measure, self._ticks)
        return run

    async def run(self) -> Run | None:
        """See `ports.Runs.run`."""
        return await self._call(overview.run, self._db)

    async def lead(self) -> bool:
        """See `ports.Runs.lead`."""
        member, started = self._db.member, self._ticks()
        leads = await self._call(self._members.lead)
        self._note_rejoined(member, started)
        if leads and not self._leads:
            log.info("leads", extra={"fields": {"member": self._members.name, "run": self._db.run}})
        self._leads = leads
        return leads

    async def check_lead(self) -> None:
        """See `ports.Runs.check_lead`."""
        await self._call(self._members.check_lead)

    async def over(self) -> Exit | None:
        """See `ports.Runs.over`."""
        return await self._call(self._runs.over)

    async def interrupt(self, interruption: Interruption) -> None:
        """See `ports.Runs.interrupt`."""
        await self._call(self._leases.interrupt, interruption)

    @property
    def name(self) -> str:
        """See `ports.Runs.name`."""
        return self._members.name

    @property
    def is_shared(self) -> bool:
        """See `ports.Runs.is_shared`."""
        return self._heart is not None and self._heart.is_shared

    def holds(self, lease: Lease) -> bool:
        """See `ports.Runs.holds`."""
        return lease.token >> 32 == self._db.member and self._heart is not None and self._heart.is_alive()

    async def members(self) -> Sequence[Member]:
        """See `ports.Runs.members`."""
        return await self._call(overview.members, self._db)

    async def finish(self) -> None:
        """See `ports.Runs.finish`."""
        await self._call(self._runs.finish)

    async def conclude(self, *, refused: bool = False) -> None:
        """See `ports.Runs.conclude`."""
        await self._call(self._runs.conclude, refused=refused)
        after: int | None = 0
        while after is not None:
            after = await self._call(self._retention.prune, after)

    async def mark_published(self, published: PublicationRow) -> None:
        """See `ports.Runs.mark_published`."""
        await self._call(self._leading(publications.mark_published), self._db, published, self.clock())

    async def mark_delivered(self, delivered: str) -> None:
        """See `ports.Runs.mark_delivered`."""
        await self._call(publications.mark_delivered, self._db, delivered)

    async def last_publication(self) -> PublicationRow | None:
        """See `ports.Runs.last_publication`."""
        return await self._call(publications.newest, self._db)

    async def end_session(self, end: SessionEnd) -> None:
        """See `ports.Runs.end_session`."""
        await self._call(self._runs.end_session, end)

    async def remember(self, note: Note[T], value: T) -> None:
        """See `ports.Runs.remember`."""
        await self._call(self._runs.remember, note, value)

    async def amend(self, note: Note[T], change: Callable[[T], T]) -> T:
        """See `ports.Runs.amend`."""
        return await self._call(self._runs.amend, note, change)

    async def recall(self, note: Note[T], *, published: bool = False) -> T:
        """See `ports.Runs.recall`."""
        return await self._call(self._runs.recall, note, published=published)

    # -- Record: what became of the pages --------------------------------------------------------------------

    async def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """See `ports.Record.links`."""
        return await self._call(self._settlements.links, leases)

    async def evidence(self) -> Sequence[Evidence]:
        """See `ports.Record.evidence`."""
        return await self._call(dates.evidence, self._db)

    async def builds(self, window: int, older: int) -> Sequence[Build]:
        """See `ports.Record.builds`."""
        return await self._call(dates.builds, self._db, window, older)

    async def date(self, sources: Sequence[Source], doubts: Doubts) -> None:
        """See `ports.Record.date`."""
        await self._call(self._leading(dates.date), self._db, sources, doubts)

    async def dated(self) -> Mapping[str, int]:
        """See `ports.Record.dated`."""
        return await self._call(dates.dated, self._db)

    async def alike(self, least: int) -> Sequence[Alike]:
        """See `ports.Record.alike`."""
        return await self._call(duplicates.alike, self._db, least)

    async def withdraw(self, pages: Sequence[Url] | Alike, why: Why, detail: str) -> None:
        """See `ports.Record.withdraw`."""
        await self._call(self._leading(duplicates.withdraw), self._db, pages, why, detail)

    async def unlist_duplicates(self) -> None:
        """See `ports.Record.unlist_duplicates`."""
        await self._call(self._leading(duplicates.unlist_duplicates), self._db)

    async def unlist_repeats(self) -> int:
        """See `ports.Record.unlist_repeats`."""
        return await self._call(self._leading(self._patterns.unlist_repeats))

    async def keep(self) -> None:
        """See `ports.Record.keep`."""
        await self._call(self._leading(publications.keep), self._db, self._keep_failing)

    async def changed(self) -> Mapping[str, int]:
        """See `ports.Record.changed`."""
        return await self._call(publications.changed, self._db)

    async def answered(self, origin: str) -> Url | None:
        """See `ports.Record.answered`."""
        return await self._call(pages.answered, self._db, origin)

    async def entries(self, first: str = "", below: str = ABOVE_ALL) -> AsyncIterator[Sequence[Entry]]:
        """See `ports.Record.entries`."""
        given = {"first": first, "below": below, "run": self._db.run}
        async for rows in self._stream(pages.ENTRIES, given):
            yield [Entry(Url(url), moment(at)) for url, at in rows]

    async def known(self) -> AsyncIterator[Sequence[Url]]:
        """See `ports.Record.known`."""
        async for rows in self._stream(pages.KNOWN_HERE, {"run": self._db.run}):
            yield [Url(row[0]) for row in rows]

    async def balance(self) -> Balance:
        """See `ports.Record.balance`."""
        return await self._call(overview.balance, self._db)

    async def filtered(self) -> int:
        """See `ports.Record.filtered`."""
        return await self._call(pages.filtered, self._db)

    async def examples(self, outcome_code: str, limit: int = 3) -> Sequence[Url]:
        """See `ports.Record.examples`."""
        return await self._call(pages.examples, self._db, outcome_code, limit)

    async def traps(self) -> Sequence[Trap]:
        """See `ports.Record.traps`."""
        return await self._call(self._patterns.stored_traps, MAX_REPORTED)

    async def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        return await self._call(self._seeds.sitemaps)

    async def orphans(self) -> Mapping[str, int]:
        """See `ports.Record.orphans`."""
        return await self._call(self._seeds.orphans)

    async def survey(self, site: str) -> Survey:
        """See `ports.Record.survey`."""
        return await self._call(pages.survey, self._db, site)

    async def first(self) -> Url | None:
        """See `ports.Record.first`."""
        return await self._call(self._runs.first)

    async def record(self, url: Url) -> UrlRecord | None:
        """See `ports.Record.record`."""
        return await self._call(pages.record, self._db, url)

    async def linking(self, url: Url) -> int:
        """See `ports.Record.linking`."""
        return await self._call(pages.linking, self._db, url)

    # -- Rows: all of it, streamed --------------------------------------------------------------------------

    async def page_rows(self) -> AsyncIterator[Sequence[PageRow]]:
        """See `ports.Rows.page_rows`."""
        async for rows in self._stream(streams.PAGE_ROWS, {}):
            yield [streams.page(row) for row in rows]

    async def edge_rows(self) -> AsyncIterator[Sequence[EdgeRow]]:
        """See `ports.Rows.edge_rows`."""
        async for rows in self._stream(streams.EDGE_ROWS, {"run": self._db.run}):
            yield await self._call(streams.edges, self._db, rows)

    async def suspect_rows(self) -> AsyncIterator[Sequence[PageRow]]:
        """See `ports.Rows.suspect_rows`."""
        async for rows in self._stream(streams.SUSPECT_ROWS, {"run": self._db.run}):
            yield [streams.suspect(self._db.run, row) for row in rows]

    async def version_rows(self) -> AsyncIterator[Sequence[Version]]:
        """See `ports.Rows.version_rows`."""
        async for rows in self._stream(streams.VERSION_ROWS, {"run": self._db.run}):
            yield [streams.version(row) for row in rows]

    async def versions(self, urls: Sequence[Url]) -> Mapping[Url, Version]:
        """See `ports.Rows.versions`."""
        return await self._call(streams.versions, self._db, urls)

    async def tallies(self) -> Tallies:
        """See `ports.Rows.tallies`."""
        return await self._call(streams.tallies, self._db)

    async def host_rows(self) -> Sequence[HostRow]:
        """See `ports.Rows.host_rows`."""
        return await self._call(streams.host_rows, self._db)

    async def rows_of(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """See `ports.Rows.rows_of`."""
        return await self._call(streams.rows_of, self._db, ids)

    async def run_rows(self) -> Sequence[RunRow]:
        """See `ports.Rows.run_rows`."""
        return await self._call(
            lambda: streams.run_rows(self._db, self._members.others(_newest_run(self._db)) > 0)
        )

    # -- Ledger: what search engines were told ----------------------------------------------------------------

    async def ledger(self) -> LedgerHead | None:
        """See `ports.Ledger.ledger`."""
        return await self._call(ledger.ledger, self._db)

    async def open_ledger(self, base: str, *, noted: bool) -> int:
        """See `ports.Ledger.open_ledger`."""
        return await self._call(ledger.open_ledger, self._db, base, noted)

    async def ledger_rows(self, *, unchanged: bool = False) -> AsyncIterator[Sequence[LedgerRow]]:
        """See `ports.Ledger.ledger_rows`."""
        async for rows in self._stream(ledger.ROWS, {"run": self._db.run, "unchanged": unchanged}):
            yield [ledger.row(values) for values in rows]

    async def enter(self, rows: Sequence[LedgerRow], sent: int | None = None) -> None:
        """See `ports.Ledger.enter`."""
        await self._call(ledger.enter, self._db, rows, sent)

    async def close(self) -> None:
        """See `ports.Frontier.close`."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._turn)

    def _close(self) -> None:
        if self._heart:
            self._heart.stop()
        with suppress(psycopg.Error):
            begin(self._db.connection, self._address)
            self._members.leave()
            self._db.connection.execute("COMMIT")
        self._db.connection.close()

    # -- a transaction ------------------------------------------------------------------------------------

    def _leading(self, verb: Callable[P, T]) -> Callable[P, T]:
        """A verb that raises `LeadLost` if this member does not lead, in its transaction."""

        @wraps(verb)
        def fenced(*args: P.args, **kwargs: P.kwargs) -> T:
            self._members.check_lead()
            return verb(*args, **kwargs)

        return fenced

    async def _call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One verb, one transaction, in a worker thread."""
        return await anyio.to_thread.run_sync(
            lambda: self._transact(verb, *args, **kwargs), limiter=self._turn, abandon_on_cancel=False
        )

    def _transact(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Tried again while the database is away; the wait is shared by all verbs, so that a process leaves after one."""
        pause = 0.05
        self._db.is_retry = False
        while True:
            try:
                answer = self._once(verb, *args, **kwargs)
            except psycopg.Error as error:
                self._db.forget()
                self._away_since = self._away_since or time.monotonic()
                if not is_passing(error) or time.monotonic() + pause > self._away_since + self._away:
                    raise FrontierError(failure(self._address, error)) from error
            except (
                ValueError,
                TypeError,
                OverflowError,
            ) as error:  # words in the database that none of us wrote
                self._db.forget()
                raise FrontierError(failure(self._address, error)) from error
            else:
                self._away_since = None
                return answer
            time.sleep(pause)
            pause, self._db.is_retry = min(2 * pause, 5.0), True

    def _once(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._db.connection.closed:
            self._db.connection = connect(self._address)
        try:
            begin(self._db.connection, self._address, "READ ONLY" if self._read_only else "")
            answer = verb(*args, **kwargs)
            with failpoint(f"commit of {verb.__name__}"):
                self._db.connection.execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                self._db.connection.execute("ROLLBACK")
            raise
        return answer

    async def _stream(self, sql: str, given: dict[str, Any]) -> AsyncIterator[list[tuple[Any, ...]]]:
        """Many rows on a connection of their own, as one moment of the database."""
        rows = await self._thread(self._open_stream, sql, given)
        try:
            while chunk := await self._thread(rows.fetchmany, CHUNK):
                yield chunk
        finally:
            with anyio.CancelScope(shield=True):
                await self._thread(_close_stream, rows)

    async def _thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs), abandon_on_cancel=False)
        except psycopg.Error as error:
            raise FrontierError(failure(self._address, error)) from error

    def _open_stream(self, sql: str, given: dict[str, Any]) -> "psycopg.ServerCursor[Any]":
        connection = connect(self._address)
        begin(connection, self._address, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return connection.cursor("stream").execute(statement(sql), given)


def _close_stream(rows: "psycopg.ServerCursor[Any]") -> None:
    with suppress(psycopg.Error):
        rows.close()
    rows.connection.close()


def _newest(db: Database) -> None:
    """What a reader looks at."""
    db.run = db.since = _newest_run(db)


def _newest_run(db: Database) -> int:
    return db.one("SELECT max(number) FROM run")[0] or 0
