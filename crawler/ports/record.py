"""The fourth role of the frontier: the outcomes of the pages."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from crawler.model.facts import Entry
from crawler.model.lease import Lease
from crawler.model.reasons import Source, Why
from crawler.model.survey import Balance, Build, Doubts, Evidence, SameContent, SitemapCounts, Survey
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Link
from crawler.parse.url import Url


class Record(Protocol):
    """The outcomes of the pages of a run: which are listed, with which date, and why.

    For the rules over all pages, for the sitemap, and for questions about a run or a URL.
    """

    async def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """For each page, its links as last parsed with these settings, if they may lead to anything new.

        Links whose numbers would be positive in `Settled` may be left out, unless the page is a redirect or
        has another canonical, or the URL has a trap pattern.
        """
        ...

    async def evidence(self, window: int, older: int) -> tuple[Sequence[Evidence], Sequence[Build]]:
        """For each origin, whether its Last-Modified headers are reliable, and its largest build.

        That is the `window` seconds with most Last-Modified headers of listed pages. A page states an older
        date if that is more than `older` seconds before its header.
        """
        ...

    async def date(self, sources: Sequence[Source], doubts: Doubts) -> None:
        """Gives every listed page its lastmod from the first source in `sources` that has one.

        Sources in `doubts`, and headers that changed while the content did not, are ignored. Content that was
        dated before keeps its date, also when it reappears.
        """
        ...

    async def same_content(self, least: int) -> Sequence[SameContent]:
        """Groups of at least that many listed pages with the same content; the largest twenty."""
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

    async def last_answered(self, origin: str) -> Url | None:
        """The listed page of an origin that answered last in this run."""
        ...

    def entries(self, first: str = "", below: str = "\x7f") -> AsyncIterator[Sequence[Entry]]:
        """The entries of this run from `first` up to, but not including, `below`, by URL, in chunks."""
        ...

    def known_urls(self) -> AsyncIterator[Sequence[Url]]:
        """All known URLs of the site in this run, with any outcome, in chunks."""
        ...

    async def balance(self) -> Balance:
        """The counts of all URLs of this run."""
        ...

    async def examples(self, outcome_code: str, limit: int = 3) -> Sequence[Url]:
        """A few URLs of this run with that outcome, independent of the order of discovery."""
        ...

    async def published_outcomes(self) -> Mapping[str, int]:
        """The outcomes in this run of the pages of the last publication: counts by code; "" for none yet."""
        ...

    async def traps(self) -> Sequence[Trap]:
        """The crawler traps of this run: those stored by `Queue.store_traps`, and closed patterns."""
        ...

    async def sitemaps(self) -> SitemapCounts:
        """The counts of the sitemaps of this run."""
        ...

    async def survey(self, site: str) -> Survey:
        """Counts over all URLs of the site with origin `site`. Reads all of them."""
        ...

    async def first_start(self) -> Url | None:
        """The first start URL of this run."""
        ...

    async def record(self, url: Url) -> UrlRecord | None:
        """All that is known about one URL."""
        ...

    async def count_linking(self, url: Url) -> int:
        """The number of pages of this run that link to a URL. Slow, as it reads all of them."""
        ...
