"""The open state: a connection, the run and member at work, and the clock. What statements say is for the modules that own them.

Plain and blocking; each call belongs to a transaction, which `frontier` opens and closes. Statements name their
parameters `:name`.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

CHUNK: Final = 5_000  # URLs that are read at a time

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


@lru_cache(maxsize=512)
def statement(sql: str) -> bytes:
    """A statement as the driver takes it, its parameters in binary."""
    return _NAME.sub(r"%(\1)b", sql.replace("%", "%%")).encode()


class Database:
    """A connection with short verbs. `now`: seconds since the epoch."""

    def __init__(self, connection: "psycopg.Connection[Any]", clock: Callable[[], float]) -> None:
        self.connection, self.now = connection, clock
        self._caches: list[Callable[[], None]] = []
        self.run = 0
        """The number of the run at work, or of the newest."""
        self.since = 0
        """Facts that were learned in this run or later may be asked "changed since?"."""
        self.member = 0
        """Who works here; zero for one who only reads."""
        self.is_retry = False
        """The transaction is tried again, and may have been committed before."""

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Have `cache` called when what was remembered of the tables may be wrong."""
        self._caches.append(cache)

    def forget(self) -> None:
        """What a transaction taught was taken back with it."""
        for cache in self._caches:
            cache()

    def cursor(self, sql: str, given: dict[str, Any] | None = None) -> "psycopg.Cursor[Any]":
        """A statement that was carried out."""
        return self.connection.execute(statement(sql), given or {})

    def do(self, sql: str, given: dict[str, Any] | None = None) -> int:
        """A statement without an answer; how many rows it changed."""
        return self.cursor(sql, given).rowcount

    def one(self, sql: str, given: dict[str, Any] | None = None) -> tuple[Any, ...]:
        """The one row there is."""
        row: tuple[Any, ...] = self.cursor(sql, given).fetchone()  # type: ignore[assignment]
        return row

    def one_or_none(self, sql: str, given: dict[str, Any] | None = None) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        return self.cursor(sql, given).fetchone()

    def count(self, sql: str, given: dict[str, Any] | None = None) -> int:
        """The one number that a statement answers."""
        return int(self.one(sql, given)[0])

    def all(self, sql: str, given: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows."""
        return self.cursor(sql, given).fetchall()

    def by_name(self, sql: str, given: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The first row, if there is one, by the names of its columns."""
        cursor = self.cursor(sql, given)
        row = cursor.fetchone()
        return dict(zip((c.name for c in cursor.description or ()), row, strict=True)) if row else None
