"""The open state: a connection, the current run, and the clock. The SQL is in the modules that own the tables.

Synchronous and blocking; each call belongs to a transaction, which `frontier` opens and closes.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

# For each None and bool that is bound, sqlite3 looks for a way to adapt it, which takes longest if there is none.
sqlite3.register_adapter(type(None), lambda _: None)
sqlite3.register_adapter(bool, int)


class Database:
    """A connection with short methods. `clock`: seconds since the epoch."""

    urls: Final = "url"
    """The table with one row per URL."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._connection, self.now = connection, clock
        self._caches: list[Callable[[], None]] = []
        self.run: int = self.one("SELECT max(number) FROM run")[0] or 0
        """The number of the current run, or of the newest."""
        self.since = self.run
        """Facts from this run or a later one may be used for conditional requests."""

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Register `cache`, which is called when cached rows may be wrong."""
        self._caches.append(cache)

    def forget(self) -> None:
        """Clear all caches, after a transaction was rolled back."""
        for cache in self._caches:
            cache()

    def ids(self, numbers: Sequence[int]) -> str:
        """The parameter of a statement that takes record numbers."""
        return json.dumps(list(numbers))

    def do(self, sql: str, given: Any = ()) -> int:
        """Execute a statement without a result; the number of rows that it changed."""
        return self._connection.execute(sql, given).rowcount

    def many(self, sql: str, given: Iterable[Any]) -> None:
        """Execute the statement once for each of `given`."""
        self._connection.executemany(sql, given)

    def insert(self, sql: str, given: Any) -> int:
        """Insert a row; its number."""
        return self._connection.execute(sql, given).lastrowid or 0

    def one(self, sql: str, given: Any = ()) -> tuple[Any, ...]:
        """The only row of the result."""
        row: tuple[Any, ...] = self._connection.execute(sql, given).fetchone()
        return row

    def one_or_none(self, sql: str, given: Any = ()) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        row: tuple[Any, ...] | None = self._connection.execute(sql, given).fetchone()
        return row

    def count(self, sql: str, given: Any = ()) -> int:
        """The number that a statement returns."""
        return int(self.one(sql, given)[0])

    def all(self, sql: str, given: Any = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._connection.execute(sql, given).fetchall()

    def by_name(self, sql: str, given: Any = ()) -> dict[str, Any] | None:
        """The first row, if there is one, as a dict by column."""
        cursor = self._connection.execute(sql, given)
        row = cursor.fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None
