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
from crawler.frontier.sqlite.state_file import failure, open_state
from crawler.model.run import Run
from crawler.model.survey import Balance


def read_overview(path: str) -> tuple[Run, Balance] | None:
    """The newest run of the state at `path` and its counts; None before the first run.

    Raises `FrontierError`.
    """
    path = str(check_usable(path))
    try:
        with closing(open_state(path, read_only=True)) as connection:
            connection.execute("BEGIN")
            db = SqliteDatabase(connection, time.time)
            db.read_newest()
            newest = queries.run(db)
            return (newest, queries.balance(db)) if newest else None
    except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
        # The last three: values in the file that this program never writes.
        raise FrontierError(failure(path, error)) from error
