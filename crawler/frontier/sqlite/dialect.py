"""The SQL of SQLite: groups of rows are JSON arrays or bound values; one process writes, nothing is locked.

A statement processes a whole group in one call, so the interpreter lock is released once, not for each row.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from msgspec.json import decode, encode

from crawler.frontier.dialect import Dialect


class SqliteDialect(Dialect):
    """See `Dialect`."""

    words: ClassVar = {
        "key": "url",
        "key_type": "text",
        "columns_of_url": "url",
        "web_address": "url text NOT NULL UNIQUE",
        "next_id": "NULL",
        "insertion_order": "NULL",  # rows are read in the order in which they are given
        "first": "IN (",
        "end": ")",
        "place": "j.key + 1",
        "least": "min",
        "greatest": "max",
        "position": "instr",
        "each": "CROSS JOIN json_each({}) AS j",
        "each_json": "CROSS JOIN json_each({}) AS j",
        "json_size": "json_array_length({})",
        "time": "datetime({}, 'unixepoch')",
        "json": "{}",
        "clock": "CAST(strftime('%s') AS INTEGER)",
        "backend": "NULL",
        "vanished": "false",
        "disconnected": "false",
        "lock_shared": "",
        "skip_locked": "",
        "identity": "INTEGER PRIMARY KEY",
        "number": "INTEGER PRIMARY KEY",
        "ids": "text",
        "bytes": "blob",
        "text": "text",
        "often_updated": "",
        "emptied_often": "",
        "small": "WITHOUT ROWID",
    }

    def rows(self, *columns: str) -> str:
        named = ", ".join(f"value ->> {place} AS {column}" for place, column in enumerate(columns))
        return f"(SELECT {named}, key AS place_ FROM json_each(:rows)) AS r"

    def any(self, name: str, kind: str = "bigint") -> str:  # noqa: ARG002 - values have their own types
        return f"IN (SELECT value FROM json_each(:{name}))"

    def lock(self, *tables: str) -> str:  # noqa: ARG002 - nothing is locked
        return ""

    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:  # noqa: ARG002
        return {"rows": encode(list(rows)).decode()}

    def all_of(self, values: Iterable[Any]) -> str:
        return encode(list(values)).decode()

    def key_of(self, url: str) -> str:
        return url

    def array(self, ids: Sequence[int]) -> str:
        return f"[{','.join(map(str, ids))}]"

    def arrays(self, values: Sequence[Any]) -> Sequence[Sequence[int]]:
        """See `Dialect.arrays`: one call is faster than one for each."""
        found: list[list[int]] = decode(f"[{','.join(value or '[]' for value in values)}]")
        return found


class BoundDialect(SqliteDialect):
    """The same with bound values for `@rows`, which stand where `VALUES` is.

    For wide rows: SQLite parses a JSON row again for each of its columns.
    """

    VALUES: Final = ":values"

    def rows(self, *columns: str) -> str:
        """See `Dialect.rows`; there is no `place_`."""
        named = ", ".join(f"column{place} AS {column}" for place, column in enumerate(columns, 1))
        return f"(SELECT {named} FROM (VALUES {self.VALUES})) AS r"
