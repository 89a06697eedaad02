"""A visit in our hands, with what the last run learned of it."""

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.outcome import Outcome
from crawler.model.visit import Visit


class Lease(NamedTuple):
    """A visit in our hands until `settle` or until the frontier takes it back."""

    id: int
    token: int
    visit: Visit
    attempt: int = 1  # the how-manieth visit of this URL in this run
    at: float = 0.0  # not before this moment (seconds since the epoch): the slot that was booked
    robots_first: bool = False  # its origin's robots.txt is to be read first
    prior: "Prior | None" = None  # what the last run learned, when it may be asked "changed since?"


@dataclass(frozen=True, slots=True)
class Prior:
    """The outcome and the facts of the last run."""

    outcome: Outcome
    facts: Facts
