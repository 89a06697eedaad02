"""Codes of languages in hreflang."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.languages import COUNTRIES, LANGUAGES, canonical, hint, order


def test_the_lists_are_complete() -> None:
    assert (len(LANGUAGES), len(COUNTRIES)) == (183, 249)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("de", "de"), ("EN-gb", "en-GB"), ("zh-hant", "zh-Hant"), ("ZH-HANT-tw", "zh-Hant-TW"), (" fr ", "fr"),
        ("X-Default", "x-default"),
    ],
)  # fmt: skip
def test_valid_codes_are_spelled_as_usual(written: str, code: str) -> None:
    assert canonical(written) == code


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("en-UK", "en-GB?"), ("en_US", "en-US?"), ("jp", "ja?"), ("eng", "en?"), ("es-419", "419 is not a country"),
        ("en-EU", "EU is not a country"), ("xx", "not a language"), ("", "not a language"), ("ﬁ", "not a language"),
        ("de-", " is not a country"),
    ],
)  # fmt: skip
def test_invalid_codes_have_a_hint(written: str, words: str) -> None:
    assert canonical(written) is None
    assert hint(written) == words


@given(st.text(max_size=20))
def test_no_text_raises(text: str) -> None:
    code = canonical(text)
    assert code is None or canonical(code) == code
    assert hint(text)


def test_the_default_comes_last() -> None:
    assert sorted(["x-default", "zh", "de"], key=order) == ["de", "zh", "x-default"]
