"""A visit leased to a task, with the result of the last run."""

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.outcome import Outcome
from crawler.model.visit import Visit


class Lease(NamedTuple):
    """The right to visit one URL, until it is settled or the frontier takes it back."""

    id: int
    token: int
    visit: Visit
    attempt: int = 1  # number of this visit of the URL in this run
    at: float = 0.0  # not before this moment (seconds since the epoch): its slot
    robots_first: bool = False  # the robots.txt of its origin has to be read first
    # Processes that died while they parsed the page, after an earlier visit had failed to end.
    deaths: int = 0
    prior: "Prior | None" = None  # result of the last run, if a conditional request is possible


@dataclass(frozen=True, slots=True)
class Prior:
    """The outcome and the facts of the last run."""

    outcome: Outcome
    facts: Facts
