"""When to stop asking a host that only fails: a crawl that hammers a fallen site helps nobody, and learns nothing.

Counted are pages in a row, after all their tries, that failed as a host fails when it is down or overwhelmed. One
good answer starts the count anew. Pure; the engine ends the run, and gives the pages of the row back to be asked later.
"""

from typing import Final

from crawler.model import Cause, Failed, Verdict
from crawler.patience import PASSING
from crawler.urls import Url, origin

ROW: Final = 30  # pages
_DOWN: Final = frozenset({Cause.CONNECT, Cause.TIMEOUT, Cause.TRUNCATED, Cause.RATE_LIMITED})


class Breaker:
    """The failures in a row of each origin."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Url]] = {}

    def note(self, url: Url, verdict: Verdict) -> list[Url] | None:
        """Learn how a page ended; the pages of the row, once it is long enough."""
        site = origin(url)
        if not _is_down(verdict):
            self._rows.pop(site, None)
            return None
        row = self._rows.setdefault(site, [])
        row.append(url)
        return row if len(row) >= ROW else None


def _is_down(verdict: Verdict) -> bool:
    outcome = verdict.outcome
    if not isinstance(outcome, Failed):
        return False
    return outcome.cause in _DOWN or (verdict.facts is not None and verdict.facts.status in PASSING)
