"""The text of a page without what moves on its own: view counters, "generated at" lines, copyright lines, clocks with
seconds, "3 minutes ago", and long tokens of letters and digits.

Not which text of a page counts: that is for `content`. Nearly every piece of text is innocent, so what costs is to see
that; only what is suspect meets the rules themselves. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Final

NODE: Final = b"\x00"  # between two pieces of text, where no page can have it
LONGEST_LINE: Final = 160  # characters of a line that can be taken for a stamp of the server
NEAR: Final = 60  # characters of a neighbour that can tell what a number counts
LONG_WORD: Final = 20  # characters

# Every repetition has a bound: a page may be built to make patterns try again at each place.
_NUMBER: Final = r"(?<![\d.,])\d(?:[\d.,']{0,20}\d)?[kKmM]?"
_NOUNS: Final = [
    "view",
    "visit",
    "visitor",
    "hit",
    "read",
    "reader",
    "user",
    "guest",
    "people",
    "download",
    "like",
    "share",
]
_COUNTERS: Final = ("page", *_NOUNS, *(f"{noun}s" for noun in _NOUNS))
_MAKERS: Final = ["generated", "rendered", "served", "executed", "processed", "compiled", "cached", "loaded"]
_COUNTED: Final = rf"(?:page\s{{0,3}})?(?:{'|'.join(f'{noun}s?' for noun in _NOUNS)})"
_MADE: Final = rf"(?:{'|'.join(_MAKERS)})"


def _noise(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The rules.
_COUNTS: Final = _noise(
    rf"\b{_COUNTED}(?:\s(?:online|today))?\s?[:=]\s?{_NUMBER}"  # Views: 1,234
    rf"|{_NUMBER}\s{_COUNTED}\b(?!\s?[:=])(?:\s(?:online|so far|today))?"  # 1,234 views
)
_AGO: Final = _noise(
    r"\b(?:\d{1,4}|an?|one|two|three|few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b"
)
_JUST_NOW: Final = _noise(r"\bjust now\b")
_CLOCK: Final = _noise(r"\b\d{1,2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:\s?[ap]m)?\b")  # with seconds
_TOKEN: Final = re.compile(r"(?<![\w-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[\w-]{20,2000}={0,2}")
_STAMP: Final = _noise(
    rf"©|\(c\)\s|\bcopyright\b|\b{_MADE}\b.{{0,100}}\d|\b(?:current|server|local) time\b|\btoday is\b"
    r"|\bpage (?:load|generation|render)\b|\brequest[ -]id\b"
)
_COUNTING: Final = _noise(rf"(?:\b{_COUNTED}|\b{_MADE}\b.{{0,40}}?)\s?[:=]? #|# {_COUNTED}\b")

# What shows that a rule may find something. It is looked for in the text in lower case, with every digit a 0.
_LOOK: Final = bytes(ord("0") if 0x30 <= code <= 0x39 else code for code in range(256)).lower()
_ZERO, _BLANK = b"0 "
_BARE: Final = re.compile(rb"0(?:[0.,']{0,20}0)?[km]?")  # a number that stands alone
_LONG: Final = re.compile(rb" [^ ]{%d,}" % LONG_WORD)
_CLOCKS: Final = b"0:00:00"
_LATELY: Final = (b" ago", b"just now")
_MAKES: Final = tuple(word.encode() for word in _MAKERS)
_STAMPS: Final = (*_MAKES, "©".encode(), b"(c)", b"copyright", b" time", b"today is", b"page ", b"request")
_SIGNS: Final = (_CLOCKS, *_LATELY, *_STAMPS)
_HEADS: Final = tuple(noun.encode() for noun in ("page", *_NOUNS) if noun not in {"visitor", "reader"})
_COUNTS_END: Final = frozenset(b"0km")  # before the blank before a noun that is counted
_BEFORE_NUMBER: Final = re.compile(rb"[a-z]+(?: (?:online|today))? ?[:=] ?0")
_STARTS: Final = frozenset(noun[:3].encode() for noun in _COUNTERS)
_ENDS: Final = frozenset(noun[-3:].encode() for noun in _COUNTERS)


def calm(text: bytes) -> bytes:
    """The text without what moves on its own. Pieces are NODE apart, and have no two blanks in a row."""
    look = text.translate(_LOOK)
    spans = _suspects(look)
    moving = _moving([look[start:end] for start, end in spans])
    parts: list[bytes] = []
    done = 0  # up to there the text is in `parts`
    for number, (start, end) in enumerate(spans):
        if look[start] == _ZERO and _BARE.fullmatch(look, start, end):
            if not _may_count(look, start, end):
                continue
            fate = _calmed_bare(text, start, end)
        elif number in moving:
            fate = _calmed(text[start:end].decode(), look[start:end]).encode()
        else:
            continue
        if fate != text[start:end]:
            parts += text[done:start].rstrip(NODE), NODE + fate if fate else b""
            done = end
    return b"".join([*parts, text[done:]]).lstrip(NODE) if parts else text


def _suspects(look: bytes) -> list[tuple[int, int]]:
    """Where the pieces lie that have a digit in them, or a word for "lately"."""
    spans = list(_pieces_with(look, b"0"))
    words = [word for word in _LATELY if word in look]
    if words:
        spans = sorted({*spans, *chain.from_iterable(_pieces_with(look, word) for word in words)})
    return spans


def _pieces_with(look: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    end = 0
    while (at := look.find(word, end)) >= 0:
        start, end = look.rfind(NODE, 0, at) + 1, look.find(NODE, at)
        end = len(look) if end < 0 else end
        yield start, end


def _moving(pieces: list[bytes]) -> set[int]:
    """Which of the pieces any of the rules could find something in: all are looked at in one go."""
    joined = NODE.join(pieces)
    hits = [*_counting(joined), *_tokens(joined)]
    for sign in _SIGNS:
        if sign in joined:
            hits += _places(joined, sign)
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0)) if hits else []
    return {bisect_right(starts, at) - 1 for at in hits}


def _places(look: bytes, word: bytes) -> Iterator[int]:
    at = look.find(word)
    while at >= 0:
        yield at
        at = look.find(word, at + 1)


def _counting(look: bytes) -> list[int]:
    """Where a noun stands that may be counted, with a number beside it."""
    places = chain.from_iterable(_places(look, head) for head in _HEADS if head in look)
    return [at for at in places if _has_number(look, at)]


def _has_number(look: bytes, at: int) -> bool:
    if at >= 2 and look[at - 1] == _BLANK and look[at - 2] in _COUNTS_END:
        return True
    return _BEFORE_NUMBER.match(look, at) is not None


def _tokens(look: bytes) -> list[int]:
    """Where a word is long and has a digit in it."""
    words = _LONG.finditer(b" " + look.replace(NODE, b" "))
    return [word.start() for word in words if b"0" in word[0]]


def _may_count(look: bytes, start: int, end: int) -> bool:
    """Whether a neighbour of a number that stands alone could tell what it counts."""
    if (
        look[end + 1 : end + 4] in _STARTS
        or look[max(0, start - 6) : max(0, start - 1)].rstrip(b" :=")[-3:] in _ENDS
    ):
        return True
    before = look[max(0, start - 1 - 4 * NEAR) : max(0, start - 1)]
    return any(word in before for word in _MAKES)


def _calmed_bare(text: bytes, start: int, end: int) -> bytes:
    """A number that stands alone, as in <b>1,024</b> views: nothing, when its neighbours count."""
    before = _near(text[max(0, start - 1 - 4 * NEAR) : max(0, start - 1)].rpartition(NODE)[2])[-NEAR:]
    after = _near(text[end + 1 : end + 1 + 4 * NEAR].partition(NODE)[0])[:NEAR]
    return b"" if _COUNTING.search(f"{before} # {after}".strip()) else text[start:end]


def _near(cut: bytes) -> str:
    return cut.decode("utf-8", "ignore")  # the cut may go through a letter


def _calmed(piece: str, look: bytes) -> str:
    """A piece of text without what moves on its own; nothing, when all of it does."""
    if len(piece) <= LONGEST_LINE and any(word in look for word in _STAMPS) and _STAMP.search(piece):
        return ""
    rest = piece
    for rule, seen in (
        (_COUNTS, _counting(look)),
        (_AGO, _LATELY[0] in look),
        (_JUST_NOW, _LATELY[1] in look),
        (_CLOCK, _CLOCKS in look),
    ):
        rest = rule.sub("", rest) if seen else rest
    if _tokens(look):
        words = rest.split(" ")
        rest = " ".join(_TOKEN.sub("", word) if len(word) >= LONG_WORD else word for word in words)
    return piece if rest == piece else " ".join(rest.split())
