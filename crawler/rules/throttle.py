"""Detects an overloaded host from its responses and their times.

The signs are a 429 or a Retry-After, many 503s (a single one may concern one page), and responses that take
several times as long as usual. Pure, apart from its statistics.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from crawler.model.reply import Reply, Response
from crawler.rules import retry_after

RECENT: Final = 20  # responses in the statistics
REFUSING_SHARE: Final = 0.3  # share of refusals among them that shows overload
LATE: Final = 1.0  # seconds below which no response is late
SLOWER: Final = 4.0  # times as long as usual
MOST_HOSTS: Final = 10_000  # in the statistics


@dataclass(slots=True)
class _HostLoad:
    refusals: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))
    count: int = 0
    usual: float = 0.0  # seconds, long-term average
    lately: float = 0.0  # seconds, short-term average

    def took(self, seconds: float) -> bool:
        """Records a response time. Returns whether responses have become slow."""
        self.count += 1
        weight = max(0.1, 1 / self.count)
        self.lately += weight * (seconds - self.lately)
        # The long-term average follows fast responses quickly and slow ones very slowly.
        pull = weight if seconds < self.usual or self.count <= RECENT else 0.002
        self.usual += pull * (seconds - self.usual)
        return self.count > RECENT and self.lately > max(LATE, SLOWER * self.usual)

    def refuses_often(self) -> bool:
        """Whether the refusals are so many that they do not concern single pages."""
        known = len(self.refusals)
        return known >= RECENT / 2 and sum(self.refusals) >= REFUSING_SHARE * known


class Throttle:
    """The statistics of each host."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostLoad] = {}

    def of(self, origin: str, reply: Reply, seconds: float, now: datetime) -> float | None:
        """Seconds to pause after a response (0: only slow down); None: the host is not overloaded."""
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.clear()
        host = self._hosts.setdefault(origin, _HostLoad())
        refused = isinstance(reply, Response) and reply.status in retry_after.OVERLOADED
        host.refusals.append(refused)
        late = host.took(seconds)
        if not refused or not isinstance(reply, Response):
            return 0.0 if late else None
        if wait := retry_after.retry_after(reply.headers, now):
            return wait
        return 0.0 if reply.status == retry_after.TOO_MANY or host.refuses_often() else None
