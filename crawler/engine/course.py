"""Where a crawl is: its phase, its limits, and why it stops. Which phase follows is the table of
`model.phases`.

It awaits and writes nothing; the main loop in `crawl` asks it before each step.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from crawler.model.phases import SHOWN_PHASES, Phase
from crawler.model.run import Interruption, StopReason, Wait


class Counters(Protocol):
    """Receives the progress of the engine (`report.stats`)."""

    phase: Phase
    stopping: str | None  # why, in the words of a log
    exchanges: int  # begun

    def found(self, new: int) -> None:
        """Counts newly discovered URLs."""

    def request_started(self) -> None:
        """Counts the start of an exchange."""

    def request_ended(self) -> None:
        """Counts the end of an exchange."""

    def waits(self, waits: Sequence[Wait]) -> bool:
        """Sets what all open work waits for; empty: something is due. Whether the first of it is new."""

    def pace(self, delay: float) -> None:
        """Sets the interval between requests to the slowest host."""


class Limits(Struct, frozen=True):
    """The limits of a crawl. Times in seconds."""

    concurrency: int = 16
    keep_failing: float = 0.0  # how long a failing page is kept with its links
    max_pages: int | None = None
    max_time: float | None = None


class Course(Struct, eq=False):
    """The course of one crawl. Times in seconds."""

    limits: Limits
    stats: Counters
    clock: Callable[[], float]
    phase: Phase = Phase.OPENING
    previous: Phase = Phase.OPENING
    interruption: Interruption | None = None
    # No more pages responded than when the run last ended unfinished.
    is_stalled: bool = False
    # A limit was reached, and what was not visited stays as it is.
    is_cut_short: bool = False
    _entered: float = 0.0
    _deadline: float = float("inf")

    def begin(self) -> None:
        """Starts the time of the crawl."""
        if self.limits.max_time is not None:
            self._deadline = self.clock() + self.limits.max_time

    def enter(self, phase: Phase) -> None:
        self.previous, self.phase = self.phase, phase
        self._entered = self.clock()
        if phase in SHOWN_PHASES:
            self.stats.phase = phase

    @property
    def is_stopping(self) -> bool:
        """Whether no further page is to be requested."""
        return self.interruption is not None

    @property
    def time_in_phase(self) -> float:
        """How long the phase has lasted."""
        return self.clock() - self._entered

    @property
    def time_left(self) -> float:
        """The time until `max_time` is over; without an end once the crawl stops."""
        return float("inf") if self.interruption else self._deadline - self.clock()

    def reached(self, requested: int) -> StopReason | None:
        """The limit that is reached after so many requested pages."""
        if self.interruption:
            return None
        if self.time_left <= 0:
            return StopReason.MAX_TIME
        is_full = self.limits.max_pages is not None and requested >= self.limits.max_pages
        return StopReason.MAX_PAGES if is_full else None

    def stop(self, interruption: Interruption) -> bool:
        """Stops the crawl; whether that was new. The first reason counts, unless something ends the wait for
        a leader.
        """
        ends_wait = self.phase is Phase.WAITING and interruption.reason in {StopReason.ASKED, StopReason.OVER}
        is_new = self.interruption is None or ends_wait
        if is_new:
            self.interruption, self.stats.stopping = interruption, interruption.why
        return is_new
