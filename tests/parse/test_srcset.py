"""Candidates of a srcset; the standard's own cases run in `test_conformance`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.srcset import candidates


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", []),
        (" , ,", []),
        ("a", ["a"]),
        ("a,b", ["a,b"]),
        ("a, b 2x , c 3x", ["a", "b", "c"]),
        ("a 100w 50h, b 50h", ["a"]),
        ("a 1x 2x, b 1w 1x, c 0w, d -1x, e 1.5e1x", ["e"]),
        ("a (x, y), b", ["b"]),
        ("data:,a ( , b 1x, c", []),
        ("a,, b", ["a", "b"]),
    ],
)
def test_candidates(text: str, urls: list[str]) -> None:
    assert candidates(text) == urls


@given(st.text(st.sampled_from("a1.,()wxh-eE \t\n\x0c")))
def test_any_text_is_accepted(text: str) -> None:
    assert all(url and not url.endswith(",") and not url.startswith(",") for url in candidates(text))
