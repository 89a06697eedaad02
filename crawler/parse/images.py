"""The images that a page shows: the URLs in img, in the sources of picture, and in og:image, in the order of
the page.

Each element counts with its largest image. Where a script sets the src of an img, the attributes count that
the script reads. Not CSS, icons, or links to images; not what is too small to be seen. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from crawler.parse import srcset
from crawler.parse.late import late
from crawler.parse.refresh import ASCII_WHITESPACE
from crawler.parse.url import LONGEST_URL

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# Images of one page that are read: twice what a sitemap may have of it, as some are left out there.
MOST_IMAGES: Final = 2_000
LONGEST_SRCSET: Final = 65_536  # characters; a longer one is not read
SHOWING: Final = "img,source,meta[content]"  # elements with images
LAZY: Final = ("data-src", "data-lazy-src", "data-original")  # what scripts read, if src is a placeholder

_OTHER_SCHEME: Final = late(r"(?!https?:)[a-z][a-z0-9+.\t\n\r-]*:", re.IGNORECASE)
_OG: Final = frozenset({"og:image", "og:image:url"})  # two names of one property (ogp.me)
_UNSEEN: Final = frozenset({"0", "1", "0px", "1px"})  # pixels: a beacon that counts visits
Attributes = Mapping[str, str | None]


def images(tree: "LexborHTMLParser") -> tuple[str, ...]:
    """The URLs of the first `MOST_IMAGES` images as written, without fragments, each once."""
    found: dict[str, None] = {}
    for node in tree.css(SHOWING):
        image = image_of(node)
        if image:
            found[image] = None
            if len(found) >= MOST_IMAGES:
                break
    return tuple(found)


def image_of(node: "LexborNode") -> str | None:
    """The image of one of these elements, as written."""
    given = node.attributes
    match node.tag:
        case "img":
            return None if _is_unseen(given) else _largest(given)
        case "source":
            return _largest(given) if node.parent is not None and node.parent.tag == "picture" else None
    names = f"{given.get('property') or ''} {given.get('name') or ''}".lower().split()
    return None if _OG.isdisjoint(names) else usable(given.get("content"))


def _is_unseen(given: Attributes) -> bool:
    return (given.get("width") or "") in _UNSEEN and (given.get("height") or "") in _UNSEEN


def _largest(given: Attributes) -> str | None:
    """The largest image of an element."""
    return _largest_of(given.get("srcset")) or usable(given.get("src")) or _lazy(given)


def _lazy(given: Attributes) -> str | None:
    """The image that a script will show in place of a missing or inlined one."""
    plain: Iterator[str | None] = (usable(given.get(name)) for name in LAZY)
    return _largest_of(given.get("data-srcset")) or next(filter(None, plain), None)


def _largest_of(text: str | None) -> str | None:
    if not text or len(text) > LONGEST_SRCSET:
        return None
    url = srcset.largest(text, lambda url: usable(url) is not None)
    return usable(url)


def usable(text: str | None) -> str | None:
    """A URL without its fragment, unless it is empty, too long, or has a scheme such as `data:`."""
    url = (text or "").strip(ASCII_WHITESPACE)
    if not url or len(url) > LONGEST_URL or _OTHER_SCHEME.match(url):
        return None
    return url.partition("#")[0] or None
