"""A run of a crawl, and the end of a session that worked on it."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl of the site from start to end, possibly over several starts of the program."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # completely crawled, but not published
    succeeded: float | None = (
        None  # seconds since the epoch: when a session of any run last ended with success
    )


class SessionEnd(NamedTuple):
    """The work and the end of a session: one start of the program that worked on a run."""

    exit: int
    seconds: float = 0.0  # at work
    requests: int = 0  # pages requested
    bytes: int = 0  # of the pages that were read, decoded
    refused: str | None = None  # why the guard kept the published sitemap
    succeeded: float | None = (
        None  # when a session of any run last ended with success: this one, or an earlier one
    )
