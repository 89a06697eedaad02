"""The heartbeat of a member: in its own thread and on its own connection.

So a long statement or a busy event loop does not make a living member look dead, and neither does a server
that accepts no more connections: then it beats on the connection of the work. A frozen process has no
heartbeat. One that fails for good, as on a full disk, is an error of the next call of the member: it may be
waiting for others, and write nothing itself.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg

from crawler.frontier.members import HEARTBEAT, Members
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.connection import PROGRAM, Lend, begin, connect, pipelined
from crawler.frontier.postgres.database import PostgresDatabase
from crawler.frontier.postgres.errors import is_passing
from crawler.model.failpoints import failpoint

# A transaction of a frozen member, or of a machine that cannot be reached, holds its rows for ever: its
# statements are sent without waiting for results, so its session counts as active, not as idle (LOCAL).
# A member has no number yet while it begins.
FROZEN: Final = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = session_user AND wait_event = 'ClientRead'
AND query_start < clock_timestamp() - make_interval(secs => :life)
AND application_name IN (
    SELECT left('{PROGRAM} ' || id || ' ' || current_schema(), 63)
    FROM (SELECT id FROM member WHERE NOT gone AND until <= :now UNION ALL SELECT 0) AS held
)
"""


class Heartbeat:
    """Sends heartbeats from construction until `stop`. While the database is away, it tries again.

    `ticks`: seconds of a clock that runs on while this process is frozen. `beaten`: called on each
    connection, to measure the clock. `lend`: calls what it is given with the connection of the work.
    """

    def __init__(
        self,
        address: Address,
        db: PostgresDatabase,
        beaten: Callable[["psycopg.Connection[Any]"], None],
        lend: Lend,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address, self._db, self._beaten, self._ticks = address, db, beaten, ticks
        self._started = ticks()  # the tick at which the last successful heartbeat began
        self.is_shared = True  # until the first heartbeat finds that no other member is at work
        self.error: psycopg.Error | None = None
        """Of the last heartbeat, if the same would fail a little later, too."""
        self._lend, self._lock = lend, threading.Lock()
        self._own: psycopg.Connection[Any] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether the other members still take this one for alive."""
        return self._ticks() - self._started < PostgresDatabase.life

    def renew(self, started: float) -> None:
        """The process has joined again. `started`: the tick at which it began to."""
        self._started = started

    def stop(self) -> None:
        """Send no further heartbeat."""
        self._ended.set()
        self._thread.join()

    def give(self) -> "psycopg.Connection[Any] | None":
        """Its connection, for something else: from now on it beats on that of the work, or on a new one."""
        with self._lock:
            own, self._own = self._own, None
        return own

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._beat_on()
            except psycopg.Error as error:
                self._beat_at_work(error)
            self._ended.wait(1.0)

    def _beat_on(self) -> None:
        """Beat on a connection of its own, until that is lost or given away."""
        self._own = connect(self._address)
        try:
            while self._beat_once():
                self._ended.wait(HEARTBEAT)
        finally:
            if own := self.give():
                own.close()

    def _beat_once(self) -> bool:
        with self._lock:
            if self._own is None or self._ended.is_set():
                return False
            self.beat(self._own)
        self.error = None
        return True

    def _beat_at_work(self, error: psycopg.Error) -> None:
        try:
            self._lend(self.beat)
        except psycopg.Error:
            self.error = None if is_passing(error) else error
        else:
            self.error = None

    def beat(self, connection: "psycopg.Connection[Any]") -> None:
        """Send one heartbeat. A member that was taken for dead is not alive until it joins again."""
        started = self._ticks()
        db = PostgresDatabase(connection, self._db.now)
        db.run, db.member = self._db.run, self._db.member
        with suppress(psycopg.errors.InsufficientPrivilege), self._transaction(connection):
            db.do(FROZEN, {"life": db.life, "now": db.now()})
        try:
            with self._transaction(connection, db.member):
                connection.execute(f"SET LOCAL lock_timeout = {round(1000 * HEARTBEAT)}".encode())
                beaten = Members(db).beat()
        except psycopg.errors.LockNotAvailable:  # by the work of this member, which waits for a frozen one
            return
        self._beaten(connection)
        self.is_shared = beaten.others > 0
        if beaten.is_alive:
            self._started = started

    @contextmanager
    def _transaction(
        self, connection: "psycopg.Connection[Any]", member: int | None = None
    ) -> Iterator[None]:
        """The connection may be that of the work: no error leaves it in a transaction."""
        try:
            with pipelined(connection):
                begin(connection, self._address, member=member)
                yield
                with failpoint("commit of beat"):
                    connection.execute("COMMIT")
        except psycopg.Error:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
