"""A host that only fails is let go."""

import pytest

from crawler.breaker import ROW, Breaker
from crawler.model import Cause, Facts, Failed, Listed, Verdict
from crawler.urls import Url

DOWN = [
    Verdict(Failed(Cause.CONNECT)),
    Verdict(Failed(Cause.TIMEOUT)),
    Verdict(Failed(Cause.TRUNCATED)),
    Verdict(Failed(Cause.RATE_LIMITED), Facts(429)),
    Verdict(Failed(Cause.SERVER_ERROR, "500"), Facts(500)),
]
UP = [
    Verdict(Listed()),
    Verdict(Failed(Cause.NOT_FOUND), Facts(404)),
    Verdict(Failed(Cause.SERVER_ERROR, "501"), Facts(501)),
    Verdict(Failed(Cause.PARSE)),
]


def url(number: int, site: str = "https://a.example") -> Url:
    return Url(f"{site}/{number}")


@pytest.mark.parametrize("verdict", DOWN)
def test_a_row_of_failures_is_given_back(verdict: Verdict) -> None:
    breaker = Breaker()
    assert all(breaker.note(url(number), verdict) is None for number in range(ROW - 1))
    assert breaker.note(url(ROW - 1), verdict) == [url(number) for number in range(ROW)]


@pytest.mark.parametrize("verdict", UP)
def test_one_answer_starts_the_count_anew(verdict: Verdict) -> None:
    breaker = Breaker()
    for number in range(3 * ROW):
        assert breaker.note(url(number), verdict if number % (ROW - 1) == 0 else DOWN[0]) is None


def test_each_origin_has_its_own_row() -> None:
    breaker, down = Breaker(), DOWN[0]
    for number in range(ROW - 1):
        assert breaker.note(url(number), down) is None
        assert breaker.note(url(number, "https://b.example"), down) is None


def test_what_failed_shortly_before_the_row_is_given_back_too() -> None:
    """An answer that was on its way when the host fell comes after the first failure."""
    breaker, down = Breaker(), DOWN[0]
    breaker.note(url(1), down)
    breaker.note(url(0), UP[0])
    row = [breaker.note(url(number), down) for number in range(2, ROW + 2)]
    assert row[-1] == [url(number) for number in range(1, ROW + 2)]
