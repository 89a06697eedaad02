"""Fetches, parses and judges one page. Used by worker processes, and by a crawl without them.

The engine decides whether and when a URL is fetched, and what happens with the result.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import anyio.to_thread

from crawler.model.facts import Validators
from crawler.model.lease import Lease
from crawler.model.reply import Broken, Reply, Response
from crawler.model.settlement import VisitResult
from crawler.parse.url import Url
from crawler.ports import Fetcher, Reader, Request
from crawler.rules.judge import Judge

MANY_LINKS: Final = 2_000  # of one page, above which it is judged in a thread: each link takes microseconds


def no_log(_: Url) -> AbstractContextManager[None]:
    """Does nothing."""
    return nullcontext()


class LocalVisitor:
    """A `ports.Visitor` in this process. `clock`: seconds since the epoch."""

    prefetch = 1

    def __init__(
        self,
        fetcher: Fetcher,
        judge: Judge,
        reader: Reader,
        clock: Callable[[], float],
        reading: Callable[[Url], AbstractContextManager[None]] = no_log,
        suspect: Callable[[Lease], Awaitable[None]] | None = None,
    ) -> None:
        """`reading`: a context manager around parsing and judging the page with that URL.

        `suspect`: called before that for a page whose earlier visit did not end: it may have killed its
        process.
        """
        self._fetcher, self._judge, self._reader, self._clock = fetcher, judge, reader, clock
        self._reading, self._suspect = reading, suspect

    async def visit(self, lease: Lease) -> VisitResult:
        """See `ports.Visitor.visit`."""
        url = lease.visit.url
        validators = lease.prior.facts.validators if lease.prior else Validators()
        reply = await self._fetcher.fetch(Request(url, validators, wants_body=self._judge.wants_body))
        if self._suspect and lease.attempt > 1:
            await self._suspect(lease)
        result = await self._look(lease, reply, self._now())
        facts = result.verdict.facts
        if facts and facts.rendering and facts.rendering.is_due and isinstance(reply, Response):
            shell = replace(reply, rendering=facts.rendering)
            rendered = await self._fetcher.fetch(Request(url, shell=shell))
            result = await self._look(lease, rendered, self._now())
        return result

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    async def _look(self, lease: Lease, reply: Reply, now: datetime) -> VisitResult:
        markup = self._judge.markup(lease, reply, now)
        if markup is None:  # nothing to parse
            return VisitResult(self._judge(lease, reply, now))
        # An earlier visit of this page may have crashed its process: parse it in the sandbox.
        if not (markup.is_risky or lease.attempt > 1):
            with self._reading(lease.visit.url):
                verdict = self._judge(lease, reply, now, markup.read())
            return VisitResult(verdict, verdict.truncated)
        page = await self._reader.read(markup)
        if isinstance(page, Broken):
            return VisitResult(self._judge(lease, page, now))
        with self._reading(lease.visit.url):
            if len(page.followed) + len(page.avoided) <= MANY_LINKS:
                verdict = self._judge(lease, reply, now, page)
            else:
                verdict = await anyio.to_thread.run_sync(self._judge, lease, reply, now, page)
        return VisitResult(verdict, verdict.truncated)
