"""Redirects of what is no visit: each URL once, five in a row, and only statuses that send elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse.url import Url
from crawler.rules.redirects import ROBOTS_REDIRECTS, Redirects, Stopped, target_of

URL = Url("https://site.example/a/robots.txt")


def moved(to: str, status: int = 301) -> Response:
    return Response(status, Headers([("location", to)]))


@pytest.mark.parametrize(
    ("reply", "target"),
    [
        *((moved("b", status), "https://site.example/a/b") for status in (301, 302, 303, 307, 308)),
        *((moved("b", status), None) for status in (200, 201, 300, 304, 305, 306, 399, 404, 503)),
        (moved("//other.example"), "https://other.example/"),
        (moved("?q=\xc3\xa9"), "https://site.example/a/robots.txt?q=%C3%A9"),
        (moved("ftp://site.example/"), None),
        (moved("http://"), None),
        (moved(""), None),
        (Response(301), None),
        (Broken(Cause.TIMEOUT), None),
    ],
)
def test_redirect_target_is_location(reply: Reply, target: str | None) -> None:
    assert target_of(URL, reply) == target
    redirects = Redirects(URL)
    assert redirects.follow(reply) == target
    assert redirects.url == (target or URL)
    assert redirects.moved == (target is not None)
    if target is None:
        is_redirect = isinstance(reply, Response) and reply.status in {301, 302, 303, 307, 308}
        assert redirects.stopped == (Stopped.NO_TARGET if is_redirect else None)


def test_relative_targets_are_relative_to_the_last_url() -> None:
    redirects = Redirects(URL)
    redirects.follow(moved("/b/c"))
    assert redirects.follow(moved("d")) == "https://site.example/b/d"


def test_targets_are_normalised_by_the_callers_rule() -> None:
    assert target_of(URL, moved("/b"), lambda text, base: Url(f"{base}#{text}")) == f"{URL}#/b"


@given(st.lists(st.integers(0, 9), max_size=12))
def test_redirects_stop_at_loop_and_limit(names: list[int]) -> None:
    redirects, asked = Redirects(Url("https://a.example/0")), [Url("https://a.example/0")]
    for name in names:
        to = redirects.follow(moved(f"/{name}"))
        if to is None:
            assert (redirects.stopped is Stopped.LOOP) == (f"https://a.example/{name}" in asked)
            assert (redirects.stopped is Stopped.TOO_MANY) <= (len(asked) == ROBOTS_REDIRECTS + 1)
            break
        asked.append(to)
    assert len(set(asked)) == len(asked) <= ROBOTS_REDIRECTS + 1
