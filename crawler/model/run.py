"""One run of a crawl, as the frontier numbers them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """A generation: one crawl of the site from start to end."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # crawled to its end already, though not published
