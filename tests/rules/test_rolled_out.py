"""Texts of a template are recognised by the pages that change in the same way, in one night or over several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.survey import Evidence, NewBlock
from crawler.rules.noise import GONE, HEAD, Piece, _news
from crawler.rules.rolled_out import MOST_TEXTS, after, of_template, pages, rolled

SITE = "https://a.example"
NOTHING = Evidence(SITE, 0, 0, 0, 0, known=80)


def news(before: str, now: str) -> str:
    """`_news`, of pages whose pieces are letters."""
    return _news(*([Piece(ord(letter), 1) for letter in text] for text in (before, now)))


def change(before: str, now: str, pages: int, earlier: int = 0) -> NewBlock:
    return NewBlock(SITE, news(before, now), pages, "+", 1, earlier)


@pytest.mark.parametrize(
    ("now", "earlier", "known", "is_of_template"),
    [
        (2, 0, 80, False),
        (3, 0, 80, True),
        (1, 1, 80, False),
        (1, 2, 80, True),  # over three nights
        (10, 3, 600, False),
        (10, 10, 600, True),  # one in thirty
    ],
)
def test_pages_that_change_in_the_same_way(now: int, earlier: int, known: int, is_of_template: bool) -> None:
    seen = Evidence(SITE, 0, 0, 0, 0, known=known)
    found = [change("abcdefgh", "abcdefghx", now, earlier)]
    assert of_template(seen, found, ()) == found * is_of_template
    assert rolled(found, ()) == found * (earlier > 0)
    assert pages(found) == now * (now + earlier > 2)


def test_a_large_part_of_few_pages_is_content() -> None:
    menu = [change("ab", "ac", 9, 5)]
    assert of_template(NOTHING, menu, ()) == []
    assert of_template(NOTHING, [change("ab", "ac", 12, 5)], ())


@pytest.mark.parametrize(
    ("before", "now", "is_known"),
    [
        ("abcdefgh", "abcdefghx", True),  # on another page
        ("abcdefghx", "abcdefgh", True),  # taken away
        ("abcdefghx", "abcdefghy", True),  # replaced
        ("abcdefgh", "abcdefghxz", False),  # beside an edit
        ("abcdefgx", "abcdefg", True),
        ("abcdefgh", "abcdefgx", False),  # in place of what was written
        ("abcdefghx", "abcdefg", False),
    ],
)
def test_later_changes_by_texts_of_a_template(before: str, now: str, is_known: bool) -> None:
    known = after((), of_template(NOTHING, [change("abcdefgh", "abcdefghx", 3)], ()))
    tonight = [change(before, now, 1)]
    assert of_template(NOTHING, tonight, known) == tonight * is_known
    assert rolled([change(before, now, 1, earlier=4)], known) == [change(before, now, 1, 4)] * (not is_known)
    assert pages(tonight) == 0


def test_what_takes_the_place_of_a_banner_is_one_too() -> None:
    known = after((), of_template(NOTHING, [change("abcdefgh", "abcdefghx", 3)], ()))
    alone = [change("abcdefghx", "abcdefghy", 1)]
    assert set(after(known, of_template(NOTHING, alone, known))) == set(known), (
        "it may be an edit of one page"
    )
    second = [change("abcdefghx", "abcdefghy", 1, 1)]
    known = after(known, of_template(NOTHING, second, known))
    assert of_template(NOTHING, [change("abcdefghy", "abcdefgh", 1)], known)


@given(st.lists(st.integers(0, 0xFFFFFFF).map("{:07x}".format), max_size=80))
def test_what_is_remembered_of_templates_is_bounded(some: list[str]) -> None:
    known: tuple[int, ...] = ()
    for text in some:
        known = after(known, [NewBlock(SITE, text, 3)])
        assert len(known) <= MOST_TEXTS
        assert len(set(known)) == len(known)
        assert all(0 < text < GONE for text in known)
    assert len("+0000000") == HEAD
