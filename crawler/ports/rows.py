"""The fifth role of the frontier: the whole state, row by row, for reports and lists."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final, Protocol

from crawler.model.facts import Image, Version
from crawler.model.rows import EdgeRow, HostRow, PageRow, RunRow, Tallies
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

    def version_rows(self) -> AsyncIterator[Sequence[Version]]:
        """The settled URLs of the newest run that name language versions, sorted by URL."""
        ...

    async def versions(self, urls: Sequence[Url]) -> Mapping[Url, Version]:
        """Those of these URLs that the newest run settled."""
        ...

    async def images_of(self, urls: Sequence[Url]) -> Mapping[Url, Sequence[Image]]:
        """The images of those of these URLs that the newest run settled, in the order of the page."""
        ...

    async def common_images(self, fewest: int, percent: int) -> Collection[int]:
        """The ids of the images that so many listed pages of the newest run have, and that share of them.

        Reads all pages.
        """
        ...

    def many_images_rows(self, most: int) -> AsyncIterator[Sequence[PageRow]]:
        """The listed pages of the newest run with more than `most` images, sorted by URL.

        Only `id`, `url`, `run`, `outcome` and `was` are filled in.
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
