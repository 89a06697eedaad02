"""How far a run on PostgreSQL has come: what `status` reads from a state each minute.

Needs neither an event loop nor the verbs of a crawl, which take long to import.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

import psycopg

from crawler.errors import FrontierError
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.clock import ServerClock
from crawler.frontier.postgres.connection import begin, connect, failure, prepare
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.members import LIFE
from crawler.model.progress import Member, Progress
from crawler.model.run import Run
from crawler.model.serialise import outcome_of
from crawler.model.survey import Balance

T = TypeVar("T")

MEMBERS = """
SELECT m.name, m.id = r.leader IS TRUE, NOT m.gone AND m.until > :now, m.gone, greatest(0, :now - m.until + :life), m.settled
FROM member AS m JOIN run AS r ON r.number = m.run
WHERE m.run = :run ORDER BY m.id
"""


def read_progress(address: Address, *, counted: bool) -> Progress | None:
    """The newest run and its members; None before the first. Raises `FrontierError`.

    `counted`: with the balance, for which every URL is read.
    """

    def look(db: Database) -> Progress | None:
        db.run = db.one("SELECT max(number) FROM run")[0] or 0
        newest = run(db)
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
        # The last three: words in the database that none of us wrote.
        raise FrontierError(failure(address, error)) from error


def members(db: Database) -> list[Member]:
    """See `ports.Runs.members`."""
    return [Member(*row) for row in db.all(MEMBERS, {"run": db.run, "life": LIFE, "now": db.now()})]


def run(db: Database) -> Run | None:
    """See `ports.Runs.run`."""
    row = db.one_or_none("SELECT number, started, status FROM run WHERE number = :run", {"run": db.run})
    return Run(row[0], row[1], complete=row[2] in ("complete", "concluded", "refused")) if row else None


def balance(db: Database) -> Balance:
    """See `ports.Record.balance`."""
    discovered = db.count("SELECT coalesce(sum(discovered), 0) FROM member WHERE run = :run", {"run": db.run})
    counts = db.all(
        "SELECT state < 3, outcome, count(*) FROM known WHERE run = :run GROUP BY 1, 2 ORDER BY 2",
        {"run": db.run},
    )
    outcomes = {outcome: count for is_open, outcome, count in counts if not is_open and outcome}
    for outcome in outcomes:
        outcome_of(outcome, "", None)  # raises for a code that is none
    return Balance(discovered, outcomes, sum(count for is_open, _, count in counts if is_open))
