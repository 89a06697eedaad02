"""One run of a crawl, as the frontier numbers them, and the end of a session that worked on it."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl of the site from start to end, possibly over several starts of the program."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # completely crawled, but not published


class SessionEnd(NamedTuple):
    """What a session, one start of the program, did for its run, and how it ended."""

    exit: int
    seconds: float = 0.0  # at work
    requests: int = 0  # pages asked for
    bytes: int = 0  # of the pages that were read, decoded
    refused: str | None = None  # why the guard kept the published sitemap
