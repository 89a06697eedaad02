"""A fingerprint of what a page says, so that a run can tell whether it changed since the last one.

Counted: the title and the text a reader sees, of `main` where there is one, else of the body without navigation,
footer and asides. Not counted, because it moves without meaning: attributes of any kind (nonces, CSRF tokens, session
ids in links), scripts, styles, comments, hidden fields, templates; and in the text: view counters, "generated at" lines,
copyright lines, clocks with seconds, "3 minutes ago", and long tokens of letters and digits. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, chain
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

SILENT: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "datalist"}
)
AROUND: Final = frozenset({"nav", "footer", "aside"})
MAIN: Final = "main,[role=main]"
LONGEST_LINE: Final = 160  # characters of a line that can be taken for a stamp of the server
NEAR: Final = 60  # characters of a neighbour that can tell what a number counts
NODE: Final = "\x00"  # between two pieces of text, where no page can have it
_NODE: Final = NODE.encode()

# Every repetition has a bound: a page may be built to make patterns try again at each place.
_NUMBER: Final = r"(?<![\d.,])\d[\d.,\u00a0\u202f']{0,20}[kKmM]?"
_NOUNS: Final = (
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
)
_COUNTERS: Final = ("page", *_NOUNS, *(f"{noun}s" for noun in _NOUNS))
_MAKERS: Final = ("generated", "rendered", "served", "executed", "processed", "compiled", "cached", "loaded")
_COUNTED: Final = r"(?:page\s{0,3})?(?:views?|visits?|visitors?|hits?|reads?|readers?|users?|guests?|people|downloads?|likes?|shares?)"
_MADE: Final = rf"(?:{'|'.join(_MAKERS)})"


def _noise(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_COUNTS: Final = _noise(
    rf"\b{_COUNTED}(?:\s(?:online|today))?\s?[:=]\s?{_NUMBER}"  # Views: 1,234
    rf"|{_NUMBER}\s{_COUNTED}\b(?!\s?[:=])(?:\s(?:online|so far|today))?"  # 1,234 views
)
_AGO: Final = _noise(
    r"\b(?:\d{1,4}|an?|one|two|three|few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b"
)
_JUST_NOW: Final = _noise(r"\bjust now\b")
_CLOCK: Final = _noise(r"\b\d{1,2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:\s?[ap]m)?\b")  # with seconds
# Each of the above takes long to see that it is not there. These see it at once, as they begin with a few characters.
_MAY_COUNT: Final = re.compile(
    r"[:=0-9](?:(?<=[:=])\s?\d|[kKmM]?[\s\u00a0\u202f](?:page|view|visit|hit|read|user|guest|people|download|like|share))",
    re.IGNORECASE,
)
_MAY_CLOCK: Final = re.compile(r"[0-9]:[0-9]{2}:[0-9]{2}")
_TOKEN: Final = re.compile(r"(?<![\w-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[\w-]{20,2000}={0,2}")
LONG_WORD: Final = 20  # characters
_STAMP_WORDS: Final = (*_MAKERS, "©", "(c)", "copyright", " time", "today is", "page ", "request")  # fmt: skip
_SIGNS: Final = (*_STAMP_WORDS, " ago", "just now")
_STAMP: Final = _noise(
    rf"©|\(c\)\s|\bcopyright\b|\b{_MADE}\b.{{0,100}}\d|\b(?:current|server|local) time\b|\btoday is\b"
    r"|\bpage (?:load|generation|render)\b|\brequest[ -]id\b"
)
_DATES: Final = _noise(
    r"[\d\s.,:/-]{1,1000}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9}\b"
    r"|(?<=\d)(?:st|nd|rd|th)\b"
)
_ANY_DIGIT: Final = bytes(ord("0") if 0x30 <= code <= 0x39 else code for code in range(256))
_ANY_BLANK: Final = bytes(
    ord(" ") if code in b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f" else code for code in range(256)
)
_BLANKS: Final = re.compile(rb"  +")
_WIDE_BLANKS: Final = "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LATELY: Final = (b" ago", b"ust now")
_DIGIT: Final = re.compile(r"\d")
_BARE: Final = re.compile(_NUMBER)
_COUNTING: Final = _noise(rf"(?:\b{_COUNTED}|\b{_MADE}\b.{{0,40}}?)\s?[:=]? #|# {_COUNTED}\b")


def fingerprint(
    tree: LexborHTMLParser, leaving: Sequence[LexborNode] | None = None, *, dateless: bool = False
) -> str:
    """Sixteen hex digits. Takes what is not counted out of the tree: read all else from it before.

    `leaving`: the elements of SILENT, AROUND and MAIN in tree order, if they were found already. `dateless` counts no
    numbers, months or days of the week: the pages of an empty calendar then say the same.
    """
    nodes = tree.css(",".join([*SILENT, *AROUND, MAIN])) if leaving is None else leaving
    tags = [node.tag for node in nodes]
    has_main = any(tag not in SILENT and tag not in AROUND for tag in tags)
    for node, tag in zip(reversed(nodes), reversed(tags), strict=True):
        # From the last on: what lies inside of another goes before it.
        if tag in SILENT or (tag in AROUND and not has_main):
            node.decompose()
    title = tree.css_first("title")
    main = (tree.css_first(MAIN) if has_main else None) or tree.body
    said = " ".join(title.text().split()).encode("utf-8", "replace") if title else b""
    if main:
        said += _NODE + _calm(_pieces(main))
    if dateless:
        said = _DATES.sub("", said.replace(_NODE, b" ").decode()).encode()
    return blake2b(said, digest_size=8).hexdigest()


def _pieces(node: LexborNode) -> bytes:
    """The text, one blank for any run of them, and one NODE between two pieces."""
    text = node.text(separator=NODE, strip=True, skip_empty=True)
    if not text.isascii():
        for blank in _WIDE_BLANKS:
            text = text.replace(blank, " ")
    return _BLANKS.sub(b" ", text.encode("utf-8", "replace").translate(_ANY_BLANK).strip())


def _calm(text: bytes) -> bytes:
    """The text without what moves on its own. Only the pieces with a digit, or a word for "lately", are looked at."""
    spans = _suspects(text)
    pieces = [text[start:end].decode() for start, end in spans]
    moving = _moving(pieces)
    calm: list[bytes] = []
    done = 0  # up to there the text is in `calm`
    for number, (piece, (start, end)) in enumerate(zip(pieces, spans, strict=True)):
        if "0" <= piece[0] <= "9" and _BARE.fullmatch(piece):
            fate = _calmed_bare(text, start, end)
        else:
            fate = _calmed(piece) if number in moving else piece
        if fate != piece:
            calm += text[done:start].rstrip(_NODE), (_NODE + fate.encode()) if fate else b""
            done = end
    return b"".join([*calm, text[done:]]).lstrip(_NODE) if calm else text


def _suspects(text: bytes) -> list[tuple[int, int]]:
    """Where the pieces lie that have a digit in them, or a word for "lately"."""
    spans = list(_pieces_with(text.translate(_ANY_DIGIT), b"0"))
    words = [word for word in _LATELY if word in text]
    if words:
        spans = sorted({*spans, *chain.from_iterable(_pieces_with(text, word) for word in words)})
    return spans


def _pieces_with(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    end = 0
    while (at := text.find(word, end)) >= 0:
        start, end = text.rfind(_NODE, 0, at) + 1, text.find(_NODE, at)
        end = len(text) if end < 0 else end
        yield start, end


def _moving(pieces: list[str]) -> set[int]:
    """Which of the pieces any of `_calmed`'s rules could find something in: all are looked at in one go."""
    low = [piece.lower() for piece in pieces]
    joined = NODE.join(low)
    hits = [found.start() for found in _MAY_CLOCK.finditer(joined)] if ":" in joined else []
    if any(noun in joined for noun in ("page", *_NOUNS)):
        hits += [found.start() for found in _MAY_COUNT.finditer(joined)]
    for word in _SIGNS:
        at = joined.find(word)
        while at >= 0:
            hits.append(at)
            at = joined.find(word, at + 1)
    moving = {number for number, piece in enumerate(low) if _has_token(piece)}
    if hits:
        starts = list(accumulate((len(piece) + 1 for piece in low), initial=0))
        moving.update(bisect_right(starts, at) - 1 for at in hits)
    return moving


def _has_token(piece: str) -> bool:
    """Whether a word is long and has a digit in it."""
    if len(piece) < LONG_WORD:
        return False
    words = piece.split()
    return max(map(len, words), default=0) >= LONG_WORD and any(
        len(word) >= LONG_WORD and _DIGIT.search(word) for word in words
    )


def _calmed_bare(text: bytes, start: int, end: int) -> str:
    """A number that stands alone, as in <b>1,024</b> views: nothing, when its neighbours count."""
    before = _near(text[max(0, start - 1 - 4 * NEAR) : max(0, start - 1)].rpartition(_NODE)[2])[-NEAR:]
    after = _near(text[end + 1 : end + 1 + 4 * NEAR].partition(_NODE)[0])[:NEAR]
    near = before.rstrip(" :=").lower()
    may_count = (
        near.endswith(_COUNTERS)
        or after.lower().startswith(_COUNTERS)
        or any(word in near for word in _MAKERS)
    )
    if may_count and _COUNTING.search(f"{before} # {after}".strip()):
        return ""
    return text[start:end].decode()


def _near(cut: bytes) -> str:
    return cut.decode("utf-8", "ignore")  # the cut may go through a letter


def _calmed(piece: str) -> str:
    """A piece of text without what moves on its own; nothing, when all of it does."""
    low = piece.lower()
    if len(piece) <= LONGEST_LINE:
        for word in _STAMP_WORDS:
            if word in low:
                if _STAMP.search(piece):
                    return ""
                break
    calm = piece
    if _MAY_COUNT.search(piece):
        calm = _COUNTS.sub("", calm)
    if " ago" in low:
        calm = _AGO.sub("", calm)
    if "just now" in low:
        calm = _JUST_NOW.sub("", calm)
    if _MAY_CLOCK.search(piece):
        calm = _CLOCK.sub("", calm)
    if _has_token(calm):
        calm = _TOKEN.sub("", calm)
    return piece if calm == piece else " ".join(calm.split())
