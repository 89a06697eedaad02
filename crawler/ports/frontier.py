"""The frontier as a whole: the union of its six roles, for the composition root and for backends."""

from typing import Protocol

from crawler.ports.hosts import Hosts
from crawler.ports.ledger import Ledger
from crawler.ports.queue import Queue
from crawler.ports.record import Record
from crawler.ports.runs import Runs


class History(Runs, Record, Protocol):
    """A run and the outcomes of its pages: for dates, publication and the command line."""


class Frontier(Queue, Hosts, History, Ledger, Protocol):
    """The store of all URLs: deduplication, queue, leases, facts. Implemented by a backend.

    Every method is atomic and durable when it returns. Fetching, judging and scope are not its concern.
    Functions take the role that they need; only `app` and backends use this union.
    """

    async def close(self) -> None:
        """Closes files and connections."""
        ...
