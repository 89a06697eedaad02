from typing import Any

import pytest

from crawler.model.outcome import Failed, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.report.stats import BACKING_OFF, Stats
from tests.waiting import Clock


def settlement(outcome: Outcome) -> Settlement:
    return Settlement(Lease(1, 1, Visit(Url("https://example.com/"))), Verdict(outcome))


PAGE = settlement(Listed())


def guess(seconds: float, *, at_least: bool = False) -> Any:
    return (pytest.approx(seconds, rel=0.01), at_least)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stats(clock: Clock) -> Stats:
    return Stats(clock)


async def crawl(stats: Stats, clock: Clock, *, seconds: int, done: int, found: int = 0) -> None:
    """Settle `rate` pages per second for some seconds, one group each second."""
    for _ in range(seconds):
        clock.now += 1
        stats.found(found)
        await stats.settled([PAGE] * done)


async def test_every_outcome_is_counted_once_and_a_retry_is_not_done(stats: Stats) -> None:
    stats.found(7)
    await stats.settled(
        [
            PAGE,
            settlement(Unlisted(Why.NOINDEX)),
            settlement(Moved(Url("https://example.com/b"))),
            settlement(Failed(Cause.DNS)),
            settlement(Failed(Cause.DNS)),
            settlement(Later(1.0, Cause.RATE_LIMITED)),
        ]
    )
    assert dict(stats.outcomes) == {"listed": 1, "unlisted:noindex": 1, "moved": 1, "failed:dns": 2}
    assert (stats.known, stats.done, stats.listed, stats.failed, stats.retries) == (7, 5, 1, 2, 1)
    assert stats.queued == 2


def test_queued_urls_are_known_and_neither_done_nor_in_flight(stats: Stats) -> None:
    stats.resume(known=100, done=40)
    stats.request_started()
    stats.request_started()
    assert (stats.in_flight, stats.queued, stats.left) == (2, 58, 60)
    stats.request_ended()
    assert (stats.exchanges, stats.in_flight, stats.queued) == (2, 1, 59)


def test_the_queue_is_never_below_zero(stats: Stats) -> None:
    stats.request_started()
    assert (stats.queued, stats.left) == (0, 0)


async def test_the_rate_is_measured_over_ten_seconds(stats: Stats, clock: Clock) -> None:
    assert stats.rate() == 0
    await crawl(stats, clock, seconds=4, done=10)
    assert stats.rate() == pytest.approx(10)
    await crawl(stats, clock, seconds=30, done=50)
    assert stats.rate() == pytest.approx(50)
    clock.now += 5
    assert stats.rate() == pytest.approx(25, rel=0.1)
    clock.now += 60
    stats.rate()
    clock.now += 10
    assert stats.rate() == 0


async def test_with_many_seeds_the_estimate_is_a_bound_for_one_window(stats: Stats, clock: Clock) -> None:
    stats.found(1_000)
    await crawl(stats, clock, seconds=9, done=10)
    assert stats.remaining() == guess(91, at_least=True)
    await crawl(stats, clock, seconds=3, done=10)
    assert stats.remaining() == guess(88)


async def test_progress_of_earlier_sessions_does_not_count_for_rate(stats: Stats, clock: Clock) -> None:
    stats.resume(known=10_000, done=9_000)
    await crawl(stats, clock, seconds=4, done=5)
    assert stats.rate() == pytest.approx(5)
    assert stats.remaining() is None
    await crawl(stats, clock, seconds=4, done=5)
    assert stats.remaining() == guess(960 / 5)


async def test_no_estimate_after_few_pages_or_seconds(stats: Stats, clock: Clock) -> None:
    stats.found(1_000)
    await crawl(stats, clock, seconds=4, done=100)
    assert stats.remaining() is None  # four seconds
    slow = Stats(clock)
    slow.found(1_000)
    await crawl(slow, clock, seconds=19, done=1)
    assert slow.remaining() is None  # nineteen pages
    await crawl(slow, clock, seconds=1, done=1)
    assert slow.remaining() == guess(980)


async def test_the_estimate_is_a_lower_bound_while_urls_are_found(stats: Stats, clock: Clock) -> None:
    stats.resume(known=1_000, done=0)
    await crawl(stats, clock, seconds=10, done=10, found=4)
    assert stats.remaining() == guess((1_040 - 100) / 10, at_least=True)
    await crawl(stats, clock, seconds=10, done=10)
    assert stats.remaining() == guess((1_040 - 200) / 10)


@pytest.mark.parametrize("found", [10, 25])
async def test_the_estimate_is_a_bound_while_the_site_grows_as_fast(
    stats: Stats, clock: Clock, found: int
) -> None:
    await crawl(stats, clock, seconds=20, done=10, found=found)
    assert stats.remaining() == guess((found - 10) * 20 / 10, at_least=True)
    assert not stats.converges(), "the share of pages that are done says nothing"
    await crawl(stats, clock, seconds=10, done=10)
    assert stats.converges()


async def test_no_estimate_without_progress(stats: Stats, clock: Clock) -> None:
    stats.found(1_000)
    await crawl(stats, clock, seconds=10, done=10)
    for _ in range(15):
        clock.now += 1
        stats.rate()
    assert stats.remaining() is None


async def test_the_estimate_respects_the_pace(stats: Stats, clock: Clock) -> None:
    stats.resume(known=1_000, done=0)
    stats.pace(0.5)
    await crawl(stats, clock, seconds=10, done=20)  # as after a robots.txt that forbade many
    assert stats.remaining() == guess(800 * 0.5)


async def test_the_window_is_longer_for_a_slow_host(stats: Stats, clock: Clock) -> None:
    stats.found(100)
    stats.pace(10)
    for _ in range(30):
        clock.now += 10
        await stats.settled([PAGE])
        clock.now += 0.001
        assert stats.rate() == pytest.approx(0.1, rel=0.01)
    assert stats.remaining() == guess(700)


async def test_a_stopping_run_has_no_remaining_time(stats: Stats, clock: Clock) -> None:
    stats.found(1_000)
    await crawl(stats, clock, seconds=10, done=10)
    stats.stopping = "interrupted"
    assert stats.remaining() is None


async def test_the_estimate_respects_the_limit_on_pages(clock: Clock) -> None:
    stats = Stats(clock, max_pages=150)
    for _ in range(100):
        stats.request_started()
        stats.request_ended()
    await crawl(stats, clock, seconds=10, done=10, found=100)
    assert stats.left == 50
    assert stats.remaining() == guess(5)


async def test_the_estimate_respects_the_limit_on_time(clock: Clock) -> None:
    stats = Stats(clock, max_time=60)
    stats.found(100_000)
    await crawl(stats, clock, seconds=20, done=10, found=1)
    assert stats.remaining() == guess(40)


async def test_backing_off_is_shown_some_time_after_overloaded_host(stats: Stats, clock: Clock) -> None:
    assert not stats.backing_off
    await stats.settled([settlement(Later(9e9, Cause.RATE_LIMITED))])
    assert stats.backing_off
    clock.now += BACKING_OFF
    assert not stats.backing_off
    stats.throttled(60)
    stats.throttled(1)  # a shorter wish does not end a longer one
    clock.now += 59
    assert stats.backing_off


async def test_the_number_of_samples_is_limited(stats: Stats, clock: Clock) -> None:
    for _ in range(10_000):
        clock.now += 0.01
        await stats.settled([PAGE])
    assert len(stats._samples) <= 43
    assert stats.rate() == pytest.approx(100, rel=0.05)


def test_elapsed_counts_from_the_start(stats: Stats, clock: Clock) -> None:
    clock.now += 12.5
    assert stats.elapsed == 12.5
