"""The open state: a connection, the run at work, and the clock. What statements say is for the modules that own them.

Plain and blocking; each call belongs to a transaction, which `frontier` opens and closes.
"""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final

CHUNK: Final = 5_000  # URLs that are read at a time


class Database:
    """A connection with short verbs. `clock`: seconds since the epoch."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._connection, self.now = connection, clock
        self._caches: list[Callable[[], None]] = []
        self.run: int = self.one("SELECT max(number) FROM run")[0] or 0
        """The number of the run at work, or of the newest."""
        self.since = self.run
        """Facts that were learned in this run or later may be asked "changed since?"."""

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Have `cache` called when what was remembered of the tables may be wrong."""
        self._caches.append(cache)

    def forget(self) -> None:
        """What a transaction taught was taken back with it."""
        for cache in self._caches:
            cache()

    def do(self, sql: str, given: Any = ()) -> int:
        """A statement without an answer; how many rows it changed."""
        return self._connection.execute(sql, given).rowcount

    def many(self, sql: str, given: Iterable[Any]) -> None:
        """The same statement once for each of `given`."""
        self._connection.executemany(sql, given)

    def insert(self, sql: str, given: Any) -> int:
        """Insert a row; its number."""
        return self._connection.execute(sql, given).lastrowid or 0

    def one(self, sql: str, given: Any = ()) -> tuple[Any, ...]:
        """The one row there is."""
        row: tuple[Any, ...] = self._connection.execute(sql, given).fetchone()
        return row

    def one_or_none(self, sql: str, given: Any = ()) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        row: tuple[Any, ...] | None = self._connection.execute(sql, given).fetchone()
        return row

    def count(self, sql: str, given: Any = ()) -> int:
        """The one number that a statement answers."""
        return int(self.one(sql, given)[0])

    def all(self, sql: str, given: Any = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._connection.execute(sql, given).fetchall()

    def by_name(self, sql: str, given: Any = ()) -> dict[str, Any] | None:
        """The first row, if there is one, by the names of its columns."""
        cursor = self._connection.execute(sql, given)
        row = cursor.fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None
