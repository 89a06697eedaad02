"""Where a nonexistent page is asked, and which page is shown in its place."""

import re

import pytest

from crawler.model.visit import Links, MissingPage
from crawler.parse.url import Url
from crawler.rules import soft_404

HOME = "https://a.example"


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("/a", ["/"]),
        ("/shop/a", ["/", "/shop/"]),
        ("/page/17", ["/", "/page/", "/page/"]),
        ("/a/", ["/", "/a/"]),
        ("/shop/a/", ["/", "/shop/", "/shop/a/"]),
        ("/page/17/", ["/", "/page/", "/page/17/", "/page/"]),
        ("/page/17.html", ["/", "/page/", "/page/"]),
        ("/s?q=lamp&n=3", ["/s?", "/"]),
        ("/shop/s?q=lamp", ["/shop/s?", "/", "/shop/"]),
    ],
)
def test_places_from_the_page_outwards(path: str, places: list[str]) -> None:
    found = list(soft_404.places(Url(HOME + path)))
    assert [place.prefix.removeprefix(HOME) for place in found] == places
    asked = [url for place in found for url in place.asked]
    assert all(url.startswith(place.prefix) for place in found for url in place.asked)
    assert len(set(asked)) == len(asked)
    assert HOME + path not in asked
    assert found == list(soft_404.places(Url(HOME + path))), "the same in every run"


@pytest.mark.parametrize(
    ("linked", "asked"),
    [
        ((), []),
        (
            ("/a", "/b/c", "/d?id=1", "/d?id=2"),
            [],
        ),  # names without an ending are asked first; numbers may be pages
        (("/a.html", "/b/c.html", "/d.php"), ["/{}.html"]),
        (("/a/", "/b/c/"), ["/{}/"]),
        (("/p?page=a", "/p?page=b", "/q?x=c"), ["/p?page={}"]),
        (("/x.html", "/p?page=a&n=1", "/p?page=b&n=1"), ["/{}.html", "/p?page={}&n=1"]),
        (("/p?page=a",), []),  # what does not differ may mean nothing
    ],
)
def test_what_cannot_exist_has_the_form_of_linked_pages(linked: tuple[str, ...], asked: list[str]) -> None:
    name = soft_404.nonexistent_names(Url(HOME))[0]
    found = [
        form[0].removeprefix(HOME)
        for form in soft_404.nonexistent_like(HOME, [Url(HOME + at) for at in linked])
    ]
    assert found == [form.format(name) for form in asked]


def test_values_of_a_query_are_nonexistent_in_their_kind() -> None:
    url, _ = next(soft_404.places(Url(f"{HOME}/s?q=lamp&n=3"))).asked
    assert url.startswith(f"{HOME}/s?q=")
    assert "no-such-page&" in url
    assert url.endswith("&n=9876543210")


@pytest.mark.parametrize(
    ("numbers", "asked"),
    [
        (["203902", "9999"], 0),
        (["203902", "9998", "9999"], 0),
        (["203902", "203903", "9999"], 2),
        (["203902"], 1),
    ],
)
def test_a_number_is_a_date_where_most_are(numbers: list[str], asked: int) -> None:
    pages = [Url(f"{HOME}/t?topic=a&n={number}") for number in numbers]
    dated = [place for _, place in soft_404.places_of(pages) if place.is_dated]
    assert [place.bare for place in dated] == [f"{HOME}/t?topic=a"] * asked


@pytest.mark.parametrize(
    ("path", "bare"),
    [
        ("/a?day=2026-11-23", "/a"), ("/a?x=1&day=20261130&y=2", "/a?x=1&y=2"), ("/a?year=2026&month=11", "/a"),
        ("/a?x=1&y=2", "/a"), ("/a", None), ("/rooms/2026/11", None),
    ],
)  # fmt: skip
def test_the_page_without_its_date_may_be_shown_instead(path: str, bare: str | None) -> None:
    assert next(soft_404.places(Url(HOME + path))).bare == (bare and HOME + bare)


@pytest.mark.parametrize(
    ("path", "prefix", "asked"),
    [
        ("/rooms/2026/11", "/rooms/", "2961/11"),
        ("/news/2024/02/29", "/news/", "2961/02/28"),
        ("/t/2026-11-30.html", "/t/", "2961-11-28.html"),
        ("/plan/2026/kw/48", "/plan/", "2961/kw/48"),
        ("/a?day=2026-11-23", "/a?", "day=2961-11-23"),
        ("/a?x=1&day=20261130&y=2", "/a?", "x=1&day=29611128&y=2"),
        ("/a?year=2026&month=11", "/a?", "year=2961&month=11"),
        ("/a?month=-3", "/a?", "month=9876543210"),
    ],
)
def test_a_nonexistent_page_of_a_calendar_is_a_date_far_ahead(path: str, prefix: str, asked: str) -> None:
    first = next(soft_404.places(Url(HOME + path)))
    assert first.prefix == HOME + prefix
    assert first.asked[0] == HOME + prefix + asked


def test_places_of_many_pages_are_asked_once_each_and_not_all() -> None:
    pages = [Url(f"{HOME}/rooms/{year}/{month:02}") for year in range(1990, 2030) for month in range(1, 13)]
    found = [place.prefix for _, place in soft_404.places_of(pages)]
    assert found.count(f"{HOME}/") == 1
    assert len(found) == soft_404.MOST_PLACES
    few = list(soft_404.places_of([Url(f"{HOME}/a/x{n}") for n in range(50)]))
    assert [(page, place.prefix) for page, place in few] == [
        (f"{HOME}/a/x0", f"{HOME}/"), (f"{HOME}/a/x0", f"{HOME}/a/"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "title", "place"),
    [
        ("/shop/ab-1", "Product ab-1 is gone", ("/shop/", "product is gone")),
        ("/find?q=red+tea", "Results: red tea, page 2", ("/find?", "results page")),
        ("/shop/ab-1/", "Product ab-1 is gone", ("/shop/", "product is gone")),
        ("/shop/", "Shop", ("/", "")),
        ("/", None, ("/", "")),
    ],
)
def test_pages_of_a_place_that_call_themselves_the_same(
    page: str, title: str | None, place: tuple[str, str]
) -> None:
    url = Url(HOME + page)
    assert (soft_404.doubtful_place(url), soft_404.title_words(url, title)) == (HOME + place[0], place[1])


@pytest.mark.parametrize(
    ("names", "forms"),
    [
        (["ab"], [r"[0-9a-f]{6}-no-such-page"]),
        (["12"], [r"\d{10}"]),
        (["ab/"], [r"[0-9a-f]{6}-no-such-page/"]),
        (["12/"], [r"\d{10}/"]),
        (["lot-12/"], [r"[0-9a-f]{6}-no-such-page/", r"lot-\d{10}/"]),
        (["ab.html"], [r"[0-9a-f]{6}-no-such-page\.html"]),
        (["12.php"], [r"\d{10}\.php"]),
        ([".hidden"], [r"[0-9a-f]{6}-no-such-page"]),
        (["ab.12"], [r"[0-9a-f]{6}-no-such-page", r"ab\.\d{10}"]),
        (["ab", "12"], [r"\d{10}"]),
        (["lot-12", "lot-127"], [r"[0-9a-f]{6}-no-such-page", r"lot-\d{10}"]),
        (
            ["kw9-2026", "kw12-2026"],
            [r"[0-9a-f]{6}-no-such-page", r"kw\d{10}-\d{10}", r"kw(9|12)-2[4-8]\d\d"],
        ),
    ],
)
def test_nonexistent_pages_look_like_those_that_are_there(names: list[str], forms: list[str]) -> None:
    folder = f"{HOME}/shop/"
    asked = list(soft_404.nonexistent_at(folder, [Url(f"{folder}{name}") for name in names]))
    assert len(asked) == len(forms)
    for urls, form in zip(asked, forms, strict=True):
        assert len(urls) == soft_404.MOST_ASKED
        assert all(re.fullmatch(form, url.removeprefix(folder)) for url in urls)


@pytest.mark.parametrize(
    ("queries", "form"),
    [
        (["q=tea&n=1", "q=milk&n=2"], r"q=[0-9a-f]{6}-no-such-page&n=1"),
        (["q=tea&lang=en", "q=milk&lang=en"], r"q=[0-9a-f]{6}-no-such-page&lang=en"),
        (["tea", "milk"], r"[0-9a-f]{6}-no-such-page"),
        (["q=7", "q=tea"], r"q=[0-9a-f]{6}-no-such-page"),
        (["n=1", "n=2"], None),
        (["q=tea"], None),
    ],
)
def test_names_are_asked_for_where_values_are_names(queries: list[str], form: str | None) -> None:
    found = list(soft_404.nonexistent_at(f"{HOME}/s?", [Url(f"{HOME}/s?{query}") for query in queries]))
    assert len(found) == (form is not None)
    for urls in found:
        assert len({*urls}) == soft_404.MOST_ASKED
        assert all(re.fullmatch(form or "", url.removeprefix(f"{HOME}/s?")) for url in urls)


def test_page_shown_for_anything_leads_on_as_all_such_pages_do() -> None:
    shop = "https://site.test/shop/"
    missing = MissingPage(
        (), 9, is_place=True, content="c", links=(Url(f"{shop}a"), Url("https://site.test/"))
    )
    to = tuple(map(Url, (f"{shop}a", f"{shop}x-1", "https://site.test/b")))
    assert soft_404.leading_on(Url(f"{shop}x"), Links(to), missing).followed == (to[0], to[2])
    home = Url("https://site.test/")
    assert soft_404.leading_on(home, Links(to), missing).followed == to, "the page of the place itself"


def test_page_of_the_place_is_shown_instead() -> None:
    assert Url(f"{HOME}/shop/") in soft_404.shown_instead(f"{HOME}/shop/")
    assert Url(f"{HOME}/s") in soft_404.shown_instead(f"{HOME}/s?")


TEMPLATE = {1, 2, 3}


def test_missing_page_is_what_only_error_pages_show() -> None:
    asked = [TEMPLATE | {10, 11, 90}, TEMPLATE | {10, 11, 91}]
    start, others = TEMPLATE | {20}, [{1, 2, 30}, {1, 2, 11, 31}]
    missing = soft_404.missing_page(asked, start, others)
    assert missing
    assert set(missing.blocks) == {10}, "11 is on a true page, too"
    assert soft_404.is_missing(missing, TEMPLATE | {10, 11, 92})
    assert not soft_404.is_missing(missing, TEMPLATE | {11, 92})
    assert not soft_404.is_missing(missing, TEMPLATE | {10} | set(range(100, 150))), "much more than an error"


@pytest.mark.parametrize(
    ("asked", "start", "others"),
    [
        ([{1, 2}, {1, 2}], {1, 2}, [{3}]),  # the start page for every path
        ([{1, 5}, {1, 6}], {1}, [{3}]),  # nothing in common but what the start page has
        ([{1, 9}, {1, 9}], {1}, [{1, 9, 3}]),  # what every page but the start page has
        ([{1, 9}, {1, 9}], {1}, []),  # nothing to compare with
        ([{1, 9, 8}, {1, 9, 8}], {1}, [{1, 9}, {1, 8}]),
    ],
)
def test_missing_page_is_none_if_it_is_not_clear(
    asked: list[set[int]], start: set[int], others: list[set[int]]
) -> None:
    assert soft_404.missing_page(asked, start, others) is None


def test_error_pages_among_the_samples_are_no_true_pages() -> None:
    missing = soft_404.missing_page([{1, 9}, {1, 9}], {1}, [{1, 9, 5}, {1, 3}])
    assert missing
    assert missing.blocks == (9,)
