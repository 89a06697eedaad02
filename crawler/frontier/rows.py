"""The rows that statements take: declared once, so that no statement depends on positions.

How a group of rows is passed to a statement is said by `dialect`. Facts and their stored form are defined in
`model.serialise`.
"""

from collections.abc import Iterable
from typing import Final

from crawler.model.serialise import FACTS
from crawler.parse.named_tuple import NamedTuple

FACT_COLUMNS: Final = tuple(fact.name for fact in FACTS)


def of(table: str, columns: Iterable[str], **elsewhere: str) -> str:
    """The columns of a table, for a SELECT; `elsewhere` maps columns to expressions on other tables."""
    return ", ".join(elsewhere.get(column, f"{table}.{column}") for column in columns)


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
