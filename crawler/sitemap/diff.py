"""Compares two lists of entries: which URLs were added or removed, and which dates changed.

The lists are loaded into a temporary database on disk, so that millions of entries need little memory, in any
order.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from operator import itemgetter
from typing import Final, Self

from msgspec import Struct

from crawler import scratch

ROWS_AT_ONCE: Final = 50_000  # sorted before they are inserted: the tables are in order of the URL
OLD: Final = "old"
NEW: Final = "new"

_DIFFERENCES: Final = """
SELECT CASE WHEN n.url IS NULL THEN '-' ELSE '~' END, o.url, o.lastmod, n.lastmod
FROM old AS o LEFT JOIN new AS n USING (url) WHERE n.url IS NULL OR o.lastmod IS NOT n.lastmod
UNION ALL
SELECT '+', n.url, NULL, n.lastmod FROM new AS n LEFT JOIN old AS o USING (url) WHERE o.url IS NULL
ORDER BY 2
"""


class EntryChange(Struct, frozen=True):
    """One difference."""

    sign: str  # "+" added, "-" removed, "~" different lastmod
    url: str
    old: str | None  # lastmod
    new: str | None


class Comparison:
    """`load` both sides, then iterate over `changes`. A context manager that deletes its database."""

    def __enter__(self) -> Self:
        """Creates the database."""
        self._files = ExitStack()
        file = self._files.enter_context(scratch.folder()) / "entries.db"
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; PRAGMA "
            "temp_store = FILE;CREATE TABLE old (url TEXT PRIMARY KEY, lastmod TEXT) WITHOUT ROWID;CREATE "
            "TABLE new (url TEXT PRIMARY KEY, lastmod TEXT) WITHOUT ROWID;"
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Deletes the database."""
        self._db.close()
        self._files.close()

    def load(self, side: str, entries: Iterable[tuple[str, str | None]]) -> None:
        """Adds URLs and dates to one side, `OLD` or `NEW`. Of several entries for a URL, the first counts."""
        rest = iter(entries)
        while group := sorted(islice(rest, ROWS_AT_ONCE), key=itemgetter(0)):
            self._db.execute("BEGIN")
            self._db.executemany(f"INSERT OR IGNORE INTO {side} VALUES (?, ?)", group)  # noqa: S608 - `side` is a constant
            self._db.execute("COMMIT")

    def count(self, side: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {side}").fetchone()[0])  # noqa: S608

    def changes(self, read_date: Callable[[str], str | None]) -> Iterator[EntryChange]:
        """All differences, in order of the URL. Dates are read only where they are spelt differently."""
        with closing(self._db.cursor()) as cursor:
            for sign, url, *dates in cursor.execute(_DIFFERENCES):
                old, new = (read_date(text) if text else None for text in dates)
                if sign != "~" or old != new:
                    yield EntryChange(sign, url, old, new)
