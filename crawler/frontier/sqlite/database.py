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

MOST_ROWS: Final = 256  # in a statement with bound values, of which SQLite takes 32,766
_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")
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

    def check(self) -> None:
        """See `Database.check`: the file is the same."""

    def by_index(self) -> None:
        """See `Database.by_index`: SQLite does."""

    def lock_runs(self) -> None:
        """See `Database.lock_runs`: the lock of the file keeps others out."""

    def execute(self, sql: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
        """See `Database.execute`."""
        return self.connection.execute(translated(self.dialect, sql), given)

    def packed(self, sql: str, given: Mapping[str, Any]) -> list[Any]:
        """See `Database.packed`: one row of JSON, since the interpreter lock is released for each row."""
        packed = self._packed.get(sql)
        if packed is None:
            columns = self.execute(f"SELECT * FROM ({sql}) LIMIT 0", given).description
            names = ", ".join(f"c{place}" for place in range(len(columns)))
            packed = self._packed[sql] = (
                f"WITH packed ({names}) AS ({sql}) SELECT json_group_array(json_array({names})) FROM packed"
            )
        rows: list[Any] = decode(self.execute(packed, given).fetchone()[0])
        return rows

    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """See `Database.upsert`."""
        self.do_rows(_upsert(table, tuple(columns)), columns, rows)

    def do_rows(self, sql: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **given: Any) -> int:
        """See `Database.do_rows`."""
        return sum(cursor.rowcount for cursor in self._bound(sql, columns, list(rows), given))

    def all_rows(
        self, sql: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **given: Any
    ) -> list[tuple[Any, ...]]:
        """See `Database.all_rows`."""
        return [row for cursor in self._bound(sql, columns, rows, given) for row in cursor.fetchall()]

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
