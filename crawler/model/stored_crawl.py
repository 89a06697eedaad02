"""A crawl in a database, as a list of them shows it."""

from typing import NamedTuple


class StoredCrawl(NamedTuple):
    """A crawl, with its newest run."""

    name: str
    schema: str
    bytes: int  # of its tables and indexes
    version: int | None  # of its tables; None: not to be read by this user
    members: int = 0  # at work
    run: int | None = None  # None: no run has begun
    status: str | None = None  # as in the view `runs`
    started: float | None = None  # seconds since the epoch
