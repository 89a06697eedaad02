"""A fingerprint of what a page says, so that a run can tell whether it changed since the last one.

Counted: the title and the text a reader sees, of `main` where there is one, else of the body without navigation,
footer and asides. Not counted, because it moves without meaning: attributes of any kind (nonces, CSRF tokens, session
ids in links), scripts, styles, comments, hidden fields, templates; and in the text what `volatile_text` takes out. Pure.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

try:
    # The same, but it does not bring OpenSSL: 4 MB of each child that reads pages.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.parse import volatile_text

SILENT: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "datalist"}
)
AROUND: Final = frozenset({"nav", "footer", "aside"})
ROLE_MAIN: Final = "[role=main]"
SHORT: Final = 5_000  # characters of a text that is counted exactly
MAIN: Final = f"main,{ROLE_MAIN}"

_DATES: Final = re.compile(
    r"[\d\s.,:/-]{1,1000}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9}\b"
    r"|(?<=\d)(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
_BLANKS: Final = (b"\t", b"\x0b", b"\x0c", b"\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_ARROWS: Final = re.compile("[\u2190-\u21ff\u25a0-\u25ff\u2b00-\u2bff]")  # they show by what a list is sorted
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


class Said(NamedTuple):
    """What a page says to a reader."""

    title: str
    text: str  # pieces that are NODE apart
    length: int = 0  # characters of all text, also that of navigation and footers, if it was asked for


def said(
    tree: LexborHTMLParser, leaving: Sequence[LexborNode] | None = None, *, measured: bool = False
) -> Said:
    """Takes what is not counted out of the tree: read all else from it before.

    `leaving`: the elements of SILENT, AROUND and MAIN in tree order, if they were found already. `measured`: count all text.
    """
    failpoint = 0
    nodes = tree.css(",".join([*SILENT, *AROUND, MAIN])) if leaving is None else leaving
    tags = [node.tag for node in nodes]
    has_main = any(tag not in SILENT and tag not in AROUND for tag in tags)
    for node, tag in zip(reversed(nodes), reversed(tags), strict=True):
        # From the last on: what lies inside of another goes before it.
        if tag in SILENT or (tag in AROUND and not has_main):
            failpoint += _length(node.text(separator=" ")) if measured and tag in AROUND else 0
            node.decompose()
    title = tree.css_first("title")
    main = (tree.css_first(MAIN) if has_main else None) or tree.body
    text = main.text(separator=volatile_text.NODE.decode(), strip=True, skip_empty=True) if main else ""
    if measured:
        whole = tree.body if has_main and len(text) < SHORT else None
        failpoint += _length(
            whole.text(separator=" ") if whole else text.replace(volatile_text.NODE.decode(), " ")
        )
    return Said(title.text() if title else "", text, failpoint)


def _length(text: str) -> int:
    return len(text) if len(text) > SHORT else len(" ".join(text.split()))


def fingerprint(said: Said, *, dateless: bool = False) -> str:
    """Sixteen hex digits.

    `dateless` counts no numbers, months or days of the week: the pages of an empty calendar then say the same.
    """
    text = _title(said) + volatile_text.NODE + volatile_text.calm(_plain(said.text))
    if dateless:
        text = _DATES.sub("", text.replace(volatile_text.NODE, b" ").decode()).encode()
    return digest(text)


def unordered(said: Said) -> str:
    """Sixteen hex digits, the same in whatever order the pieces of the text stand, and without arrows between them.

    A list says the same in each of its sort orders.
    """
    pieces = sorted(piece.strip() for piece in _ARROWS.sub("", said.text).split(volatile_text.NODE.decode()))
    text = volatile_text.NODE.decode().join(filter(None, pieces))
    return digest(_title(said) + volatile_text.NODE + volatile_text.calm(_plain(text)))


def digest(data: bytes) -> str:
    """Sixteen hex digits."""
    return blake2b(data, digest_size=8).hexdigest()


def _title(said: Said) -> bytes:
    return " ".join(said.title.split()).encode("utf-8", "replace")


def _plain(said: str) -> bytes:
    """One blank for any run of them."""
    text = said.encode("utf-8", "replace")
    if len(text) > len(said):
        for lead, wide in _WIDE_BLANKS:
            if lead in text:  # is seen at once
                text = wide.sub(b" ", text)
    for blank in _BLANKS:
        text = text.replace(blank, b"\n")
    text = b" ".join([line.strip() for line in text.split(b"\n")])
    return _DOUBLE.sub(b" ", text).strip() if b"  " in text else text
