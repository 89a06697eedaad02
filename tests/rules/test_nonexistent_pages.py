"""Which pages that do not exist a site is asked for."""

import re

import pytest

from crawler.parse.url import Url
from crawler.rules import nonexistent_pages

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
    found = list(nonexistent_pages.places(Url(HOME + path)))
    assert [place.prefix.removeprefix(HOME) for place in found] == places
    asked = [url for place in found for url in place.asked]
    assert all(url.startswith(place.prefix) for place in found for url in place.asked)
    assert len(set(asked)) == len(asked)
    assert HOME + path not in asked
    assert found == list(nonexistent_pages.places(Url(HOME + path))), "the same in every run"


@pytest.mark.parametrize(
    ("linked", "asked"),
    [
        ((), []),
        # Names without an ending are asked first; numbers may be pages.
        (("/a", "/b/c", "/d?id=1", "/d?id=2"), []),
        (("/a.html", "/b/c.html", "/d.php"), ["/{}.html"]),
        (("/a/", "/b/c/"), ["/{}/"]),
        (("/p?page=a", "/p?page=b", "/q?x=c"), ["/p?page={}"]),
        (("/x.html", "/p?page=a&n=1", "/p?page=b&n=1"), ["/{}.html", "/p?page={}&n=1"]),
        (("/p?page=a",), []),  # what does not differ may mean nothing
    ],
)
def test_what_cannot_exist_has_the_form_of_linked_pages(linked: tuple[str, ...], asked: list[str]) -> None:
    name = nonexistent_pages.nonexistent_names(Url(HOME))[0]
    found = [
        form[0].removeprefix(HOME)
        for form in nonexistent_pages.like_linked(HOME, [Url(HOME + at) for at in linked])
    ]
    assert found == [form.format(name) for form in asked]


def test_values_of_a_query_are_nonexistent_in_their_kind() -> None:
    url, _ = next(nonexistent_pages.places(Url(f"{HOME}/s?q=lamp&n=3"))).asked
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
    dated = [place for _, place in nonexistent_pages.places_of(pages) if place.is_dated]
    assert [place.bare for place in dated] == [f"{HOME}/t?topic=a"] * asked


@pytest.mark.parametrize(
    ("path", "bare"),
    [
        ("/a?day=2026-11-23", "/a"), ("/a?x=1&day=20261130&y=2", "/a?x=1&y=2"), ("/a?year=2026&month=11", "/a"),
        ("/a?x=1&y=2", "/a"), ("/a", None), ("/rooms/2026/11", None),
    ],
)  # fmt: skip
def test_the_page_without_its_date_may_be_shown_instead(path: str, bare: str | None) -> None:
    assert next(nonexistent_pages.places(Url(HOME + path))).bare == (bare and HOME + bare)


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
    first = next(nonexistent_pages.places(Url(HOME + path)))
    assert first.prefix == HOME + prefix
    assert first.asked[0] == HOME + prefix + asked


def test_places_of_many_pages_are_asked_once_each_and_not_all() -> None:
    pages = [Url(f"{HOME}/rooms/{year}/{month:02}") for year in range(1990, 2030) for month in range(1, 13)]
    found = [place.prefix for _, place in nonexistent_pages.places_of(pages)]
    assert found.count(f"{HOME}/") == 1
    assert len(found) == nonexistent_pages.MOST_PLACES
    few = list(nonexistent_pages.places_of([Url(f"{HOME}/a/x{n}") for n in range(50)]))
    assert [(page, place.prefix) for page, place in few] == [
        (f"{HOME}/a/x0", f"{HOME}/"), (f"{HOME}/a/x0", f"{HOME}/a/"),
    ]  # fmt: skip


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
        ([""], [r"[0-9a-f]{6}-no-such-page"]),
        (["ab", "cd", "12"], [r"[0-9a-f]{6}-no-such-page", r"\d{10}"]),
        (["lot-12", "lot-127"], [r"[0-9a-f]{6}-no-such-page", r"lot-\d{10}"]),
        (
            ["kw9-2026", "kw12-2026"],
            [r"[0-9a-f]{6}-no-such-page", r"kw\d{10}-\d{10}", r"kw(9|12)-2[4-8]\d\d"],
        ),
    ],
)
def test_nonexistent_pages_look_like_those_that_are_there(names: list[str], forms: list[str]) -> None:
    folder = f"{HOME}/shop/"
    asked = list(nonexistent_pages.at_place(folder, [Url(f"{folder}{name}") for name in names]))
    assert len(asked) == len(forms)
    for urls, form in zip(asked, forms, strict=True):
        assert len(urls) == nonexistent_pages.MOST_ASKED
        assert all(re.fullmatch(form, url.removeprefix(folder)) for url in urls)


@pytest.mark.parametrize(
    ("page", "other", "shapes"),
    [
        ("/step/1/view", "/step/2/view", {"/step/{name}": r"/step/\w{6}-no-such-page", "/step/{name}/view": r"/step/\d{10}/view"}),
        ("/u/ann/", "/u/bo/", {}),
        ("/u/ann/", "/u/", {}),
        ("/lists/first", "/shop/a", {}),
        ("/u/ann-1/", "/u/ann-2/", {"/u/ann-{name}/": r"/u/ann-\d{10}/"}),
        ("/tour-1.html", "/tour-12.html", {"/tour-{name}.html": r"/tour-\d{10}.html"}),
        ("/ann/log.html", "/bo/log.html", {"/{name}/log.html": r"/\w{6}-no-such-page/log.html"}),
        ("/a/1/b/1/c", "/a/1/b/2/c", {"/a/1/b/{name}": r".*-page", "/a/1/b/{name}/c": r"/a/1/b/\d{10}/c"}),
        ("/t;v=1", "/t;v=2", {"/t;v={name}": r"/t;v=\d{10}"}),
        ("/a/b/c/d", "/a/x", {"/a/{name}": r"/a/\w{6}-no-such-page"}),
        ("/a", "/b", {}),
        ("/a/1?c=/d/", "/a/2?c=/d/", {}),
        ("/a/b", "/a/b", {}),
    ],
)  # fmt: skip
def test_pages_whose_addresses_are_alike(page: str, other: str, shapes: dict[str, str]) -> None:
    one, two = Url(HOME + page), Url(HOME + other)
    assert {*nonexistent_pages.shapes_of(one, two)} == {HOME + shape for shape in shapes}
    for shape, form in shapes.items():
        assert nonexistent_pages.has_shape(one, HOME + shape)
        assert nonexistent_pages.has_shape(two, HOME + shape)
        first = next(iter(nonexistent_pages.at_place(HOME + shape, [one, two])))
        assert len({*first}) == nonexistent_pages.MOST_ASKED
        assert all(re.fullmatch(form, url.removeprefix(HOME)) for url in first)
        assert all(nonexistent_pages.has_shape(url, HOME + shape) for url in first)


def test_pages_of_two_sites_have_no_shape() -> None:
    assert not [*nonexistent_pages.shapes_of(f"{HOME}/a/1/b", f"{HOME[:-1]}/a/2/b")]


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
    found = list(nonexistent_pages.at_place(f"{HOME}/s?", [Url(f"{HOME}/s?{query}") for query in queries]))
    assert (len(found) > 0) is (form is not None)
    for urls in found[:1]:
        assert len({*urls}) == nonexistent_pages.MOST_ASKED
        assert all(re.fullmatch(form or "", url.removeprefix(f"{HOME}/s?")) for url in urls)


@pytest.mark.parametrize(
    ("queries", "forms"),
    [
        (
            ["r=poem-7", "r=plan/kw1-2026", "r=plan/kw2-2026"],
            [r"plan/kw9\d{9}-9\d{9}", r"plan/kw1-2[4-8]\d\d"],
        ),
        (["r=a/b", "r=c/d"], []),
        (["r=7/in", "r=8/in"], [r"9\d{9}/in"]),
    ],
)
def test_what_is_like_values_is_asked_for(queries: list[str], forms: list[str]) -> None:
    found = list(nonexistent_pages.at_place(f"{HOME}/?", [Url(f"{HOME}/?{query}") for query in queries]))
    for urls, form in zip(found[1:], forms, strict=False):
        assert all(re.fullmatch(rf"{re.escape(HOME)}/\?r={form}", url) for url in urls)
    assert len(found) == 1 + len(forms) + ("poem" in queries[0])


def test_year_of_a_route_is_four_centuries_later() -> None:
    for form in ("/?r=diary/{}/11/05", "/?r=visits/{}-11-05/list&lang=en", "/?date={}-11-05"):
        later = nonexistent_pages.centuries_later(Url(HOME + form.format(2026)))
        assert later == HOME + form.format(2426)
