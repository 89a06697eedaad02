"""When a host has had enough: what its answers, and how long they take, say of how it feels.

A 429 or a Retry-After says so itself. A single 503 may be the page's own trouble; many are the host's. And a host
whose answers take several times as long as they did suffers without a word. Pure, but for what it remembers.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from crawler.model.reply import Reply, Response
from crawler.rules import retry_after

RECENT: Final = 20  # answers that are looked at
MANY: Final = 0.3  # share of them that ask for patience
LATE: Final = 1.0  # seconds below which no answer is late
SLOWER: Final = 4.0  # times as long as in good times
HOSTS: Final = 10_000  # remembered


@dataclass(slots=True)
class _Host:
    refusals: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))
    count: int = 0
    usual: float = 0.0  # seconds, in good times
    lately: float = 0.0

    def took(self, seconds: float) -> bool:
        """Whether answers have become late."""
        self.count += 1
        weight = max(0.1, 1 / self.count)
        self.lately += weight * (seconds - self.lately)
        # Good times are followed at once, bad times hardly: what lasts becomes usual in the end.
        pull = weight if seconds < self.usual or self.count <= RECENT else 0.002
        self.usual += pull * (seconds - self.usual)
        return self.count > RECENT and self.lately > max(LATE, SLOWER * self.usual)


class Throttle:
    """What is known of every host."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def of(self, origin: str, reply: Reply, seconds: float, now: datetime) -> float | None:
        """How long to leave the host alone, in seconds, after an answer that took `seconds`; None: it is well."""
        if len(self._hosts) > HOSTS:
            self._hosts.clear()
        host = self._hosts.setdefault(origin, _Host())
        refused = isinstance(reply, Response) and reply.status in retry_after.OVERLOADED
        host.refusals.append(refused)
        late = host.took(seconds)
        if not refused or not isinstance(reply, Response):
            return 0.0 if late else None
        wait = retry_after.retry_after(reply.headers, now)
        many = len(host.refusals) >= RECENT / 2 and sum(host.refusals) >= MANY * len(host.refusals)
        return wait or 0.0 if reply.status == retry_after.TOO_MANY or wait or many else None
