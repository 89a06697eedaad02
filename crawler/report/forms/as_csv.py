"""A report, or a list, as CSV (RFC 4180): UTF-8, always with a header, and safe from formula injection.

Titles and URLs come from the site: a cell that begins like a formula gets a leading apostrophe.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from crawler.parse.credentials import masked
from crawler.parse.late import late
from crawler.report.catalogue import Code
from crawler.report.report import UNKNOWN, Item, Said

FIELDS: Final = ("severity", "code", "url", "status", "detail", "links", "source", "text", "place")
_EMPTY: Final = '""'  # a row of one empty cell
_FORMULA: Final = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # wide ones count in Japanese
# Control characters, and those that show text in another order than it has; joiners belong to some scripts.
_UNSAFE: Final = late("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Written as they are, like most URLs: nothing to mask, to quote, or to be read as a formula.
PLAIN: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9/:._~%-]*")


def item_line(code: Code, item: Item, url: str, source: str, said: Said = UNKNOWN) -> str:
    """The row of an item and a page that links to it; of a group, of its first page and another one."""
    return line((code.severity.value, code.value, url, item.status, item.detail, item.links, source, *said))


def line(cells: Sequence[Any]) -> str:
    """One row."""
    return lines([",".join(map(spelt, cells))])


def lines(rows: Sequence[str]) -> str:
    """Rows whose cells are written and joined."""
    return "\r\n".join([*(rows if all(rows) else [row or _EMPTY for row in rows]), ""])


def spelt(value: Any) -> str:
    """A cell as it is written."""
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) else _quoted(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else _in_quotes(json.dumps(value))


@lru_cache(maxsize=10_000)  # the rows of a list have much in common
def _quoted(value: str) -> str:
    return _in_quotes(cell(value))


def _in_quotes(text: str) -> str:
    """In quotes, if need be, which `csv.writer` finds out letter by letter."""
    if '"' in text or "," in text or "\n" in text or "\r" in text:
        return f'"{text.replace(chr(34), chr(34) * 2)}"'
    return text


def cell(value: str) -> str:
    """A text that is safe in a spreadsheet: never read as a formula, control characters as escapes."""
    text = masked(value)
    if not text.isprintable():
        text = _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return f"'{text}" if text[:1] in _FORMULA else text
