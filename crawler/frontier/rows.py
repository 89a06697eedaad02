"""The rows that statements of all backends take: declared once, so that no statement depends on positions.

How a backend passes a group of rows to a statement is in its own module `rows`. Facts and their stored form are defined in
`model.serialise`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crawler.model.outcome import Failed, code
from crawler.model.serialise import FACTS, detail_of, plain_facts
from crawler.model.settlement import Settlement
from crawler.parse.url import Url

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


class LinkIds(NamedTuple):
    """The ids of the URLs that a page leads to."""

    links: Sequence[int] | None = None  # negative: nofollow; None keeps the stored ones
    named: int = 0  # how many of them, at the front, are only named: the canonical, the redirect target


class SettledRow(NamedTuple):
    """The outcome of a visit; its facts follow in its row."""

    id: int
    outcome: str
    detail: str | None
    links: str | None  # an array, in the text form of the backend
    images: str | None  # as `links`; None: none, or those that are stored
    named: int  # how many of them, at the front, are only named: the canonical, the redirect target
    unchanged: bool
    patience: float  # seconds
    answered: bool
    listable: bool


SETTLED_COLUMNS: Final = (*SettledRow._fields, *FACT_COLUMNS)


def settled_row(
    settlement: Settlement,
    links: LinkIds,
    images: Mapping[Url, int],
    patience: float,
    array: Callable[[Sequence[int]], str],
) -> list[Any]:
    """A `SettledRow` and its facts. `images`: their ids. `patience`: see `keep_failing.patience`. `array`: writes ids."""
    return [*outcome_row(settlement, links, images, patience, array), *plain_facts(settlement.verdict.facts)]


def outcome_row(
    settlement: Settlement,
    links: LinkIds,
    images: Mapping[Url, int],
    patience: float,
    array: Callable[[Sequence[int]], str],
) -> SettledRow:
    """As `settled_row`, without the facts."""
    verdict = settlement.verdict
    return SettledRow(
        settlement.lease.id,
        code(verdict.outcome),
        detail_of(verdict.outcome) or None,
        None if links.links is None else array(links.links),
        array([images[image] for image in verdict.images]) if verdict.images else None,
        links.named,
        verdict.unchanged,
        patience,
        verdict.facts is not None and not isinstance(verdict.outcome, Failed),
        settlement.listable,
    )
