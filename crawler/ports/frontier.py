"""What the frontier knows of hosts, of the outcomes of pages, and of submissions: three of its six roles; and
the union of all, for the composition root and for backends.

`queue`, `runs` and `reads` have the others.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from crawler.model.external import CheckedLink
from crawler.model.ledger import LedgerRow
from crawler.model.reasons import Source, Why
from crawler.model.reply import RobotsFile
from crawler.model.rows import AnchorRow
from crawler.model.survey import Doubts, WithContent
from crawler.parse.url import Url
from crawler.ports.queue import Pacer, Queue
from crawler.ports.reads import Reads
from crawler.ports.runs import Runs


class Hosts(Pacer, Reads, Protocol):
    """What is known about an origin: its robots.txt and its pace."""

    async def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        """Stores an origin's robots.txt and its pace, `delay` seconds between slots."""

    async def pace(self, origin: str, delay: float) -> None:
        """Sets the pace of an origin whose robots.txt was stored earlier, perhaps at another pace."""


class SiteRule(Enum):
    """A rule over all pages of a run that needs nothing but the state."""

    KEEP_FAILING = auto()  # decides which failed pages stay listed, by `keep_failing`; may be applied again
    UNREACHED = auto()  # unlists pages that were found only by links that are not followed any more
    RELIST = auto()  # lists duplicates that a partial run visited if the page listed instead no longer is
    DUPLICATES = auto()  # lists one of the pages that are the same by `rules.spellings`


class Record(Reads, Protocol):
    """The outcomes of the pages of a run: which are listed, with which date, and why; answers of other sites.

    For the rules over all pages, for the sitemap, and for questions about a run or a URL.
    """

    async def date(self, sources: Sequence[Source], doubts: Doubts) -> None:
        """Gives every listed page its lastmod from the first source in `sources` that has one.

        Sources in `doubts`, and headers that changed while the content did not, are ignored. Content that was
        dated before keeps its date, also when it reappears.
        """

    async def withdraw(self, pages: Sequence[Url] | WithContent, why: Why, detail: str) -> None:
        """Unlists listed pages of this run."""

    async def ignore_canonicals(self, listable: Callable[[Url], bool]) -> int:
        """Lists the `listable` pages whose canonical is ignored by `rules.canonicals`. Returns how many.

        Called before other rules over all pages, and after `SiteRule.KEEP_FAILING`.
        """

    async def apply(self, rule: SiteRule) -> None:
        """Applies a rule to all pages of this run."""

    async def store_answers(self, answers: Sequence[CheckedLink], round_number: int) -> None:
        """Stores what other sites answered for links, in a round of checks.

        Answers for URLs that are no longer known are ignored.
        """

    async def store_anchors(self, found: Sequence[AnchorRow]) -> None:
        """Stores what the links of some pages say, in place of what was known of these pages."""


class Ledger(Reads, Protocol):
    """The mark of each URL that engines were last told, and the submissions."""

    async def open_ledger(self, base: str, *, noted: bool) -> int:
        """Begins a new ledger for URLs published below `base`. Returns how many URLs are in it.

        `noted`: with the listed pages of the newest run, as if they had been submitted; otherwise empty.
        """

    async def enter(self, rows: Sequence[LedgerRow], sent: int | None = None) -> None:
        """Stores the marks of the newest run as submitted; a URL without one leaves the ledger.

        `sent`: number of URLs that an engine accepted, for the list of submissions; 0: none, but from now on
        `ledger` compares with the settings of the newest run; None: neither.
        """


class History(Runs, Record, Protocol):
    """A run and the outcomes of its pages: for dates, publication and the command line."""


class Frontier(Queue, Hosts, History, Ledger, Protocol):
    """The store of all URLs: deduplication, queue, leases, facts. Implemented by a backend.

    Every method is atomic and durable when it returns. Fetching, judging and scope are not its concern.
    Functions take the role that they need; only `app` and backends use this union.
    """

    async def close(self) -> None:
        """Closes files and connections."""
