"""The open state: a connection, the current run and member, and the clock. The SQL is in the modules that own the tables.

Synchronous and blocking; each call belongs to a transaction, which `session` opens and closes. Statements name their
parameters `:name`.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crawler.frontier.postgres.connection import TIMELINE, FailedOver

if TYPE_CHECKING:
    import psycopg

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


@lru_cache(maxsize=512)
def statement(sql: str) -> bytes:
    """A statement in the syntax of the driver, with binary parameters."""
    return _NAME.sub(r"%(\1)b", sql.replace("%", "%%")).encode()


class Database:
    """A connection with short methods. `clock`: seconds since the epoch."""

    urls: Final = "known"
    """The view with one row per URL."""

    def __init__(self, connection: "psycopg.Connection[Any]", clock: Callable[[], float]) -> None:
        self.connection, self.now = connection, clock
        self._caches: list[Callable[[], None]] = []
        self.run = 0
        """The number of the current run, or of the newest."""
        self.since = 0
        """Facts from this run or a later one may be used for conditional requests."""
        self.member = 0
        """The number of this member; 0 while it only reads."""
        self.timeline = ""
        """Of the server when this process connected; empty where the server does not tell."""
        self.is_retry = False
        """The transaction is tried again, and may have been committed before."""

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Register `cache`, which is called when cached rows may be wrong."""
        self._caches.append(cache)

    def forget(self) -> None:
        """Clear all caches, after a transaction was rolled back."""
        for cache in self._caches:
            cache()

    def check_timeline(self) -> None:
        """Raises `FailedOver` if the server was replaced since this process connected, or joined the crawl again.

        Then record numbers that this process knows may be those of other URLs, and its pages must be visited again.
        """
        if self.timeline and self.one(TIMELINE)[0] != self.timeline:
            raise FailedOver("the database failed over")

    def by_index(self) -> None:
        """Have the transaction read large tables by index only.

        For small groups of rows: the planner guesses how many they are, and would read a whole table for each group.
        """
        self.do("SET LOCAL enable_seqscan = off")

    def ids(self, numbers: Sequence[int]) -> list[int]:
        """The parameter of a statement that takes record numbers."""
        return list(numbers)

    def cursor(self, sql: str, given: dict[str, Any] | None = None) -> "psycopg.Cursor[Any]":
        """Execute a statement; its result."""
        return self.connection.execute(statement(sql), given or {})

    def do(self, sql: str, given: dict[str, Any] | None = None) -> int:
        """Execute a statement without a result; the number of rows that it changed."""
        return self.cursor(sql, given).rowcount

    def one(self, sql: str, given: dict[str, Any] | None = None) -> tuple[Any, ...]:
        """The only row of the result."""
        row: tuple[Any, ...] = self.cursor(sql, given).fetchone()  # type: ignore[assignment]
        return row

    def one_or_none(self, sql: str, given: dict[str, Any] | None = None) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        return self.cursor(sql, given).fetchone()

    def count(self, sql: str, given: dict[str, Any] | None = None) -> int:
        """The number that a statement returns."""
        return int(self.one(sql, given)[0])

    def all(self, sql: str, given: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows."""
        return self.cursor(sql, given).fetchall()

    def by_name(self, sql: str, given: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The first row, if there is one, as a dict by column."""
        cursor = self.cursor(sql, given)
        row = cursor.fetchone()
        return dict(zip((c.name for c in cursor.description or ()), row, strict=True)) if row else None
