"""The fifth role of the frontier: the whole state, row by row, for reports and lists."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final, Protocol

from crawler.model.rows import EdgeRow, FeatureRow, HostRow, PageRow, RunRow, Tallies
from crawler.parse.url import Url

HOSTS: Final = 50  # most hosts in a report


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

    def suspect_rows(self) -> AsyncIterator[Sequence[PageRow]]:
        """The settled URLs of the newest run that may have a finding of their own, in any order.

        These are all that are not listed, apart from those on other sites that are not known to be broken,
        and the listed ones that a sitemap or input contains. Only `id`, `run`, `outcome`, `was`, `seed` and
        `external` are filled in.
        """
        ...

    def reading_pages(self, name: str, more_than: int = 0) -> AsyncIterator[Sequence[FeatureRow]]:
        """The listed pages of the newest run of which a feature read more than that many URLs, sorted by URL.

        Without what it read.
        """
        ...

    async def read_of(self, name: str, urls: Sequence[Url]) -> Mapping[Url, FeatureRow]:
        """Those of these URLs that the newest run settled, with what a feature read of their pages."""
        ...

    async def common_urls(self, name: str, fewest: int, percent: int) -> Collection[Url]:
        """The URLs that a feature read of at least that many listed pages of the newest run, and that share of them.

        Reads all pages.
        """
        ...

    async def tallies(self) -> Tallies:
        """Counts over the listed pages of the newest run, for findings that need no other row."""
        ...

    async def host_rows(self) -> Sequence[HostRow]:
        """The origins that the newest run asked for pages, the busiest first, at most `HOSTS`."""
        ...

    async def rows_of(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """Rows by their ids; unknown ids are left out."""
        ...

    async def run_rows(self) -> Sequence[RunRow]:
        """The stored runs, newest last."""
        ...
