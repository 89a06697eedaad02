"""The frontier as a whole: its four roles together, for those who put the pieces together, and for backends."""

from typing import Protocol

from crawler.ports.hosts import Hosts
from crawler.ports.queue import Queue
from crawler.ports.record import Record
from crawler.ports.runs import Runs


class History(Runs, Record, Protocol):
    """A run and what became of its pages: for the dates, for publication and for the command line."""


class Frontier(Queue, Hosts, History, Protocol):
    """The one record per URL: dedupe, queue, lease, facts. What a backend implements, in one place or in several.

    Every verb is atomic and durable when it returns. Out of its scope: fetching, judging, and what a site is.
    Whoever uses a frontier names the role that it needs; this union is for those who put the pieces together.
    """

    async def close(self) -> None:
        """Let go of files and connections."""
        ...
