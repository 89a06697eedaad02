"""Crawler traps: those that are obvious from a URL, and the patterns of URLs. Whole crawls: `test_rounds`."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.outcome import Pattern
from crawler.model.trap import SAYS, Trap
from crawler.parse.url import Url
from crawler.rules.traps import (
    DEEPEST,
    MAX_REPORTED,
    SAMPLE,
    Sampling,
    Traps,
    calendar_of,
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
        ("/cal/05-11-2026", "/cal/{date}"),
        ("/log/20261105.html", "/log/{date}.html"),
        ("/log/25-11-2026/", "/log/{date}/"),
        ("/log/11.25.2026", "/log/{date}"),
        ("/log/25-13-2026", None),
        ("/log/20261305", None),
        ("/log/x-20261105", None),
        ("/log/20261105/7", None),
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
        ("/e?time=1790000000&view=day", "/e?time={date}&view=…"),
        ("/e?from=1790000000000", "/e?from={date}"),
        ("/?r=diary/2026/11/05", "/?r=diary/{date}"),
        ("/?r=diary%2F2026%2F11%2F05&lang=en", "/?r=diary%2F{date}&lang=en"),
        ("/?diary/2026-11", "/?diary/{date}"),
        ("/?p=log-2026-11-05.html", "/?p=log-{date}.html"),
        ("/?p=plan/2026/kw/7", "/?p=plan/{date}"),
        ("/?p=plan/2026-W07", "/?p=plan/{date}"),
        ("/?p=log/20261105", "/?p=log/{date}"),
        ("/?p=diary/2026-11-05&month=3", "/?month={date}&p=…"),
        ("/?p=log_20261105", None),
        ("/?p=version-2024.05", None),
        ("/?p=news/2026-11-05-a-story", None),
        ("/?p=diary/2026/13", None),
        ("/e?t=179000000", None),
        ("/e?t=17900000000", None),
        ("/e?id=1790000000", None),
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
    assert pattern_of(SITE + path) == Pattern("query", SITE + pattern)


def test_most_urls_have_no_pattern() -> None:
    assert pattern_of(SITE + "/a/b") is None
    assert Traps(["query"]).pattern(Url(SITE + "/a?b=1")) is None, "what is allowed waits for no round"


def test_two_samples_without_new_contents_close_a_pattern() -> None:
    first = Sampling()
    assert first.after(1) == Sampling(SAMPLE, 1), "the first page of any pattern is new"
    assert first.after(2) == Sampling(SAMPLE, 0, proven=True)
    assert first.after(SAMPLE) == Sampling(2 * SAMPLE, 0, proven=True)
    assert first.after(1).after(0).is_closed
    assert not first.after(1).after(1).after(0).is_closed


@pytest.mark.parametrize(
    ("pages", "contents", "dry", "is_closed"),
    [
        (20, 10, 40, True),  # each second one was new
        (60, 5, 40, False),
        (60, 5, 95, False),
        (60, 5, 96, True),
        (500, 2, 199, False),
        (500, 2, 200, True),
        (500, 0, 199, False),  # what it led to was new
    ],
)
def test_a_pattern_whose_contents_are_rare_is_closed_later(
    pages: int, contents: int, dry: int, is_closed: bool
) -> None:
    closed = Sampling(SAMPLE, 2, proven=True)
    assert closed.patient(pages, contents, dry).is_closed is is_closed
    unproven = closed._replace(proven=False)
    assert unproven.patient(pages, contents, dry).is_closed
    is_over = dry >= 200 or not contents
    assert unproven.patient(pages, contents, dry, refuses=True).is_closed is is_over
    assert closed.patient(pages, contents, dry, refuses=True).is_closed is (dry >= 200)


def unread(records: int, rate: int, seed: int, *, refuses: bool) -> int:
    """The described records of a museum, one of `rate`, that are not read in some order of the samples."""
    described = [at % rate == 0 for at in range(records)]
    random.Random(seed).shuffle(described)
    sampling, at, last, contents = Sampling(), 0, 0, 0
    while at < records and not sampling.is_closed:
        some = described[at : at + sampling.size]
        new = sum(some) + (contents == 0)  # what all others say
        at, contents = at + len(some), contents + new
        last = at if new else last
        sampling = sampling.after(new)
        if sampling.is_closed:
            sampling = sampling.patient(last, contents, at - last, refuses=refuses)
    return sum(described[at:])


@pytest.mark.parametrize(("records", "rate", "lost"), [(480, 12, 0.03), (2_000, 12, 0.04), (600, 20, 0.18)])
def test_rare_contents_are_read_in_most_orders(records: int, rate: int, lost: float) -> None:
    """In all of them, if the site refuses records that do not exist."""
    orders = 1_000
    assert sum(unread(records, rate, seed, refuses=False) > 0 for seed in range(orders)) <= lost * orders
    assert not any(unread(records, rate, seed, refuses=True) for seed in range(orders))


@given(st.lists(st.integers(0, 400), max_size=60))
def test_a_pattern_costs_at_most_forty_requests_per_content(news: list[int]) -> None:
    sampling, asked, brought = Sampling(), 0, 0
    for new in news:
        if sampling.is_closed:
            break
        brought += min(new, sampling.size)
        asked += sampling.size
        sampling = sampling.after(min(new, sampling.size))
    assert asked <= 2 * SAMPLE * (brought + 1)


def test_a_pattern_of_new_pages_is_read_in_few_samples() -> None:
    sampling, asked = Sampling(), 0
    for _ in range(10):
        asked, sampling = asked + sampling.size, sampling.after(sampling.size)
    assert asked > 20_000


def test_traps_are_reported_once_and_up_to_a_limit() -> None:
    traps = Traps()
    for number in range(3 * MAX_REPORTED):
        traps.report("path", f"p{number // 2}", SITE)
    assert len(traps.unreported()) == MAX_REPORTED
    assert traps.unreported() == []


def test_a_trap_names_the_flag_that_allows_it() -> None:
    for kind in SAYS:
        words = str(Trap(kind, "pattern", "example"))
        assert words.endswith(
            f"(--allow-trap {kind} crawls it)" if kind not in {"links", "repeats"} else "as in example"
        )
