"""All that the state knows about one URL, as shown by `explain`."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.outcome import Outcome
from crawler.model.seed import Seed
from crawler.model.visit import Visit


class InPattern(NamedTuple):
    """The pattern that a URL belongs to, which may be a crawler trap."""

    text: str
    fetched: int  # pages fetched in its rounds, without those that a seed names
    closed: bool  # they brought too little new content

    def __str__(self) -> str:
        state = "closed: too few new pages" if self.closed else "still open"
        pages = "1 page" if self.fetched == 1 else f"{self.fetched:,} pages"
        return f"{self.text} ({pages} fetched in its rounds; {state})"


@dataclass(frozen=True, slots=True)
class UrlRecord:
    """All that is known about one URL."""

    visit: Visit
    run: int
    state: str  # "held" for a round of its pattern, "queued", "waiting", "leased" or "settled"
    outcome: Outcome | None
    facts: Facts | None
    attempts: int
    settled: float | None  # seconds since the epoch
    was: str | None = None  # code of the outcome in the run before
    was_lastmod: datetime | None = None
    failing: float | None = None  # seconds since the epoch: its first failure since its last success
    seed: Seed | None = None  # that contains it; None: found only by links
    pattern: InPattern | None = None
