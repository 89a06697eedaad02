"""Removes volatile text, which differs from one request to the next: view counters, "generated at" lines,
copyright lines, clocks with seconds, "3 minutes ago", and long tokens of letters and digits.

Which text of a page counts is decided in `fingerprint`. Nearly no piece of text is volatile, so cheap byte
searches rule most of them out, and only candidates are matched against the rules. The searches use `find`,
not `in`: for bytes, `in` first tries to read the word as an integer and formats the error, which takes 2,400
instructions. Pure.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Final

from crawler.parse.late import late

NODE: Final = b"\x00"  # separates pieces of text: a parsed page cannot contain it
MARK: Final = b"\x01"  # in place of what is left out; the same
LONGEST_LINE: Final = 160  # characters of a line that may be a stamp of the server
NEAR: Final = 60  # characters of the adjacent text that may name what a number counts
LONG_WORD: Final = 20  # characters

# Every repetition is bounded, against pages built to cause backtracking.
_NUMBER: Final = r"(?<![\d.,])\d(?:[\d.,']{0,20}\d)?[kKmM]?"
_NOUNS: Final = [
    "view", "visit", "visitor", "hit", "read", "reader", "user", "guest", "people", "download", "like",
    "share",
]  # fmt: skip
_COUNTERS: Final = ("page", *_NOUNS, *(f"{noun}s" for noun in _NOUNS))
_MAKERS: Final = ["generated", "rendered", "served", "executed", "processed", "compiled", "cached", "loaded"]
_COUNTED: Final = rf"(?:page\s{{0,3}})?(?:{'|'.join(f'{noun}s?' for noun in _NOUNS)})"
_MADE: Final = rf"(?:{'|'.join(_MAKERS)})"


def _noise(pattern: str) -> re.Pattern[str]:
    return late(pattern, re.IGNORECASE)


# The rules.
_COUNTS: Final = _noise(
    rf"\b{_COUNTED}(?:\s(?:online|today))?\s?[:=]\s?{_NUMBER}"  # Views: 1,234
    rf"|{_NUMBER}\s{_COUNTED}\b(?!\s?[:=])(?:\s(?:online|so far|today))?"  # 1,234 views
)
_AGO: Final = _noise(
    r"\b(?:\d{1,4}|an?|one|two|three|few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b"
    r"|\bvor\s(?:\d{1,4}|eine[mr])\s(?:sekunde|minute|stunde|tag|woche|monat|jahr)(?:e?n)?\b"
    r"|\bil y a\s(?:\d{1,4}|une?)\s(?:(?:seconde|minute|heure|jour|semaine|an|année)s?|mois)\b"
    r"|\b(?:hace|há)\s(?:\d{1,4}|una?|uma?)\s(?:(?:segundo|minuto|hora|d[ií]a|semana|a[ñn]o)s?|m[eê]s(?:es)?)\b"
    r"|\b\d{1,4}\s(?:second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi])\sfa\b"
    r"|\b\d{1,4}\s\w{1,12}\s(?:geleden|temu|назад|тому|önce)\b|\bpřed\s\d{1,4}\s\w{1,12}\b"
    r"|\bf[öo]r\s\d{1,4}\s\w{1,12}\s(?:sedan|siden)\b"
    r"|\d{1,4}\s?(?:秒|分|分钟|分鐘|小时|小時|時間|天|日|周|週|週間|个月|個月|か月|ヶ月|年)前"
    r"|\d{1,4}\s?(?:초|분|시간|일|주|개월|달|년)\s?전(?!\w)"
)
_JUST_NOW: Final = _noise(r"\bjust now\b")
_CLOCK: Final = _noise(r"\b\d{1,2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:\s?[ap]m)?\b")  # with seconds
_TOKEN: Final = late(r"(?<![\w-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[\w-]{20,2000}={0,2}")
_STAMP: Final = _noise(
    rf"©|\(c\)\s|\bcopyright\b|\b{_MADE}\b.{{0,100}}\d|\b(?:current|server|local) time\b|\btoday is\b"
    r"|\bpage (?:load|generation|render)\b|\brequest[ -]id\b"
)
_COUNTING: Final = _noise(rf"(?:\b{_COUNTED}|\b{_MADE}\b.{{0,40}}?)\s?[:=]? #|# {_COUNTED}\b")

# Signs that a rule may match, searched in the folded text: in lower case, with 0 for every digit.
_FOLD: Final = bytes(ord("0") if 0x30 <= code <= 0x39 else code for code in range(256)).lower()
_ZERO, _BLANK = b"0 "
_BARE: Final = late(rb"0(?:[0.,']{0,20}0)?[km]?")  # a number that stands alone
_LONG: Final = re.compile(rb" [^ ]{%d,}" % LONG_WORD)
_CLOCKS: Final = b"0:00:00"
_JUST: Final = b"just now"
_WITHOUT_DIGIT: Final = (b" ago", _JUST)
_AGES: Final = tuple(
    word.encode()
    for word in (
        " ago", "vor 0", "vor eine", "il y a ", "hace ", "há ", " fa", " geleden", " temu", " назад", " тому",
        " önce", "před 0", " sedan", " siden", "前", "전",
    )
)  # fmt: skip
_MAKES: Final = tuple(word.encode() for word in _MAKERS)
_STAMPS: Final = (
    *_MAKES, "©".encode(), b"(c)", b"copyright", b" time", b"today is", b"page load", b"page gener",
    b"page render", b"request",
)  # fmt: skip
_SIGNS: Final = (_CLOCKS, _JUST, *_AGES, *_STAMPS)
_HEADS: Final = tuple(noun.encode() for noun in ("page", *_NOUNS) if noun not in {"visitor", "reader"})
_COUNTS_END: Final = frozenset(b"0km")  # the end of a number before a noun that is counted
_BEFORE_NUMBER: Final = re.compile(rb"[a-z]+(?: (?:online|today))? ?[:=] ?0")
_STARTS: Final = frozenset(noun[:3].encode() for noun in _COUNTERS)
_ENDS: Final = frozenset(noun[-3:].encode() for noun in _COUNTERS)


def without_volatile(text: bytes) -> bytes:
    """The text without its volatile parts. Pieces are separated by NODE and contain no double blanks."""
    folded = text.translate(_FOLD)
    spans = _candidates(folded)
    matching = _matching([folded[start:end] for start, end in spans])
    makes = _made(folded)
    parts: list[bytes] = []
    done = 0  # the text up to here is in `parts`
    for number, (start, end) in enumerate(spans):
        if folded[start] == _ZERO and _BARE.fullmatch(folded, start, end):
            if not _may_count(folded, start, end, makes):
                continue
            rest = _without_count(text, start, end)
        elif number in matching:
            rest = _without_matches(text[start:end].decode(), folded[start:end]).encode()
        else:
            continue
        if rest != text[start:end]:
            parts += text[done:start].rstrip(NODE), NODE + rest if rest else b""
            done = end
    return b"".join([*parts, text[done:]]).lstrip(NODE) if parts else text


def _candidates(folded: bytes) -> list[tuple[int, int]]:
    """The pieces with a digit, or another sign of an age, as (start, end)."""
    spans = list(_pieces_with(folded, b"0"))
    words = [word for word in _WITHOUT_DIGIT if folded.find(word) >= 0]
    if words:
        spans = sorted({*spans, *chain.from_iterable(_pieces_with(folded, word) for word in words)})
    return spans


def _pieces_with(folded: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    end = 0
    while (at := folded.find(word, end)) >= 0:
        start, end = folded.rfind(NODE, 0, at) + 1, folded.find(NODE, at)
        end = len(folded) if end < 0 else end
        yield start, end


def _matching(pieces: list[bytes]) -> set[int]:
    """The numbers of the pieces that a rule may match; all are searched at once."""
    joined = NODE.join(pieces)
    hits = [*_counting(joined), *_tokens(joined), *_places(joined, _SIGNS)]
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0)) if hits else []
    return {bisect_right(starts, at) - 1 for at in hits}


def _places(folded: bytes, words: Sequence[bytes]) -> list[int]:
    """The positions of words, most of which are nowhere."""
    found = list[int]()
    for word in words:
        at = folded.find(word)
        while at >= 0:
            found.append(at)
            at = folded.find(word, at + 1)
    return found


def _counting(folded: bytes) -> list[int]:
    """The positions of nouns that may be counted, with a number next to them."""
    return [at for at in _places(folded, _HEADS) if _has_number(folded, at)]


def _has_number(folded: bytes, at: int) -> bool:
    if at >= 2 and folded[at - 1] == _BLANK and folded[at - 2] in _COUNTS_END:
        return True
    return _BEFORE_NUMBER.match(folded, at) is not None


def _tokens(folded: bytes) -> list[int]:
    """The positions of long words with a digit."""
    words = _LONG.finditer(b" " + folded.replace(NODE, b" "))
    return [word.start() for word in words if word[0].find(b"0") >= 0]


def _made(folded: bytes) -> list[int]:
    """Where one of `_MAKES` begins, in order."""
    return sorted(_places(folded, _MAKES))


def _may_count(folded: bytes, start: int, end: int, makes: Sequence[int]) -> bool:
    """Whether the text next to a piece that is only a number may name what it counts. `makes`: `_made`."""
    if (
        folded[end + 1 : end + 4] in _STARTS
        or folded[max(0, start - 6) : max(0, start - 1)].rstrip(b" :=")[-3:] in _ENDS
    ):
        return True
    at = bisect_left(makes, start - 1 - 4 * NEAR)
    return at < len(makes) and makes[at] < start - 1


def _without_count(text: bytes, start: int, end: int) -> bytes:
    """A piece that is only a number, as in <b>1,024</b> views: empty if the text next to it shows that it
    counts.
    """
    before = _near(text[max(0, start - 1 - 4 * NEAR) : max(0, start - 1)].rpartition(NODE)[2])[-NEAR:]
    after = _near(text[end + 1 : end + 1 + 4 * NEAR].partition(NODE)[0])[:NEAR]
    return b"" if _COUNTING.search(f"{before} # {after}".strip()) else text[start:end]


def _near(cut: bytes) -> str:
    return cut.decode("utf-8", "ignore")  # the cut may split a character


def _without_matches(piece: str, folded: bytes) -> str:
    """A piece of text without its volatile parts; may be empty."""
    if (
        len(piece) <= LONGEST_LINE
        and any(folded.find(word) >= 0 for word in _STAMPS)
        and _STAMP.search(piece)
    ):
        return ""
    rest = piece
    for rule, seen in (
        (_COUNTS, _counting(folded)),
        (_AGO, any(folded.find(word) >= 0 for word in _AGES)),
        (_JUST_NOW, folded.find(_JUST) >= 0),
        (_CLOCK, folded.find(_CLOCKS) >= 0),
    ):
        rest = rule.sub("", rest) if seen else rest
    if _tokens(folded):
        words = rest.split(" ")
        rest = " ".join(_TOKEN.sub("", word) if len(word) >= LONG_WORD else word for word in words)
    return piece if rest == piece else " ".join(rest.split())
