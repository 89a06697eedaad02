"""A page is the same under whatever address it is read: its content with and without what repeats the address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.parse.parsed_page import ParsedPage

HOME = "https://a.example"
PLAIN = frozenset({Extract.FINGERPRINT})
ECHOLESS = PLAIN | {Extract.ECHOLESS}
WORDS = st.sampled_from(["lamp", "chair", "7", "21", "of", "blue lamp", "no results", "a.example"])
PATHS = st.sampled_from(["/", "/lamp", "/lamp/chair/", "/x?q=blue+lamp&p=21", "/7/21", "/lamp/lamp"])


def read(body: str, path: str, wanted: frozenset[Extract] = PLAIN) -> ParsedPage:
    return PageSource(body.encode(), HOME + path, None, wanted).read()


def at_home(body: str, path: str) -> str | None:
    """What a page at a suspicious address would say at its own."""
    page = read(body, path, ECHOLESS)
    return page.echoing or page.content


@pytest.mark.parametrize(
    "body",
    [
        "<title>lamp-7</title><h1>lamp-7</h1><p>A lamp of brass.",
        "<title>lamp-7</title><p>A lamp. <a href='/lamp-7?print=1'>Print this</a> <a href='lamp-7/new'>new</a>",
        "<title>Shop</title><p>A lamp of brass.<p>/lamp-7",
        "<title>Shop</title><p>A lamp of brass.",
    ],
)
@pytest.mark.parametrize("path", ["/lamp-7?from=17", "/lamp-7;v=17", "/lamp-7?a=1&from=17", "/lamp-7/lamp-7"])
def test_a_page_says_the_same_at_a_suspicious_address(body: str, path: str) -> None:
    assert at_home(body, path) == read(body, "/lamp-7").content


def test_links_to_variations_of_the_address_are_no_content() -> None:
    """The page has such links only where it is asked for with a query."""
    more = "<a href='/lamp-7?from=17&amp;again=1'>lamp 7 17 1</a>"
    body = "<title>lamp-7</title><p>A lamp of brass."
    assert at_home(f"{body} {more}", "/lamp-7?from=17") == read(body, "/lamp-7").content


@pytest.mark.parametrize("path", ["/lamp-7", "/lamp-7?theme=dark", "/lamp-7?size=big&theme=light"])
def test_a_choice_on_each_page_is_no_content(path: str) -> None:
    """The page has the same choice with and without a query."""
    choice = "<a href='?theme=dark'>dark</a> <a href='/lamp-7?theme=light'>light</a>"
    body = "<title>lamp-7</title><p>A lamp of brass."
    said = read(f"{body} {choice}", path).content if path == "/lamp-7" else at_home(f"{body} {choice}", path)
    assert said == read(body, "/lamp-7").content


def test_links_to_other_pages_with_a_query_are_content() -> None:
    body = "<title>lamps</title><p>Lamps of brass."
    other = read(f"{body} <a href='/lamp?number=7'>number 7</a>", "/lamps")
    assert other.content != read(body, "/lamps").content


@given(title=WORDS, pieces=st.lists(WORDS, max_size=5), path=PATHS, other=PATHS)
def test_a_page_has_the_same_content_at_any_address(
    title: str, pieces: list[str], path: str, other: str
) -> None:
    body = f"<title>{title}</title>{''.join(f'<p>{one}' for one in pieces)}"
    assert at_home(body, path) == read(body, other).content


@pytest.mark.parametrize("path", ["/lamp", "/lamp?a=1"])
def test_what_repeats_no_address_has_one_content(path: str) -> None:
    page = read("<title>Shop</title><p>Chairs of brass.", path, ECHOLESS)
    assert page.echoing is None
    assert page.content == read("<title>Shop</title><p>Chairs of brass.", path).content


def test_pieces_that_only_repeat_the_address_are_no_content() -> None:
    found = {
        read(f"<p>Nothing here.<ul><li>{word}</ul>", f"/{word}", ECHOLESS).content for word in ("de", "fr")
    }
    assert found == {read("<p>Nothing here.", "/", ECHOLESS).content}


def test_pieces_that_name_a_value_are_left_out() -> None:
    wanted = PLAIN | {Extract.VALUELESS}
    greeting = (
        "<title>Shop</title><p>Chairs of brass.<p>Welcome, friend of Ann!<p><a href=/b>Friends of ann</a>"
    )
    plain = read("<title>Shop</title><p>Chairs of brass.", "/shop").content
    assert read(greeting, "/shop?from=ann", wanted).content == plain
    assert read(greeting, "/shop?from=ann%20b", wanted).content == read(greeting, "/shop").content
    assert read(greeting, "/brass?ann=shop", wanted).content == read(greeting, "/shop").content


def test_pages_that_say_more_than_their_address_differ() -> None:
    words = ("brass", "steel")
    assert len({read(f"<p>lamp of {word}", f"/{word}", ECHOLESS).content for word in words}) == 1
    assert len({read(f"<p>lamp of {word}", "/lamp", ECHOLESS).content for word in words}) == 2
