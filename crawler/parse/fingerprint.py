"""A fingerprint of the visible content of a page, by which a run detects changes since the last one.

Included: the title and the visible text, of `main` if there is one, else of the body without navigation,
footer and asides. Excluded, because it changes without meaning: all attributes (nonces, CSRF tokens, session
ids in links), scripts, styles, comments, hidden fields, templates; and whatever `volatile_text` removes from
the text. Pure.
"""

import re
from typing import Final, NamedTuple

try:
    # The same as hashlib's, but without loading OpenSSL: saves 4 MB in each parsing process.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from selectolax.lexbor import LexborHTMLParser

from crawler.parse import volatile_text

SILENT: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "datalist"}
)
AROUND: Final = frozenset({"nav", "footer", "aside"})
BYTES: Final = "="  # begins a digest of the bytes: two that differ do not tell whether the text does
ROLE_MAIN: Final = "[role=main]"
EXACTLY_COUNTED: Final = 5_000  # characters of a text whose length is counted exactly
MAIN: Final = f"main,{ROLE_MAIN}"
# Each name is compared with each element, so the most frequent elements are ruled out first.
_PLAIN: Final = "a,div,span,code,p,td,li,tr,dd,dt"
_EXCLUDED: Final = f":not({_PLAIN}):is({','.join(sorted(SILENT | AROUND))})"
_EXCLUDED_OR_MAIN: Final = f":is(:not({_PLAIN}):is(main,{','.join(sorted(SILENT | AROUND))}),{ROLE_MAIN})"

_DATES: Final = re.compile(
    r"[\d\s.,:/-]{1,1000}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9}\b"
    r"|(?<=\d)(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
_BLANKS: Final = (b"\t", b"\x0b", b"\x0c", b"\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
# They mark the column by which a list is sorted.
_ARROWS: Final = re.compile("[\u2190-\u21ff\u25a0-\u25ff\u2b00-\u2bff]")
_DOUBLE: Final = re.compile(rb"  +")
_WIDE_BLANKS: Final = tuple(
    (lead, re.compile(lead + rest))
    for lead, rest in (
        (b"\xc2", rb"[\x85\xa0]"),
        (b"\xe1", rb"\x9a\x80"),
        (b"\xe2", rb"(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)"),
        (b"\xe3", rb"\x80\x80"),
    )
)


class VisibleText(NamedTuple):
    """The visible text of a page."""

    title: str
    text: str  # of `main` or the body: pieces separated by NODE
    length: int = 0  # characters of all text, with navigation and footers, if `measured`


def visible_text(
    tree: LexborHTMLParser, *, may_have_main: bool = True, measured: bool = False
) -> VisibleText:
    """The visible text. Removes the excluded elements from `tree`, so it has to be the last reader of the
    tree.

    `may_have_main`: False if the word "main" is not on the page. `measured`: also compute `length`.
    """
    length = 0
    nodes = tree.css(_EXCLUDED_OR_MAIN if may_have_main else _EXCLUDED)
    tags = [node.tag for node in nodes]
    has_main = any(tag not in SILENT and tag not in AROUND for tag in tags)
    for node, tag in zip(reversed(nodes), reversed(tags), strict=True):
        # In reverse order, so that nested elements are removed before those around them.
        if tag in SILENT or (tag in AROUND and not has_main):
            length += _length(node.text(separator=" ")) if measured and tag in AROUND else 0
            node.decompose()
    title = tree.css_first("title")
    main = (tree.css_first(MAIN) if has_main else None) or tree.body
    text = main.text(separator=volatile_text.NODE.decode(), strip=True, skip_empty=True) if main else ""
    if measured:
        whole = tree.body if has_main and len(text) < EXACTLY_COUNTED else None
        length += _length(
            whole.text(separator=" ") if whole else text.replace(volatile_text.NODE.decode(), " ")
        )
    return VisibleText(title.text() if title else "", text, length)


def _length(text: str) -> int:
    return len(text) if len(text) > EXACTLY_COUNTED else len(" ".join(text.split()))


def fingerprint(visible: VisibleText, *, dateless: bool = False) -> str:
    """Sixteen hex digits.

    `dateless` ignores numbers, months and days of the week, so that the pages of an empty calendar are equal.
    """
    text = _title(visible) + volatile_text.NODE + volatile_text.without_volatile(_plain(visible.text))
    if dateless:
        text = _DATES.sub("", text.replace(volatile_text.NODE, b" ").decode()).encode()
    return digest(text)


def unordered(visible: VisibleText) -> str:
    """Sixteen hex digits, independent of the order of the text and of arrows: for sort orders of a list."""
    pieces = sorted(
        piece.strip() for piece in _ARROWS.sub("", visible.text).split(volatile_text.NODE.decode())
    )
    text = volatile_text.NODE.decode().join(filter(None, pieces))
    return digest(_title(visible) + volatile_text.NODE + volatile_text.without_volatile(_plain(text)))


def of_bytes(body: bytes) -> str:
    """Stands for the content of a page whose text is not looked at. Equal only to that of a copy."""
    return BYTES + digest(body)


def digest(data: bytes) -> str:
    """Sixteen hex digits."""
    return blake2b(data, digest_size=8).hexdigest()


def _title(visible: VisibleText) -> bytes:
    return " ".join(visible.title.split()).encode("utf-8", "replace")


def _plain(visible: str) -> bytes:
    """Each run of whitespace as one blank."""
    text = visible.encode("utf-8", "replace")
    if len(text) > len(visible):
        for lead, wide in _WIDE_BLANKS:
            if text.find(lead) >= 0:  # cheaper than the pattern
                text = wide.sub(b" ", text)
    for blank in _BLANKS:
        text = text.replace(blank, b"\n")
    text = b" ".join([line.strip() for line in text.split(b"\n")])
    return _DOUBLE.sub(b" ", text).strip() if text.find(b"  ") >= 0 else text
