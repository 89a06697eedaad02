"""The circuit breaker: when to suspect that a host is down. A crawl that hammers a fallen site helps nobody.

Counted are pages in a row, after all their tries, that failed as a host fails when it is down or overwhelmed. One
answer starts the count anew. A long row may as well be one broken section of a site that is well: so the engine asks for
a page that answered before, and only if that fails, too, ends the run and asks for the row again later. Pure.
"""

from collections import Counter, deque
from typing import Final

from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.model.settlement import Verdict
from crawler.parse.url import Url, origin
from crawler.rules.retry_after import PASSING

ROW: Final = 30  # pages
KEPT: Final = 100  # failed pages that are remembered
_DOWN: Final = frozenset({Cause.CONNECT, Cause.TIMEOUT, Cause.TRUNCATED, Cause.RATE_LIMITED})


class CircuitBreaker:
    """The failures of each origin, and how many came in a row."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._recent: dict[str, deque[Url]] = {}
        self._answered: dict[str, Url] = {}

    def note(self, url: Url, verdict: Verdict) -> list[Url] | None:
        """Learn how a page ended; the pages that failed lately, once the row is long enough."""
        site = origin(url)
        if not isinstance(verdict.outcome, Failed) and verdict.facts is None:
            return None  # not asked for
        if not _is_down(verdict):
            del self._rows[site]
            if not isinstance(verdict.outcome, Failed):
                self._answered[site] = url
            return None
        self._rows[site] += 1
        # Answers that were on their way when the host fell end the row, and not its trouble: what failed before them, too.
        recent = self._recent.setdefault(site, deque(maxlen=KEPT))
        recent.append(url)
        return list(recent) if self._rows[site] >= ROW else None

    def witness(self, site: str) -> Url | None:
        """The page of an origin that answered last."""
        return self._answered.get(site)

    def clear(self, site: str) -> None:
        """The site is well: what failed has failed."""
        del self._rows[site]
        self._recent.pop(site, None)


def _is_down(verdict: Verdict) -> bool:
    outcome = verdict.outcome
    if not isinstance(outcome, Failed):
        return False
    return outcome.cause in _DOWN or (verdict.facts is not None and verdict.facts.status in PASSING)
