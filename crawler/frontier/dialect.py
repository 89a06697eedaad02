"""What SQLite and PostgreSQL say differently, so that tables and statements are written once.

Statements are SQL that both understand, with parameters `:name` and with marks, `@name` or `@name(arguments)`: the methods
of `Dialect` that return SQL. Which statements there are, and what they mean, is up to the modules that own the tables.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, Final

from crawler.frontier.rows import FoundRow

_MARK: Final = re.compile(r"(?<!\w)@([a-z]\w*)(?:\(([^()]*)\))?")


class Dialect(ABC):
    """The SQL of one database."""

    column: ClassVar[str]
    """The column of `url` and `image` by which a URL is found."""

    def sql(self, text: str) -> str:
        """A statement in this dialect."""
        return _MARK.sub(self._replaced, text)

    def _replaced(self, mark: re.Match[str]) -> str:
        arguments = [part.strip() for part in self.sql(mark[2]).split(",")] if mark[2] else []
        return str(getattr(self, mark[1])(*arguments))

    # -- marks: columns and rows that a statement takes ---------------------------------------------------------

    def key(self) -> str:
        """The column by which a URL is found."""
        return self.column

    def found(self) -> str:
        """A group of `FoundRow`, as a table `r`."""
        return self.rows(*dict.fromkeys((self.column, *FoundRow._fields)))

    @abstractmethod
    def rows(self, *columns: str) -> str:
        """The rows of `given`, as a table `r`; its column `place_` numbers them."""

    @abstractmethod
    def any(self, name: str, kind: str = "bigint") -> str:
        """The comparison of a column with all values of a parameter."""

    @abstractmethod
    def first(self) -> str:
        """The comparison of a column with the rows of a query that has a LIMIT or locks rows; then `@end`."""

    @abstractmethod
    def end(self) -> str:
        """The end of `@first`."""

    @abstractmethod
    def each(self, array: str) -> str:
        """A join with the elements of an array: `j.value`."""

    @abstractmethod
    def place(self) -> str:
        """The place of such an element, from 1 on."""

    @abstractmethod
    def size(self, array: str) -> str:
        """The number of elements of an array; 0 for NULL."""

    @abstractmethod
    def columns_of_url(self) -> str:
        """The columns that hold a URL, as in `@found`."""

    @abstractmethod
    def insertion_order(self) -> str:
        """The order in which rows of `@found` are inserted: one in which members never wait for each other in a circle."""

    @abstractmethod
    def next_id(self) -> str:
        """The id of the next row of `url`."""

    # -- marks: expressions -----------------------------------------------------------------------------------

    @abstractmethod
    def least(self, *parts: str) -> str:
        """The function that returns the smallest of its arguments, none of which is NULL."""

    @abstractmethod
    def greatest(self, *parts: str) -> str:
        """The function that returns the greatest of its arguments, none of which is NULL."""

    @abstractmethod
    def whole(self, seconds: str) -> str:
        """Seconds without their fraction."""

    @abstractmethod
    def time(self, seconds: str) -> str:
        """Seconds since the epoch as a date and time for readers, in UTC."""

    @abstractmethod
    def clock(self) -> str:
        """The time in seconds since the epoch."""

    @abstractmethod
    def json(self, column: str) -> str:
        """A text of JSON, for readers."""

    @abstractmethod
    def position(self, *parts: str) -> str:
        """The function that returns where a text contains another one, from 1 on; 0: nowhere."""

    # -- marks: locks -----------------------------------------------------------------------------------------

    @abstractmethod
    def lock(self, *tables: str) -> str:
        """Locks the rows of a query until the transaction ends, where others write too."""

    @abstractmethod
    def lock_shared(self) -> str:
        """The same, but others may do so too."""

    @abstractmethod
    def skip_locked(self) -> str:
        """The same for those rows that are not locked."""

    # -- marks: types and options of tables --------------------------------------------------------------------

    @abstractmethod
    def identity(self) -> str:
        """The type of an id that the database chooses."""

    @abstractmethod
    def number(self) -> str:
        """The type of an id that a statement gives."""

    @abstractmethod
    def ids(self) -> str:
        """The type of an array of ids."""

    @abstractmethod
    def bytes(self) -> str:
        """The type of bytes."""

    @abstractmethod
    def text(self) -> str:
        """The type of text, which is compared byte by byte."""

    @abstractmethod
    def web_address(self) -> str:
        """The column `url` and whatever makes it unique."""

    @abstractmethod
    def key_type(self) -> str:
        """The type of `@key`."""

    @abstractmethod
    def often_updated(self) -> str:
        """Options of a table whose rows are updated often."""

    @abstractmethod
    def emptied_often(self) -> str:
        """Options of a table whose rows are deleted as fast as they come."""

    # -- values of parameters ---------------------------------------------------------------------------------

    @abstractmethod
    def given(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """The parameters of `@rows`."""

    @abstractmethod
    def given_found(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """The parameters of `@found`."""

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


@cache
def translated(dialect: Dialect, text: str) -> str:
    """A statement in a dialect. There are some two hundred statements."""
    return dialect.sql(text)


def called(function: str, parts: Sequence[str]) -> str:
    """A call of a function; without parts its name, which the statement goes on from."""
    return f"{function}({', '.join(parts)})" if parts else function
