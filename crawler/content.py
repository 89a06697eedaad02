"""A fingerprint of what a page says, so that a run can tell whether it changed since the last one.

Counted: the title and the text a reader sees, of `main` where there is one, else of the body without navigation,
footer and asides. Not counted, because it moves without meaning: attributes of any kind (nonces, CSRF tokens, session
ids in links), scripts, styles, comments, hidden fields, templates; and in the text: view counters, "generated at" lines,
copyright lines, clocks with seconds, "3 minutes ago", and long tokens of letters and digits. Pure.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

SILENT: Final = [
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "object",
    "canvas",
    "datalist",
    "input",
]
AROUND: Final = ["nav", "footer", "aside"]
LONGEST_LINE: Final = 160  # characters of a line that can be taken for a stamp of the server
NODE: Final = "\x00"  # between two pieces of text, where no page can have it

# Every repetition has a bound: a page may be built to make patterns try again at each place.
_NUMBER: Final = r"(?<![\d.,])\d[\d.,\u00a0\u202f']{0,20}[kKmM]?"
_COUNTED: Final = r"(?:page\s{0,3})?(?:views?|visits?|visitors?|hits?|reads?|readers?|users?|guests?|people|downloads?|likes?|shares?)"
_MADE: Final = r"(?:generated|rendered|served|executed|processed|compiled|cached|loaded)"


def _noise(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Most pieces of text hold none of the words before the colon, which is quick to see.
_NOISE: Final = {
    ("view", "visit", "hit", "read", "user", "guest", "people", "download", "like", "share"): _noise(
        rf"\b{_COUNTED}(?:\s(?:online|today))?\s?[:=]\s?{_NUMBER}"  # Views: 1,234
        rf"|{_NUMBER}\s{_COUNTED}\b(?!\s?[:=])(?:\s(?:online|so far|today))?"  # 1,234 views
    ),
    ("ago",): _noise(
        r"\b(?:\d{1,4}|an?|one|two|three|few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b"
    ),
    ("just now",): _noise(r"\bjust now\b"),
    (":",): _noise(r"\b\d{1,2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:\s?[ap]m)?\b"),  # a clock with seconds
}
_TOKEN: Final = re.compile(r"(?<![\w-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[\w-]{20,2000}={0,2}")
_LONG_WORD: Final = re.compile(r"[\w-]{20}")
_STAMP_WORDS: Final = ("generated", "rendered", "served", "executed", "processed", "compiled", "cached", "loaded",
                       "©", "(c)", "copyright", " time", "today is", "page ", "request")  # fmt: skip
_STAMP: Final = _noise(
    rf"©|\(c\)\s|\bcopyright\b|\b{_MADE}\b.{{0,100}}\d|\b(?:current|server|local) time\b|\btoday is\b"
    r"|\bpage (?:load|generation|render)\b|\brequest[ -]id\b"
)
_DATES: Final = _noise(
    r"[\d\s.,:/-]{1,1000}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9}\b"
    r"|(?<=\d)(?:st|nd|rd|th)\b"
)
_DIGIT: Final = re.compile(r"\d")
_BARE: Final = re.compile(_NUMBER)
_COUNTING: Final = _noise(rf"(?:\b{_COUNTED}|\b{_MADE}\b.{{0,40}}?)\s?[:=]? #|# {_COUNTED}\b")


def fingerprint(tree: LexborHTMLParser, *, dateless: bool = False) -> str:
    """Sixteen hex digits. Takes what is not counted out of the tree: read all else from it before.

    `dateless` counts no numbers, months or days of the week: the pages of an empty calendar then say the same.
    """
    tree.strip_tags(SILENT)
    title = tree.css_first("title")
    main = tree.css_first("main, [role=main]") or _body(tree)
    said = [" ".join(title.text().split()) if title else "", *(_pieces(main) if main else ())]
    if dateless:
        said = [_DATES.sub("", " ".join(said))]
    return blake2b("\n".join(said).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _body(tree: LexborHTMLParser) -> LexborNode | None:
    tree.strip_tags(AROUND)
    return tree.body


def _pieces(node: LexborNode) -> list[str]:
    """The text, piece by piece, without what moves on its own."""
    text = " ".join(node.text(separator=NODE).split())
    pieces = [piece for written in text.split(NODE) if (piece := written.strip())]
    # Without a digit nothing counts, and only a few words tell the time: most pieces are as they are.
    suspects = [
        n
        for n, piece in enumerate(pieces)
        if _DIGIT.search(piece) or "ago" in piece or "just now" in piece.lower()
    ]
    calmed = {
        n: _calmed_bare(pieces, n) if _BARE.fullmatch(pieces[n]) else _calmed(pieces[n]) for n in suspects
    }
    for n, calm in calmed.items():
        pieces[n] = calm
    return [piece for piece in pieces if piece]


def _calmed_bare(pieces: Sequence[str], n: int) -> str:
    """A number that stands alone, as in <b>1,024</b> views: nothing, when its neighbours count."""
    before = pieces[n - 1][-LONGEST_LINE:] if n else ""
    after = pieces[n + 1][:LONGEST_LINE] if n + 1 < len(pieces) else ""
    return "" if _COUNTING.search(f"{before} # {after}".strip()) else pieces[n]


def _calmed(piece: str) -> str:
    """A piece of text without what moves on its own; nothing, when all of it does."""
    low = piece.lower()
    if len(piece) <= LONGEST_LINE and any(word in low for word in _STAMP_WORDS) and _STAMP.search(piece):
        return ""
    calm = piece
    for words, pattern in _NOISE.items():
        if any(word in low for word in words):
            calm = pattern.sub("", calm)
    if _LONG_WORD.search(calm):
        calm = _TOKEN.sub("", calm)
    return piece if calm is piece else " ".join(calm.split())
