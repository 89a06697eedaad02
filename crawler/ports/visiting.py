"""How a visit is made, how risky markup is read, and who is told of outcomes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from crawler.model.lease import Lease
from crawler.model.settlement import Seen, Settlement, Unvisited

if TYPE_CHECKING:  # a parser of HTML is not loaded by who only reads the state
    from crawler.model.reply import Broken
    from crawler.parse.html import Page, PageSource


class Visitor(Protocol):
    """One visit, from the request to the verdict, in this process or in another."""

    prefetch: int
    """Visits that it wants in hand for each request in flight. Above 1, it keeps to the limit of these itself."""

    async def visit(self, lease: Lease) -> Seen | Unvisited:
        """Ask for the page and judge it. Never raises for what the page, or the process that reads it, does.

        `Unvisited` when the crawl ended before the page was asked for.
        """
        ...


class Reader(Protocol):
    """Reads the markup that may hurt whoever reads it."""

    async def read(self, markup: "PageSource") -> "Page | Broken":
        """What the page says, or why that cannot be told. Never raises for what the page does."""
        ...


class Sink(Protocol):
    """Whoever wants to see outcomes, after they are durable."""

    async def settled(self, group: Sequence[Settlement]) -> None:
        """A group was settled. Slow sinks slow the crawl."""
        ...
