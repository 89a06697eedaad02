"""What repeats the address of a page is no content; what only looks like it is."""

import random
from datetime import date, timedelta

import pytest
from ada_url import normalize_url
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.echo import Echo, beside_by_number, only_beside, only_spells, variations
from crawler.parse.volatile_text import NODE

HOME = "https://shop.example"


def said(text: str, path: str, *, calendar: bool = False) -> bytes:
    return Echo(HOME + path, calendar=calendar).without(text.replace("|", NODE.decode()).encode())


@pytest.mark.parametrize(
    "text",
    [
        "Not found|The page {path} was not found. Back to the shop.",
        "Not found|The page https://shop.example{path} was not found.",
        "Nothing at “{path}”|Try the search.",
        "{path}",
    ],
)
@pytest.mark.parametrize(
    "path", ["/x", "/zebra/", "/a/b/c", "/foo/bar-baz.html", "/%C3%BCber/uns", "/q?a=1&b=t"]
)
def test_answers_that_differ_in_the_address_are_one(text: str, path: str) -> None:
    assert said(text.format(path=path), path) == said(text.format(path="/other"), "/other")


@pytest.mark.parametrize("path", ["/news/tea", "/news/tea?id=7", "/news/tea/", "/tea"])
def test_folder_is_no_echo_where_the_name_is_meant(path: str) -> None:
    text = f"No news at {path}, no tea.".encode()
    assert Echo(HOME + path, name=True).without(text) == b"No news at \x01, no \x01."
    assert (Echo(HOME + path).without(text) == b"No news at \x01, no \x01.") is (path == "/tea")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Results for %. No results.", "/s?q=%"),
        ("% - Shop|Sorry, we have no %.", "/find?for=%"),
        ("Nothing found: %", "/s?q=%&page=2"),
        ("Nothing found: %", "/index.php?page=find/%"),
    ],
)
@pytest.mark.parametrize("word", ["7", "blue lamp", "über", "a", "LAMP"])
def test_answers_that_differ_in_the_words_of_the_address_are_one(text: str, path: str, word: str) -> None:
    found = {said(text.replace("%", one), path.replace("%", one.replace(" ", "+"))) for one in (word, "x9")}
    assert len(found) == 1


@pytest.mark.parametrize(
    "path", ["/tag/tea+milk", "/tag/tea,milk.html", "/tag/a+b+a+b", "/tags?q=black+tea,milk"]
)
@pytest.mark.parametrize("between", [" and ", ", ", " or ", " & ", " "])
def test_words_that_are_joined_are_an_echo_of_a_list(path: str, between: str) -> None:
    listed = path.removesuffix(".html").rpartition("=")[2].rpartition("/")[2]
    words = between.join(listed.replace("+", ",").split(","))
    assert said(f"Posts on {words}|None.", path) == said("Posts on other|None.", "/tag/other")


def test_text_between_joined_words_is_content() -> None:
    assert said("Tea is grown far from milk", "/tag/tea+milk") == b"Tea is grown far from milk"


def test_words_that_come_again_take_linear_work() -> None:
    """A sentence of one word, and an address that lists it: without atomic steps this would not end."""
    assert said("tea " * 5_000 + "!", "/tag/" + "+".join(["tea"] * 50 + ["x"]))


def test_words_are_whole_and_frequent_ones_of_a_slug_stay() -> None:
    assert said("Chart of art", "/art") == b"Chart of \x01"
    assert said("The best of the rest", "/notes-of-the-day") == b"The best of the rest"


@pytest.mark.parametrize("text", ["No %?", "We looked for % everywhere.", "%|%"])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/old/2003/a3f-b", "Old A F B"),
        ("/2003/zebra-crossing.html", "Zebra Crossing html"),
        ("/2003/zebra-crossing.html", "Zebra Crossing"),
        ("/old/2003/a3f-b.html", "Old A F B"),
        ("/index.php?page=old/2003/a3f-b", "Old A F B"),
        ("/x9/%C3%BCber", "X über"),
    ],
)
def test_answers_that_read_an_address_aloud_are_one(text: str, path: str, words: str) -> None:
    assert said(text.replace("%", words), path) == said(text.replace("%", "b c"), "/b1/c")


def test_a_single_word_beside_a_number_is_no_echo() -> None:
    assert said("The article on tea", "/article-12") == b"The article on tea"


@pytest.mark.parametrize(
    "form",
    ["{:%A %d %B %Y}", "{:%a, %d. %b %Y}", "{:%B %d, %Y}", "{:%d.%m.%Y}", "{:%Y-%m-%d}", "{:%Y %m %d}"],
)
@pytest.mark.parametrize(
    ("days", "is_echo"), [(-400, False), (-8, False), (-7, True), (6, True), (7, True), (8, False)]
)
def test_whole_dates_of_the_week_around_are_an_echo(form: str, days: int, is_echo: bool) -> None:
    other = form.format(date(2026, 3, 4) + timedelta(days))
    expected = b"\x01: closed" if is_echo else f"{other}: closed".encode()
    found = said(f"{other}: closed", "/week/2026-03-04", calendar=True)
    assert (found == expected) is is_echo
    assert said(f"{other}: closed", "/week/2026-13-41", calendar=True) != b"\x01: closed"


def month(name: str, days: int, before: int, path: str) -> bytes:
    last = [str(31 - before + at + 1) for at in range(before)]
    cells = "|".join([*last, *map(str, range(1, days + 1)), "1", "2"])
    return said(f"{name}|« previous|next »|Mon|Tue|{cells}|No events", path, calendar=True)


@pytest.mark.parametrize(
    "path", ["/calendar/{}-{:02}", "/cal?year={}&month={}", "/cal?y={}&m={}", "/events/{}/{:02}/"]
)
def test_months_of_an_empty_calendar_are_one_content(path: str) -> None:
    shown = {
        month(f"{name} {year}", days, before, path.format(year, number))
        for name, year, number, days, before in (
            ("May", 2024, 5, 31, 2), ("February", 2031, 2, 28, 5), ("December", 1999, 12, 31, 0)
        )
    }  # fmt: skip
    assert len(shown) == 1


@pytest.mark.parametrize(
    "form",
    [
        "{:%Y-%m-%d}|", "{:%A, %B %d, %Y}|", "{:%d %B %Y}, ", "{:%d.%m.%Y}|", "{:%d.%m.}|", "{:%m/%d}|",
        "{:%a %d}|", "{:%B %d}: closed. ", "{:%d} ", "{:%d}th|", "<0 events>|{:%d}|",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/calendar/{:%Y-%m}", "/cal?y={0:%Y}&m={0:%m}", "/rooms/{:%Y-%m}/view"])
def test_days_of_an_empty_month_are_an_echo(form: str, path: str) -> None:
    shown = set[bytes]()
    for first in (date(2026, 11, 1), date(2031, 4, 1), date(1999, 9, 1)):
        days = [first + timedelta(at) for at in range(-3, 33)]
        shown.add(said("".join(map(form.format, days)) + "|end", path.format(first), calendar=True))
    assert len(shown) == 1


def test_last_month_that_there_is_has_no_next_one() -> None:
    assert said("On 28.7.", "/cal?y=9999&m=12", calendar=True) == b"On 28.7."


@pytest.mark.parametrize("text", ["5 December 2026", "2026-12-25", "On 24.12.", "3/11|1.30 am", "Sun 6:30"])
def test_other_dates_and_numbers_of_a_month_are_content(text: str) -> None:
    assert said(text, "/calendar/2040-08", calendar=True) == text.replace("|", NODE.decode()).encode()


@pytest.mark.parametrize(
    "form",
    ["/log/{:%Y%m%d}", "/log/{:%d-%m-%Y}", "/log/{:%d.%m.%Y}.html", "/log/{:%Y/%m/%d}", "/log?d={:%Y-%m-%d}"],
)
@pytest.mark.parametrize(
    "text",
    [
        "{0:%A}, the {0.day} of {0:%B}: at anchor|{1:%Y%m%d}|{2:%Y%m%d}",
        "Day {0:%j}, week {0:%V} of {0:%Y}|at anchor",
        "{0:%Y-%m-%dT00:00}|at anchor",
    ],
)
def test_days_of_an_empty_log_are_one_content(form: str, text: str) -> None:
    days = (date(2024, 2, 29), date(2026, 11, 25), date(2031, 6, 13))
    shown = {
        said(text.format(day, day - timedelta(1), day + timedelta(1)), form.format(day), calendar=True)
        for day in days
    }
    assert len(shown) == 1


@pytest.mark.parametrize("digits", ["", "000"])
def test_days_by_unix_time_are_one_content(digits: str) -> None:
    """Wherever the site is, its day is that of UTC or one beside it."""
    shown = {
        said(
            f"{day:%A, %d %B %Y}|No events",
            f"/cal?time={1_741_824_000 + 86_400 * at + shift}{digits}",
            calendar=True,
        )
        for at in range(0, 900, 45)
        for shift in (-43_200, 0, 43_200)
        for day in [date(2025, 3, 13) + timedelta(at)]
    }
    assert len(shown) == 1


def test_months_counted_from_now_are_one_content() -> None:
    shown = {
        month(name, days, 3, f"/cal?month={at}")
        for at, (name, days) in enumerate([("May 2024", 31), ("June 2024", 30)])
    }
    assert len(shown) == 1


@given(st.integers(0, 10_000))
def test_draws_of_numbers_by_date_are_different_contents(seed: int) -> None:
    rolls = random.Random(seed)
    draws = {
        said(
            "Draw|" + "|".join(map(str, sorted(rolls.sample(range(1, 50), 6)))),
            f"/draw/2024-{m:02}-{d:02}",
            calendar=True,
        )
        for m in range(1, 13)
        for d in range(1, 6)
    }
    assert len(draws) >= 58


@given(st.binary(max_size=200), st.text(max_size=60), st.booleans())
def test_any_text_and_address_is_accepted(text: bytes, path: str, calendar: bool) -> None:
    Echo(f"{HOME}/{path}", calendar=calendar).without(text)


@pytest.mark.parametrize("piece", [b"a ", b"/a", b"1\x00", b"2024 "])
def test_time_is_linear(piece: bytes) -> None:
    Echo(HOME + "/a/1/2024-05?" + "&".join(["a=a"] * 500), calendar=True).without(piece * 100_000)


@pytest.mark.parametrize(
    ("path", "beside"),
    [
        ("/page/9", ("/page/10", "/page/8")), ("/page/14/", ("/page/15/", "/page/13/")),
        ("/entry-099.html", ("/entry-100.html", "/entry-098.html")), ("/a/2/b", ()),
        ("/page", ()), ("/page?n=4", ()), ("/page/1234567890123", ("/page/1234567890124", "/page/1234567890122")),
    ],
)  # fmt: skip
def test_the_next_number_and_the_one_before(path: str, beside: tuple[str, ...]) -> None:
    assert beside_by_number(f"http://127.0.0.1:80{path}") == tuple(
        f"http://127.0.0.1:80{one}" for one in beside
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="/page/14">on', True), ("<a href=14>on", True), ("<a href='14/'>", True), ('<a href="./14?x">', True),
        ('<a href="/page/15">', False), ('<a href="/page/140">', False), ('<a href="/page/114">', False), ("14", False),
        ("page 14", False), ("", False),
    ],
)  # fmt: skip
def test_a_page_that_may_link_to_the_next_number(body: str, expected: bool) -> None:
    url = f"{HOME}/page/13"
    assert only_beside(url, body.encode()) == (beside_by_number(url) if expected else ())
    assert not only_beside(f"{HOME}/page", body.encode())


@pytest.mark.parametrize(
    ("href", "text", "expected"),
    [
        ("/page/14", "Next", True), ("14", "Page 14", True), ("/page/12", "Newer ones", True), ("/page/15", "Next", False),
        ("/page/14?x=1", "Next", False), ("/item/14", "14", False), ("/page/13/more", "more", True),
    ],
)  # fmt: skip
def test_links_to_variations_of_the_own_address(href: str, text: str, expected: bool) -> None:
    url = f"{HOME}/page/13"
    found = variations(url, [href], beside_by_number(url))
    assert (href in found and only_spells(text, found[href])) is expected


@pytest.mark.parametrize(
    ("own", "href", "expected"),
    [
        ("/tag/tea.html", "/tag/tea+milk.html", True), ("/tag/tea.html", "tea/milk.html", True),
        ("/tag/tea.html", "/all/tag/tea.html", True), ("/tag/tea.html", "/all/tag/tea", False),
        ("/tag/tea.html", "/tag/milk.html", False), ("/tag/v1.25", "/tag/v1.26", False),
        ("/java.base/", "/java.desktop/x", False), ("/tag/.html", "/tag/x.html", False),
    ],
)  # fmt: skip
def test_variations_of_an_address_with_an_ending(own: str, href: str, expected: bool) -> None:
    assert bool(variations(HOME + own, [href])) is expected


PIECE = st.sampled_from(
    ["a", "b", "a.b", "ab", "..", ".", "", "x", "a;b", "a\tb", "?", "//", "http:", "%61", " "]
)
ADDRESS = st.lists(PIECE, max_size=5).map("/".join)


@given(ADDRESS, ADDRESS)
def test_links_that_are_ruled_out_unresolved_lead_elsewhere(path: str, href: str) -> None:
    url = normalize_url(f"{HOME}/{path}")
    assert variations(url, [href]) == variations(url, [href], beside=["nowhere"])


@pytest.mark.parametrize(
    "menu", ["<a href=1>", "<a href=/page/15>", "<a href='/archive/2024'>", "<a href=13/><a href=5>"]
)
def test_a_menu_of_numbers_is_content(menu: str) -> None:
    """Else one body would be another content at each address."""
    assert only_beside(f"{HOME}/page/13", f"<a href=/page/14>{menu}".encode()) == ()


def test_part_of_a_name_that_tells_pages_apart_is_an_echo() -> None:
    url, text = "https://a.example/search-red+tea.html", b"Results for red tea in teapots"
    assert Echo(url).without(text) == text
    assert Echo(url, part="red+tea").without(text) == b"Results for \x01 in teapots"
