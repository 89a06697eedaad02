"""Recognises the format of a sitemap by its first bytes; parses a line of the JSON form."""

import json
import re
from typing import Final

SNIFFED: Final = 1_024  # bytes
LONGEST_LOC: Final = 8_192  # characters of a loc that are read

# Atomic groups (`(?>`) avoid backtracking over hundreds of comments.
_WEB_PAGE: Final = re.compile(
    rb"\s*+(?:<\?xml[^>]{0,200}>\s*+)?+(?:(?><!--.{0,500}?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|script)\b",
    re.IGNORECASE | re.DOTALL,
)


def is_web_page(head: bytes) -> bool:
    """Whether the file is HTML."""
    return _WEB_PAGE.match(head) is not None


def is_json(head: bytes) -> bool:
    """Whether the file has JSON lines, as written by `--format jsonl`."""
    return head.lstrip().startswith(b"{")


def read_json(line: bytes) -> tuple[str, str | None] | None:
    """The loc and lastmod of one JSON line; None if it has no loc."""
    try:
        entry = json.loads(line)
        loc, lastmod = entry["loc"], entry.get("lastmod")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if isinstance(loc, str) and isinstance(lastmod, str | None):
        return loc[:LONGEST_LOC], lastmod
    return None
