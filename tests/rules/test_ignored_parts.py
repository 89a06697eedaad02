"""Parts of addresses that a site ignores: what differs between two, what is asked, and which is listed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.fingerprint import PageText
from crawler.parse.url import Url
from crawler.rules import ignored_parts, nonexistent_pages
from crawler.rules.soft_404 import ShownPage

HOME = "https://site.test"
NONE = "no-such-page"


def asked(url: str, base: str) -> list[str]:
    """What is asked of them, with a word for the name that nothing has."""
    pairs = ignored_parts.pairs(Url(HOME + url), Url(HOME + base))
    name = nonexistent_pages.nonexistent_names(Url(HOME))[0]
    found = [question.removeprefix(HOME) for pair in pairs for question in pair.questions]
    return [question.replace(name, "NONE").replace(f"={name[:6]}", "=VALUE") for question in found]


@pytest.mark.parametrize(
    ("url", "base", "expected"),
    [
        ("/de/en/about", "/de/about", ["/de/NONE/about", "/de/en/en/en/about"]),
        ("/a/images/", "/a", ["/a/NONE/", "/a/images//images//images/"]),
        ("/view.php/section?page=1", "/view.php?page=1", ["/view.php/NONE?page=1"]),
        ("/a;v=list", "/a", ["/a;NONE", "/a;v=list;v=list;v=list"]),
        ("/a?x=1", "/a", ["/a?NONE=VALUE"]),
        ("/a?x=1&y=2", "/a?x=1", ["/a?x=1&NONE=VALUE"]),
        ("/a?x=1&id=2&y=3", "/a?id=2", ["/a?id=2&NONE=VALUE"]),
        ("/?go=start.news.staff", "/?go=start.staff", ["/?go=start.NONE.staff"]),
        ("/s/abc/lot.html", "/s/def/lot.html", ["/s/NONE/lot.html"]),
        ("/p/17-lamp.html", "/p/17-desk.html", ["/p/NONE.html", "/p/17-NONE.html"]),
        ("/old-lamp_17", "/desk_17", ["/NONE", "/NONE_17"]),
        ("/a-lamp-17", "/a-desk-17", ["/NONE", "/a-NONE-17"]),
        ("/a//", "/a/", ["/a///"]),
        ("/a", "/a", []),
        ("/a", "/a/b", []),
    ],
)
def test_what_is_asked_about_two_addresses(url: str, base: str, expected: list[str]) -> None:
    assert {*expected} <= {*asked(url, base)} if expected else not asked(url, base)


@pytest.mark.parametrize(
    ("url", "base", "expected"),
    [
        ("/a?from=ann", "/a", ["/a?from=NONE"]),
        ("/a?from=12", "/a", ["/a?from=9876543210"]),
        ("/a?x=1&from=ann", "/a?x=1", ["/a?x=1&from=NONE"]),
        ("/a?from=ann&x=1", "/a?x=1", ["/a?from=NONE&x=1"]),
        ("/a?from=ann.mail", "/a", ["/a?from=NONE"]),
        ("/a?from=ann&x=1", "/a", []),
        ("/a?from=ann", "/a?from=bob", []),
        ("/a?from=", "/a", []),
        ("/a?ann", "/a", []),
        ("/a/from=ann", "/a", []),
    ],
)
def test_a_value_that_cannot_exist_of_one_parameter(url: str, base: str, expected: list[str]) -> None:
    pairs = ignored_parts.pairs(Url(HOME + url), Url(HOME + base))
    name = nonexistent_pages.nonexistent_names(Url(HOME))[0]
    found = [pair.with_nonsense for pair in pairs]
    assert [url.removeprefix(HOME).replace(name, "NONE") for url in found if url] == expected


def test_a_part_that_comes_again_may_be_either_one() -> None:
    assert {"/?go=a.b.NONE", "/?go=a.NONE.b"} <= {*asked("/?go=a.b.b", "/?go=a.b")}


def test_one_folder_of_an_address_is_left_open() -> None:
    found = ignored_parts.with_one_folder_open(Url(f"{HOME}/s/abc/lot.html?a/b"))
    assert [*found] == [f"{HOME}/…/abc/lot.html?a/b", f"{HOME}/s/…/lot.html?a/b"]


def test_other_sites_are_never_compared() -> None:
    assert list(ignored_parts.pairs(Url(f"{HOME}/a/b"), Url("https://other.test/a"))) == []


def test_one_of_the_same_pages_is_listed() -> None:
    pairs = [
        next(ignored_parts.pairs(Url(HOME + url), Url(HOME + base)))
        for url, base in [("/a/x", "/a"), ("/a/x/x", "/a/x"), ("/bb", "/b"), ("/s/b", "/b"), ("/s/b", "/bb")]
    ]
    expected = {"/a/x": "/a", "/a/x/x": "/a", "/bb": "/b", "/s/b": "/b"}
    found = ignored_parts.listed_instead(pairs, ())
    assert found == {Url(HOME + url): Url(HOME + base) for url, base in expected.items()}
    assert ignored_parts.listed_instead(pairs, [Url(f"{HOME}/s/b")])[Url(f"{HOME}/b")] == f"{HOME}/s/b"


addresses = st.lists(st.sampled_from("ab/;?&=.-"), max_size=12).map(
    lambda parts: Url(HOME + "/" + "".join(parts))
)


@given(addresses, addresses)
def test_a_part_is_a_part(url: Url, base: Url) -> None:
    for pair in ignored_parts.pairs(url, base):
        parted = pair.before + pair.part + pair.after
        assert parted == url or sorted(re.split("[?&]", parted)) == sorted(re.split("[?&]", url))
        assert len({*pair.questions}) in {1, 2}


@given(st.lists(st.tuples(addresses, addresses), max_size=12))
def test_of_pages_that_are_the_same_one_stays(couples: list[tuple[Url, Url]]) -> None:
    pairs = [pair for couple in couples for pair in ignored_parts.pairs(*couple)]
    instead = ignored_parts.listed_instead(pairs, ())
    assert not instead.keys() & {*instead.values()}
    assert instead.keys() | {*instead.values()} == {url for pair in pairs for url in (pair.url, pair.base)}
    assert ignored_parts.listed_instead(pairs[::-1], ()) == instead, "in whatever order they come"


LINKS = [Url(f"{HOME}/{name}") for name in ("a/x1", "b/x1", "c/x1", "home")]


def shown(blocks: str, content: str, links: str = "", url: str = "/a/x0") -> ShownPage:
    """`blocks`: one for each letter. `links`: to three pages, under this part of an address."""
    to = [Url(link.replace("x1", links)) for link in LINKS] if links else LINKS[3:]
    said = PageText(tuple(map(ord, blocks)), content)
    return ShownPage(Url(HOME + url), (said,), content, to)


@pytest.mark.parametrize(
    ("page", "one", "other", "expected"),
    [
        ("abcP", "abcQ", "abcR", True),
        ("abcP", "abcQP", "abcRP", True),
        ("abcPST", "abcQ", "abcR", True),
        ("abcPSTU", "abcQ", "abcR", False),  # it has more of its own
        ("abP", "abcQ", "abcR", False),  # both are another page
        ("abcP", "abc", "abc", False),  # nothing is random
        ("", "Q", "R", False),
    ],
)
def test_what_is_random_tells_no_pages_apart(page: str, one: str, other: str, *, expected: bool) -> None:
    nonsense = [shown(one, one), shown(other, other)]
    assert ignored_parts.show_the_same(shown(page, page), nonsense) is expected


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (("abcdef01", "abcdef02", "abcdef03"), True),
        (("abcdef01", "abcdef02", "bbcdef03"), False),
        (("=abcdef01", "=abcdef02"), False),
        ((), False),
    ],
)
def test_pages_that_differ_in_links_only(contents: tuple[str, ...], *, expected: bool) -> None:
    assert ignored_parts.say_the_same(*(shown("a", content) for content in contents)) is expected


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (("x1", "x2", "x3"), True),
        (("x1", "x2", "x2"), False),  # as a language, in which nonsense is shown
        (("x0", "x2", "x3"), False),  # as the part of its own address, which it only hands on
        (("x1", "x2", ""), False),
        ((), False),
    ],
)
def test_addresses_that_are_given_to_a_visit(links: tuple[str, ...], *, expected: bool) -> None:
    assert ignored_parts.have_own_addresses(*(shown("a", link, link) for link in links)) is expected


@given(addresses)
def test_one_name_of_an_address_is_left_open(url: Url) -> None:
    for shape in ignored_parts.with_one_part_open(url):
        before, after = shape.split("…")
        assert url.startswith(before)
        assert url.endswith(after)


@given(addresses)
def test_an_address_lacks_a_part(url: Url) -> None:
    for shorter in ignored_parts.without_a_part(url):
        assert len(shorter) < len(url)
