"""The open state: a connection with short methods, the current run, and the clock.

The SQL is in the modules that own the tables.

Synchronous and blocking; each call belongs to a transaction, which the backend opens and closes. Where the
database is far away, what is done or asked (`do`, `ask`) is sent at once, and waited for together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from crawler.frontier.dialect import Dialect

CHUNK: Final = 5_000  # URLs to read at a time


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed."""

    @property
    def description(self) -> Any:
        """Its columns; the first item of each is the name."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""


class Database(ABC):  # noqa: PLR0904 - each is short
    """A connection with short methods. `clock`: seconds since the epoch."""

    dialect: ClassVar[Dialect]
    is_shared: ClassVar[bool]
    """Whether other members may write to the same state."""
    ids_ahead: ClassVar[int] = 0
    """For so many new URLs at most, ids are asked for before they are inserted, which saves a round trip."""
    life: ClassVar[float]
    """Seconds without a heartbeat after which a member is taken for dead."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self._caches: list[Callable[[], None]] = []
        self.run = 0
        """The number of the current run, or of the newest."""
        self.since = 0
        """Facts from this run or a later one may be used for conditional requests."""
        self.member = 0
        """The number of this member; 0 while it only reads."""
        self.interval = (0, 0.0, 0.0)
        """The number of a run, its `RunTime.interval`, and when it began: read once."""
        self.end: Callable[[], None] = lambda: None
        """Sends the end of the transaction with what was asked last: nothing more is written in it."""
        self.is_retry = False
        """The transaction is tried again, and may have been committed before."""

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Register `cache`, which is called when cached rows may be wrong."""
        self._caches.append(cache)

    def forget(self) -> None:
        """Clear all caches, after a transaction was rolled back."""
        for cache in self._caches:
            cache()

    def read_newest(self) -> None:
        """Read the newest run, until one begins."""
        self.run = self.since = self.newest()

    def newest(self) -> int:
        """The number of the newest run; 0 before the first."""
        return self.one("SELECT max(number) FROM run")[0] or 0

    @abstractmethod
    def check(self) -> Callable[[], None]:
        """Ask whether the database is another one. The result raises an exception if it is, after which the
        call is tried again.
        """

    @abstractmethod
    def by_index(self) -> None:
        """Have the transaction read large tables by index only, where the database would choose otherwise."""

    @abstractmethod
    def lock_runs(self) -> None:
        """Let no other member begin or change a run until the transaction ends."""

    @abstractmethod
    def execute(self, sql: str, given: Mapping[str, Any]) -> Cursor:
        """Execute a statement of any dialect."""

    @abstractmethod
    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, or update these columns of those that are there already. The first column is the key.

        Arrays of ids are given as text (`Dialect.array`). For wide rows, of which there are many.
        """

    def do(self, sql: str, given: Mapping[str, Any] | None = None) -> None:
        """Execute a statement. Nobody waits for it before the next result is read."""
        self.execute(sql, given or {})

    def do_rows(self, sql: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **given: Any) -> None:
        """The same for a statement that takes `@rows` of these columns, and treats each row alone."""
        self.do(sql, self.dialect.given(columns, rows) | given)

    def changed(self, sql: str, given: Mapping[str, Any] | None = None) -> int:
        """Execute a statement; the number of rows that it changed."""
        return self.execute(sql, given or {}).rowcount

    def ask(
        self, sql: str, given: Mapping[str, Any] | None = None, *, packed: bool = False
    ) -> Callable[[], list[Any]]:
        """The rows of a query as it is executed now, waited for when the result is called.

        `packed`: it is part of the work on every group of pages; reals may lose their last digits.
        """
        _ = packed
        rows = self.all(sql, given)
        return lambda: rows

    def ask_whole(self, sql: str, given: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """The same for a query that joins all rows of a run."""
        return self.ask(sql, given)

    def ask_rows(
        self, sql: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **given: Any
    ) -> Callable[[], list[Any]]:
        """The same for a statement that takes `@rows`."""
        return self.ask(sql, self.dialect.given(columns, rows) | given)

    def one(self, sql: str, given: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """The only row of the result."""
        row: tuple[Any, ...] = self.execute(sql, given or {}).fetchone()
        return row

    def one_or_none(self, sql: str, given: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        row: tuple[Any, ...] | None = self.execute(sql, given or {}).fetchone()
        return row

    def count(self, sql: str, given: Mapping[str, Any] | None = None) -> int:
        """The number that a statement returns."""
        return int(self.one(sql, given)[0])

    def all(self, sql: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self.execute(sql, given or {}).fetchall()

    def chunks(self, sql: str, given: Mapping[str, Any]) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query in chunks, by id: its first column. It takes `:after` and `:limit`."""
        after = 0
        while rows := self.all(sql, {**given, "after": after, "limit": CHUNK}):
            yield rows
            if len(rows) < CHUNK:
                return
            after = rows[-1][0]
