"""The rows that go into the statements of the SQLite frontier and come out of them, as JSON arrays.

A statement works on a whole group: one step of SQLite, not one for each row, and so one release of the interpreter
lock, not hundreds. Each shape is declared here once: the list of columns in a statement is made from it, so that no statement counts
positions. Which facts there are, and how they are written, is for `model.serialise`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from crawler.model.outcome import Failed, code
from crawler.model.serialise import FACTS, detail_of, plain_facts
from crawler.model.settlement import Settlement

FACT_COLUMNS: Final = tuple(fact.name for fact in FACTS)


def named(columns: Sequence[str]) -> str:
    """What `json_each` gives for such rows, as columns with names."""
    return ", ".join(f"value ->> {place} AS {column}" for place, column in enumerate(columns))


def of(table: str, columns: Iterable[str], **elsewhere: str) -> str:
    """These columns of a table, for a SELECT; those named `elsewhere` are of another."""
    return ", ".join(elsewhere.get(column, f"{table}.{column}") for column in columns)


class FoundRow(NamedTuple):
    """A URL that was found, on its way in."""

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
"""A group of these, as a table in a statement."""


class DueRow(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in the same row."""

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
    """The ids of what a page leads to."""

    links: list[int] | None = None  # below zero: nofollow; None leaves the remembered ones
    named: int = 0  # of these, at their head, that the page only names: its canonical, where it redirects to


class SettledRow(NamedTuple):
    """What became of a visit; its facts follow in the same row."""

    id: int
    outcome: str
    detail: str | None
    links: list[int] | None
    named: int  # of these, at their head, that the page only names: its canonical, where it redirects to
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
        *links,
        verdict.unchanged,
        patience,
        verdict.facts is not None and not isinstance(verdict.outcome, Failed),
        settlement.listable,
    )
    return [*row, *plain_facts(verdict.facts)]
