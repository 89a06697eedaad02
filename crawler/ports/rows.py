"""The fifth role of the frontier: all that the state knows, row by row, for reports and lists."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from crawler.model.rows import EdgeRow, PageRow, RunRow


class Rows(Protocol):
    """Streams over the whole state, in memory that does not grow with it. Nothing is written, and nothing locked.

    What the state does not know of a row is None there. Chunks are as large as suits the backend.
    """

    def page_rows(self) -> AsyncIterator[Sequence[PageRow]]:
        """Every URL that a run still kept has found, in order of the URL's text."""
        ...

    def edge_rows(self) -> AsyncIterator[Sequence[EdgeRow]]:
        """Where the URLs of the newest run lead, those that lead anywhere, in order of the URL's text."""
        ...

    async def rows_of(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """Some rows by their ids; ids that nobody has are left out."""
        ...

    async def run_rows(self) -> Sequence[RunRow]:
        """The runs that are kept, the newest last."""
        ...
