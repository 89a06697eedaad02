"""When to stop asking a host that only fails: a crawl that hammers a fallen site helps nobody, and learns nothing.

Counted are pages in a row, after all their tries, that failed as a host fails when it is down or overwhelmed. One
good answer starts the count anew. Pure; the engine ends the run, and gives the pages of the row back to be asked later.
"""

from collections import Counter, deque
from typing import Final

from crawler.model import Cause, Failed, Verdict
from crawler.patience import PASSING
from crawler.urls import Url, origin

ROW: Final = 30  # pages
KEPT: Final = 100  # failed pages that are remembered
_DOWN: Final = frozenset({Cause.CONNECT, Cause.TIMEOUT, Cause.TRUNCATED, Cause.RATE_LIMITED})


class Breaker:
    """The failures of each origin, and how many came in a row."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._recent: dict[str, deque[Url]] = {}

    def note(self, url: Url, verdict: Verdict) -> list[Url] | None:
        """Learn how a page ended; the pages that failed lately, once the row is long enough."""
        site = origin(url)
        if not _is_down(verdict):
            del self._rows[site]
            return None
        self._rows[site] += 1
        # Answers that were on their way when the host fell end the row, and not its trouble: what failed before them, too.
        recent = self._recent.setdefault(site, deque(maxlen=KEPT))
        recent.append(url)
        return list(recent) if self._rows[site] >= ROW else None


def _is_down(verdict: Verdict) -> bool:
    outcome = verdict.outcome
    if not isinstance(outcome, Failed):
        return False
    return outcome.cause in _DOWN or (verdict.facts is not None and verdict.facts.status in PASSING)
