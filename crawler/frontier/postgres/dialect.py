"""The SQL of PostgreSQL: groups of rows are one array for each column, and members lock the rows that they write.

A URL is found by a fingerprint, since an index on the text would refuse long URLs.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final

from crawler.frontier.dialect import Dialect, called
from crawler.frontier.rows import FoundRow
from crawler.frontier.schema import FACT_TYPES

_BY_TYPE: Final = {
    "bigint": "id token host via trap sample dated_lastmod dated_header",
    "double precision": "settled due until checked ease failing",
    "integer": "state depth hops kind attempts deaths named place round facts_run published was_hops",
    "text": "url outcome detail links images name code origin base sorting mark published_content dated_content",
    "uuid": "fp",
}
_TYPES: Final = {
    column: kind for kind, columns in _BY_TYPE.items() for column in columns.split()
} | FACT_TYPES
_FOUND: Final = ("fp", *FoundRow._fields)
ARRAYS: Final = ("links", "images")


class PostgresDialect(Dialect):
    """See `Dialect`."""

    column = "fp"

    def rows(self, *columns: str) -> str:
        """See `Dialect.rows`."""
        arrays = ", ".join(f":{column}_s::{_TYPES[column]}[]" for column in columns)
        return f"unnest({arrays}) WITH ORDINALITY AS r({', '.join(columns)}, place_)"

    def any(self, name: str, kind: str = "bigint") -> str:
        """See `Dialect.any`."""
        return f"= ANY (:{name}::{'uuid' if kind == 'key' else kind}[])"

    def first(self) -> str:
        """See `Dialect.first`: an array, since the planner would not know how few the rows of a join are."""
        return "= ANY (ARRAY("

    def end(self) -> str:
        """See `Dialect.end`."""
        return "))"

    def each(self, array: str) -> str:
        """See `Dialect.each`."""
        return f"CROSS JOIN LATERAL unnest({array}) WITH ORDINALITY AS j (value, place)"

    def place(self) -> str:
        """See `Dialect.place`."""
        return "j.place"

    def size(self, array: str) -> str:
        """See `Dialect.size`."""
        return f"coalesce(cardinality({array}), 0)"

    def columns_of_url(self) -> str:
        """See `Dialect.columns_of_url`."""
        return "fp, url"

    def insertion_order(self) -> str:
        """See `Dialect.insertion_order`."""
        return "fp"

    def next_id(self) -> str:
        """See `Dialect.next_id`."""
        return "nextval('url_id')"

    def least(self, *parts: str) -> str:
        """See `Dialect.least`."""
        return called("least", parts)

    def greatest(self, *parts: str) -> str:
        """See `Dialect.greatest`."""
        return called("greatest", parts)

    def whole(self, seconds: str) -> str:
        """See `Dialect.whole`."""
        return f"floor({seconds})::bigint"

    def time(self, seconds: str) -> str:
        """See `Dialect.time`."""
        return f"(to_timestamp(floor({seconds})) AT TIME ZONE 'UTC')"

    def clock(self) -> str:
        """See `Dialect.clock`."""
        return "extract(epoch FROM clock_timestamp())"

    def json(self, column: str) -> str:
        """See `Dialect.json`."""
        return f"{column}::json"

    def position(self, *parts: str) -> str:
        """See `Dialect.position`."""
        return called("strpos", parts)

    def lock(self, *tables: str) -> str:
        """See `Dialect.lock`."""
        return f"FOR UPDATE OF {', '.join(tables)}" if tables else "FOR UPDATE"

    def lock_shared(self) -> str:
        """See `Dialect.lock_shared`."""
        return "FOR SHARE"

    def skip_locked(self) -> str:
        """See `Dialect.skip_locked`."""
        return "FOR UPDATE SKIP LOCKED"

    def identity(self) -> str:
        """See `Dialect.identity`."""
        return "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

    def number(self) -> str:
        """See `Dialect.number`."""
        return "bigint PRIMARY KEY"

    def ids(self) -> str:
        """See `Dialect.ids`."""
        return "bigint[]"

    def bytes(self) -> str:
        """See `Dialect.bytes`."""
        return "bytea"

    def text(self) -> str:
        """See `Dialect.text`: whatever the collation of the database."""
        return 'text COLLATE "C"'

    def web_address(self) -> str:
        """See `Dialect.web_address`."""
        return 'fp uuid NOT NULL UNIQUE, url text COLLATE "C" NOT NULL'

    def key_type(self) -> str:
        """See `Dialect.key_type`."""
        return "uuid"

    def often_updated(self) -> str:
        """See `Dialect.often_updated`."""
        return "WITH (fillfactor = 50)"

    def emptied_often(self) -> str:
        """See `Dialect.emptied_often`."""
        return (
            "WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)"
        )

    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """See `Dialect.given`."""
        turned = list(zip(*rows, strict=True)) or [()] * len(columns)
        return {f"{column}_s": list(values) for column, values in zip(columns, turned, strict=True)}

    def given_found(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """See `Dialect.given_found`."""
        return self.given(_FOUND, [(self.key_of(row.url), *row) for row in rows])

    def all_of(self, values: Iterable[Any]) -> list[Any]:
        """See `Dialect.all_of`."""
        return list(values)

    def key_of(self, url: str) -> str:
        """See `Dialect.key_of`: a fingerprint, as text of the type `uuid`."""
        return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def array(self, ids: Sequence[int]) -> str:
        """See `Dialect.array`."""
        return "{" + ",".join(map(str, ids)) + "}"

    def arrays(self, values: Sequence[Any]) -> Sequence[Sequence[int]]:
        """See `Dialect.arrays`."""
        return [value or () for value in values]
