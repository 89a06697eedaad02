"""The SQL of PostgreSQL: groups of rows are arrays, one for each column, and members lock what they write.

A URL is found by a fingerprint, since an index on the text would refuse long URLs.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Final
from zlib import crc32

from crawler.frontier.dialect import Dialect
from crawler.frontier.schema import FACT_TYPES

_BY_TYPE: Final = {
    "bigint": "target id token host via trap sample dated_lastmod dated_header dated_stated was_lastmod at",
    "double precision": "settled due until checked ease failing first_visit last_visit",
    "integer": "state depth hops kind attempts deaths named place round facts_run was_hops "
    "failing_run rank visited visits changes asked",
    "text": "url outcome detail links name read code origin base sorting mark "
    "published_content dated_content text landmark version missing was",
    "uuid": "fp",
    "boolean": "bounded",
}
_TYPES: Final = {
    column: kind for kind, columns in _BY_TYPE.items() for column in columns.split()
} | FACT_TYPES
ARRAYS: Final = ("links",)


_VANISHED: Final = "backend IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = backend)"


class PostgresDialect(Dialect):
    """See `Dialect`."""

    words: ClassVar = {
        "key": "fp",
        "key_type": "uuid",
        "columns_of_url": "fp, url",
        "web_address": 'fp uuid NOT NULL UNIQUE, url text COLLATE "C" NOT NULL',
        "next_id": "nextval('url_id')",
        "insertion_order": "fp",
        "first": "= ANY (ARRAY(",
        "end": "))",
        "place": "j.place",
        "least": "least",
        "greatest": "greatest",
        "position": "strpos",
        "each": "CROSS JOIN LATERAL unnest({}) WITH ORDINALITY AS j (value, place)",
        "each_json": "CROSS JOIN LATERAL json_array_elements({}::json) AS j",
        "json_size": "json_array_length({}::json)",
        "time": "(to_timestamp(floor({})) AT TIME ZONE 'UTC')",
        "json": "{}::json",
        "clock": "extract(epoch FROM clock_timestamp())",
        "backend": "pg_backend_pid()",
        # Only if this session has lasted: after a restart of the server, none has.
        "vanished": _VANISHED,
        "disconnected": (
            f"{_VANISHED} AND EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = pg_backend_pid() "
            "AND backend_start < clock_timestamp() - make_interval(secs => :steady))"
        ),
        "lock_shared": "FOR SHARE",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        "identity": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "number": "bigint PRIMARY KEY",
        "ids": "bigint[]",
        "bytes": "bytea",
        "text": 'text COLLATE "C"',
        "often_updated": "WITH (fillfactor = 50)",
        "emptied_often": "WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, "
        "autovacuum_vacuum_cost_delay = 0)",
        "small": "",
    }

    def rows(self, *columns: str) -> str:
        arrays = ", ".join(f":{column}_s::{_TYPES[column]}[]" for column in columns)
        return f"unnest({arrays}) WITH ORDINALITY AS r({', '.join(columns)}, place_)"

    def any(self, name: str, kind: str = "bigint") -> str:
        return f"= ANY (:{name}::{'uuid' if kind == 'key' else kind}[])"

    def lock(self, *tables: str) -> str:
        return f"FOR UPDATE OF {', '.join(tables)}" if tables else "FOR UPDATE"

    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        turned = list(zip(*rows, strict=True)) or [()] * len(columns)
        return {f"{column}_s": list(values) for column, values in zip(columns, turned, strict=True)}

    def all_of(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def key_of(self, url: str) -> str:
        """See `Dialect.key_of`: a fingerprint, as text of the type `uuid`.

        URLs of a folder lie together in the index: what pages link to changes few of its blocks, each of
        which is written to the log whole after a checkpoint.
        """
        data = url.encode("utf-8", "surrogatepass")
        folder = data.partition(b"?")[0].rpartition(b"/")[0]
        return f"{crc32(folder):08x}{blake2b(data, digest_size=12).hexdigest()}"

    def array(self, ids: Sequence[int]) -> str:
        return "{" + ",".join(map(str, ids)) + "}"

    def arrays(self, values: Sequence[Any]) -> Sequence[Sequence[int]]:
        return [value or () for value in values]
