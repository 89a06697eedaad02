"""What the links of a page say, and where they stand."""

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.parse.anchors import LONGEST_TEXT, MOST_ANCHORS, Place, anchors, clean
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource


def read(markup: str) -> list[tuple[str, ...]]:
    return [tuple(anchor) for anchor in anchors(LexborHTMLParser(markup))]


def place(markup: str) -> str:
    return read(markup)[0][2]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<a href=x>Prices</a>", "Prices"),
        ("<iframe src='#x'></iframe><a>No link</a><a href='#x'>To the base</a>", "To the base"),
        ("<a href=x>\n  Our <b>new</b>\n prices </a>", "Our new prices"),
        ("<a href=x>Our<br>prices to<b>day</b></a>", "Our prices today"),
        ("<a href=x><img src=i alt='A lamp'></a>", "A lamp"),
        ("<a href=x><img src=i alt='A lamp'> Lamps</a>", "Lamps"),
        ("<a href=x aria-label=Search><svg></svg></a>", "Search"),
        ("<a href=x title=Home></a>", "Home"),
        ("<a href=x></a>", ""),
        ("<a href=x></a><p><a href=x#part>Later</a>", "Later"),
        ("<a href=x>First</a><a href=x>Second</a>", "First"),
        ("<a href=x><script>code()</script><style>a{}</style>Text</a>", "Text"),
        (f"<a href=x>{'word ' * 100}</a>", ("word " * 16).strip()),
        ("<a href=x>a&#x202e;b&#x200b;c&#27;[31m</a>", "abc[31m"),
        ("<a href=x>&lt;b&gt;bold</a>", "<b>bold"),
        ("<map><area href=x alt=Harbour></map>", "Harbour"),
        ("<iframe src=x title=Map></iframe>", "Map"),
    ],
)
def test_text_of_a_link(markup: str, text: str) -> None:
    assert [one[1] for one in read(markup)] == [text]


@pytest.mark.parametrize(
    ("markup", "where"),
    [
        ("<p><a href=x>a</a>", ""),
        ("<nav><ul><li><a href=x>a</a></ul></nav>", "nav"),
        ("<header><nav><a href=x>a</a></nav></header>", "nav"),
        ("<header><p><a href=x>a</a></header>", "header"),
        ("<main><p><a href=x>a</a></main>", "main"),
        ("<main><article><header><a href=x>a</a></header></article></main>", "main"),
        ("<main><nav><a href=x>a</a></nav></main>", "nav"),
        ("<aside><footer><a href=x>a</a></footer></aside>", "aside"),
        ("<footer><section><a href=x>a</a></section></footer>", "footer"),
        ("<footer><div class=menu><a href=x>a</a></div></footer>", "nav"),
        ("<div role=contentinfo><a href=x>a</a></div>", "footer"),
        ("<div class=content><footer><a href=x>a</a></footer></div>", "footer"),
        ("<div id=footer><a href=x>a</a></div>", "footer"),
        ("<div class='wide sidebar'><a href=x>a</a></div>", "aside"),
        ("<body class=main><a href=x>a</a>", ""),
        ("<p><a href=x><img src=i alt=a></a>", "image"),
        ("<footer><a href=x><img src=i alt=a></a></footer>", "footer"),
        ("<map><area href=x></map>", "image"),
        ("<link rel=next href=x>", "head"),
    ],
)
def test_place_of_a_link(markup: str, where: str) -> None:
    assert place(markup) == where


def test_addresses_are_those_of_the_links_in_any_encoding() -> None:
    body = "<meta charset=iso-8859-1><a href='/?q=\xe4'>\xe4</a><a href=' /b#c '>b</a>".encode("latin-1")
    page = PageSource(body, "https://x.example/", None, frozenset({Extract.ANCHORS})).read()
    assert tuple(anchor.href for anchor in page.anchors) == page.followed
    assert [anchor.text for anchor in page.anchors] == ["\xe4", "b"]


def test_hostile_nesting_ends_soon() -> None:
    deep = "<div>" * 5_000 + "<a href=x>x</a>"
    assert place(deep) == ""
    nested = "<a href=x1><table><tr><td>" * 300 + "words " * 1_000
    assert all(len(one[1]) <= LONGEST_TEXT for one in read(nested))
    many = "".join(f"<a href={number}>x</a>" for number in range(MOST_ANCHORS + 5))
    assert len(read(many)) == MOST_ANCHORS


@given(st.text(max_size=200))
@example("0\r\x1b\r0")
def test_any_text_becomes_one_short_line(text: str) -> None:
    shown = clean(text)
    assert len(shown) <= LONGEST_TEXT
    assert shown.isprintable()
    assert clean(shown) == shown


@given(st.text(alphabet="<>/ =\"'anvimgheadr1\n", max_size=200))
def test_any_markup_is_read(markup: str) -> None:
    for _, text, where in read(markup):
        assert text == clean(text)
        assert where in get_args(Place)


def test_pictures_have_their_text_and_place() -> None:
    markup = (
        "<head><meta property=og:image content=og.png></head><main><img src=a.png alt=' The\n lamp '>"
        "<picture><source srcset='b.png 2x'><img src=c.png alt=Lamps></picture></main>"
        "<footer><img src=a.png alt=Again><img src=d.png></footer>"
    )
    source = PageSource(markup.encode(), "https://e.com/", wanted=frozenset({Extract.PICTURES}))
    assert {one.href: (one.text, one.place) for one in source.read().anchors} == {
        "og.png": ("", "head"),
        "a.png": ("The lamp", "main"),
        "b.png": ("Lamps", "main"),
        "c.png": ("Lamps", "main"),
        "d.png": ("", "footer"),
    }
