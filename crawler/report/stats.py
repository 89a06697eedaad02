"""The statistics of a run: counters, rate, and an estimate of the remaining time.

The engine updates `Stats`; displays read them at any time. They await nothing and store no URLs. There is no
estimate while URLs are found as fast as they are done.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from crawler.model.outcome import Failed, Later, Listed, code
from crawler.model.phases import Phase
from crawler.model.run import Wait
from crawler.model.settlement import Settlement

WINDOW: Final = 10.0  # seconds over which the rate is measured
SAMPLES: Final = 40  # in a window
SLOW_REQUESTS: Final = 8  # requests to a slow host that a window spans at least
ENOUGH_PAGES: Final = 20  # settled pages, and
ENOUGH_SECONDS: Final = 5.0  # elapsed seconds, before the remaining time is estimated
BACKING_OFF: Final = 10.0  # seconds that "backing off" is shown at least


class Sample(Struct, frozen=True):
    """The progress of the run at a moment."""

    at: float
    done: int
    known: int


class Stats:
    """The `crawl.Counters` of a run and a `ports.Sink`. All times in seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_pages: int | None = None,
        max_time: float | None = None,
        concurrency: int | None = None,
        site: str = "",
    ) -> None:
        """`max_pages` and `max_time` are the limits of the run; `site` is its name."""
        self.site = site
        self.known = 0  # URLs to visit, including those already visited
        self.done = 0  # of these, settled
        self.listed = self.failed = self.retries = 0
        self.exchanges = 0  # started
        self.bytes = 0  # of the pages that were read, decoded
        self.in_hand = 0
        self.delay = 0.0  # between requests to the slowest active host; 0: unpaced
        self.phase = Phase.OPENING
        self.stopping: str | None = None
        self.waiting: Sequence[Wait] = ()  # for what, if nothing is due
        self.outcomes: Counter[str] = Counter()  # settled in this session, by `model.code`
        self._max_pages, self._max_time, self._concurrency = max_pages, max_time, concurrency
        self._clock = clock
        self._started = clock()
        self._backing_off_until = self._started
        self._resumed = 0
        self._samples: deque[Sample] = deque([Sample(self._started, 0, 0)])

    @property
    def in_flight(self) -> int:
        """Requests in flight: at most the concurrency, though worker processes hold more leases."""
        return min(self.in_hand, self._concurrency or self.in_hand)

    # -- called by the engine -----------------------------------------------------------------------------

    def resume(self, known: int, done: int) -> None:
        """Sets the progress made by earlier sessions of this run."""
        self.known, self.done, self._resumed = known, done, done
        self._samples = deque([Sample(self._clock(), done, known)])

    def found(self, new: int) -> None:
        self.known += new

    def request_started(self) -> None:
        self.exchanges += 1
        self.in_hand += 1

    def request_ended(self) -> None:
        self.in_hand -= 1

    def pace(self, delay: float) -> None:
        """Sets the interval between requests to the slowest active host."""
        self.delay = delay

    def waits(self, waits: Sequence[Wait]) -> bool:
        is_new = waits[:1] != self.waiting[:1]
        self.waiting = waits
        return bool(waits) and is_new

    def throttled(self, seconds: float = BACKING_OFF) -> None:
        """A host is overloaded, and paused for `seconds`."""
        self._backing_off_until = max(self._backing_off_until, self._clock() + max(seconds, BACKING_OFF))

    async def settled(self, group: Sequence[Settlement]) -> None:
        for settlement in group:
            self._count(settlement)
        self._sample()

    def _count(self, settlement: Settlement) -> None:
        outcome = settlement.verdict.outcome
        if isinstance(outcome, Later):
            self.retries += 1
            self.throttled()
            return
        facts = settlement.verdict.facts
        if facts and facts.bytes and not settlement.verdict.unchanged:
            self.bytes += facts.bytes
        self.done += 1
        self.outcomes[code(outcome)] += 1
        if isinstance(outcome, Listed):
            self.listed += 1
        elif isinstance(outcome, Failed):
            self.failed += 1

    # -- read by displays ---------------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        return max(0, self.known - self.done - self.in_flight)

    @property
    def left(self) -> int:
        """Known pages still to be done, within the limit on pages."""
        left = max(0, self.known - self.done)
        if self._max_pages is None:
            return left
        return min(left, max(0, self._max_pages - self.exchanges + self.in_flight))

    @property
    def elapsed(self) -> float:
        """Seconds since the start of this session."""
        return self._clock() - self._started

    @property
    def backing_off(self) -> float:
        """For how many seconds a host is still spared that was overloaded a moment ago."""
        return max(0.0, self._backing_off_until - self._clock())

    def rate(self) -> float:
        """Pages settled per second, recently."""
        now, then = self._sample(), self._samples[0]
        return (now.done - then.done) / (now.at - then.at) if now.at > then.at else 0.0

    def remaining(self) -> tuple[float, bool] | None:
        """Seconds until all known URLs are done, and whether that is a lower bound, as more are found.

        None while there is no basis for an estimate: after few pages, when there is no progress, and once the
        run is stopping.
        """
        now, then = self._sample(), self._samples[0]
        if self.stopping or self.elapsed < ENOUGH_SECONDS or now.done - self._resumed < ENOUGH_PAGES:
            return None
        done, grown = now.done - then.done, now.known - then.known
        limited = self.left < self.known - self.done
        if done <= 0:
            return None
        seconds = self.left * max((now.at - then.at) / done, self.delay)
        if self._max_time is not None and seconds > (rest := max(0.0, self._max_time - self.elapsed)):
            return rest, False
        return seconds, grown > 0 and not limited

    def converges(self) -> bool:
        """Whether pages are done faster than they are found: the share of those done says something."""
        now, then = self._sample(), self._samples[0]
        is_limited = self.left < self.known - self.done
        return self.remaining() is not None and (is_limited or now.done - then.done > now.known - then.known)

    def _sample(self) -> Sample:
        """The current progress, stored if the last sample is old enough; earlier windows are dropped."""
        now, samples = Sample(self._clock(), self.done, self.known), self._samples
        window = max(WINDOW, SLOW_REQUESTS * self.delay)
        if now.at - samples[-1].at >= window / SAMPLES:
            samples.append(now)
        while len(samples) > 1 and samples[1].at <= now.at - window:
            samples.popleft()
        return now
