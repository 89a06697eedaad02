"""Detects an overloaded host from its responses and their times, and reads Retry-After.

The signs are a 429 or a Retry-After, many 503s or answers of a firewall (a single one may concern one page),
and responses that take several times as long as usual. After a wait of up to `QUICK` the same task retries
(`fetch.retry`); for a longer one the URL goes back to the frontier (`judge`). Pure but for its statistics.
"""

from collections import deque
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from crawler.model.reasons import Cause
from crawler.model.reply import Headers, Reply, Response
from crawler.parse.dates import http_date

RECENT: Final = 20  # responses in the statistics
REFUSING_SHARE: Final = 0.3  # share of refusals among them that shows overload
LATE: Final = 1.0  # seconds below which no response is late
SLOWER: Final = 4.0  # times as long as usual
MOST_HOSTS: Final = 10_000  # in the statistics

QUICK: Final = 5.0  # seconds that a task waits before its own retry, at most
TOO_MANY: Final = 429
OVERLOADED: Final = frozenset({429, 503})  # statuses of an overloaded server (RFC 6585 4, RFC 9110 15.6.4)
PASSING: Final = frozenset({429, 500, 502, 503, 504})  # statuses of failures that may be temporary


def retry_after(headers: Headers, now: datetime) -> float | None:
    """Seconds to wait by Retry-After: a number or an HTTP date (RFC 9110 10.2.3). A past date is 0.

    None if the field is absent, negative or invalid. An absurdly large number is returned as it is.
    """
    value = (headers.get("retry-after") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:20])
    at = http_date(value, now)
    return None if at is None else max(0.0, (at - now).total_seconds())


class _HostLoad(Struct, eq=False):
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
        host = self._hosts.get(origin) or self._hosts.setdefault(origin, _HostLoad())
        refused = _is_refusal(reply)
        host.refusals.append(refused)
        late = host.took(seconds)
        if refused and isinstance(reply, Response):
            if wait := retry_after(reply.headers, now):
                return wait
            if reply.status == TOO_MANY:
                return 0.0
        return 0.0 if (host.refuses_often() if refused else late) else None


def _is_refusal(reply: Reply) -> bool:
    if isinstance(reply, Response):
        return reply.status in OVERLOADED
    return reply.cause is Cause.WALL
