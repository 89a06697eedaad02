"""The interfaces of a crawl, as Protocols: the package to read first.

`engine/crawl` depends only on these; `app` connects the concrete classes. To extend the program, wrap a
`Fetcher`, implement a `Frontier`, or add a `Sink`. The frontier is used by its roles: `Queue`, `Hosts`,
`Runs`, `Record`, `Reads`, `Ledger`.
"""

from crawler.ports.fetching import Fetcher, Politeness, Reader, Request, Room, Sink, Turn, Visitor
from crawler.ports.frontier import Frontier, History, Hosts, Ledger, Record, SiteRule
from crawler.ports.queue import Batch, Pacer, Queue, Round
from crawler.ports.reads import Reads
from crawler.ports.runs import Runs

__all__ = [
    "Batch", "Fetcher", "Frontier", "History", "Hosts", "Ledger", "Pacer", "Politeness", "Queue",
    "Reader", "Reads", "Record", "Request", "Room", "Round", "Runs", "Sink", "SiteRule", "Turn", "Visitor",
]  # fmt: skip
