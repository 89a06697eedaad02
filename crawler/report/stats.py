"""The counters of a run in memory, and what can honestly be said of its pace and its end.

The engine tells a `Tally` as it goes; displays read it whenever they like. It awaits nothing, keeps no URL, and
promises nothing it cannot know: while the site still unfolds there is no remaining time.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from crawler.model.outcome import Failed, Later, Listed, code
from crawler.model.settlement import Settlement

WINDOW: Final = 10.0  # seconds that a rate looks back
SAMPLES: Final = 40  # in a window
SLOW_GAPS: Final = 8  # gaps of a slow host that a window holds at least
ENOUGH_PAGES: Final = 20  # settled, and
ENOUGH_SECONDS: Final = 5.0  # passed, before a remaining time is guessed
STRAIN: Final = 10.0  # seconds that a host which asked for patience is called strained, at least


class Sample(NamedTuple):
    """How far the run was at a moment."""

    at: float
    done: int
    known: int


class Stats:
    """The `crawl.Counters` of a run, and a `ports.Sink`. All times in seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_pages: int | None = None,
        max_time: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        """`max_pages` and `max_time` are the limits of the run: it ends there, whatever is left."""
        self.known = 0  # URLs to visit, those visited included
        self.done = 0  # of these, settled
        self.listed = self.failed = self.retries = 0
        self.exchanges = 0  # begun
        self.in_hand = 0
        self.gap = 0.0  # between requests to the slowest active host; 0: unpaced
        self.phase = "robots.txt"
        self.stopping: str | None = None
        self.outcomes: Counter[str] = Counter()  # settled in this session, by `model.code`
        self._max_pages, self._max_time, self._concurrency = max_pages, max_time, concurrency
        self._clock = clock
        self._started = clock()
        self._calm_at = self._started
        self._resumed = 0
        self._samples: deque[Sample] = deque([Sample(self._started, 0, 0)])

    @property
    def in_flight(self) -> int:
        """Requests. Worker processes have more pages in hand, and no more in flight than they may."""
        return min(self.in_hand, self._concurrency or self.in_hand)

    # -- told by the engine -------------------------------------------------------------------------------

    def resume(self, known: int, done: int) -> None:
        """An earlier session of this run came so far."""
        self.known, self.done, self._resumed = known, done, done
        self._samples = deque([Sample(self._clock(), done, known)])

    def found(self, new: int) -> None:
        """URLs to visit became known."""
        self.known += new

    def asked(self) -> None:
        """An exchange began."""
        self.exchanges += 1
        self.in_hand += 1

    def answered(self) -> None:
        """It ended."""
        self.in_hand -= 1

    def pace(self, gap: float) -> None:
        """The slowest active host is asked every `gap` seconds."""
        self.gap = gap

    def strained(self, seconds: float = STRAIN) -> None:
        """A host asked for patience, for so long."""
        self._calm_at = max(self._calm_at, self._clock() + max(seconds, STRAIN))

    async def settled(self, group: Sequence[Settlement]) -> None:
        """See `ports.Sink.settled`."""
        for settlement in group:
            self._count(settlement)
        self._sample()

    def _count(self, settlement: Settlement) -> None:
        outcome = settlement.verdict.outcome
        if isinstance(outcome, Later):
            self.retries += 1
            self.strained()
            return
        self.done += 1
        self.outcomes[code(outcome)] += 1
        if isinstance(outcome, Listed):
            self.listed += 1
        elif isinstance(outcome, Failed):
            self.failed += 1

    # -- read by whoever shows it -------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Known, not done, and not being asked for."""
        return max(0, self.known - self.done - self.in_flight)

    @property
    def left(self) -> int:
        """Pages that are still to be done, as far as known; a limit on pages is kept in mind."""
        left = max(0, self.known - self.done)
        if self._max_pages is None:
            return left
        return min(left, max(0, self._max_pages - self.exchanges + self.in_flight))

    @property
    def elapsed(self) -> float:
        """Seconds since the start of this session."""
        return self._clock() - self._started

    @property
    def backing_off(self) -> bool:
        """Whether a host asked for patience a moment ago."""
        return self._clock() < self._calm_at

    def rate(self) -> float:
        """Pages settled a second, of late."""
        now, then = self._sample(), self._samples[0]
        return (now.done - then.done) / (now.at - then.at) if now.at > then.at else 0.0

    def remaining(self) -> tuple[float, bool] | None:
        """Seconds until everything known is done, and whether that is only the least it takes.

        The least, while URLs are still being found. Nothing until enough is known to say: after few pages,
        while URLs are found as quickly as they are done, when nothing moves, and once the run is stopping.
        """
        now, then = self._sample(), self._samples[0]
        if self.stopping or self.elapsed < ENOUGH_SECONDS or now.done - self._resumed < ENOUGH_PAGES:
            return None
        done, grown = now.done - then.done, now.known - then.known
        limited = self.left < self.known - self.done
        if done <= 0 or (done <= grown and not limited):
            return None
        seconds = self.left * max((now.at - then.at) / done, self.gap)
        if self._max_time is not None and seconds > (rest := max(0.0, self._max_time - self.elapsed)):
            return rest, False
        return seconds, grown > 0 and not limited

    def _sample(self) -> Sample:
        """Where we are now. Kept, if a while has passed since the last; what left the window is dropped."""
        now, samples = Sample(self._clock(), self.done, self.known), self._samples
        window = max(WINDOW, SLOW_GAPS * self.gap)
        if now.at - samples[-1].at >= window / SAMPLES:
            samples.append(now)
        while len(samples) > 1 and samples[1].at <= now.at - window:
            samples.popleft()
        return now
