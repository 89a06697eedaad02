"""All that the state knows of one URL: what `explain` shows. One value, put together by the frontier."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.outcome import Outcome
from crawler.model.seed import Seed
from crawler.model.visit import Visit


class InPattern(NamedTuple):
    """The pattern that a URL lies in, which may be a crawler trap."""

    text: str
    asked: int  # pages of it that were read, beside those that a seed names
    closed: bool  # they brought too little that is new

    def __str__(self) -> str:
        """For people."""
        said = "closed: too few new pages" if self.closed else "still open"
        return f"{self.text} ({self.asked:,} pages fetched in its rounds; {said})"


@dataclass(frozen=True, slots=True)
class UrlRecord:
    """All that is known of one URL."""

    visit: Visit
    run: int
    state: str  # "held" for a round of its pattern, "queued", "waiting", "leased" or "settled"
    outcome: Outcome | None
    facts: Facts | None
    attempts: int
    settled: float | None  # seconds since the epoch
    was: str | None = None  # code of the outcome in the run before
    was_lastmod: datetime | None = None
    failing: float | None = None  # seconds since the epoch: its first failure since it was answered last
    seed: Seed | None = None  # what named it; None: links alone
    pattern: InPattern | None = None
