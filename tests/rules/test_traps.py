"""Crawler traps: those that are obvious from a URL, and the patterns of URLs. Whole crawls: `test_rounds`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.outcome import Pattern
from crawler.model.trap import SAYS, Trap
from crawler.parse.url import Url
from crawler.rules.traps import (
    DEEPEST,
    FIRST_BATCH,
    MAX_REPORTED,
    Traps,
    calendar_of,
    due,
    obvious,
    pattern_of,
)

SITE = "https://a.example"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a/a/a/a/a/", None),
        ("/a/a/a/a/a/a/", "path"),
        ("/x/y/x/y/x/y/x/y/x/y/", None),
        ("/x/y/x/y/x/y/x/y/x/y/x/", "path"),
        ("/" + "/".join(map(str, range(25))), None),
        ("/" + "/".join(map(str, range(26))), "path"),
        ("/////////////", None),
        ("/?" + "&".join(f"p{n}=1" for n in range(20)), None),
        ("/?" + "&".join(f"p{n}=1" for n in range(21)), "query"),
        ("/?" + "&".join(["tag[]=x"] * 10), None),
        ("/?" + "&".join(["tag[]=x"] * 11), "query"),
    ],
)
def test_traps_that_are_obvious_from_the_url(path: str, kind: str | None) -> None:
    shown = obvious(SITE + path, 3)
    assert (shown[0] if shown else None) == kind
    assert Traps().bars(Url(SITE + path), 3) is (kind is not None)
    assert not Traps([kind] if kind else []).bars(Url(SITE + path), 3)


def test_depth_is_limited() -> None:
    assert not Traps().bars(Url(SITE + "/x"), DEEPEST)
    assert Traps().bars(Url(SITE + "/x"), DEEPEST + 1)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/cal/2026/11", "/cal/{date}"),
        ("/cal/2026/11/", "/cal/{date}/"),
        ("/cal/2026/11/05", "/cal/{date}"),
        ("/events/2026-11-05", "/events/{date}"),
        ("/events/day-2026-11-05.html", "/events/day-{date}.html"),
        ("/when/november-2026", "/when/{date}"),
        ("/when/november-2026/3", "/when/{date}"),
        ("/calendar/2026/nov/3", "/calendar/{date}"),
        ("/calendar/2026/november", "/calendar/{date}"),
        ("/cal_2026_11_05", "/cal_{n}_{n}_{n}"),
        ("/cal/05-11-2026", "/cal/{n}-{n}-{n}"),
        ("/market-2026", None),
        ("/20261105", None),
        ("/photos/IMG_20220102.html", None),
        ("/album_1523_7.html", None),
        ("/rod-8-2000.html", None),
        ("/version-2024.05", None),
        ("/may", None),
        ("/week/2026-W07", "/week/{date}"),
        ("/calendar/month/11", "/calendar/month/{n}"),
        ("/cal/17", "/cal/{n}"),
        ("/scales/17", None),
        ("/my-calendar/view/3/12", "/my-calendar/view/{n}/{n}"),
        ("/e?month=2026-11", "/e?month={date}"),
        ("/e?date=20261105&view=day", "/e?date={date}&view=…"),
        ("/e?year=2026&month=3", "/e?month={date}&year={date}"),
        ("/e?y=2026&m=3&lang=en", "/e?lang=…&m={date}&y={date}"),
        ("/e?month=-5", "/e?month={date}"),
        ("/e?m=3", None),
        ("/e?id=2026", None),
        ("/product/2026", None),
        ("/product/202611", None),
        ("/2026/11/05/a-story", None),
        ("/news/2026-11-05-a-story", None),
        ("/calendar", None),
        ("/report-2026-13", None),
    ],
)
def test_pages_of_a_calendar_are_recognised(path: str, pattern: str | None) -> None:
    assert calendar_of(SITE + path) == (None if pattern is None else SITE + pattern)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/a?id=1", "/a?id=…"),
        ("/a?id=2&x=1", "/a?id=…&x=…"),
        ("/a?x=1&id=2", "/a?id=…&x=…"),
        ("/a?id=1&id=2", "/a?id=…"),
        ("/a?f[0]=x&f[12]=y", "/a?f[{n}]=…"),
        ("/a?p1=1", "/a?p{n}=…"),
        ("/a?123", "/a?{value}"),
        ("/a?", "/a?{value}"),
        ("/a?=", "/a?=…"),
    ],
)
def test_the_pattern_of_a_query_is_its_set_of_parameter_names(path: str, pattern: str) -> None:
    assert pattern_of(SITE + path) == Pattern("query", SITE + pattern, SITE + "/a?…")


def test_calendars_of_an_origin_are_one_family() -> None:
    families = {
        found.family
        for path in ("/cal/2026/11", "/e?date=20261105", "/month/2026-03")
        if (found := pattern_of(SITE + path)) and found.kind == "calendar"
    }
    assert families == {f"calendars of {SITE}"}


def test_most_urls_have_no_pattern() -> None:
    assert pattern_of(SITE + "/a/b") is None
    assert Traps(["query"]).pattern(Url(SITE + "/a?b=1")) is None, "what is allowed waits for no round"


def test_a_batch_must_bring_more_than_one_new_page() -> None:
    assert due(FIRST_BATCH) == 3
    assert all(due(2 * size) > due(size) for size in range(FIRST_BATCH, 10 * FIRST_BATCH))


def test_traps_are_reported_once_and_up_to_a_limit() -> None:
    traps = Traps()
    for number in range(3 * MAX_REPORTED):
        traps.report("path", f"p{number // 2}", SITE)
    assert len(traps.unreported()) == MAX_REPORTED
    assert traps.unreported() == []


def test_a_trap_names_the_flag_that_allows_it() -> None:
    for kind in SAYS:
        words = str(Trap(kind, "pattern", "example"))
        assert words.endswith(f"(--allow-trap {kind} crawls it)" if kind != "links" else "as in example")


@given(st.text(max_size=60), st.integers(0, 5_000))
def test_any_url_is_accepted(text: str, depth: int) -> None:
    url = SITE + "/" + text
    obvious(url, depth)
    pattern_of(url)
    Traps().bars(Url(url), depth)
