"""What a file is that was named as a sitemap, by its first bytes; and a line of the JSON form. Shared by `read` and `check`."""

import json
import re
from typing import Final

SNIFFED: Final = 1_024  # bytes
LONGEST: Final = 8_192  # characters of a loc that are looked at

# A comment ends where it ends first (`(?>`): a file may hold hundreds of them, and no page.
_WEB_PAGE: Final = re.compile(
    rb"\s*+(?:<\?xml[^>]{0,200}>\s*+)?+(?:(?><!--.{0,500}?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|script)\b",
    re.IGNORECASE | re.DOTALL,
)


def is_web_page(head: bytes) -> bool:
    """Whether a file that begins so is HTML."""
    return _WEB_PAGE.match(head) is not None


def is_json(head: bytes) -> bool:
    """Whether a file that begins so is JSON lines, as `--format jsonl` writes them."""
    return head.lstrip().startswith(b"{")


def read_json(line: bytes) -> tuple[str, str | None] | None:
    """The loc and lastmod of one JSON line; None when it holds none."""
    try:
        said = json.loads(line)
        loc, lastmod = said["loc"], said.get("lastmod")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if isinstance(loc, str) and isinstance(lastmod, str | None):
        return loc[:LONGEST], lastmod
    return None
