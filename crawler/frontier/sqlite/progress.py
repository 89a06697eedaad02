"""The progress of a run, as `status` reads it from a state, perhaps every minute.

Needs neither an event loop nor the modules of a crawl, which are slow to import.
"""

import sqlite3
import time
from contextlib import closing

from crawler.errors import FrontierError
from crawler.frontier import queries
from crawler.frontier.sqlite.database import SqliteDatabase
from crawler.frontier.sqlite.ownership import check_usable
from crawler.frontier.sqlite.state_file import failure, is_at_work, open_state, seconds_since_heartbeat
from crawler.frontier.waits import outlook, waits
from crawler.model.run import Progress


def read_progress(path: str) -> Progress | None:
    """The newest run of the state at `path`; None before the first. Raises `FrontierError`."""
    path = str(check_usable(path))
    try:
        with closing(open_state(path, read_only=True)) as connection:
            connection.execute("BEGIN")
            db = SqliteDatabase(connection, time.time)
            db.read_newest()
            newest = queries.run(db)
            if newest is None:
                return None
            now, balance = time.time(), queries.balance(db)
            silent, seen = seconds_since_heartbeat(path, now), outlook(db, is_alive=is_at_work(path, now))
            return Progress(newest, balance, silent, waits=waits(db), outlook=seen)
    except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
        # The last three: values in the file that this program never writes.
        raise FrontierError(failure(path, error)) from error
