"""The second role of the frontier: what is known of an origin."""

from typing import Protocol

from crawler.model.robots import RobotsFile
from crawler.ports.queue import Pacer


class Hosts(Pacer, Protocol):
    """What is known of an origin: its robots.txt and its pace."""

    async def meet(self, origin: str, file: RobotsFile, gap: float) -> None:
        """Remember an origin's robots.txt and its pace, `gap` seconds from slot to slot."""
        ...

    async def robots(self, origin: str, *, stale: bool = False) -> RobotsFile | None:
        """The remembered robots.txt, unless it is a day old; `stale`: also then, if this run read it or began with it."""
        ...
