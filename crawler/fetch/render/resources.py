"""Answers the requests of pages through the fetcher of the crawl, with its robots.txt, slots and limits.

Scripts and style sheets are kept for the run, up to `CACHE` bytes; several pages that need the same one wait
for one request.
"""

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import anyio
from msgspec import Struct

from crawler.model.facts import Validators
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Permit, Reply, Response
from crawler.parse.url import Url, origin
from crawler.ports import Fetcher, Pacer, Request, Turn

CACHE: Final = 64_000_000  # bytes of scripts and style sheets
MOST_KEPT: Final = 10_000  # of them
NONE: Final = Validators()
LONGEST_WAIT: Final = 600.0  # seconds that a page may wait for slots while it is rendered
LONGEST_LOOK: Final = 200.0  # and before that, to see whether it has to be

Permission: TypeAlias = Callable[[Url], Awaitable[Permit]]
Waiting: TypeAlias = Callable[[], AbstractContextManager[None]]


class Deadline:
    """The time limit of one page: `seconds` in `scope`, without those that its requests wait for slots.

    `longest`: those that they may wait in all. `until`: when all is over, whatever was waited for.
    """

    def __init__(
        self,
        scope: anyio.CancelScope,
        seconds: float,
        *,
        longest: float = LONGEST_WAIT,
        until: float = math.inf,
    ) -> None:
        self._scope, self._waits, self._since, self._waited = scope, 0, 0.0, 0.0
        self._left, self._longest, self._until = seconds, longest, until
        self._end_at(anyio.current_time() + seconds)

    def _end_at(self, moment: float) -> None:
        self._scope.deadline = min(moment, self._until)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While this is open, the time does not count."""
        now = anyio.current_time()
        if self._waits == 0:
            self._since, self._left = now, self._scope.deadline - now
            self._end_at(now + self._left + max(0.0, self._longest - self._waited))
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                now = anyio.current_time()
                self._waited += now - self._since
                self._end_at(now + self._left)


class Slot(Struct, frozen=True):
    """Waits for the next slot of an origin."""

    pacer: Pacer
    turn: Turn

    async def __call__(self, origin: str) -> None:
        """Books the slot and waits for it."""
        await self.turn(origin, await self.pacer.slot(origin))


@dataclass(eq=False, slots=True)
class _Kept:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    reply: Response | None = None


class Resources:
    """The answers to the requests of all pages of a run."""

    def __init__(
        self,
        fetcher: Fetcher,
        permission: Permission,
        slot: Callable[[str], Awaitable[None]],
        cache: int = CACHE,
        seconds: float | None = None,
    ) -> None:
        """`permission`: what robots.txt says; `slot`: waits for the slot of an origin; `cache`: in bytes.

        `seconds`: that one answer may take, so that one that never ends leaves its page time to go on.
        """
        self._fetcher, self._permission, self.slot, self._cache = fetcher, permission, slot, cache
        self._seconds = seconds
        self._kept: OrderedDict[Url, _Kept] = OrderedDict()
        self._bytes = 0
        self._asking: dict[str, anyio.Lock] = {}

    async def get(self, url: Url, headers: Mapping[str, str], waiting: Waiting, *, keep: bool) -> Reply:
        """The answer. `waiting`: a context manager around the wait for a slot.

        `keep`: for the run, if it is a 200.
        """
        if not keep:
            return await self.ask(url, headers, waiting)
        kept = self._kept.setdefault(url, _Kept())
        self._kept.move_to_end(url)
        async with kept.lock:
            if kept.reply is not None:
                return kept.reply
            reply = await self.ask(url, headers, waiting)
            if isinstance(reply, Response) and reply.status == 200:
                kept.reply = reply
                self._bytes += len(reply.body)
                while len(self._kept) > 1 and (self._bytes > self._cache or len(self._kept) > MOST_KEPT):
                    _, dropped = self._kept.popitem(last=False)
                    self._bytes -= len(dropped.reply.body) if dropped.reply else 0
        return reply

    async def ask(
        self, url: Url, headers: Mapping[str, str], waiting: Waiting, known: Validators = NONE
    ) -> Reply:
        """The answer of the server. `known`: validators of an earlier one."""
        site = origin(url)
        with waiting():
            async with self._asking.setdefault(site, anyio.Lock()):  # one request for its robots.txt
                permit = await self._permission(url)
            if not permit.allowed:
                return Broken(Cause.FORBIDDEN, f"robots.txt: {permit.line}")
            await self.slot(site)
        return await self._fetcher.fetch(Request(url, known, headers=headers, seconds=self._seconds))
