"""Candidates of a srcset; the standard's own cases run in `test_conformance`."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import srcset
from crawler.parse.srcset import candidates, largest


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
    assert [found.url for found in candidates(text)] == urls


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", None),
        ("a", "a"),
        ("a, b 2x, c 1.5x", "b"),
        ("a 10w, b 9w", "a"),
        ("a 3x, b 1w", "b"),
        ("a 2x, b 2x", "a"),
        ("a 0x, b 0.5x", "b"),
        ("a 1e400x, b 1x", "b"),
        (f"a {'9' * 5_000}w, b 1w", "b"),
        (f"a {'9' * 99}w, b 1w", "a"),
        ("a 100w 1h, b 50w 2h", "a"),
        ("no 9x, a 2x", "a"),
        ("no", None),
    ],
)
def test_the_largest_that_is_wanted(text: str, url: str | None) -> None:
    assert largest(text, lambda url: url != "no") == url


NUMBERS = st.lists(st.integers(1, 10**9), min_size=1, unique=True)


@given(NUMBERS, st.sampled_from("wx"), st.sampled_from([", ", " ,\n", ",  , "]))
def test_the_largest_number_wins_in_any_order(numbers: list[int], kind: str, between: str) -> None:
    assert largest(between.join(f"u{number} {number}{kind}" for number in numbers)) == f"u{max(numbers)}"


@given(NUMBERS, st.floats(0, 1e9))
def test_a_width_beats_every_density(widths: list[int], density: float) -> None:
    text = ", ".join([f"d {density:f}x", *(f"u{width} {width}w" for width in widths)])
    assert largest(text) == f"u{max(widths)}"


@given(st.text(st.sampled_from("a1.,()wxh-eE \t\n\x0c")))
def test_the_largest_is_a_candidate(text: str) -> None:
    found = [candidate.url for candidate in candidates(text)]
    assert largest(text) in found if found else largest(text) is None


@given(st.text(st.sampled_from("a1.,()wxh \t")))
def test_plain_descriptors_are_read_as_the_standard_says(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(srcset, "_PLAIN", re.compile("(?!)"))
        slowly = [*srcset.candidates(text)]
    assert [*srcset.candidates(text)] == slowly
