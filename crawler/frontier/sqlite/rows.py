"""The rows that SQL statements of the SQLite frontier take and return: as JSON arrays, or as bound values.

A statement processes a whole group in one call, so the interpreter lock is released once, not for each row. Bound values
are for wide rows: SQLite prints and parses a JSON row again for each of its columns. Each row type is declared once, and
the columns of statements are generated from it, so that no statement depends on positions. Facts and their stored form are
defined in `model.serialise`.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from crawler.model.outcome import Failed, code
from crawler.model.serialise import FACTS, detail_of, plain_facts
from crawler.model.settlement import Settlement

MOST_ROWS: Final = 256  # in a statement with bound values, of which SQLite takes 32,766
FACT_COLUMNS: Final = tuple(fact.name for fact in FACTS)


def named(columns: Sequence[str]) -> str:
    """SQL that names the values of such rows from `json_each` as columns."""
    return ", ".join(f"value ->> {place} AS {column}" for place, column in enumerate(columns))


def of(table: str, columns: Iterable[str], **elsewhere: str) -> str:
    """The columns of a table, for a SELECT; `elsewhere` maps columns to expressions on other tables."""
    return ", ".join(elsewhere.get(column, f"{table}.{column}") for column in columns)


def bound(width: int, count: int, first: int) -> str:
    """`count` rows of bound values, for VALUES; their parameters are numbered from `first` on."""
    row = f"({', '.join('?' * width)})"
    return ", ".join([row] * count).replace("?", f"?{first}", 1)


def padded(rows: Sequence[Sequence[Any]]) -> tuple[int, Iterable[Any]]:
    """The number of rows to bind, a power of two so that few statements are prepared, and their values; NULL fills up."""
    count = 1 << (len(rows) - 1).bit_length()
    nothing = (None,) * len(rows[0])
    return count, chain(chain.from_iterable(rows), *repeat(nothing, count - len(rows)))


class FoundRow(NamedTuple):
    """A discovered URL to be stored."""

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


FOUND: Final = f"(SELECT {named(FoundRow._fields)} FROM json_each(:rows))"
"""A group of `FoundRow`, as a table in a statement."""


class DueRow(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in its row."""

    id: int
    url: str
    depth: int
    hops: int
    via: str | None
    attempts: int
    learned: int | None
    outcome: str | None
    detail: str | None


class LinkIds(NamedTuple):
    """The ids of the URLs that a page leads to."""

    links: Sequence[int] | None = None  # negative: nofollow; None keeps the stored ones
    named: int = 0  # how many of them, at the front, are only named: the canonical, the redirect target


class SettledRow(NamedTuple):
    """The outcome of a visit; its facts follow in its row."""

    id: int
    outcome: str
    detail: str | None
    links: str | None  # JSON array
    named: int  # how many of them, at the front, are only named: the canonical, the redirect target
    unchanged: bool
    patience: float  # seconds
    answered: bool
    listable: bool


def settled_row(settlement: Settlement, links: LinkIds, patience: float) -> list[Any]:
    """A `SettledRow` and its facts. `patience`: see `keep_failing.patience`."""
    verdict = settlement.verdict
    row = SettledRow(
        settlement.lease.id,
        code(verdict.outcome),
        detail_of(verdict.outcome) or None,
        None if links.links is None else json.dumps(links.links, separators=(",", ":")),
        links.named,
        verdict.unchanged,
        patience,
        verdict.facts is not None and not isinstance(verdict.outcome, Failed),
        settlement.listable,
    )
    return [*row, *plain_facts(verdict.facts)]
