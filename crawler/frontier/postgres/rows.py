"""The rows that go into the statements of the PostgreSQL frontier, as one array a column, and the names of those that come out.

A statement works on a whole group. Each shape is declared here once, with the types of its columns.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from crawler.frontier.postgres.schema import FACT_TYPES
from crawler.model.outcome import Failed, code
from crawler.model.serialise import detail_of, plain_facts
from crawler.model.settlement import Settlement

FACT_COLUMNS: Final = tuple(FACT_TYPES)

_TYPES: Final = {
    "id": "bigint", "token": "bigint", "fp": "uuid", "url": "text", "state": "smallint", "host": "bigint", "depth": "integer",
    "hops": "integer", "via": "bigint", "outcome": "text", "settled": "double precision", "detail": "text",
    "trap": "bigint", "sample": "bigint", "links": "text", "unchanged": "boolean", "patience": "double precision",
    "answered": "boolean", "listable": "boolean", "kind": "smallint", "name": "text", "was": "integer", "until": "double precision",
    "named": "integer", "share": "integer", "base": "text", "place": "integer", "sorting": "text", "first": "bigint", "last": "bigint",
    "failed": "text", "kept": "text", "seconds": "double precision", "origin": "text", "ease": "double precision",
    **FACT_TYPES,
}  # fmt: skip


def fp(url: str) -> str:
    """The fingerprint by which a URL is found, as `uuid` reads it."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def table(columns: Sequence[str], name: str = "r") -> str:
    """The arrays of these columns as a table in a statement, `place_` being the place of a row."""
    arrays = ", ".join(f":{column}_s::{_TYPES[column]}[]" for column in columns)
    return f"unnest({arrays}) WITH ORDINALITY AS {name}({', '.join(columns)}, place_)"


def given(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """What `table` takes: the arrays of these columns."""
    turned = list(zip(*rows, strict=True)) or [()] * len(columns)
    return {f"{column}_s": list(values) for column, values in zip(columns, turned, strict=True)}


def of(name: str, columns: Iterable[str], **elsewhere: str) -> str:
    """These columns of a table, for a SELECT; those named `elsewhere` are of another."""
    return ", ".join(elsewhere.get(column, f"{name}.{column}") for column in columns)


class FoundRow(NamedTuple):
    """A URL that was found, on its way in."""

    fp: str
    url: str
    state: int
    host: int | None
    depth: int
    hops: int
    via: int | None
    outcome: str | None
    settled: float | None
    detail: str | None
    trap: int | None
    sample: int | None


FOUND: Final = table(FoundRow._fields)
"""A group of these, as a table in a statement."""


class DueRow(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in the same row."""

    id: int
    url: str
    depth: int
    hops: int
    via: str | None
    attempts: int
    deaths: int
    learned: int | None
    outcome: str | None
    detail: str | None


class LinkIds(NamedTuple):
    """The ids of what a page leads to."""

    links: Sequence[int] | None = None  # below zero: nofollow; None leaves the remembered ones
    named: int = 0  # of these, at their head, that the page only names: its canonical, where it redirects to


class SettledRow(NamedTuple):
    """What became of a visit; its facts follow in the same row."""

    id: int
    outcome: str
    detail: str | None
    links: str | None  # as PostgreSQL writes an array
    named: int  # of these, at their head, that the page only names: its canonical, where it redirects to
    unchanged: bool
    patience: float  # seconds
    answered: bool
    listable: bool


SETTLED: Final = (*SettledRow._fields, *FACT_COLUMNS)


def settled_row(settlement: Settlement, links: LinkIds, patience: float) -> list[Any]:
    """A `SettledRow` and its facts. `patience`: see `keep_failing.patience`."""
    verdict = settlement.verdict
    row = SettledRow(
        settlement.lease.id,
        code(verdict.outcome),
        detail_of(verdict.outcome) or None,
        None if links.links is None else "{" + ",".join(map(str, links.links)) + "}",
        links.named,
        verdict.unchanged,
        patience,
        verdict.facts is not None and not isinstance(verdict.outcome, Failed),
        settlement.listable,
    )
    return [*row, *plain_facts(verdict.facts)]
