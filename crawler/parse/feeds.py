"""The pages that a feed links to: RSS 0.9 to 2.0 and Atom (RFC 4287 4.2.7).

Tolerant, and no XML parser: it reads the links of items, whatever else the document is, expands no entity but
those of HTML and takes linear time, as the document is untrusted. Pure.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from crawler.parse.late import late

# Media types of feeds. Many are sent as XML of no particular type, so their root element decides.
FEED_TYPES: Final = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xml", "text/xml"}
)
ROOT_WITHIN: Final = 4_096  # bytes

_ROOT: Final = late(rb"<(?:[A-Za-z]+:)?(?:rss|feed|RDF)[\s>]")
_ITEM: Final = late(r"<(?:[a-z]+:)?(?:item|entry)[\s>]")
_LINK: Final = late(r"<(?:atom:)?(link|guid)((?:\s[^<>]*)?)>(?:\s*(?:<!\[CDATA\[)?([^<\]]*))?", re.IGNORECASE)
_TITLE: Final = late(
    r"<(?:atom:)?title(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))", re.IGNORECASE | re.DOTALL
)
_TAG: Final = late(r"<[^<>]*>")
_ATTRIBUTE: Final = late(r"""\b(href|rel|isPermaLink)\s*=\s*["']([^"'<>]*)["']""", re.IGNORECASE)


def is_feed(body: bytes) -> bool:
    """Whether the root element, which other elements do not precede, is that of a feed."""
    return bool(_ROOT.search(body, 0, ROOT_WITHIN))


class FeedItem(Struct, frozen=True):
    """An item of a feed, as written but for entities."""

    href: str  # of its first link to a page, else of a guid that is a link
    title: str = ""  # without markup


def items(body: bytes, *, titled: bool = False) -> Iterator[FeedItem]:
    """The items that link to a page. `titled`: with their titles."""
    from html import unescape  # noqa: PLC0415 - has all entities of HTML, and few sites have feeds

    for item in _ITEM.split(body.decode("utf-8", "replace"))[1:]:
        if not (href := _href(item)):
            continue
        title = ""
        if titled and (found := _TITLE.search(item)):
            cdata, text = found.groups()
            title = _TAG.sub("", unescape(cdata or text or ""))
        yield FeedItem(unescape(href), title)


def _href(item: str) -> str:
    guid = ""
    for name, written, text in _LINK.findall(item):
        given = {key.lower(): value for key, value in _ATTRIBUTE.findall(written)}
        if name.lower() == "guid":
            guid = text.strip() if given.get("ispermalink", "true").lower() != "false" else ""
        elif given.get("rel", "alternate") == "alternate" and (to := given.get("href", text).strip()):
            return str(to)
    return guid if guid.startswith(("http://", "https://")) else ""
