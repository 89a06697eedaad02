"""The circuit breaker: when to suspect that a host is down, so that a crawl does not keep sending it
requests.

It counts consecutive pages that failed, after all retries, in the way of a host that is down or overloaded. A
page that answers resets the count. Many failures may also come from one broken section of a healthy site, so
the engine fetches a page that responded before, and ends the run only if that fails as well. Pure.
"""

from collections import Counter, deque
from typing import Final

from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.model.settlement import Verdict
from crawler.parse.url import Url, origin
from crawler.rules.throttle import PASSING

MIN_FAILURES: Final = 30  # pages
MAX_RECENT: Final = 100  # failed pages that are remembered
_DOWN: Final = frozenset({Cause.CONNECT, Cause.TIMEOUT, Cause.TRUNCATED, Cause.RATE_LIMITED, Cause.WALL})


class CircuitBreaker:
    """Counts consecutive failures of each origin."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._recent: dict[str, deque[Url]] = {}
        self._answered: dict[str, Url] = {}

    def note(self, url: Url, verdict: Verdict) -> list[Url] | None:
        """Records the verdict of a page. Returns the recently failed pages once enough failed in a row."""
        site = origin(url)
        if not isinstance(verdict.outcome, Failed) and verdict.facts is None:
            return None  # not fetched
        if not _is_down(verdict):
            del self._failures[site]
            if not isinstance(verdict.outcome, Failed):
                self._answered[site] = url
            return None
        self._failures[site] += 1
        # Responses in flight when the host went down reset the count, so earlier failures are kept as well.
        recent = self._recent.setdefault(site, deque(maxlen=MAX_RECENT))
        recent.append(url)
        return list(recent) if self._failures[site] >= MIN_FAILURES else None

    def last_good(self, site: str) -> Url | None:
        """The page of an origin that last responded without an error."""
        return self._answered.get(site)

    def recent(self, site: str) -> list[Url]:
        """The recently failed pages of an origin."""
        return list(self._recent.get(site, ()))

    def clear(self, site: str) -> None:
        """Forgets the failures of an origin that still responds."""
        del self._failures[site]
        self._recent.pop(site, None)


def _is_down(verdict: Verdict) -> bool:
    outcome = verdict.outcome
    if not isinstance(outcome, Failed):
        return False
    return outcome.cause in _DOWN or (verdict.facts is not None and verdict.facts.status in PASSING)
