"""A page is the same under whatever address it is read: its content with and without what repeats the address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.extract import Extract
from crawler.parse.html import PageSource, ParsedPage

HOME = "https://a.example"
PLAIN = frozenset({Extract.FINGERPRINT})
ECHOLESS = PLAIN | {Extract.ECHOLESS}
WORDS = st.sampled_from(["lamp", "chair", "7", "21", "of", "blue lamp", "no results", "a.example"])


def read(body: str, path: str, wanted: frozenset[Extract] = PLAIN) -> ParsedPage:
    return PageSource(body.encode(), HOME + path, None, wanted).read()


def told(body: str, path: str) -> str | None:
    """The content without what repeats the address, of a page whose content is with it."""
    page = read(body, path)
    return page.echoless or page.content


@pytest.mark.parametrize(
    "body",
    [
        "<title>lamp-7</title><h1>lamp-7</h1><p>A lamp of brass.",
        "<title>Shop</title><p>A lamp of brass.<p>{path}",
        '<title>Shop</title><p>A lamp of brass. <a href="{path}">lamp 7</a>',
        "<title>Shop</title><p>A lamp of brass.",
    ],
)
@pytest.mark.parametrize("path", ["/lamp-7?from=17", "/lamp-7;v=17", "/lamp-7?a=1&from=17"])
def test_a_page_says_the_same_at_a_suspicious_address(body: str, path: str) -> None:
    shown, plain = body.format(path=path), body.format(path="/lamp-7")
    assert read(shown, path, ECHOLESS).content == told(plain, "/lamp-7")


def test_links_to_variations_of_the_address_are_no_content() -> None:
    body = '<title>Shop</title><p>A lamp of brass. <a href="/lamp-7?{}again=1">lamp 7 {} 1</a>'
    shown = read(body.format("n=17&amp;", "17"), "/lamp-7?n=17", ECHOLESS)
    assert shown.content == told(body.format("", ""), "/lamp-7")
    assert shown.content == read("<title>Shop</title><p>A lamp of brass.", "/lamp-7").content


@pytest.mark.parametrize("body", ["<p>A lamp of brass.", "<title>Lamps</title><ul><li>1<li>2</ul>", ""])
def test_what_repeats_no_address_has_one_content(body: str) -> None:
    page = read(body, "/chair")
    assert page.content == read(body, "/chair", ECHOLESS).content
    assert page.echoless is None


@given(
    title=WORDS,
    pieces=st.lists(WORDS, max_size=5),
    path=st.sampled_from(["/", "/lamp", "/lamp/chair/", "/x?q=blue+lamp&p=21", "/7/21", "/lamp/lamp"]),
    link=st.sampled_from(["/lamp/7", "?p=7", "chair", "../21", "http://[", "lamp?q=7#x"]),
)
def test_both_contents_are_those_of_either_reading(
    title: str, pieces: list[str], path: str, link: str
) -> None:
    body = f"<title>{title}</title>{''.join(f'<p>{one}' for one in pieces)}<p><a href='{link}'>7</a>"
    echoless = read(body, path, ECHOLESS)
    assert echoless.content == told(body, path)
    assert echoless.echoless is None


def test_pages_that_say_more_than_their_address_differ() -> None:
    found = {told(f"<title>lamp</title><p>{word}", f"/{word}") for word in ("brass", "steel")}
    assert len(found) == 1
    found = {told(f"<title>lamp</title><p>of {word}", "/lamp") for word in ("brass", "steel")}
    assert len(found) == 2
