"""The open crawl in a database: a connection of psycopg as a `Database`."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from crawler.frontier.database import Database
from crawler.frontier.dialect import translated
from crawler.frontier.postgres.connection import TIMELINE, pipelined
from crawler.frontier.postgres.dialect import ARRAYS, PostgresDialect
from crawler.frontier.postgres.errors import FailedOver

if TYPE_CHECKING:
    import psycopg

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


@cache
def statement(sql: str) -> bytes:
    """A statement in the syntax of the driver, with binary parameters. There are some two hundred."""
    return _NAME.sub(r"%(\1)b", translated(PostgresDatabase.dialect, sql).replace("%", "%%")).encode()


class PostgresDatabase(Database):
    """See `Database`."""

    dialect = PostgresDialect()
    is_shared = True
    ids_ahead = 32
    life = 30.0

    def __init__(self, connection: "psycopg.Connection[Any]", clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.connection = connection
        self.timeline = ""
        """Of the server when this process connected; empty where the server does not tell."""
        self.pipeline: psycopg.Pipeline | None = None
        """Of the transaction: statements are sent at once, and results waited for when they are read."""
        self.enter: Callable[[], None] | None = None
        """If each statement is a transaction of its own: begins it. It takes one round trip."""

    def check(self) -> Callable[[], None]:
        """See `Database.check`.

        Raises `FailedOver` if the server was replaced since this process connected or joined again.

        Then record numbers that this process knows may be those of other URLs, and its pages must be visited
        again.
        """
        if not self.timeline:
            return lambda: None
        now = self.ask(TIMELINE)

        def compare() -> None:
            if now() != [(self.timeline,)]:
                raise FailedOver("the database failed over")

        return compare

    def by_index(self) -> None:
        """See `Database.by_index`.

        For small groups of rows: the planner guesses how many they are, and would read a whole table for each
        group.
        """
        self.do("SET LOCAL enable_seqscan = off")

    def lock_runs(self) -> None:
        self.do("LOCK TABLE run IN SHARE ROW EXCLUSIVE MODE")

    def execute(self, sql: str, given: Mapping[str, Any]) -> "psycopg.Cursor[Any]":
        if self.enter is None:
            return self.connection.execute(statement(sql), given)
        with pipelined(self.connection):
            self.enter()
            return self.connection.execute(statement(sql), given)

    def changed(self, sql: str, given: Mapping[str, Any] | None = None) -> int:
        cursor = self.execute(sql, given or {})
        if self.pipeline:
            self.pipeline.sync()
        return cursor.rowcount

    def ask(
        self, sql: str, given: Mapping[str, Any] | None = None, *, packed: bool = False
    ) -> Callable[[], list[Any]]:
        _ = packed
        return self.execute(sql, given or {}).fetchall

    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.do(_upsert(table, tuple(columns)), self.dialect.given(columns, rows))


@cache
def _upsert(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f"r.{column}::bigint[]" if column in ARRAYS else f"r.{column}" for column in columns)
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM @rows({', '.join(columns)}) "
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {changes}"
    )
