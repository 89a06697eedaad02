import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.report.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("https://example.com/a b", "https://example.com/a b"),
        ("grüße 漢字 🙂", "grüße 漢字 🙂"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("one\r\ntwo\tthree", r"one\r\ntwo\tthree"),
        ("\x00\x7f\x85\x9b", r"\x00\x7f\x85\x9b"),
        ("evil\u202egnp.exe\u2066\u200f", r"evil\u202egnp.exe\u2066\u200f"),
        ("a\u200bb\u200dc\ufeffd\u00ade", r"a\u200bb\u200dc\ufeffd\xade"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("a\u00a0b\u3000c", r"a\xa0b\u3000c"),
        ("a\u3164b\u115fc\ufe0f", r"a\u3164b\u115fc\ufe0f"),
        ("\ud800 alone", r"\ud800 alone"),
        ("\U000e0041 tag", r"\U000e0041 tag"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
    ],
)
def test_invisible_characters_become_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcde…hijk"),
        ("abcdefghijkl", 5, "ab…kl"),
        ("\x1b\x1b\x1b\x1b", 9, r"\x1b…\x1b"),  # no escape is cut in two
        ("ab\x1bcd", 7, "ab…cd"),
        ("x" * 1_000_000, 3, "x…x"),
        ("abc", 1, "…"),
    ],
)
def test_a_long_text_is_shortened_in_the_middle(text: str, limit: int, shown: str) -> None:
    assert printable(text, limit) == shown


@given(st.text(st.characters(codec=None), max_size=300), st.integers(1, 250))
def test_the_result_is_always_short_and_visible(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(codec=None), max_size=100))
def test_printable_is_idempotent(text: str) -> None:
    assert printable(printable(text)) == printable(text)
