"""The fourth role of the frontier: what became of the pages."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from crawler.model.facts import Entry
from crawler.model.lease import Lease
from crawler.model.reasons import Source, Why
from crawler.model.survey import Alike, Balance, Build, Doubts, Evidence, Survey
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Link
from crawler.parse.url import Url


class Record(Protocol):
    """What became of the pages of a run: what is listed, with which date, and why.

    For the rules over the set of all pages, for the sitemap, and for who asks about a run or a URL.
    """

    async def links(self, lease: Lease) -> Sequence[Link]:
        """What the page linked to when it was read last under these settings."""
        ...

    async def evidence(self) -> Sequence[Evidence]:
        """What this run's answers say of the dates in the headers of each origin."""
        ...

    async def builds(self, window: int, older: int) -> Sequence[Build]:
        """Of each origin the `window` seconds in which the most Last-Modified headers of listed pages lie.

        A page states an older date if that lies more than `older` seconds before its header.
        """
        ...

    async def date(self, ladder: Sequence[Source], doubts: Doubts) -> None:
        """Give every listed page its lastmod by the first rung of `ladder` that holds.

        No rung are what `doubts` names, and headers that moved while the content did not. Content that was dated
        before keeps its date, also when it comes back.
        """
        ...

    async def alike(self, least: int) -> Sequence[Alike]:
        """Groups of at least that many listed pages with the same content; the largest twenty."""
        ...

    async def withdraw(self, pages: Sequence[Url] | Alike, why: Why, detail: str) -> None:
        """Listed pages of this run that are not to be listed after all."""
        ...

    async def unlist_duplicates(self) -> None:
        """Of the listed pages that `duplicates` takes for one page, list one; the others are duplicates of it."""
        ...

    async def unlist_repeats(self) -> int:
        """Of the pages of closed patterns, list those only that show something of their own. How many are not."""
        ...

    async def keep(self) -> None:
        """Decide which failed pages of this run stay listed, by `keep_failing`. Decided anew each time it is called."""
        ...

    async def answered(self, origin: str) -> Url | None:
        """The page of an origin that answered last of those that are listed in this run."""
        ...

    def entries(self, first: str = "", below: str = "\x7f") -> AsyncIterator[Sequence[Entry]]:
        """What this run lists, from `first` on and below `below`, in order of the URL's text, in chunks."""
        ...

    def known(self) -> AsyncIterator[Sequence[Url]]:
        """The URLs of the site that this run knows, whatever became of them, in chunks."""
        ...

    async def balance(self) -> Balance:
        """Where every URL of this run stands."""
        ...

    async def filtered(self) -> int:
        """How many URLs of this run are known and not to be asked for."""
        ...

    async def examples(self, outcome_code: str, limit: int = 3) -> Sequence[Url]:
        """A few URLs of this run with that outcome, the same ones whichever was found first."""
        ...

    async def dated(self) -> Mapping[str, int]:
        """How many of the listed pages have a lastmod, by its source."""
        ...

    async def changed(self) -> Mapping[str, int]:
        """What this run says of the pages in the last publication: how many by outcome code; "" for no outcome yet."""
        ...

    async def traps(self) -> Sequence[Trap]:
        """The crawler traps of this run: those that were told, and the patterns that were closed."""
        ...

    async def sitemaps(self) -> Mapping[str, int]:
        """How many sitemaps of this run came to which `SeedOutcome` (by its code), are "open", or were "passed"."""
        ...

    async def orphans(self) -> Mapping[str, int]:
        """Listed pages that a sitemap names, and no page links to; by sitemap, the largest number first."""
        ...

    async def survey(self, site: str) -> Survey:
        """What this run knows of the site whose origin is `site`. Looks at all of its URLs."""
        ...

    async def first(self) -> Url | None:
        """The URL that this run began with."""
        ...

    async def record(self, url: Url) -> UrlRecord | None:
        """The story of one URL."""
        ...

    async def linking(self, url: Url) -> int:
        """How many pages of this run link to a URL. Looks at all of them: for a person's question only."""
        ...
