"""What SQLite and PostgreSQL say differently, so that tables and statements are written once.

Statements are SQL that both understand, with parameters `:name` and with marks, `@name` or
`@name(arguments)`: the methods of `Dialect` that return SQL. Which statements there are, and what they mean,
is up to the modules that own the tables.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final

from crawler.frontier.rows import FoundRow

# The literal first, as it is searched for fastest.
_MARK: Final = re.compile(r"@(?<!\w@)([a-z]\w*)(?:\(([^()]*)\))?")

WORDS: Final = frozenset({
    # The column by which a URL is found, its type; the columns that hold a URL, and how they are declared.
    "key", "key_type", "columns_of_url", "web_address",
    # The id of the next row of `url`; the order in which rows are inserted, so that members never deadlock.
    "next_id", "insertion_order",
    # Compares a column with the rows of a query that has a LIMIT or locks rows, up to `@end`.
    "first", "end",
    # The place of an element of `@each`, from 1 on.
    "place",
    # Functions: of values none of which is NULL, and of where a text contains another one, from 1 on.
    "least", "greatest", "position",
    # Joins with the elements of an array, as `j.value`: of ids, and of JSON in a text; and how many it has.
    "each", "each_json", "json_size",
    # For readers: seconds since the epoch as a date and time in UTC, and a text of JSON.
    "time", "json",
    # The time in seconds since the epoch.
    "clock",
    # The session of this connection; whether that of a member has ended, and whether it has for certain.
    "backend", "vanished", "disconnected",
    # Lock the rows of a query until the transaction ends, where others write too.
    "lock_shared", "skip_locked",
    # Types: ids that the database chooses, and that a statement gives; arrays of ids; text by bytes.
    "identity", "number", "ids", "bytes", "text",
    # Options of tables whose rows are updated often, or deleted as fast as they come; or are small, and found
    # by a key of several columns only.
    "often_updated", "emptied_often", "small",
})  # fmt: skip
"""Marks that are words: each is another one in each database. One with `{}` takes an argument."""


class Dialect(ABC):
    """The SQL of one database."""

    words: ClassVar[Mapping[str, str]]
    """What the marks of `WORDS` stand for."""

    def sql(self, text: str) -> str:
        """A statement in this dialect."""
        return _MARK.sub(self._replaced, text)

    def _replaced(self, mark: re.Match[str]) -> str:
        name, inside = mark[1], self.sql(mark[2] or "")
        if name in self.words:
            word = self.words[name]
            if "{}" in word:
                return word.format(inside)
            return word if mark[2] is None else f"{word}({inside})"
        arguments = [part.strip() for part in inside.split(",")] if inside else []
        return str(getattr(self, name)(*arguments))

    # -- other marks with arguments

    def found(self, *more: str) -> str:
        """A group of `FoundRow`, and `more` columns, as a table `r`."""
        return self.rows(*found_columns(self), *more)

    @abstractmethod
    def rows(self, *columns: str) -> str:
        """The rows of `given`, as a table `r`; its column `place_` numbers them."""

    @abstractmethod
    def any(self, name: str, kind: str = "bigint") -> str:
        """The comparison of a column with all values of a parameter."""

    @abstractmethod
    def lock(self, *tables: str) -> str:
        """Locks the rows of a query until the transaction ends, where others write too."""

    # -- values of parameters

    @property
    def column(self) -> str:
        """The column by which a URL is found."""
        return self.words["key"]

    @abstractmethod
    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """The parameters of `@rows`."""

    def given_found(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """The parameters of `@found`."""
        return self.given(found_columns(self), found_rows(self, rows))

    @abstractmethod
    def all_of(self, values: Iterable[Any]) -> Any:
        """The parameter of `@any`."""

    @abstractmethod
    def key_of(self, url: str) -> str:
        """The value of `@key` for a URL."""

    @abstractmethod
    def array(self, ids: Sequence[int]) -> str:
        """Ids as text of an array, to be stored by `Database.upsert`."""

    @abstractmethod
    def arrays(self, values: Sequence[Any]) -> Sequence[Sequence[int]]:
        """Arrays of ids as a query returns them; none for NULL."""

    def keys(self, urls: Iterable[str]) -> Any:
        """The parameter of `@any` for URLs."""
        return self.all_of(self.key_of(url) for url in urls)


def found_columns(dialect: Dialect) -> Sequence[str]:
    """The columns of `@found`: those of `FoundRow`, after the column by which a URL is found."""
    return tuple(dict.fromkeys((dialect.column, *FoundRow._fields)))


def found_rows(dialect: Dialect, rows: Sequence[FoundRow]) -> Sequence[Sequence[Any]]:
    """Rows with the columns of `@found`."""
    if dialect.column in FoundRow._fields:
        return rows
    return [(dialect.key_of(row.url), *row) for row in rows]


@cache
def translated(dialect: Dialect, text: str) -> str:
    """A statement in a dialect. There are some two hundred statements."""
    return dialect.sql(text)
