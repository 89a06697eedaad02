"""The rows that statements take: declared once, so that no statement depends on positions.

How a group of rows is passed to a statement is said by `dialect`. Facts and their stored form are defined in
`model.serialise`.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from crawler.model.reasons import Why
from crawler.model.serialise import FACTS

NOFOLLOW: Final = f"unlisted:{Why.NOFOLLOW.value}"
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

    @property
    def may_change(self) -> bool:
        """Whether a further link may change the new row, as in `discovery.KNOWN`."""
        return self.via is None or self.hops > 0 or self.outcome == NOFOLLOW
