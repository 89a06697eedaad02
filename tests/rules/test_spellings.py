"""Spellings of one address fold together; what is listed of the pages there is decided by evidence."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.rules.spellings import (
    Copy,
    Repeat,
    copies,
    folded,
    is_session,
    places_of_sessions,
    unlisted_repeats,
    without_info,
)

HOME = "https://a.example"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a", "/a/"), ("/a//b", "/a/b/"), ("/a/index.html", "/a/"), ("/A.html", "/a"), ("/a.php?id=1", "/a?id=1"),
        ("/a?x=1&y=", "/a?x=1"), ("/a?x=1&b=2", "/a?b=2&x=1"), ("/%61", "/a"), ("/a;v=1", "/a"), ("/a?x=", "/a"),
        ("/default.aspx", "/"), ("/a?x=%41", "/a?x=a"), ("/a?x=1&x=1", "/a?x=1"),
        ("/index.php/a", "/a"), ("/b/Default.aspx/a/", "/b/a"),
    ],
)  # fmt: skip
def test_spellings_fold_together(one: str, other: str) -> None:
    assert folded(HOME + one) == folded(HOME + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a", "/b"), ("/a?x=1", "/a?x=2"), ("/a?x=1", "/a"), ("/a/b", "/a-b"), ("/a.html", "/a.pdf"),
        ("/a/b", "/b"), ("/a.php/b", "/a.php/c"), ("/index/a", "/a"), ("/view.php/a", "/a"),
    ],
)  # fmt: skip
def test_other_addresses_do_not(one: str, other: str) -> None:
    assert folded(HOME + one) != folded(HOME + other)
    assert folded(HOME + one) != folded("https://b.example" + one)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("a8f5f167f44f4964", True), ("sid-1a2b3c4d", True), ("(S(lit3py55t21z5v55vlm25s55))", True),
        ("1700000000", True), ("550e8400-e29b-41d4-a716-446655440000", True),
        ("10091cq6721", True), ("4faq949", False), ("conference2024", False), ("2024-05-17", False), ("jdk17", False), ("index", False), ("12345", False), ("", False),
    ],
)  # fmt: skip
def test_what_looks_like_the_id_of_a_session(part: str, expected: bool) -> None:
    assert is_session(part) is expected


def copy(number: int, path: str, *evidence: str, linked: int = 1, canonical: bool = False) -> Copy:
    return Copy(number, HOME + path, evidence, None, canonical, linked)


def unlisted(*pages: Copy) -> dict[str, str]:
    by_id = {page.id: page.url.removeprefix(HOME) for page in pages}
    return {by_id[number]: best.removeprefix(HOME) for number, best in copies(pages).items()}


def test_most_linked_spelling_stays_then_shortest() -> None:
    assert unlisted(copy(1, "/a", "x"), copy(2, "/a/", "x", linked=2)) == {"/a": "/a/"}
    assert unlisted(copy(1, "/a", "x"), copy(2, "/a/", "x")) == {"/a/": "/a"}
    assert unlisted(copy(1, "/a", "x", linked=9), copy(2, "/a/", "x", canonical=True)) == {"/a": "/a/"}
    published = replace(copy(2, "/a/", "x"), is_published=True)
    assert unlisted(copy(1, "/a", "x"), published) == {"/a": "/a/"}
    assert unlisted(copy(1, "/a", "x", linked=2), published) == {"/a/": "/a"}


def test_start_url_stays_unless_another_one_is_canonical() -> None:
    start, index = replace(copy(1, "/", "x"), is_start=True), copy(2, "/index.html", "x", linked=9)
    assert unlisted(start, index) == {"/index.html": "/"}
    assert unlisted(start, replace(index, is_canonical=True)) == {"/": "/index.html"}


def test_equal_pages_elsewhere_and_other_pages_stay() -> None:
    assert (
        unlisted(copy(1, "/a", "x"), copy(2, "/b", "x"), copy(3, "/p?n=1", "x"), copy(4, "/p?n=2", "x")) == {}
    )
    assert unlisted(copy(1, "/a", "x"), copy(2, "/a/", "y"), copy(3, "/A", "z")) == {}


def test_ignored_parameters_and_path_info_need_the_page_itself() -> None:
    pages = [copy(number, f"/p.php{rest}", "x") for number, rest in enumerate(["?n=1", "?n=2", "/1", "/2"])]
    assert unlisted(*pages) == {}
    assert set(unlisted(*pages, copy(9, "/p.php", "x")).values()) == {"/p.php"}
    assert unlisted(*pages, copy(9, "/p.php", "y")) == {}
    assert without_info(f"{HOME}/p.php/a/b") == f"{HOME}/p.php"


@pytest.mark.parametrize("first", ["/news/page/1/", "/news/page-1", "/news/1", "/news/page1/"])
def test_first_page_of_a_list_is_the_list_if_it_says_the_same(first: str) -> None:
    second = copy(2, first.replace("1", "2"), "x")
    assert unlisted(copy(0, "/news/", "x"), copy(1, first, "x"), second) == {first: "/news/"}
    assert unlisted(copy(0, "/news/", "x"), copy(1, first, "y")) == {}


def test_first_page_at_the_root() -> None:
    assert unlisted(copy(0, "/", "x"), copy(1, "/page/1", "x")) == {"/page/1": "/"}
    assert unlisted(copy(0, "/", "x"), copy(1, "/1", "x"), copy(2, "/2", "x")) == {"/1": "/"}


def test_an_ignored_parameter_makes_no_two_pages_one() -> None:
    pages = [
        copy(number, f"/p?{query}", "x")
        for number, query in enumerate(["id=1", "id=2", "id=1&id=2", "id=1&y=3"])
    ]
    assert unlisted(*pages) == {"/p?id=1&id=2": "/p?id=1", "/p?id=1&y=3": "/p?id=1"}


def test_sites_that_route_by_the_last_segment() -> None:
    paths = [
        "/about",
        "/team",
        "/about/team",
        "/team/about",
        "/team/about/team",
        "/about/team/about",
        "/team/team",
    ]
    pages = [copy(number, path, path.rpartition("/")[2]) for number, path in enumerate(paths)]
    assert set(unlisted(*pages)) == set(paths[2:])
    assert set(unlisted(*pages).values()) == {"/about", "/team"}


def test_copies_of_a_file_in_nested_folders_stay() -> None:
    names = [f"{folder}/{name}" for folder in ("", "/api", "/api/v2") for name in ("license", "copying")]
    pages = [copy(number, path, path.rpartition("/")[2]) for number, path in enumerate(names)]
    assert unlisted(*pages) == {}


rows = st.lists(
    st.builds(
        Copy,
        st.integers(1, 99),
        st.sampled_from(
            ["/a", "/a/", "/a/1", "/a/b/1", "/A", "/a.html", "/a?x=1", "/a?x=1&y=", "/b", "/b/", "/b.php/x"]
        ).map(HOME.__add__),
        st.sets(st.sampled_from("xyz"), min_size=1).map(lambda some: tuple(sorted(some))),
        st.none(),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=8,
    unique_by=(lambda page: page.id, lambda page: page.url),
)


@given(rows, st.randoms(use_true_random=False))
def test_order_of_arrival_changes_nothing(pages: list[Copy], rolls: random.Random) -> None:
    found = copies(pages)
    rolls.shuffle(pages)
    assert copies(pages) == found
    listed = {page.url for page in pages if page.id not in found}
    assert set(found.values()) <= listed, "the page that stays in place of another one is listed"


@given(rows, rows)
def test_pages_with_contents_of_their_own_unlist_nothing(pages: list[Copy], more: list[Copy]) -> None:
    known = {page.id for page in pages} | {page.url for page in pages}
    new = [
        replace(page, evidence=(f"new {page.id}",)) for page in more if not known & {page.id, page.url}
    ]  # fmt: skip
    assert copies([*pages, *new]) == copies(pages)


LISTED_BY_LINKS = [
    Copy(1, f"{HOME}/a/", ("x",), None, False, 1), Copy(2, f"{HOME}/a.html", ("x",), None, True, 0),
    Copy(3, f"{HOME}/a", ("x",), None, True, 0), Copy(4, f"{HOME}/a?x=1", ("x",), None, False, 0),
]  # fmt: skip


@given(rows, st.integers(1, 99), st.integers(0, 9))
@example(LISTED_BY_LINKS, 2, 1)
def test_links_choose_between_spellings_and_take_no_content_away(
    pages: list[Copy], number: int, links: int
) -> None:
    more = [replace(page, linked=page.linked + links) if page.id == number else page for page in pages]
    assert len(copies(more)) == len(copies(pages))


@given(rows)
def test_names_of_patterns_change_nothing(pages: list[Copy]) -> None:
    renamed = [replace(page, url=page.url.replace("x=", "q=").replace("y=", "r=")) for page in pages]
    assert copies(renamed).keys() == copies(pages).keys()


def test_ids_of_sessions_show_the_same_pages() -> None:
    ids = ["a8f5f167f44f4964", "0cc175b9c0f1b6a8", "92eb5ffee6ae2fec"]
    site = [(f"{HOME}/s/{sid}/{name}", (name,)) for sid in ids for name in ("about", "team", "shop")]
    assert places_of_sessions(site) == {f"{HOME}/s/"}
    pages = [
        Copy(number, url, evidence, None, is_canonical=False, linked=1)
        for number, (url, evidence) in enumerate(site)
    ]
    assert len(copies(pages, places_of_sessions(site))) == 6
    items = [
        (f"{HOME}/item/{sid}/{name}", (f"{name} of {sid}" if name else sid,))
        for sid in ids
        for name in ("", "about")
    ]
    reviews = [(f"{HOME}/item/{sid}/reviews", ("No reviews yet",)) for sid in ids]
    assert places_of_sessions([*items, *reviews]) == frozenset()


def test_page_without_a_session_is_listed_for_those_with_one() -> None:
    """Its links have no ids, or those of a new session: only the text is the same."""
    ids = ["a1b2c3d4e5", "f6a7b8c9d0"]
    pages = [
        replace(copy(number, path, text if path.count("/") > 1 else f"{text}, without a session"), text=text)
        for number, (path, text) in enumerate(
            [
                ("/", "home"),
                ("/a", "a"),
                *((f"/{one}/{name}", name or "home") for one in ids for name in ("", "a", "b")),
            ]
        )
    ]
    places = places_of_sessions((page.url, page.evidence) for page in pages)
    assert places
    left = {page.url.removeprefix(HOME) for page in pages if page.id not in copies(pages, places)}
    assert left == {"/", "/a", f"/{ids[0]}/b"}


@pytest.mark.parametrize(
    ("repeats", "listed_instead", "expected"),
    [
        ({"/b": "/a"}, {}, {"/b": "/a"}),
        ({"/b": "/a"}, {"/a": "/c"}, {"/b": "/c"}),
        ({"/b": "/a"}, {"/a": "/b"}, {}),  # listed in place of what it repeats
        ({"/b": "/a"}, {"/a": "/c", "/c": "/b"}, {}),
        ({"/b": "/a", "/c": "/b"}, {}, {"/b": "/a", "/c": "/a"}),
        ({"/b": "/a", "/c": "/d"}, {"/a": "/c", "/d": "/b"}, {"/b": "/c"}),  # not both for each other
        ({"/b": "/a"}, {"/a": "/c", "/c": "/a"}, {}),
    ],
)  # fmt: skip
def test_one_page_of_those_that_repeat_each_other_stays(
    repeats: dict[str, str], listed_instead: dict[str, str], expected: dict[str, str]
) -> None:
    pages = [Repeat(number, *pair) for number, pair in enumerate(repeats.items())]
    found = unlisted_repeats(pages, listed_instead)
    assert {page.url: found[page.id] for page in pages if page.id in found} == expected


@pytest.mark.parametrize(
    ("path", "original", "stays"),
    [
        ("/da/faq.html", "/en/faq.html", True), ("/pt-br/mod/x.html", "/en/mod/x.html", True),
        ("/de/faq", "/faq", True), ("/da/", "/en/", True), ("/faq", "/de/faq", True),
        ("/de/de/faq", "/de/faq", False), ("/page/9", "/page/7", False), ("/unit/handout/a", "/unit/a", False),
        ("/qqq/faq", "/xxx/faq", False),
    ],
)  # fmt: skip
def test_a_page_that_is_not_translated_yet_stays(path: str, original: str, stays: bool) -> None:
    found = unlisted_repeats([Repeat(1, HOME + path, HOME + original)], {})
    assert found == ({} if stays else {1: HOME + original})


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")),
)
def test_whoever_repeats_whom_the_last_one_is_never_unlisted(
    repeats: dict[str, str], listed_instead: dict[str, str]
) -> None:
    listed = {url: to for url, to in listed_instead.items() if url not in repeats}
    pages = [Repeat(number, *pair) for number, pair in enumerate(repeats.items())]
    found = unlisted_repeats(pages, listed)
    ahead = listed | {page.url: found[page.id] for page in pages if page.id in found}
    for page in pages:
        at, steps = page.url, 0
        while at in ahead and (at != page.url or not steps):
            at, steps = ahead[at], steps + 1
            assert steps <= len(ahead), "unless the duplicates lead in a circle"
        assert steps == 0 or at != page.url
