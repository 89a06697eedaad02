"""The open state, as the modules see it that both backends share: a connection with short methods.

Statements name their parameters `:name`. Each call belongs to a transaction of the backend.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

CHUNK: Final = 5_000  # URLs to read at a time


class Tables(Protocol):
    """The `Database` of a backend."""

    run: int

    @property
    def urls(self) -> str:
        """The table or view with one row per URL."""
        ...

    @property
    def now(self) -> Callable[[], float]:
        """The clock: seconds since the epoch."""
        ...

    def on_forget(self, cache: Callable[[], None]) -> None:
        """Register `cache`, which is called when cached rows may be wrong."""
        ...

    def ids(self, numbers: Sequence[int]) -> Any:
        """The parameter of a statement that takes record numbers."""
        ...

    def do(self, sql: str, given: Any = ...) -> int:
        """Execute a statement without a result; the number of rows that it changed."""
        ...

    def one(self, sql: str, given: Any = ...) -> tuple[Any, ...]:
        """The only row of the result."""
        ...

    def one_or_none(self, sql: str, given: Any = ...) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        ...

    def count(self, sql: str, given: Any = ...) -> int:
        """The number that a statement returns."""
        ...

    def all(self, sql: str, given: Any = ...) -> list[tuple[Any, ...]]:
        """All rows."""
        ...
