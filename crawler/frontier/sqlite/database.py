"""The open state file: a connection of SQLite as a `Database`."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

from msgspec.json import decode

from crawler.frontier.database import Database
from crawler.frontier.dialect import translated
from crawler.frontier.sqlite.dialect import BoundDialect, SqliteDialect

MOST_ROWS: Final = 16  # in a statement with bound values: more save nothing, and take long to prepare
_NAME: Final = re.compile(r":(?<![:\w]:)([a-z_]+)")
_BOUND: Final = BoundDialect()

# For each None and bool that is bound, sqlite3 looks for a way to adapt it, which takes longest if there is
# none.
sqlite3.register_adapter(type(None), lambda _: None)
sqlite3.register_adapter(bool, int)


class SqliteDatabase(Database):
    """See `Database`."""

    dialect = SqliteDialect()
    is_shared = False
    life = 60.0

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.connection = connection
        self._packed: dict[str, str] = {}

    def check(self) -> Callable[[], None]:
        """See `Database.check`: the file is the same."""
        return lambda: None

    def by_index(self) -> None:
        """See `Database.by_index`: SQLite does."""

    def lock_runs(self) -> None:
        """See `Database.lock_runs`: the lock of the file keeps others out."""

    def execute(self, sql: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
        return self.connection.execute(translated(self.dialect, sql), given)

    def ask(
        self, sql: str, given: Mapping[str, Any] | None = None, *, packed: bool = False
    ) -> Callable[[], list[Any]]:
        """See `Database.ask`. Packed: one row of JSON: the interpreter lock is released for each row."""
        if not packed:
            return super().ask(sql, given)
        statement = self._packed.get(sql)
        if statement is None:
            columns = self.execute(f"SELECT * FROM ({sql}) LIMIT 0", given or {}).description
            names = ", ".join(f"c{place}" for place in range(len(columns)))
            statement = self._packed[sql] = (
                f"WITH packed ({names}) AS ({sql}) SELECT json_group_array(json_array({names})) FROM packed"
            )
        rows: list[Any] = decode(self.execute(statement, given or {}).fetchone()[0])
        return lambda: rows

    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.do_rows(_upsert(table, tuple(columns)), columns, rows)

    def do_rows(self, sql: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **given: Any) -> None:
        for _ in self._bound(sql, columns, list(rows), given):
            pass

    def ask_rows(
        self, sql: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **given: Any
    ) -> Callable[[], list[Any]]:
        found = [row for cursor in self._bound(sql, columns, rows, given) for row in cursor.fetchall()]
        return lambda: found

    def _bound(
        self, sql: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], given: Mapping[str, Any]
    ) -> Iterator[sqlite3.Cursor]:
        """Execute a statement with bound values, `MOST_ROWS` at a time."""
        at = 0
        while at < len(rows):  # the number of rows in a statement is a power of two, so that few are prepared
            count = min(MOST_ROWS, 1 << (len(rows) - at).bit_length() - 1)
            statement, before, after = _of_rows(sql, len(columns), count)
            values = chain.from_iterable(rows[at : at + count])
            others = (given[name] for name in after)
            yield self.connection.execute(statement, (*(given[name] for name in before), *values, *others))
            at += count


@cache
def _of_rows(sql: str, width: int, count: int) -> tuple[str, list[str], list[str]]:
    """The statement for that many rows of bound values, and the names of the values before and after these.

    None is numbered: for each number, SQLite looks at all those before it.
    """
    row = f"({', '.join('?' * width)})"
    before, after = translated(_BOUND, sql).split(_BOUND.VALUES)
    statement = f"{_NAME.sub('?', before)}{', '.join([row] * count)}{_NAME.sub('?', after)}"
    return statement, _NAME.findall(before), _NAME.findall(after)


@cache
def _upsert(table: str, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM @rows({', '.join(columns)}) WHERE true "
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {changes}"
    )
