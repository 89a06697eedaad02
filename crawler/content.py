"""A fingerprint of what a page says, so that a run can tell whether it changed since the last one.

Counted: the title and the text a reader sees, of `main` where there is one, else of the body without navigation,
footer and asides. Not counted, because it moves without meaning: attributes of any kind (nonces, CSRF tokens, session
ids in links), scripts, styles, comments, hidden fields, templates; and in the text what `noise` takes out. Pure.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler import noise

SILENT: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "datalist"}
)
AROUND: Final = frozenset({"nav", "footer", "aside"})
ROLE_MAIN: Final = "[role=main]"
MAIN: Final = f"main,{ROLE_MAIN}"

_DATES: Final = re.compile(
    r"[\d\s.,:/-]{1,1000}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9}\b"
    r"|(?<=\d)(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
_BLANKS: Final = (b"\t", b"\x0b", b"\x0c", b"\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
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
        said += noise.NODE + noise.calm(_pieces(main))
    if dateless:
        said = _DATES.sub("", said.replace(noise.NODE, b" ").decode()).encode()
    return blake2b(said, digest_size=8).hexdigest()


def _pieces(node: LexborNode) -> bytes:
    """The text, one blank for any run of them, and one NODE between two pieces."""
    said = node.text(separator=noise.NODE.decode(), strip=True, skip_empty=True)
    text = said.encode("utf-8", "replace")
    if len(text) > len(said):
        for lead, wide in _WIDE_BLANKS:
            if lead in text:  # is seen at once
                text = wide.sub(b" ", text)
    for blank in _BLANKS:
        text = text.replace(blank, b"\n")
    text = b" ".join([line.strip() for line in text.split(b"\n")])
    return _DOUBLE.sub(b" ", text).strip() if b"  " in text else text
