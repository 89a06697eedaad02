"""When a request may really go: not before its slot, and no closer to the one before than their slots are apart.

Slots are booked ahead, so a request that goes late, because the machine was busy, would have the next one on its
heels. Not the pace itself, which the frontier keeps: only how truly it is kept at the server's door.
"""

from collections.abc import Awaitable, Callable
from typing import Final

KEPT: Final = 0.98  # of the distance of two slots; below 1, so that what was lost is made up for by and by


class Turns:
    """A `ports.Turn`."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        """`clock`: seconds since the epoch."""
        self._clock, self._sleep = clock, sleep
        self._last: dict[
            str, tuple[float, float]
        ] = {}  # by origin: the last slot, and when it was really taken

    async def __call__(self, origin: str, at: float) -> None:
        """Wait for the turn of the slot `at` of an origin."""
        while (pause := self._due(origin, at) - self._clock()) > 0:
            await self._sleep(pause)
        self._last[origin] = at, self._clock()

    def _due(self, origin: str, at: float) -> float:
        slot, taken = self._last.get(origin, (at, 0.0))
        return max(at, taken + KEPT * max(0.0, at - slot))
