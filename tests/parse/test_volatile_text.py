"""The byte search that precedes the rules for volatile text must not miss a match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import volatile_text

SAID = (
    "1,024 5 7k views view Views: VISITS page = : 3 minutes ago Ago just now Just 12:30:59 12:30 1:02:03.5 pm © (c) copyright 2026 "
    "Generated in 0.5 s a1b2c3d4e5f6a7b8c9d0e1 session-0123456789abcdef0123 today online users 37.66. so far likes read "
    "server time request-id 10. reader's vor Tagen einer Woche il y a deux un mois hace 3 días há uma hora giorni fa dni temu "
    "dagen geleden för sedan 3日前 3시간 전 назад недели gün önce před dny"
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
    folded = piece.encode().translate(volatile_text._FOLD)
    looked_at = b"0" in folded or any(word in folded for word in volatile_text._WITHOUT_DIGIT)
    expected = by_the_rules(piece) if looked_at and not whole else piece
    assert volatile_text.without_volatile(piece.encode()).decode() == expected


@pytest.mark.parametrize(
    "said",
    [
        "vor 2 Wochen", "vor einem Tag", "vor einer Stunde", "vor 3 Jahren", "il y a 2 semaines", "il y a un mois",
        "Il y a 3 ans", "hace 5 días", "hace una hora", "há 2 meses", "há um dia", "3 giorni fa", "1 ora fa",
        "2 dagen geleden", "3 uur geleden", "5 dni temu", "2 недели назад", "5 днів тому", "3 gün önce",
        "před 4 dny", "för 2 veckor sedan", "for 3 dager siden", "3日前", "2 か月前", "5天前", "3小时前", "2시간 전",
        "4 months ago", "an hour ago",
    ],
)  # fmt: skip
def test_an_age_is_volatile_in_many_languages(said: str) -> None:
    assert volatile_text.without_volatile(f"Ann 7, {said}".encode()) == b"Ann 7,"


@pytest.mark.parametrize(
    "said",
    [
        "vor 1989 war hier eine Mauer", "vor einem Haus", "il y a 3 chats", "hace calor", "hace 2 goles", "3 gatti fa",
        "för 3 barn", "3 persone", "12 years", "目前 3 人", "안전 3", "před 3", "önce 3 gün",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_age_is_kept(said: str) -> None:
    assert volatile_text.without_volatile(said.encode()).decode() == said


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
