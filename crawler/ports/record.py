"""The fourth role of the frontier: the outcomes of the pages."""

from collections.abc import Sequence
from typing import Protocol

from crawler.model.lease import Lease
from crawler.model.reasons import Source, Why
from crawler.model.survey import Doubts, SameContent
from crawler.model.visit import Link
from crawler.parse.url import Url
from crawler.ports.reads import Reads


class Record(Reads, Protocol):
    """The outcomes of the pages of a run: which are listed, with which date, and why.

    For the rules over all pages, for the sitemap, and for questions about a run or a URL.
    """

    async def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """For each page, its links as last parsed with these settings, if they may lead to anything new.

        Links whose numbers would be positive in `Settled` may be left out, unless the page is a redirect or
        has another canonical, or the URL has a trap pattern.
        """
        ...

    async def date(self, sources: Sequence[Source], doubts: Doubts) -> None:
        """Gives every listed page its lastmod from the first source in `sources` that has one.

        Sources in `doubts`, and headers that changed while the content did not, are ignored. Content that was
        dated before keeps its date, also when it reappears.
        """
        ...

    async def withdraw(self, pages: Sequence[Url] | SameContent, why: Why, detail: str) -> None:
        """Unlists listed pages of this run."""
        ...

    async def unlist_duplicates(self) -> None:
        """Lists one of the pages that are the same by `rules.duplicates`; the others are its duplicates."""
        ...

    async def unlist_repeats(self) -> int:
        """Unlists pages of closed patterns without content of their own. Returns how many."""
        ...

    async def keep_failing(self) -> None:
        """Decides which failed pages of this run stay listed, by `keep_failing`. May be called again."""
        ...
