"""The heartbeat of a member: a thread of its own, on a connection of its own.

So a long statement, or an event loop that is busy, does not make a living member look dead. A frozen process does not beat.
"""

import threading
from contextlib import suppress

import psycopg

from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.connection import begin, connect
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.leases import Leases
from crawler.frontier.postgres.members import HEARTBEAT, Members


class Heartbeat:
    """Beats from construction until `stop`. While the database is away, it goes on trying."""

    def __init__(self, address: Address, db: Database, leases: Leases) -> None:
        self._address, self._db, self._leases = address, db, leases
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No beat any more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            with suppress(psycopg.Error), connect(self._address) as connection:
                while not connection.closed:
                    self._beat(connection)
                    if self._ended.wait(HEARTBEAT):
                        return
            self._ended.wait(1.0)

    def _beat(self, connection: "psycopg.Connection[object]") -> None:
        db = Database(connection, self._db.now)
        db.run, db.member = self._db.run, self._db.member
        members = Members(db)
        begin(connection, self._address)
        members.beat()
        self._leases.is_alone = len(members.alive()) <= 1
        connection.execute("COMMIT")
