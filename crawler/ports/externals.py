"""The seventh role of the frontier: what other sites answered for links (`--check-external`)."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from crawler.model.external import CheckedLink, DueLink, ExternalCounts, ExternalRow
from crawler.parse.url import Url


class Externals(Protocol):
    """Links to other sites: the URLs of the newest run that are off-site and that a page leads to."""

    def due_links(self, round_number: int) -> AsyncIterator[Sequence[DueLink]]:
        """Those not checked in this round, in chunks: first those never checked, then the longest ago."""
        ...

    async def count_due_links(self, round_number: int) -> int:
        """How many these are."""
        ...

    async def store_answers(self, answers: Sequence[CheckedLink], round_number: int) -> None:
        """Stores the answers of a round. Those of URLs that are no longer known are ignored."""
        ...

    async def external(self, url: Url) -> ExternalRow | None:
        """The last answer for a URL."""
        ...

    async def count_answers(self) -> ExternalCounts:
        """The links of the newest run, by their last answer."""
        ...
