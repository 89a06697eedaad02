"""When a host counts as overloaded."""

from datetime import UTC, datetime

import pytest

from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.rules.throttle import Throttle

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OK, BUSY, LIMITED = Response(200), Response(503), Response(429)
WALL = Broken(Cause.WALL, "Cloudflare")


def told(*answers: tuple[Reply, float]) -> list[float | None]:
    throttle = Throttle()
    return [throttle.of("https://a.example", reply, seconds, NOW) for reply, seconds in answers]


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (OK, None),
        (Response(500), None),
        (Broken(Cause.TIMEOUT), None),
        (BUSY, None),
        (WALL, None),
        (LIMITED, 0.0),
        (Response(503, Headers([("retry-after", "7")])), 7.0),
        (Response(429, Headers([("retry-after", "junk")])), 0.0),
    ],
)
def test_the_pause_after_one_response(reply: Reply, seconds: float | None) -> None:
    assert told((reply, 0.1)) == [seconds]


def test_many_503_mean_an_overloaded_host_and_a_few_do_not() -> None:
    assert not any(wait is not None for wait in told(*[(OK, 0.1), (OK, 0.1), (OK, 0.1), (BUSY, 0.1)] * 10))
    assert told(*[(OK, 0.1)] * 20, *[(BUSY, 0.1)] * 6)[-1] == 0.0


def test_a_firewall_slows_a_host_down_that_it_mostly_answers_for() -> None:
    few: list[tuple[Reply, float]] = [(OK, 0.1), (OK, 0.1), (OK, 0.1), (WALL, 0.1)]
    assert not any(wait is not None for wait in told(*few * 10))
    assert told(*few[:1] * 20, *[(WALL, 0.1)] * 6)[-1] == 0.0
    assert told(*[(WALL, 0.1)] * 10)[-1] == 0.0


def test_growing_delay_means_overload_constant_delay_does_not() -> None:
    assert told(*[(OK, 0.2)] * 50, *[(OK, 2.0)] * 10)[-1] == 0.0
    assert not any(wait is not None for wait in told(*[(OK, 3.0)] * 100))
    assert not any(wait is not None for wait in told(*[(OK, 0.01)] * 50, *[(OK, 0.5)] * 50)), "nobody minds"
    recovered = told(*[(OK, 0.2)] * 50, *[(OK, 2.0)] * 10, *[(OK, 0.2)] * 40)
    assert recovered[-1] is None


def test_each_host_has_own_statistics_and_old_ones_are_forgotten() -> None:
    throttle = Throttle()
    for number in range(10_100):
        assert throttle.of(f"https://{number}.example", OK, 0.1, NOW) is None
    assert len(throttle._hosts) < 10_001
