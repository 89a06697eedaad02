"""A run of a crawl, the members that work on it, and the end of a session of one of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl of the site from start to end, possibly over several starts of the program."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # completely crawled, but not published
    # Seconds since the epoch: when a session of any run last ended with success.
    succeeded: float | None = None
    # The exit code, if the run that was asked for by its key is over: there is nothing to do.
    over: int | None = None


class Terms(NamedTuple):
    """What the members of a run must agree on, besides the settings that affect what is found and listed."""

    key: str = ""  # of the run; members with the same one work on the same run; empty: on the unfinished one
    settings: Mapping[str, str] = {}  # digests by the name of the setting
    max_pages: int | None = None
    max_time: float | None = None  # seconds


class StopReason(StrEnum):
    """Why a crawl stops before everything is settled."""

    MAX_PAGES = "--max-pages"
    MAX_TIME = "--max-time"
    FAILING = "failing"  # every request to a host of the site fails
    ASKED = "asked"  # by a signal, or by the caller
    OVER = "over"  # another member ended the run

    @property
    def is_limit(self) -> bool:
        """Whether the user set this limit."""
        return self in {StopReason.MAX_PAGES, StopReason.MAX_TIME}


class Interruption(NamedTuple):
    """A crawl stops; in a run of several members, that of all of them."""

    reason: StopReason
    details: str = ""

    @property
    def why(self) -> str:
        """The reason in the words of a log."""
        return self.details or self.reason.value

    @classmethod
    def read(cls, text: str) -> Self:
        """The interruption that `written` wrote."""
        reason, details = json.loads(text)
        return cls(StopReason(reason), details)

    def written(self) -> str:
        """As JSON."""
        return json.dumps(self)


class SessionEnd(NamedTuple):
    """The work and the end of a session: one start of the program that worked on a run."""

    exit: int
    seconds: float = 0.0  # at work
    requests: int = 0  # pages requested
    bytes: int = 0  # of the pages that were read, decoded
    refused: str | None = None  # why the guard kept the published sitemap
    # When a session of any run last ended with success: this one, or an earlier one.
    succeeded: float | None = None
    goes_on: bool = False  # only this session ends: other members continue the run
