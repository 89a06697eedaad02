"""The rows that SQL statements of the PostgreSQL frontier take and return: one array for each column.

A statement processes a whole group in one call. The columns of statements are generated from the types of the rows, here
and in `frontier.rows`; `_TYPES` has the SQL type of each column.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from crawler.frontier.postgres.schema import FACT_TYPES
from crawler.frontier.rows import FoundRow

_TYPES: Final = {
    "id": "bigint", "token": "bigint", "fp": "uuid", "url": "text", "state": "smallint", "host": "bigint", "depth": "integer",
    "hops": "integer", "via": "bigint", "outcome": "text", "settled": "double precision", "detail": "text",
    "trap": "bigint", "sample": "bigint", "links": "text", "images": "text", "unchanged": "boolean", "patience": "double precision",
    "answered": "boolean", "listable": "boolean", "kind": "smallint", "name": "text", "was": "integer", "until": "double precision",
    "named": "integer", "share": "integer", "base": "text", "place": "integer", "sorting": "text", "first": "bigint", "last": "bigint",
    "code": "text", "checked": "double precision", "failed": "text", "kept": "text", "seconds": "double precision", "origin": "text", "ease": "double precision",
    **FACT_TYPES,
}  # fmt: skip


def fp(url: str) -> str:
    """The fingerprint of a URL, by which its row is found, as text of the type `uuid`."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def table(columns: Sequence[str], name: str = "r") -> str:
    """SQL for a table of these columns, from the arrays of `given`; the column `place_` numbers its rows."""
    arrays = ", ".join(f":{column}_s::{_TYPES[column]}[]" for column in columns)
    return f"unnest({arrays}) WITH ORDINALITY AS {name}({', '.join(columns)}, place_)"


def given(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """The parameters of `table`: these rows as one array for each column."""
    turned = list(zip(*rows, strict=True)) or [()] * len(columns)
    return {f"{column}_s": list(values) for column, values in zip(columns, turned, strict=True)}


def array(ids: Sequence[int]) -> str:
    """Ids as text of an array."""
    return "{" + ",".join(map(str, ids)) + "}"


FOUND_COLUMNS: Final = ("fp", *FoundRow._fields)

FOUND: Final = table(FOUND_COLUMNS)
"""A group of `FoundRow` with the fingerprints of their URLs, as a table in a statement."""


def given_found(rows: Sequence[FoundRow]) -> dict[str, Any]:
    """The parameters of `FOUND`."""
    return given(FOUND_COLUMNS, [(fp(row.url), *row) for row in rows])


class DueRow(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in its row."""

    id: int
    url: str
    depth: int
    hops: int
    via: str | None
    attempts: int
    deaths: int
    facts_run: int | None
    outcome: str | None
    detail: str | None
