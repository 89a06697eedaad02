"""The session of a process with the database: each call is a transaction, tried again while it is away.

Blocking work runs in a worker thread, so that the event loop never waits for the database. What a call does
is in other modules; a statement that returns very many rows is streamed on a connection of its own.
"""

import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import anyio
import anyio.to_thread
import psycopg

from crawler.errors import FrontierError, LeadershipLost, StateAway
from crawler.frontier.database import CHUNK
from crawler.frontier.members import FENCE
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.connection import (
    Lend,
    ServerClock,
    begin,
    connect,
    enter,
    pipelined,
    prepare,
    reach,
    timeline,
)
from crawler.frontier.postgres.database import PostgresDatabase, statement
from crawler.frontier.postgres.errors import FailedOver, failure, is_lost, is_passing
from crawler.frontier.queries import Stream
from crawler.model.failpoints import failpoint
from crawler.model.log import log
from crawler.rules import retries

P = ParamSpec("P")
T = TypeVar("T")
Spare: TypeAlias = Callable[[], "psycopg.Connection[Any] | None"]


DECLARE: Final = b"DECLARE stream CURSOR FOR "
LENT: Final = 5.0  # seconds to wait until no call uses the connection
PAUSE: Final = 0.05  # seconds until a call is tried a third time, then twice as long each time


class Session:
    """A connection to a crawl. `away`: seconds for which the database may be away.

    `clock`: seconds since the epoch; the clock of the database unless a test has another. `on_failover` is
    called, in a transaction, when a call has raised `FailedOver`, before it is tried again.
    """

    def __init__(
        self, address: Address, *, read_only: bool, away: float, clock: Callable[[], float] | None
    ) -> None:
        """Connect, and create or migrate the tables. Raises `FrontierError`, `StateAway`."""
        self._address, self._read_only, self._away = address, read_only, away
        self._away_since: float | None = None  # time of the first failure since the last answer
        self._is_lost = False  # the connection; it was said
        self._busy = threading.Lock()  # the connection is in use
        self._turn = anyio.CapacityLimiter(1)
        self.server_clock = ServerClock()
        self.spare: Spare = lambda: None  # where the server accepts no more connections
        self.on_failover: Callable[[], None] = lambda: None
        connection = self._connected()
        self.db = PostgresDatabase(connection, clock or self.server_clock)
        self.db.timeline = timeline(connection)

    def _connected(self) -> "psycopg.Connection[Any]":
        connection = reach(self._address)
        try:
            prepare(connection, self._address, create=not self._read_only)
            self.server_clock.measure(connection)
        except psycopg.Error as error:
            connection.close()
            kind = StateAway if is_passing(error) else FrontierError
            raise kind(failure(self._address, error)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one method as one transaction, in a worker thread. Raises `FrontierError`."""
        return await self.thread(lambda: self.transact(verb, *args, **kwargs))

    async def thread(self, work: Callable[[], T]) -> T:
        """Run what uses the connection in a worker thread, one after the other."""
        return await anyio.to_thread.run_sync(work, limiter=self._turn, abandon_on_cancel=False)

    async def ask(self, verbs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """The answers of some, without an explicit transaction: no end is waited for."""
        return await self.thread(lambda: self.look(verbs))

    def look(self, verbs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """The same, in this thread."""
        return self._transact(partial(self._apart, verbs))

    def transact(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one method as one transaction, in this thread."""
        return self._transact(partial(self._pipelined, verb, *args, **kwargs))

    def _transact(self, work: Callable[[], T]) -> T:
        self.db.is_retry = False
        return self._insist(partial(self._attempt, work))

    def _insist(self, attempt: Callable[[], T]) -> T:
        """Try again while the database is away. All calls of a process share the wait."""
        attempt = partial(self._noted, attempt)
        try:
            return attempt()
        except psycopg.Error as error:
            if not is_passing(error) or self._is_over(PAUSE):
                raise FrontierError(failure(self._address, error)) from error
        again = retries.blocking(is_passing, first=PAUSE, ends=self._is_over)
        try:
            return again(attempt)
        except psycopg.Error as error:
            self._away_since = -math.inf  # the wait is over for all calls until the next answer
            raise FrontierError(failure(self._address, error)) from error

    def _noted(self, attempt: Callable[[], T]) -> T:
        """An attempt, after which it is known since when the database is away."""
        try:
            answer = attempt()
        except psycopg.Error as error:
            self._away_since = self._away_since or time.monotonic()
            if is_lost(error) and not self._is_lost:
                self._is_lost = True
                log.warning(
                    "database does not answer; trying again",
                    seconds=self._away,
                    error=failure(self._address, error),
                )
            raise
        self._away_since = None
        if self._is_lost:
            self._is_lost = False
            log.info("database answers again")
        return answer

    def _is_over(self, pause: float) -> bool:
        """Whether the wait for the database would be over after another pause."""
        return self._away_since is not None and time.monotonic() + pause > self._away_since + self._away

    def _attempt(self, work: Callable[[], T]) -> T:
        try:
            return self._once(work)
        except psycopg.errors.UniqueViolation:
            if self.db.is_retry:
                raise
            # Another member inserted a URL whose id was to be one that this member had asked for.
            self.db.forget()
            self.db.is_retry = True
            return self._attempt(work)
        except psycopg.Error as error:
            self.db.forget()
            self.db.is_retry = True
            if FENCE in str(error):
                raise LeadershipLost(FENCE) from error
            if isinstance(error, FailedOver) and not self._is_over(0):
                self._fail_over()
            raise
        except (ValueError, TypeError, OverflowError) as error:
            # Values in the database that this program never writes.
            self.db.forget()
            raise FrontierError(failure(self._address, error)) from error

    def _once(self, work: Callable[[], T]) -> T:
        if self.db.connection.closed:
            self.db.connection = connect(self._address)
        with self._busy:
            return work()

    def _apart(self, verbs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        return self.db.together(partial(enter, self.db.connection, self._address, self.db.member), verbs)

    def _pipelined(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        connection = self.db.connection
        try:
            with ExitStack() as sent:

                def end() -> None:
                    if self.db.pipeline:
                        connection.execute("COMMIT")
                        self.db.pipeline = None
                        sent.close()  # waits for all of it

                self.db.pipeline, self.db.end = sent.enter_context(pipelined(connection)), end
                how, member = ("READ ONLY", None) if self._read_only else ("", self.db.member)
                begin(connection, self._address, how, member)
                answer = verb(*args, **kwargs)
                with failpoint(f"commit of {verb.__name__}"):
                    end()
        except BaseException:
            self.db.pipeline = None
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        return answer

    def lend(self, work: Callable[["psycopg.Connection[Any]"], None]) -> None:
        """Use the connection for something else, unless it is in use for long. Raises `psycopg.Error`."""
        if self._busy.acquire(timeout=LENT):
            try:
                work(self.db.connection)
            finally:
                self._busy.release()

    def _fail_over(self) -> None:
        member = self.db.member
        try:
            self._once(partial(self._pipelined, self.on_failover))
        except psycopg.Error:
            self.db.member = member  # the next attempt raises `FailedOver`, too
        else:
            self.db.timeline = timeline(self.db.connection)

    def close(self, last: Callable[[], None]) -> None:
        """Close the connection, after one more transaction, which is not tried again."""
        with suppress(psycopg.Error):
            self._pipelined(last)
        self.db.connection.close()

    async def stream(
        self, query: Stream, given: Mapping[str, Any], first: str = ""
    ) -> AsyncIterator[list[tuple[Any, ...]]]:
        """The rows of a query in chunks, from `first` on. Raises `FrontierError`.

        All of one moment; after a lost connection, the rest is of a later one.
        """
        rows = _Rows(self._address, self.spare, self.lend, query, given, first)
        fetch = partial(self._insist, rows.fetch)
        try:
            while chunk := await anyio.to_thread.run_sync(fetch, abandon_on_cancel=False):
                yield chunk
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(rows.close)


def _fetch() -> bytes:
    return f"FETCH FORWARD {CHUNK} FROM stream".encode()


class _Rows:
    """The rows of a query, on a connection of its own, which is opened when it is needed.

    The cursor is one of SQL, so that it is opened and read from in one round trip. Where the server accepts
    no other connection, each chunk is read on that of the work.
    """

    def __init__(
        self, address: Address, spare: Spare, lend: Lend, query: Stream, given: Mapping[str, Any], first: str
    ) -> None:
        self._address, self._spare, self._lend = address, spare, lend
        self._query, self._given = query, given
        self._after, self._comparison = query.start(first), ">="
        self._connection: psycopg.Connection[Any] | None = None
        self._ahead: psycopg.Cursor[Any] | None = None  # the first rows
        self._is_over = False

    def fetch(self) -> list[tuple[Any, ...]]:
        """The next rows; after an error, those after the last that were returned."""
        if self._is_over:
            return []
        try:
            chunk = self._next()
        except psycopg.Error:
            self.close()
            raise
        self._is_over = len(chunk) < CHUNK
        if chunk:
            self._after, self._comparison = chunk[-1][self._query.place], ">"
        return chunk

    def _next(self) -> list[tuple[Any, ...]]:
        if self._connection is None:
            try:
                own = connect(self._address)
            except psycopg.Error as error:
                spare = self._spare()
                if spare is None:
                    return self._borrowed(error)
                own = spare
            self._connection = own
            self._ahead = self._begun(own)
        rows, self._ahead = self._ahead or self._connection.execute(_fetch()), None
        return rows.fetchall()

    def _begun(self, connection: "psycopg.Connection[Any]", end: str = "") -> "psycopg.Cursor[Any]":
        """The first rows after those that were returned, in a transaction."""
        with pipelined(connection):
            begin(connection, self._address, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
            sql = DECLARE + statement(self._query.rest(self._comparison))
            connection.execute(sql, {**self._given, "after": self._after})
            rows = connection.execute(_fetch())
            if end:
                connection.execute(end.encode())
        return rows

    def _borrowed(self, error: psycopg.Error) -> list[tuple[Any, ...]]:
        """The next rows, on the connection of the work. `error`: why there is no other."""
        found = list[list[tuple[Any, ...]]]()

        def read(connection: "psycopg.Connection[Any]") -> None:
            try:
                found.append(self._begun(connection, "COMMIT").fetchall())
            except psycopg.Error:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

        self._lend(read)
        if not found:
            raise error
        return found[0]

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = self._ahead = None
