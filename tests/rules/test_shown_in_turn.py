"""Texts that pages show in turn are recognised by what one page lost and another one got."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.survey import NewBlock, Turns
from crawler.rules.noise import GONE, MOST_RUNS, is_large, new_and_gone
from crawler.rules.shown_in_turn import MOST_TEXTS, after, doubtful

SITE = "https://a.example"


def change(text: str, pages: int = 1) -> NewBlock:
    """`1^ab`: on page 1, in a place where it had changed before, b takes the place of a."""
    page, kind, gone, new = list(text)
    return NewBlock(SITE, f"{(ord(new) * GONE + ord(gone)) * 2:07x}", pages, kind, int(page))


def runs(*nights: str) -> Turns:
    known = Turns()
    for night in nights:
        known = after(known, [change(text) for text in night.split()])
    return known


@pytest.mark.parametrize(
    ("nights", "known"),
    [
        (["1?ab", "2^xa", "3^ya", "4^za"], True),
        (["1?ab", "2^xa", "3^ya"], False),  # too few
        (["1?ab", "2?xa", "3?ya", "4?za"], False),  # where nothing had changed: an edit like that
        (["1?ab", "2+xa", "3+ya", "4+za"], False),  # large parts, or added
        (["1?ab 2^xa", "3?cd 4^ya", "4?ef"], False),  # at once: none was gone before
        (["1?ab", "1^ba", "1^ab", "1^ba", "1^ab"], False),  # one page that goes to and fro
        (["1?ab", "2?ab", "3?ab", "1^bc", "2^bc", "3^bc"], False),  # the version of a product, night by night
        (["1?ab", "2^xa 5^kl 6^mn", "3^ya 5^lp 6^no 7^qr", "4^za 5^ps 6^ot 7^ru 8^vw"], True),  # one in four
        (["1?ab", "2^xa 5^kl 6^mn", "3^ya 5^lp 6^no 7^qr", "4^za 5^ps 6^ot 7^ru 8^vw 9^gh"], False),
        (["1?ab", "2^xa", "3^ya", "4^za", *[""] * (MOST_RUNS - 1)], True),
        (["1?ab", "2^xa", "3^ya", "4^za", *[""] * MOST_RUNS], False),  # it is forgotten
        (["1?ab", "2^xa", "3^ya", "4^za", *[""] * (MOST_RUNS - 1), "5?ux", *[""] * (MOST_RUNS - 1)], True),
        (["1?ab", "2^xa", "3^ya", "4^za", *[""] * (MOST_RUNS - 1), "4^az", *[""] * (MOST_RUNS - 1)], True),
    ],
)
def test_what_is_shown_in_turn(nights: Sequence[str], known: bool) -> None:
    assert runs(*nights).is_known is known


def test_what_many_pages_changed_at_once_is_not_shown_in_turn() -> None:
    known = Turns()
    for night in ("1^ab", "1^ba", "2^ab", "2^ba", "1^ab"):
        known = after(known, [change(night, pages=2)])
    assert known == Turns(runs=((0, 0),) * 5)


def test_small_changes_of_such_pages_are_no_edits() -> None:
    before = runs("1?ab", "2^xa", "3^ya")
    tonight = [change(text) for text in ("4^za", "2?gh", "3+kl", "5^mn", "1^bo")]
    known = after(before, tonight)
    assert doubtful(before, Turns(), tonight) == {}
    assert doubtful(known, before, tonight) == {tonight[0].new: True}, "known since tonight"
    later = [
        change(text) for text in ("4^pq", "6?rz", "7?qs")
    ]  # a first change with such a text is enough now
    assert doubtful(after(known, later), known, later) == {later[0].new: False, later[1].new: True}


CHANGES = st.builds(
    NewBlock,
    st.just(SITE),
    st.integers(0, 0xFFFFFFF).map("{:07x}".format),
    st.integers(1, 2),
    st.sampled_from("?+~^"),
    st.integers(1, 600),
)


@given(st.lists(st.lists(CHANGES, max_size=40), max_size=30))
def test_what_is_remembered_is_bounded(nights: Sequence[Sequence[NewBlock]]) -> None:
    known = Turns()
    for night in nights:
        known = after(known, night)
        assert len(known.gone) <= MOST_TEXTS
        assert len(known.pages) <= MOST_TEXTS
        assert len(known.runs) <= MOST_RUNS
        assert all(moved <= MOST_TEXTS for _, moved in known.runs)
        assert doubtful(known, known, night).keys() <= {one.new for one in night}


def _unique(nights: int) -> Iterator[list[NewBlock]]:
    """A sentence that is written anew each time, on five pages by turns."""
    for night in range(nights):
        yield [NewBlock(SITE, f"{((night + 1) * GONE + night) * 2:07x}", 1, "^", night % 5)]


def test_edits_of_their_own_words_are_never_shown_in_turn() -> None:
    known = Turns()
    for night in _unique(400):
        known = after(known, night)
        assert not known.pages


@given(st.integers(0, 0xFFFFFFF))
def test_seven_digits_hold_what_is_new_and_gone(number: int) -> None:
    news = f"{number:07x}"
    new, gone = new_and_gone(news)
    assert (new * GONE + gone) * 2 + is_large(news) == number % (2 * GONE * GONE)
    assert max(new, gone) < GONE
