"""Fetches, parses and judges one page, or only reads it: in a worker process, or in a crawl without them.

The engine decides whether and when a URL is fetched, and what happens with the result.
"""

import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Self

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from crawler.engine.robots import Access
from crawler.model.facts import Facts, Validators
from crawler.model.outcome import Failed, Kept
from crawler.model.rendering import Inputs, Rendering
from crawler.model.reply import Broken, Reply, Response
from crawler.model.settlement import VisitResult
from crawler.model.visit import LONGEST_VISIT, Lease, Visit
from crawler.parse import feeds
from crawler.parse.anchors import MOST_ANCHORS, Anchor, clean
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url
from crawler.ports import Fetcher, Reader, Request, Room
from crawler.rules import rendering
from crawler.rules.judge import PAGE_STATUSES, Judge


class BodyMemory(Struct, eq=False):
    """The memory for large bodies that one process holds at the same time: places, given in order.

    Pages of ten megabytes would otherwise fill it with as many as there are requests in flight, each of them
    once more in the parser. A visit that waits holds no place, so that nobody waits for ever.
    """

    size: int  # bytes
    _taken: int = 0
    _turn: anyio.Lock = field(default_factory=anyio.Lock)
    _freed: anyio.Event = field(default_factory=anyio.Event)

    def visit(self) -> "BodyPlace":
        """What a visit reserves is free again at the end of this context."""
        return BodyPlace(self)

    async def take(self, size: int) -> int:
        """Waits for a place of that size. One that is larger than all is alone. Returns the size."""
        size = min(size, self.size)
        async with self._turn:
            while self._taken + size > self.size:
                self._freed = anyio.Event()
                await self._freed.wait()
            self._taken += size
        return size

    def give_back(self, size: int) -> None:
        """That much is free again."""
        self._taken -= size
        self._freed.set()


class BodyPlace(Struct, eq=False):
    """The place of one visit, which its context frees. A `ports.Room`."""

    _memory: BodyMemory
    size: int = 0  # 0: none yet
    waited: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.size:
            self._memory.give_back(self.size)

    async def reserve(self, size: int) -> None:
        if not self.size:
            began = anyio.current_time()
            self.size = await self._memory.take(size)
            self.waited = anyio.current_time() - began


BODY_MEMORY: Final = 32_000_000  # bytes of large bodies in all processes of a crawl
MANY_LINKS: Final = 2_000  # of one page, above which it is judged in a thread: each link takes microseconds


def no_log(_: Url) -> AbstractContextManager[None]:
    """Does nothing."""
    return nullcontext()


class LocalVisitor(Struct, eq=False):
    """A `ports.Visitor` in this process."""

    fetcher: Fetcher
    judge: Judge
    reader: Reader
    # Seconds since the epoch.
    clock: Callable[[], float]
    # A context manager around parsing and judging the page with that URL.
    reading: Callable[[Url], AbstractContextManager[None]] = no_log
    # Called before that for a page whose earlier visit did not end: it may have killed its process.
    suspect: Callable[[Lease], Awaitable[None]] | None = None
    bodies: BodyMemory = field(default_factory=lambda: BodyMemory(BODY_MEMORY))
    prefetch: int = 1
    # One at a time: the parser lets other threads run, but trees take memory.
    _long_pages: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))

    async def visit(self, lease: Lease) -> VisitResult:
        with self.bodies.visit() as room:
            return await self._visit(lease, room)

    async def _visit(self, lease: Lease, room: Room) -> VisitResult:
        url = lease.visit.url
        # One limit for both requests: whether it is to be rendered, and what its scripts make.
        until = anyio.current_time() + LONGEST_VISIT if self.judge.renders else math.inf
        reply = await self.fetcher.fetch(
            Request(
                url,
                self._validators(lease),
                wants_body=self.judge.wants_body,
                attempt=lease.attempt,
                inputs=self._inputs(lease),
                until=until,
                room=room,
            )
        )
        if self.suspect and lease.attempt > 1:
            await self.suspect(lease)
        result = await self._look(lease, reply, self._now())
        facts = result.verdict.facts
        if facts and facts.rendering and facts.rendering.is_due and isinstance(reply, Response):
            due, links = facts.rendering, result.verdict.links
            shell = replace(reply, rendering=due)
            rendered = await self.fetcher.fetch(Request(url, shell=shell, until=until))
            if isinstance(rendered, Broken) and rendering.can_be_read(lease, due):
                return _noted(result, facts, due._replace(failed=rendered.cause))
            result = await self._look(lease, rendered, self._now())
            if (facts := result.verdict.facts) and facts.rendering:
                made = rendering.made(url, links, result.verdict.links)
                return _noted(result, facts, facts.rendering._replace(made=made))
        return result

    def _validators(self, lease: Lease) -> Validators:
        """Those of the last run; none if the page is to be judged anew.

        It is past its date (unavailable_after), or could not be rendered.
        """
        if lease.prior is None:
            return Validators()
        facts = lease.prior.facts
        is_past = facts.until and facts.until <= self._now()
        is_due = facts.rendering and facts.rendering.is_due
        return Validators() if is_past or is_due else facts.validators

    def _inputs(self, lease: Lease) -> Inputs | None:
        """What a rendered page was made from, under the same conditions, unless it has failed since."""
        prior = lease.prior
        if prior is None or isinstance(prior.outcome, Failed | Kept) or prior.facts.rendering is None:
            return None
        is_past = prior.facts.until and prior.facts.until <= self._now()
        return None if is_past else prior.facts.rendering.inputs

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    async def _look(self, lease: Lease, reply: Reply, now: datetime) -> VisitResult:
        markup = self.judge.markup(lease, reply, now)
        if markup is None:  # nothing to parse
            return VisitResult(self.judge(lease, reply, now))
        # An earlier visit of this page may have crashed its process: parse it in the sandbox.
        if markup.is_risky or lease.attempt > 1:
            page = await self.reader.read(markup)
            if isinstance(page, Broken):
                return VisitResult(self.judge(lease, page, now))
        elif markup.is_long:
            with self.reading(lease.visit.url):
                page = await anyio.to_thread.run_sync(markup.read, limiter=self._long_pages)
        else:
            with self.reading(lease.visit.url):
                verdict = self.judge(lease, reply, now, markup.read())
            return VisitResult(verdict, verdict.truncated)
        with self.reading(lease.visit.url):
            if len(page.followed) + len(page.avoided) <= MANY_LINKS:
                verdict = self.judge(lease, reply, now, page)
            else:
                verdict = await anyio.to_thread.run_sync(self.judge, lease, reply, now, page)
        return VisitResult(verdict, verdict.truncated)


def _noted(result: VisitResult, facts: Facts, seen: Rendering) -> VisitResult:
    """The result, with more that is known of its rendering."""
    return replace(result, verdict=replace(result.verdict, facts=facts._replace(rendering=seen)))


class PageReader(Struct, frozen=True):
    """Reads a page once more, outside the queue, and renders it if it was rendered. It judges nothing.

    By robots.txt, at a slot of its own, and parsed as in a visit. `now`: seconds since the epoch.
    """

    access: Access
    judge: Judge
    reader: Reader
    now: Callable[[], float]

    async def read(
        self, url: Url, wanted: Collection[Extract], rendering: Rendering | None = None
    ) -> ParsedPage | None:
        """What the page contains; None if it may not be asked for, or answers with no page that can be read.

        `rendering`: how it was rendered when it was visited.
        """
        if not (await self.access.permit(url)).allowed:
            return None
        reply: Reply = await self.access.fetch(Request(url, wants_body=self.judge.wants_body))
        if rendering and self.judge.renders and isinstance(reply, Response) and self._markup(url, reply):
            reply = await self.access.render(url, reply, rendering._replace(after=None))
        markup = self._markup(url, reply)
        if markup:
            return await self._page(replace(markup, wanted=frozenset(wanted)))
        return _feed(url, reply) if Extract.ANCHORS in wanted else None

    def _markup(self, url: Url, reply: Reply) -> PageSource | None:
        return self.judge.markup(Lease(0, 0, Visit(url)), reply, datetime.fromtimestamp(self.now(), UTC))

    async def _page(self, markup: PageSource) -> ParsedPage | None:
        if markup.is_risky:
            page = await self.reader.read(markup)
            return None if isinstance(page, Broken) else page
        return await anyio.to_thread.run_sync(markup.read) if markup.is_long else markup.read()


def _feed(url: Url, reply: Reply) -> ParsedPage | None:
    """A feed: its links say what the titles of its items do."""
    if not isinstance(reply, Response) or reply.status not in PAGE_STATUSES or not feeds.is_feed(reply.body):
        return None
    found = (Anchor(item.href, clean(item.title)) for item in feeds.items(reply.body, titled=True))
    return ParsedPage(url, anchors=tuple(islice(found, MOST_ANCHORS)))
