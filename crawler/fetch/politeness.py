"""Delays each request until it may be sent: at its slot, at the full delay after the previous request to the
host, and not while the host is paused.

The frontier books slots ahead and keeps the crawl delay. But if a busy machine sends a request late, the next
one would follow too closely, and slots that were booked before a host was paused are not rebooked. Both are
corrected here. If other processes send requests to the same host, a slot that was missed is given up for
another one: the next ones are theirs.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
from msgspec import Struct

from crawler.parse.url import Url, origin
from crawler.ports import Pacer

FAR: Final = 1_200.0  # seconds
LOOK: Final = 5.0  # most seconds between two readings of the clock, which may be changed while we sleep
JUMP: Final = 5.0  # seconds
LONGEST: Final = 60.0  # seconds; a longer wait means that the clock was set back
# Times that a missed slot is replaced: a machine that is always late must make progress, too.
REBOOKED: Final = 3
MISSED: Final = 0.5  # fraction of the delay by which a request may be late
# Fraction of the interval between two slots; below 1, so that late requests catch up gradually.
KEPT: Final = 0.98

AHEAD: Final = 2  # requests to an address that may follow at once, so that late ones catch up
MOST_ADDRESSES: Final = 10_000  # that are remembered

Rebook: TypeAlias = Callable[[str], Awaitable[float | None]]


class Politeness:
    """A `ports.Turns`."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        *,
        far: float = FAR,
        rebook: Rebook | None = None,
    ) -> None:
        """`clock`: seconds since the epoch.

        A slot more than `far` seconds ahead means that the clock was set back. `rebook`: books another slot
        for one that was missed; None if nobody else sends requests to the host.
        """
        self.ended = anyio.Event()
        self._clock, self._sleep, self._far, self._rebook = clock, sleep, far, rebook
        # By origin: the last slot, and when its request was sent.
        self._last: dict[str, tuple[float, float]] = {}
        self._delays: dict[str, float] = {}
        self._slow: dict[str, float] = {}

    def slow(self, origin: str, until: float) -> None:
        self._slow[origin] = max(until, self._until(origin))

    def is_stale(self, origin: str, at: float) -> bool:
        return at < self._until(origin)

    def _until(self, origin: str) -> float:
        until = self._slow.get(origin, 0.0)
        if until > self._clock() + LONGEST:
            del self._slow[origin]
            return 0.0
        return until

    def pace(self, origin: str, delay: float) -> None:
        """See `ports.Turns.pace`. Until it is set, requests are as far apart as their slots."""
        self._delays[origin] = delay

    def end(self) -> None:
        """See `ports.Turns.end`. Sets `ended`."""
        self.ended.set()

    async def __call__(self, origin: str, at: float) -> None:
        """Wait for the turn of the slot `at` of an origin."""
        await self._wait(origin, at)
        for _ in range(REBOOKED if self._rebook else 0):
            if not self._is_missed(origin, at):
                break
            at = await self._another(origin, at)
        self._last[origin] = at, self._clock()

    async def _another(self, origin: str, at: float) -> float:
        """Another slot, waited for, as `at` was missed."""
        later = await self._rebook(origin) if self._rebook else None
        if later is None:
            return at
        await self._wait(origin, later)
        return later

    def _is_missed(self, origin: str, at: float) -> bool:
        return self._clock() - at > MISSED * (self._delays.get(origin) or float("inf"))

    async def _wait(self, origin: str, at: float) -> None:
        while 0 < (pause := self._due(origin, at) - self._clock()) <= self._far:
            await self._sleep(min(pause, LOOK))

    def _due(self, origin: str, at: float) -> float:
        slot, taken = self._last.get(origin, (at, 0.0))
        if taken > self._clock() + JUMP:  # the clock was set back
            return at
        apart = self._delays.get(origin, max(0.0, at - slot))
        return max(at, taken + KEPT * apart, self._until(origin) if self._slow else 0.0)


class Pacing:
    """Wraps a `ports.Pacer`, and also reports paused hosts to `Politeness`."""

    def __init__(self, pacer: Pacer, turns: Politeness) -> None:
        self._pacer, self._turns = pacer, turns

    async def slot(self, origin: str) -> float:
        return await self._pacer.slot(origin)

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        does = await self._pacer.slow(origin, until, once=once)
        if does:
            self._turns.slow(origin, until)
        return does


class _Address(Struct, eq=False):
    """An address that requests go to. `due`: when the next one would be, at an even pace."""

    origin: str
    due: float
    is_shared: bool = False  # by several origins


class AddressPace:
    """Keeps requests to one address apart, if several names lead to it: they may all be one server.

    The frontier paces origins, and does not know addresses. A site on one name is not delayed. `delay`:
    seconds between two requests; `find`: the address of a URL, with its port, or None.
    """

    def __init__(
        self,
        delay: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        find: Callable[[Url], Awaitable[str | None]],
    ) -> None:
        self._delay, self._clock, self._sleep, self._find = delay, clock, sleep, find
        self._addresses: dict[str, _Address] = {}

    async def __call__(self, url: Url) -> None:
        """Waits until the address of a URL may be requested."""
        place = await self._find(url) if self._delay else None
        if place is None:
            return
        site, now = origin(url), self._clock()
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.clear()
        known = self._addresses.setdefault(place, _Address(site, now))
        known.is_shared = known.is_shared or known.origin != site
        known.due = max(known.due, now - AHEAD * self._delay) + self._delay
        wait = known.due - self._delay - now
        if known.is_shared and 0 < wait <= FAR:
            await self._sleep(wait)
