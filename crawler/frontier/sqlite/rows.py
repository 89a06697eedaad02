"""The rows that SQL statements of the SQLite frontier take and return: as JSON arrays, or as bound values.

A statement processes a whole group in one call, so the interpreter lock is released once, not for each row. Bound values
are for wide rows: SQLite prints and parses a JSON row again for each of its columns. The columns of statements are generated
from the types of the rows, here and in `frontier.rows`.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from crawler.frontier.rows import FoundRow
from crawler.model.external import CheckedLink

MOST_ROWS: Final = 256  # in a statement with bound values, of which SQLite takes 32,766


def named(columns: Sequence[str]) -> str:
    """SQL that names the values of such rows from `json_each` as columns."""
    return ", ".join(f"value ->> {place} AS {column}" for place, column in enumerate(columns))


def array(ids: Sequence[int]) -> str:
    """Ids as they are stored in a row."""
    return json.dumps(ids, separators=(",", ":"))


def bound(width: int, count: int, first: int) -> str:
    """`count` rows of bound values, for VALUES; their parameters are numbered from `first` on."""
    row = f"({', '.join('?' * width)})"
    return ", ".join([row] * count).replace("?", f"?{first}", 1)


def padded(rows: Sequence[Sequence[Any]]) -> tuple[int, Iterable[Any]]:
    """The number of rows to bind, a power of two so that few statements are prepared, and their values; NULL fills up."""
    count = 1 << (len(rows) - 1).bit_length()
    nothing = (None,) * len(rows[0])
    return count, chain(chain.from_iterable(rows), *repeat(nothing, count - len(rows)))


FOUND: Final = f"(SELECT {named(FoundRow._fields)} FROM json_each(:rows))"
"""A group of `FoundRow`, as a table in a statement."""

ANSWERS: Final = f"(SELECT {named(CheckedLink._fields)} FROM json_each(:rows)) AS r"
"""The same for a group of `CheckedLink`."""


class DueRow(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in its row."""

    id: int
    url: str
    depth: int
    hops: int
    via: str | None
    attempts: int
    facts_run: int | None
    outcome: str | None
    detail: str | None
