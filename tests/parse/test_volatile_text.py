"""The byte search that precedes the rules for volatile text must not miss a match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import volatile_text

SAID = (
    "1,024 5 7k views view Views: VISITS page = : 3 minutes ago Ago just now Just 12:30:59 12:30 1:02:03.5 pm © (c) copyright 2026 "
    "Generated in 0.5 s a1b2c3d4e5f6a7b8c9d0e1 session-0123456789abcdef0123 today online users 37.66. so far likes read "
    "server time request-id 10. reader's"
)
WORDS = st.sampled_from(SAID.split(" "))
PIECES = st.lists(st.tuples(WORDS, st.sampled_from([" ", " ", "", "."])), min_size=1, max_size=9).map(
    lambda words: " ".join("".join(word + gap for word, gap in words).split())
)


def by_the_rules(piece: str) -> str:
    """All rules, without the byte search."""
    if len(piece) <= volatile_text.LONGEST_LINE and volatile_text._STAMP.search(piece):
        return ""
    rest = piece
    for rule in (
        volatile_text._COUNTS,
        volatile_text._AGO,
        volatile_text._JUST_NOW,
        volatile_text._CLOCK,
        volatile_text._TOKEN,
    ):
        rest = rule.sub("", rest)
    return piece if rest == piece else " ".join(rest.split())


@given(PIECES)
def test_the_byte_search_misses_no_match_of_a_rule(piece: str) -> None:
    whole = volatile_text._BARE.fullmatch(piece.encode().translate(volatile_text._FOLD))
    looked_at = (
        any("0" <= char <= "9" for char in piece) or "just now" in piece.lower() or " ago" in piece.lower()
    )
    expected = by_the_rules(piece) if looked_at and not whole else piece
    assert volatile_text.without_volatile(piece.encode()).decode() == expected


@given(PIECES, st.sampled_from(["5", "1,024", "37", "9k"]), PIECES)
def test_number_alone_is_recognised_as_count_by_adjacent_text(before: str, number: str, after: str) -> None:
    pieces = [before.encode(), number.encode(), after.encode()]
    near = f"{before[-volatile_text.NEAR :]} # {after[: volatile_text.NEAR]}".strip()
    kept = not volatile_text._COUNTING.search(near)
    start = len(before.encode()) + 1
    folded = volatile_text.NODE.join(pieces).translate(volatile_text._FOLD)
    makes = volatile_text._made(folded)
    assert volatile_text._may_count(folded, start, start + len(number), makes) or kept, (
        "it might have counted"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("37.66.|views", "37.66.|views"),  # the number of a section
        ("37.66. Views of data", "37.66. Views of data"),
        ("1,024|views", "views"),
        ("Visitors:|17", "Visitors:"),
        ("17 likes|18 apples", "|18 apples"),
        ("9k views|3m visits|x", "|x"),
        ("AN HOUR AGO|x", "|x"),
        ("said 12:30:59 today|12:30", "said today|12:30"),
        ("", ""),
    ],
)
def test_volatile_text_is_removed_and_other_text_stays(text: str, expected: str) -> None:
    said = (
        volatile_text.without_volatile(text.encode().replace(b"|", volatile_text.NODE))
        .replace(volatile_text.NODE, b"|")
        .decode()
    )
    assert said == expected.removeprefix("|")
