"""How a page is fetched, visited and parsed, at which pace, and who receives outcomes."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from msgspec import Struct

from crawler.model.facts import Validators
from crawler.model.rendering import Inputs
from crawler.model.reply import Headers, Reply, Response
from crawler.model.settlement import Settlement, Unvisited, VisitResult
from crawler.model.visit import Lease
from crawler.parse.url import Url

if TYPE_CHECKING:
    from crawler.model.reply import Broken
    from crawler.parse.html import PageSource
    from crawler.parse.parsed_page import ParsedPage


NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Room(Protocol):
    """Memory for the body of a reply, for as long as the page is in work."""

    waited: float  # seconds that `reserve` took: no fault of the host

    async def reserve(self, size: int) -> None:
        """Waits until a large body, of so many bytes at most, has room; the next calls do nothing."""


class Request(Struct, frozen=True):
    """One GET, one HEAD, or one POST of JSON."""

    url: Url
    validators: Validators = Validators()
    limit: int | None = None  # bytes of decoded body; the fetcher's own limit if None
    cut: bool = False  # truncate a larger body to `limit` instead of failing
    seconds: float | None = None  # for the whole exchange; the fetcher's own limit if None
    wants_body: Callable[[int, Headers], bool] | None = None  # called when the headers are in
    post: bytes | None = None  # JSON to send by POST
    head: bool = False  # HEAD: the reply has no body
    headers: Mapping[str, str] = NO_HEADERS  # of this request only; names in lower case
    attempt: int = 0  # of a page of the queue, which may have to wait with its folder; 0: of none
    # The answer to an earlier request for the page: run its scripts, if a browser is at hand.
    shell: Response | None = None
    # What the page was made from by an earlier run: the reply is a 304 if all of it is unchanged.
    inputs: Inputs | None = None
    until: float = math.inf  # on the clock of the event loop: when its visit must be over, for a browser
    room: Room | None = None  # asked before a large body is read; None: there is always room


class Fetcher(Protocol):
    """Makes one exchange.

    A 404 is a response; an incomplete response is a `Broken`; redirects are not followed.
    """

    async def fetch(self, request: Request) -> Reply:
        """Sends one request. Never raises for errors of the network or server."""


Turn: TypeAlias = Callable[[str, float], Awaitable[None]]
"""Waits until the slot of an origin (seconds since the epoch)."""


class Politeness(Protocol):
    """The `Turn` of each request, and the delay between requests."""

    async def __call__(self, origin: str, at: float) -> None:
        """Waits until the slot of an origin (seconds since the epoch)."""

    def pace(self, origin: str, delay: float) -> None:
        """Keeps requests to `origin` `delay` seconds apart, even if one of them is late."""

    def slow(self, origin: str, until: float) -> None:
        """Sends no request to `origin` before `until` (seconds since the epoch)."""

    def is_stale(self, origin: str, at: float) -> bool:
        """Whether the slot `at` is void, because `origin` was paused after it was booked."""

    def end(self) -> None:
        """Ends the crawl: leased pages that have not been requested yet are no longer requested."""


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
