"""The second role of the frontier: what is known about an origin."""

from typing import Protocol

from crawler.model.robots import RobotsFile
from crawler.ports.queue import Pacer


class Hosts(Pacer, Protocol):
    """What is known about an origin: its robots.txt and its pace."""

    async def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        """Stores an origin's robots.txt and its pace, `delay` seconds between slots."""
        ...

    async def pace(self, origin: str, delay: float) -> None:
        """Sets the pace of an origin whose robots.txt was stored earlier, perhaps at another pace."""
        ...

    async def robots(self, origin: str, *, stale: bool = False) -> RobotsFile | None:
        """The stored robots.txt, unless it is more than a day old.

        `stale`: return an older one too, if this run fetched it or started with it.
        """
        ...
