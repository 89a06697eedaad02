"""What a visitor is given by its process: the main one, or a worker. A pool passes it on to its workers."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec import Struct

from crawler.engine.visitor import no_log
from crawler.model.visit import Lease
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Pacer, Turn
from crawler.report.log import log_repeated
from crawler.report.traffic import Traffic
from crawler.workers.sandbox import CHILDREN

if TYPE_CHECKING:
    from crawler.fetch.render.resources import Permission


class Surroundings(Struct, frozen=True):
    """The callbacks are those of `Retrying`, `Normaliser` and `LocalVisitor`."""

    pacer: Pacer
    turn: Turn
    throttled: Callable[[float], None]
    session: Callable[[str, str], None]
    base: PublishBase | None = None
    traffic: Traffic | None = None  # counts the requests
    clock: Callable[[], float] = time.time  # of the crawl
    children: int = CHILDREN  # sandbox processes, at most
    reading: Callable[[Url], AbstractContextManager[None]] = no_log  # around parsing a page
    suspect: Callable[[Lease], Awaitable[None]] | None = None
    # Makes what robots.txt says about the requests of scripts; without it, nothing is rendered.
    permits: "Callable[[Fetcher], Permission] | None" = None
    repeated: Callable[[Url, str, int], None] = log_repeated
