"""Spaces without end: by the text of a URL, and by what its neighbours show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import Cause, Failed, Listed, Moved, Outcome, Unlisted, Why
from crawler.spaces import DEEPEST, calendar_of, space_of, spelled
from crawler.traps import ROW, SAYS, SPACES, Trap, Traps, read
from crawler.urls import Url

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
def test_what_shows_by_the_text_alone(path: str, kind: str | None) -> None:
    shown = spelled(SITE + path, 3)
    assert (shown[0] if shown else None) == kind
    assert Traps().bars(Url(SITE + path), 3) is (kind is not None)
    assert not Traps([kind] if kind else []).bars(Url(SITE + path), 3)


def test_depth_has_an_end() -> None:
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
        ("/e?date=20261105&view=day", "/e?date={date}"),
        ("/e?year=2026&month=3", "/e?month={date}&year={date}"),
        ("/e?y=2026&m=3&lang=en", "/e?m={date}&y={date}"),
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
def test_what_is_a_leaf_of_a_calendar(path: str, pattern: str | None) -> None:
    assert calendar_of(SITE + path) == (None if pattern is None else SITE + pattern)


def test_most_urls_lie_in_no_space() -> None:
    assert space_of(SITE + "/a/b") is None
    assert space_of(SITE + "/a?b=1") == ("query", SITE + "/a?…")


def page(number: int) -> Url:
    return Url(f"{SITE}/shop?n={number}")


def visit(
    traps: Traps, count: int, outcome: Outcome | None = None, content: str = "same", start: int = 0
) -> list[Outcome]:
    return [
        traps.note(page(number), outcome or Listed(), content, ()) for number in range(start, start + count)
    ]


def test_pages_that_show_nothing_new_close_their_space() -> None:
    traps = Traps()
    visit(traps, ROW)
    assert not traps.bars(page(9_999))
    said = visit(traps, 2, start=ROW)
    assert [outcome for outcome in said if isinstance(outcome, Unlisted)] == said
    assert traps.bars(page(9_999))
    assert not traps.bars(Url(SITE + "/shop"))
    assert not traps.bars(Url(SITE + "/other?n=1"))
    assert traps.withdrawn == [page(number) for number in range(1, ROW)], "the first showed something"
    assert [(trap.kind, trap.pattern) for trap in traps.news()] == [("query", SITE + "/shop?…")]
    assert traps.news() == []


def test_pages_that_are_not_listed_show_nothing_either() -> None:
    traps = Traps()
    visit(traps, ROW + 1, Unlisted(Why.CANONICAL, SITE))
    assert traps.bars(page(9_999))
    assert traps.withdrawn == []


@pytest.mark.parametrize("outcome", [Failed(Cause.NOT_FOUND), Moved(Url(SITE)), Unlisted(Why.ROBOTS)])
def test_what_is_no_page_tells_nothing(outcome: Outcome) -> None:
    traps = Traps()
    visit(traps, 3 * ROW, outcome)
    assert not traps.bars(page(9_999))


def test_anything_new_starts_the_row_anew() -> None:
    traps = Traps()
    for number in range(5 * ROW):
        new = number % (ROW - 1) == 0
        links = [Url(f"{SITE}/item/{number}")] if new and number % 2 else []
        traps.note(page(number), Listed(), f"{number}" if new and not links else "same", links)
    assert not traps.bars(page(9_999))


def test_links_inside_of_the_space_are_nothing_new() -> None:
    traps = Traps()
    for number in range(ROW + 1):
        traps.note(page(number), Listed(), "same", [page(number + 1), Url(SITE + "/")])
    assert traps.bars(page(9_999))


@pytest.mark.parametrize(
    ("month", "day"),
    [
        ("/cal?year={}&month=3", "/cal?year={}&month=3&day=5"),
        ("/month/{}-03", "/day/{}-03-05"),
        ("/calendar/month/{}/3", "/calendar/day/{}/3/5"),
        ("/month.php?date={}-03", "/day.php?date={}-03-05"),
    ],
)
def test_months_and_days_that_lead_only_to_each_other_are_closed(month: str, day: str) -> None:
    traps, asked = Traps(), 0
    for year in range(1_500, 1_500 + 5 * ROW):
        later = [Url(SITE + path.format(year + 1)) for path in (month, day)]
        for path in (month, day):
            here = Url(SITE + path.format(year))
            asked += not traps.bars(here)
            traps.note(here, Listed(), "no events", [*later, Url(SITE + "/")])
    assert asked < 3 * ROW


def lists(traps: Traps, count: int, item: str) -> None:
    """Pages of a list that are all alike but for the items they lead to; these come later."""
    for number in range(count):
        traps.note(page(number), Unlisted(Why.NOINDEX), None, [Url(SITE + item.format(number))])


@pytest.mark.parametrize("item", ["/item?id={}", "/item/{}?from=list", "/item/{}", "/events/2026-{:02}-01"])
def test_a_list_of_pages_is_gone_through(item: str) -> None:
    traps = Traps()
    lists(traps, 3 * ROW, item)
    assert not traps.bars(page(9_999))


def test_copies_that_each_name_another_page_are_no_trap() -> None:
    traps = Traps()
    for number in range(3 * ROW):
        copy = Unlisted(Why.CANONICAL, page(number))
        traps.note(Url(f"{page(number)}&from=list"), copy, None, [page(number)])
    assert not traps.bars(page(9_999))


def test_a_page_without_a_fingerprint_is_like_no_other() -> None:
    traps = Traps()
    for number in range(3 * ROW):
        traps.note(page(number), Listed(), None, ())
    assert not traps.bars(page(9_999))


def test_what_is_allowed_is_never_closed() -> None:
    traps = Traps(["query"])
    visit(traps, 3 * ROW)
    assert not traps.bars(page(9_999))
    assert traps.found == {}


def test_what_was_learned_survives_a_death() -> None:
    before = Traps()
    visit(before, ROW - 20)
    assert before.is_dirty
    after = Traps()
    after.restore(json.loads(json.dumps(before.saved())))
    assert not before.is_dirty
    visit(after, 30, start=ROW)
    assert after.bars(page(9_999))
    again = Traps()
    again.restore(json.loads(json.dumps(after.saved())))
    assert again.bars(page(9_999))
    assert again.withdrawn == after.withdrawn
    assert [str(trap) for trap in read(after.saved())] == [str(trap) for trap in after.found.values()]


def test_memory_is_bounded() -> None:
    traps = Traps()
    for number in range(3 * SPACES):
        traps.note(Url(f"{SITE}/{number}?a=1"), Listed(), "x", ())
        traps.tell("path", f"p{number}", SITE)
    assert len(traps._spaces) <= SPACES
    assert len(traps.found) <= SPACES


def test_a_trap_says_how_to_go_in() -> None:
    for kind in SAYS:
        words = str(Trap(kind, "pattern", "example"))
        assert words.endswith(f"(--allow-trap {kind} goes in)" if kind != "links" else "as in example")


@pytest.mark.parametrize("add", ["x", "&a=1", "/next"])
def test_a_url_that_grows_from_page_to_page_is_cut(add: str) -> None:
    traps, url = Traps(), Url(SITE + "/g?q=")
    for number in range(100):
        after = Url(url + add)
        if traps.bars(after, 1, url):
            assert number <= 22
            break
        url = after
    else:
        pytest.fail("it went on")
    assert [trap.kind for trap in traps.found.values()] == ["query"]


def test_a_copy_of_the_page_without_a_query_shows_nothing_new() -> None:
    traps = Traps()
    traps.note(Url(SITE + "/shop"), Listed(), "same", ())
    visit(traps, ROW + 1)
    assert page(0) in traps.withdrawn
    later = Traps()
    later.note(page(0), Listed(), "same", ())
    later.note(Url(SITE + "/shop"), Listed(), "other", ())
    assert later.note(page(1), Listed(), "other", ()) == Listed()
    assert later._spaces[SITE + "/shop?…"].row == 1


@given(st.text(max_size=60), st.integers(0, 5_000))
def test_no_url_is_too_strange(text: str, depth: int) -> None:
    url = SITE + "/" + text
    spelled(url, depth)
    space_of(url)
    Traps().bars(Url(url), depth)
