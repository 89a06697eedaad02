"""How a visit is made, how risky HTML is parsed, and who receives outcomes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from crawler.model.settlement import Settlement, Unvisited, VisitResult
from crawler.model.visit import Lease

if TYPE_CHECKING:  # commands that only read the state do not load the HTML parser
    from crawler.model.reply import Broken
    from crawler.parse.html import PageSource
    from crawler.parse.parsed_page import ParsedPage


class Visitor(Protocol):
    """One visit, from the request to the verdict, in this process or in another."""

    prefetch: int
    """Leases to prefetch for each request in flight.

    If above 1, the visitor limits the requests in flight itself.
    """

    async def visit(self, lease: Lease) -> VisitResult | Unvisited:
        """Fetches and judges the page. Never raises because of the page, or of a crash of its worker.

        `Unvisited` if the crawl ended before the page was requested.
        """


class Reader(Protocol):
    """Parses HTML that may crash or stall the parser."""

    async def read(self, markup: "PageSource") -> "ParsedPage | Broken":
        """The parsed page, or why it could not be parsed. Never raises because of the page."""


class Sink(Protocol):
    """Receives outcomes once they are durable."""

    async def settled(self, group: Sequence[Settlement]) -> None:
        """Called after a group was settled. A slow sink slows down the crawl."""
