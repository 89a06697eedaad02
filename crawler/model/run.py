"""One run of a crawl, as the frontier numbers them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl of the site from start to end, possibly over several starts of the program."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # completely crawled, but not published
