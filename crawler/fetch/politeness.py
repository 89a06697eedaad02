"""Delays each request until it may be sent.

That is at its slot, at the full delay after the previous request to the host, and not while the host is
paused.

The frontier books slots ahead and keeps the crawl delay. But if a busy machine sends a request late, the next
one would follow too closely, and slots that were booked before a host was paused are not rebooked. Both are
corrected here. If other processes send requests to the same host, a slot that was missed is given up for
another one: the next ones are theirs.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio

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

        A slot more than `far` seconds ahead means that the clock was set back.

        `rebook`: books another slot for one that was missed; None if nobody else sends requests to the host.

        """
        self.ended = anyio.Event()
        self._clock, self._sleep, self._far, self._rebook = clock, sleep, far, rebook
        # By origin: the last slot, and when its request was sent.
        self._last: dict[str, tuple[float, float]] = {}
        self._delays: dict[str, float] = {}
        self._slow: dict[str, float] = {}

    def slow(self, origin: str, until: float) -> None:
        """See `ports.Turns.slow`."""
        self._slow[origin] = max(until, self._until(origin))

    def is_stale(self, origin: str, at: float) -> bool:
        """See `ports.Turns.is_stale`."""
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
            at = await self._another(origin, at)
        self._last[origin] = at, self._clock()

    async def _another(self, origin: str, at: float) -> float:
        """Another slot, waited for, if `at` was missed."""
        is_missed = self._clock() - at > MISSED * (self._delays.get(origin) or float("inf"))
        later = await self._rebook(origin) if self._rebook and is_missed else None
        if later is None:
            return at
        await self._wait(origin, later)
        return later

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
        """See `ports.Pacer.slot`."""
        return await self._pacer.slot(origin)

    async def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        await self._pacer.slow(origin, until)
        self._turns.slow(origin, until)
