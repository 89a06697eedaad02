"""The SQL of SQLite: groups of rows are JSON arrays, and one process writes, so that nothing is locked.

A statement processes a whole group in one call, so the interpreter lock is released once, not for each row.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from crawler.frontier.dialect import Dialect, called
from crawler.frontier.rows import FoundRow


class SqliteDialect(Dialect):
    """See `Dialect`."""

    column = "url"

    def rows(self, *columns: str) -> str:
        """See `Dialect.rows`."""
        named = ", ".join(f"value ->> {place} AS {column}" for place, column in enumerate(columns))
        return f"(SELECT {named}, key AS place_ FROM json_each(:rows)) AS r"

    def any(self, name: str, kind: str = "bigint") -> str:  # noqa: ARG002 - values have their own types
        """See `Dialect.any`."""
        return f"IN (SELECT value FROM json_each(:{name}))"

    def first(self) -> str:
        """See `Dialect.first`."""
        return "IN ("

    def end(self) -> str:
        """See `Dialect.end`."""
        return ")"

    def each(self, array: str) -> str:
        """See `Dialect.each`."""
        return f"CROSS JOIN json_each({array}) AS j"

    def place(self) -> str:
        """See `Dialect.place`."""
        return "j.key + 1"

    def size(self, array: str) -> str:
        """See `Dialect.size`."""
        return f"coalesce(json_array_length({array}), 0)"

    def columns_of_url(self) -> str:
        """See `Dialect.columns_of_url`."""
        return "url"

    def insertion_order(self) -> str:
        """See `Dialect.insertion_order`."""
        return "place_"

    def next_id(self) -> str:
        """See `Dialect.next_id`."""
        return "NULL"

    def least(self, *parts: str) -> str:
        """See `Dialect.least`."""
        return called("min", parts)

    def greatest(self, *parts: str) -> str:
        """See `Dialect.greatest`."""
        return called("max", parts)

    def whole(self, seconds: str) -> str:
        """See `Dialect.whole`."""
        return f"CAST({seconds} AS INTEGER)"

    def time(self, seconds: str) -> str:
        """See `Dialect.time`."""
        return f"datetime({seconds}, 'unixepoch')"

    def clock(self) -> str:
        """See `Dialect.clock`."""
        return "CAST(strftime('%s') AS INTEGER)"

    def json(self, column: str) -> str:
        """See `Dialect.json`."""
        return column

    def position(self, *parts: str) -> str:
        """See `Dialect.position`."""
        return called("instr", parts)

    def lock(self, *tables: str) -> str:  # noqa: ARG002 - nothing is locked
        """See `Dialect.lock`."""
        return ""

    def lock_shared(self) -> str:
        """See `Dialect.lock_shared`."""
        return ""

    def skip_locked(self) -> str:
        """See `Dialect.skip_locked`."""
        return ""

    def identity(self) -> str:
        """See `Dialect.identity`."""
        return "INTEGER PRIMARY KEY"

    def number(self) -> str:
        """See `Dialect.number`."""
        return "INTEGER PRIMARY KEY"

    def ids(self) -> str:
        """See `Dialect.ids`: a JSON array."""
        return "text"

    def bytes(self) -> str:
        """See `Dialect.bytes`."""
        return "blob"

    def text(self) -> str:
        """See `Dialect.text`."""
        return "text"

    def web_address(self) -> str:
        """See `Dialect.web_address`."""
        return "url text NOT NULL UNIQUE"

    def key_type(self) -> str:
        """See `Dialect.key_type`."""
        return "text"

    def often_updated(self) -> str:
        """See `Dialect.often_updated`."""
        return ""

    def emptied_often(self) -> str:
        """See `Dialect.emptied_often`."""
        return ""

    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:  # noqa: ARG002
        """See `Dialect.given`."""
        return {"rows": json.dumps(list(rows))}

    def given_found(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """See `Dialect.given_found`: `url` comes first there."""
        return {"rows": json.dumps(rows)}

    def all_of(self, values: Iterable[Any]) -> str:
        """See `Dialect.all_of`."""
        return json.dumps(list(values))

    def key_of(self, url: str) -> str:
        """See `Dialect.key_of`."""
        return url

    def array(self, ids: Sequence[int]) -> str:
        """See `Dialect.array`."""
        return json.dumps(ids, separators=(",", ":"))

    def arrays(self, values: Sequence[Any]) -> Sequence[Sequence[int]]:
        """See `Dialect.arrays`: one call is faster than one for each."""
        found: list[list[int]] = json.loads(f"[{','.join(value or '[]' for value in values)}]")
        return found
