from typing import Any

import pytest

from crawler.model import (
    Cause,
    Failed,
    Later,
    Lease,
    Listed,
    Moved,
    Outcome,
    Settlement,
    Unlisted,
    Verdict,
    Visit,
    Why,
)
from crawler.report.tally import STRAIN, Tally
from crawler.urls import Url


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def settlement(outcome: Outcome) -> Settlement:
    return Settlement(Lease(1, 1, Visit(Url("https://example.com/"))), Verdict(outcome))


PAGE = settlement(Listed())


def guess(seconds: float, *, at_least: bool = False) -> Any:
    return (pytest.approx(seconds, rel=0.01), at_least)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tally(clock: Clock) -> Tally:
    return Tally(clock)


async def crawl(tally: Tally, clock: Clock, *, seconds: int, done: int, found: int = 0) -> None:
    """So many seconds of so many pages a second, each second a group."""
    for _ in range(seconds):
        clock.now += 1
        tally.found(found)
        await tally.settled([PAGE] * done)


async def test_every_outcome_is_counted_once_and_a_retry_is_not_done(tally: Tally) -> None:
    tally.found(7)
    await tally.settled(
        [
            PAGE,
            settlement(Unlisted(Why.NOINDEX)),
            settlement(Moved(Url("https://example.com/b"))),
            settlement(Failed(Cause.DNS)),
            settlement(Failed(Cause.DNS)),
            settlement(Later(1.0, Cause.RATE_LIMITED)),
        ]
    )
    assert dict(tally.outcomes) == {"listed": 1, "unlisted:noindex": 1, "moved": 1, "failed:dns": 2}
    assert (tally.known, tally.done, tally.listed, tally.failed, tally.retries) == (7, 5, 1, 2, 1)
    assert tally.queued == 2


def test_the_queue_is_what_is_known_and_neither_done_nor_in_flight(tally: Tally) -> None:
    tally.resume(known=100, done=40)
    tally.asked()
    tally.asked()
    assert (tally.in_flight, tally.queued, tally.left) == (2, 58, 60)
    tally.answered()
    assert (tally.exchanges, tally.in_flight, tally.queued) == (2, 1, 59)


def test_the_queue_is_never_below_zero(tally: Tally) -> None:
    tally.asked()
    assert (tally.queued, tally.left) == (0, 0)


async def test_the_rate_is_that_of_the_last_ten_seconds(tally: Tally, clock: Clock) -> None:
    assert tally.rate() == 0
    await crawl(tally, clock, seconds=4, done=10)
    assert tally.rate() == pytest.approx(10)
    await crawl(tally, clock, seconds=30, done=50)
    assert tally.rate() == pytest.approx(50)
    clock.now += 5
    assert tally.rate() == pytest.approx(25, rel=0.1)
    clock.now += 60
    tally.rate()
    clock.now += 10
    assert tally.rate() == 0


async def test_a_heap_of_seeds_holds_the_guess_back_for_one_window_only(tally: Tally, clock: Clock) -> None:
    tally.found(1_000)
    await crawl(tally, clock, seconds=9, done=10)
    assert tally.remaining() is None
    await crawl(tally, clock, seconds=3, done=10)
    assert tally.remaining() == guess(88)


async def test_what_an_earlier_session_did_is_not_speed(tally: Tally, clock: Clock) -> None:
    tally.resume(known=10_000, done=9_000)
    await crawl(tally, clock, seconds=4, done=5)
    assert tally.rate() == pytest.approx(5)
    assert tally.remaining() is None
    await crawl(tally, clock, seconds=4, done=5)
    assert tally.remaining() == guess(960 / 5)


async def test_nothing_is_guessed_from_few_pages_or_seconds(tally: Tally, clock: Clock) -> None:
    tally.found(1_000)
    await crawl(tally, clock, seconds=4, done=100)
    assert tally.remaining() is None  # four seconds
    slow = Tally(clock)
    slow.found(1_000)
    await crawl(slow, clock, seconds=19, done=1)
    assert slow.remaining() is None  # nineteen pages
    await crawl(slow, clock, seconds=1, done=1)
    assert slow.remaining() == guess(980)


async def test_it_is_at_least_so_long_while_more_is_found(tally: Tally, clock: Clock) -> None:
    tally.resume(known=1_000, done=0)
    await crawl(tally, clock, seconds=10, done=10, found=4)
    assert tally.remaining() == guess((1_040 - 100) / 10, at_least=True)
    await crawl(tally, clock, seconds=10, done=10)
    assert tally.remaining() == guess((1_040 - 200) / 10)


@pytest.mark.parametrize("found", [10, 25])
async def test_nothing_is_guessed_while_the_site_grows_as_quickly(
    tally: Tally, clock: Clock, found: int
) -> None:
    await crawl(tally, clock, seconds=20, done=10, found=found)
    assert tally.remaining() is None


async def test_nothing_is_guessed_when_nothing_moves(tally: Tally, clock: Clock) -> None:
    tally.found(1_000)
    await crawl(tally, clock, seconds=10, done=10)
    for _ in range(15):
        clock.now += 1
        tally.rate()
    assert tally.remaining() is None


async def test_a_paced_queue_takes_at_least_its_gaps(tally: Tally, clock: Clock) -> None:
    tally.resume(known=1_000, done=0)
    tally.pace(0.5)
    await crawl(tally, clock, seconds=10, done=20)  # as after a robots.txt that forbade many
    assert tally.remaining() == guess(800 * 0.5)


async def test_a_slow_host_is_watched_for_longer(tally: Tally, clock: Clock) -> None:
    tally.found(100)
    tally.pace(10)
    for _ in range(30):
        clock.now += 10
        await tally.settled([PAGE])
        clock.now += 0.001
        assert tally.rate() == pytest.approx(0.1, rel=0.01)
    assert tally.remaining() == guess(700)


async def test_a_stopping_run_has_no_remaining_time(tally: Tally, clock: Clock) -> None:
    tally.found(1_000)
    await crawl(tally, clock, seconds=10, done=10)
    tally.stopping = "interrupted"
    assert tally.remaining() is None


async def test_the_limit_on_pages_is_the_end(clock: Clock) -> None:
    tally = Tally(clock, max_pages=150)
    for _ in range(100):
        tally.asked()
        tally.answered()
    await crawl(tally, clock, seconds=10, done=10, found=100)
    assert tally.left == 50
    assert tally.remaining() == guess(5)


async def test_the_limit_on_time_is_the_end(clock: Clock) -> None:
    tally = Tally(clock, max_time=60)
    tally.found(100_000)
    await crawl(tally, clock, seconds=20, done=10, found=1)
    assert tally.remaining() == guess(40)


async def test_a_host_that_asks_for_patience_is_called_strained_for_a_while(
    tally: Tally, clock: Clock
) -> None:
    assert not tally.backing_off
    await tally.settled([settlement(Later(9e9, Cause.RATE_LIMITED))])
    assert tally.backing_off
    clock.now += STRAIN
    assert not tally.backing_off
    tally.strained(60)
    tally.strained(1)  # a shorter wish does not end a longer one
    clock.now += 59
    assert tally.backing_off


async def test_the_memory_of_samples_is_bounded(tally: Tally, clock: Clock) -> None:
    for _ in range(10_000):
        clock.now += 0.01
        await tally.settled([PAGE])
    assert len(tally._samples) <= 43
    assert tally.rate() == pytest.approx(100, rel=0.05)


def test_elapsed_counts_from_the_start(tally: Tally, clock: Clock) -> None:
    clock.now += 12.5
    assert tally.elapsed == 12.5
