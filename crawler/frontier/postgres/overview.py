"""The progress of a run and its members, as `status` reads them from a PostgreSQL state, perhaps every minute.

Needs neither an event loop nor the modules of a crawl, which are slow to import.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

import psycopg

from crawler.errors import FrontierError
from crawler.frontier import records
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.clock import ServerClock
from crawler.frontier.postgres.connection import begin, connect, failure, prepare
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.members import LIFE
from crawler.model.progress import Member, Progress
from crawler.model.survey import Balance

T = TypeVar("T")

MEMBERS = """
SELECT m.name, m.id = r.leader IS TRUE, NOT m.gone AND m.until > :now, m.gone, greatest(0, :now - m.until + :life), m.settled
FROM member AS m JOIN run AS r ON r.number = m.run
WHERE m.run = :run ORDER BY m.id
"""


def read_progress(address: Address, *, counted: bool) -> Progress | None:
    """The newest run and its members; None before the first run. Raises `FrontierError`.

    `counted`: with the balance, for which every URL is read.
    """

    def look(db: Database) -> Progress | None:
        db.run = db.one("SELECT max(number) FROM run")[0] or 0
        newest = records.run(db)
        if newest is None:
            return None
        known = members(db)
        silent = min((member.silent for member in known), default=None)
        return Progress(newest, balance(db) if counted else None, silent, known)

    return _look(address, look)


def _look(address: Address, question: Callable[[Database], T]) -> T:
    try:
        with closing(connect(address)) as connection:
            prepare(connection, address, create=False)
            begin(connection, address, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
            clock = ServerClock()
            clock.measure(connection)
            return question(Database(connection, clock))
    except (psycopg.Error, ValueError, TypeError, OverflowError) as error:
        # The last three: values in the database that this program never writes.
        raise FrontierError(failure(address, error)) from error


def members(db: Database) -> list[Member]:
    """See `ports.Runs.members`."""
    return [Member(*row) for row in db.all(MEMBERS, {"run": db.run, "life": LIFE, "now": db.now()})]


def balance(db: Database) -> Balance:
    """See `ports.Record.balance`."""
    discovered = db.count("SELECT coalesce(sum(discovered), 0) FROM member WHERE run = :run", {"run": db.run})
    return records.balance(db, discovered)
