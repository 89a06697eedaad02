"""How a page is asked for: the fetcher, robots.txt and politeness."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeAlias

from crawler.model.facts import Validators
from crawler.model.reply import Headers, Reply
from crawler.model.robots import Permit, RobotsFile
from crawler.parse.url import Url


class Request(NamedTuple):
    """One GET."""

    url: Url
    validators: Validators = Validators()
    limit: int | None = None  # bytes of decoded body; the fetcher's own limit if None
    cut: bool = False  # a larger body is taken up to there, and is no failure
    seconds: float | None = None  # for the whole exchange; the fetcher's own limit if None
    wants_body: Callable[[int, Headers], bool] | None = None  # asked once status and headers are in


class Fetcher(Protocol):
    """One exchange. A 404 is an answer; no complete answer is a `Broken`; redirects are not followed."""

    async def fetch(self, request: Request) -> Reply:
        """Ask once. Never raises for what the network or the server does."""
        ...


class Permits(Protocol):
    """What robots.txt allows (RFC 9309)."""

    def knows(self, origin: str) -> bool:
        """Whether the rules of `origin` were learned."""
        ...

    async def ask(self, origin: str) -> RobotsFile:
        """Read /robots.txt over the network."""
        ...

    async def learn(self, origin: str, file: RobotsFile) -> None:
        """Remember the rules in `file`."""
        ...

    def permit(self, url: Url) -> Permit:
        """Whether `url`, of a known origin, may be asked for."""
        ...

    def delay(self, origin: str) -> float | None:
        """The Crawl-delay for us, in seconds."""
        ...

    def sitemaps(self, origin: str) -> list[Url]:
        """The sitemaps that the robots.txt of a known origin names."""
        ...


Turn: TypeAlias = Callable[[str, float], Awaitable[None]]
"""Waits until a slot of an origin has come (seconds since the epoch)."""


class Politeness(Protocol):
    """The `Turn` of each request, and how far apart they are."""

    async def __call__(self, origin: str, at: float) -> None:
        """Wait until a slot of an origin has come (seconds since the epoch)."""
        ...

    def pace(self, origin: str, gap: float) -> None:
        """Requests to `origin` are to be `gap` seconds apart, however late one of them goes."""
        ...

    def slow(self, origin: str, until: float) -> None:
        """No request to `origin` before `until` (seconds since the epoch)."""
        ...

    def is_stale(self, origin: str, at: float) -> bool:
        """Whether the slot `at` was booked before `origin` had enough: it is not to be taken any more."""
        ...

    def end(self) -> None:
        """The crawl ends: what is in hand and was not asked for is not to be asked for any more."""
        ...
