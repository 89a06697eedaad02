"""The open state file: a connection of SQLite as a `Database`."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

from crawler.frontier.database import Database
from crawler.frontier.dialect import translated
from crawler.frontier.sqlite.dialect import SqliteDialect

MOST_ROWS: Final = 256  # in a statement with bound values, of which SQLite takes 32,766

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
        rows: list[Any] = json.loads(self.execute(packed, given).fetchone()[0])
        return rows

    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """See `Database.upsert`: with bound values, as a JSON row is parsed again for each of its columns."""
        at = 0
        while at < len(rows):  # the number of rows in a statement is a power of two, so that few are prepared
            count = min(MOST_ROWS, 1 << (len(rows) - at).bit_length() - 1)
            values = list(chain.from_iterable(rows[at : at + count]))
            self.connection.execute(_upsert(table, tuple(columns), count), values)
            at += count


@cache
def _upsert(table: str, columns: tuple[str, ...], count: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)} "
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {changes}"
    )
