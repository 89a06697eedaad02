"""The pages of a run as values for programs: what its state says of each URL, without the details.

Read from the state, so it is final only after a crawl: rules over all pages change outcomes at its end.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Settlement
from crawler.parse.url import Url
from crawler.ports import Reads, reads


class Page(NamedTuple):
    """A settled URL."""

    url: Url
    outcome: str  # its code, as `unlisted:noindex`
    reason: Why | Cause | None = None  # None if it is listed or moved
    detail: str = ""  # redirect target, canonical URL, line of robots.txt, or error
    status: int | None = None  # of HTTP; None if there was no response
    lastmod: datetime | None = None


async def pages_of(frontier: Reads, run: int) -> AsyncIterator[Page]:
    """Those that the run settled, sorted by URL."""
    async for chunk in frontier.stream(reads.Pages()):
        for row in chunk:
            if row.run == run and row.outcome:
                lastmod = None if row.lastmod is None else datetime.fromtimestamp(row.lastmod, UTC)
                yield Page(row.url, row.outcome, _reason(row.outcome), row.detail, row.status, lastmod)


def _reason(outcome: str) -> Why | Cause | None:
    kind, _, reason = outcome.partition(":")
    if not reason:
        return None
    return Why.of(reason) if kind == "unlisted" else Cause.of(reason)


class OutcomeStream:
    """A `Sink` that passes settlements to an iterator; it does not matter if the consumer stops."""

    def __init__(self, send: MemoryObjectSendStream[Settlement]) -> None:
        self._send = send

    async def settled(self, group: Sequence[Settlement]) -> None:
        try:
            for settlement in group:
                await self._send.send(settlement)
        except anyio.BrokenResourceError:
            pass
