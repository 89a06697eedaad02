"""The fifth role of the frontier: the whole state, row by row, for reports and lists."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from crawler.model.rows import EdgeRow, PageRow, RunRow


class Rows(Protocol):
    """Streams over the whole state in constant memory, without writes or locks.

    Values missing in the state are None. The backend chooses the size of the chunks.
    """

    def page_rows(self) -> AsyncIterator[Sequence[PageRow]]:
        """Every URL found by a run that is still stored, sorted by URL."""
        ...

    def edge_rows(self) -> AsyncIterator[Sequence[EdgeRow]]:
        """The links, redirect and canonical of each URL of the newest run that has any, sorted by URL."""
        ...

    async def rows_of(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """Rows by their ids; unknown ids are left out."""
        ...

    async def run_rows(self) -> Sequence[RunRow]:
        """The stored runs, newest last."""
        ...
