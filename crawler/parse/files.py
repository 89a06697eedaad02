"""The scripts and style sheets that a page loads: the URLs in script and link elements, in the order of the
page.

Not what they load themselves, and not what is written in the page. Pure.
"""

from typing import TYPE_CHECKING, Final

from crawler.parse.images import usable
from crawler.parse.refresh import ASCII_WHITESPACE

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MOST_FILES: Final = 1_000  # of one page that are read
LOADING: Final = "script[src],link[rel][href]"  # elements that may load one
SCRIPTS: Final = "scripts"
STYLES: Final = "styles"


def files(tree: "LexborHTMLParser") -> tuple[tuple[str, str], ...]:
    """The first `MOST_FILES` as written, without fragments, each once: its kind, and the URL."""
    found: dict[tuple[str, str], None] = {}
    for node in tree.css(LOADING):
        kind, url = file_of(node)
        if url:
            found[kind, url] = None
            if len(found) >= MOST_FILES:
                break
    return tuple(found)


def file_of(node: "LexborNode") -> tuple[str, str | None]:
    """The kind of one of these elements, and what it loads, as written."""
    given = node.attributes
    if node.tag == "script":
        return SCRIPTS, usable(given.get("src")) if runs(given.get("type")) else None
    is_style = node.tag == "link" and "stylesheet" in (given.get("rel") or "").lower().split()
    return STYLES, usable(given.get("href")) if is_style else None


def runs(kind: str | None) -> bool:
    """Whether a script element of that type holds a script, not data (HTML 4.12.1)."""
    kind = (kind or "").strip(ASCII_WHITESPACE).lower()
    return kind in {"", "module"} or kind.endswith(("javascript", "ecmascript"))
