"""The progress of a run and its members in a database, as `status` reads it, perhaps every minute.

Needs neither an event loop nor the modules of a crawl, which are slow to import.
"""

from contextlib import closing

import psycopg

from crawler.errors import FrontierError
from crawler.frontier import queries
from crawler.frontier.members import Members
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.connection import ServerClock, begin, connect, prepare
from crawler.frontier.postgres.database import PostgresDatabase
from crawler.frontier.postgres.errors import failure
from crawler.frontier.waits import outlook, waits
from crawler.model.run import Progress


def read_progress(address: Address, *, counted: bool) -> Progress | None:
    """The newest run and its members; None before the first run. Raises `FrontierError`.

    `counted`: with the balance, for which every URL is read.
    """
    try:
        with closing(connect(address)) as connection:
            prepare(connection, address, create=False)
            begin(connection, address, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
            clock = ServerClock()
            clock.measure(connection)
            return _progress(PostgresDatabase(connection, clock), counted=counted)
    except (psycopg.Error, ValueError, TypeError, OverflowError) as error:
        # The last three: values in the database that this program never writes.
        raise FrontierError(failure(address, error)) from error


def _progress(db: PostgresDatabase, *, counted: bool) -> Progress | None:
    db.read_newest()
    newest = queries.run(db)
    if newest is None:
        return None
    known = Members(db).all()
    silent = min((member.silent for member in known), default=None)
    balance = queries.balance(db) if counted else None
    seen = outlook(db, is_alive=any(member.alive for member in known))
    return Progress(newest, balance, silent, known, waits(db), seen)
