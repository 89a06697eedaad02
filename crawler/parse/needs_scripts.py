"""Signs in the HTML of a page that it shows nothing without scripts: an empty mount point, a noscript that
asks for them.

Both are looked for in the bytes first, as most pages have neither. Pure.
"""

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

FEW_LINKS: Final = 10  # a page with more shows something: it is not even looked at
LITTLE: Final = 1_000  # characters of text; a page with more also works without what its noscript asks for
# The elements that the frameworks' own templates have scripts fill.
MOUNTS: Final = ("app", "root", "__next", "svelte")
_MOUNT: Final = re.compile(rb"""id=["']?(?:app|root|__next|svelte)["'\s/>]""")  # as every template writes it
_SELECTOR: Final = ",".join(f"#{name}" for name in MOUNTS)
_SHOWN: Final = "a[href],img,input,button,iframe,video,object,form"


def has_empty_mount(tree: LexborHTMLParser, body: bytes) -> bool:
    """Whether an element that scripts fill has neither text nor anything else to see."""
    return _MOUNT.search(body) is not None and any(map(_is_empty, tree.css(_SELECTOR)))


def _is_empty(node: LexborNode) -> bool:
    if node.css_first(_SHOWN) is not None:
        return False
    inner = node.css("script,style,template,noscript")
    silent = sum(len(child.text().strip()) for child in inner)
    return len(node.text().strip()) <= silent


def asks_in_noscript(tree: LexborHTMLParser, body: bytes) -> bool:
    """Whether a noscript in the body speaks of JavaScript. One in the head may hold no text."""
    start = body.find(b"<noscript")  # as every template writes it
    while start >= 0:
        end = body.find(b"</noscript", start)
        if b"javascript" in body[start : end if end > 0 else None].lower():
            return any("javascript" in node.text().lower() for node in tree.css("body noscript"))
        start = body.find(b"<noscript", end) if end > 0 else -1
    return False
