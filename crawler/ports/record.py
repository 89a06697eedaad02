"""The fourth role of the frontier: the outcomes of the pages."""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from crawler.model.external import CheckedLink
from crawler.model.reasons import Source, Why
from crawler.model.rows import AnchorRow
from crawler.model.survey import Doubts, WithContent
from crawler.model.visit import Lease, Link
from crawler.parse.url import Url
from crawler.ports.reads import Reads


class SiteRule(Enum):
    """A rule over all pages of a run that needs nothing but the state."""

    KEEP_FAILING = auto()  # decides which failed pages stay listed, by `keep_failing`; may be applied again
    UNREACHED = auto()  # unlists pages that were found only by links that are not followed any more
    DUPLICATES = auto()  # lists one of the pages that are the same by `rules.spellings`


class Record(Reads, Protocol):
    """The outcomes of the pages of a run: which are listed, with which date, and why; answers of other sites.

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

    async def withdraw(self, pages: Sequence[Url] | WithContent, why: Why, detail: str) -> None:
        """Unlists listed pages of this run."""
        ...

    async def ignore_canonicals(self, listable: Callable[[Url], bool]) -> int:
        """Lists the `listable` pages whose canonical is ignored by `rules.canonicals`. Returns how many.

        Called before other rules over all pages, and after `SiteRule.KEEP_FAILING`.
        """
        ...

    async def apply(self, rule: SiteRule) -> None:
        """Applies a rule to all pages of this run."""
        ...

    async def store_answers(self, answers: Sequence[CheckedLink], round_number: int) -> None:
        """Stores what other sites answered for links, in a round of checks.

        Answers for URLs that are no longer known are ignored.
        """
        ...

    async def store_anchors(self, found: Sequence[AnchorRow]) -> None:
        """Stores what the links of some pages say, in place of what was known of these pages."""
        ...
