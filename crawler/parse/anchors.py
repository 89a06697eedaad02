"""What the links of a page say, and where on it they stand.

Read only from pages that are read again because their links have a finding: for every page it would be too
much. Text is untrusted: it is one line, cut, without control and bidi characters. Which URL a link leads to
is not decided here. Pure.
"""

from itertools import islice
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.parse import encoding, files, images
from crawler.parse.refresh import ASCII_WHITESPACE

MOST_ANCHORS: Final = 10_000  # of one page
MOST_PICTURES: Final = images.MOST_IMAGES + files.MOST_FILES
LONGEST_TEXT: Final = 80  # characters
MOST_NODES: Final = 200  # within a link, that are looked at
MOST_ANCESTORS: Final = 200  # of a link

Place = Literal["", "nav", "header", "main", "footer", "aside", "head", "image"]
_LINKING: Final = (("a", "href"), ("area", "href"), ("frame", "src"), ("iframe", "src"), ("link", "href"))
CLICKABLE: Final = frozenset({"a", "area"})  # which lead to the base without an address
_TAGS: Final[dict[str, Place]] = {
    "nav": "nav", "header": "header", "main": "main", "footer": "footer", "aside": "aside", "head": "head",
    "article": "main",
}  # fmt: skip
_ROLES: Final[dict[str, Place]] = {
    "navigation": "nav", "banner": "header", "main": "main", "contentinfo": "footer",
    "complementary": "aside",
}  # fmt: skip
# Names that pages without landmarks give them, as id or class.
_NAMES: Final[dict[str, Place]] = {
    "nav": "nav", "navbar": "nav", "navigation": "nav", "menu": "nav", "header": "header", "footer": "footer",
    "sidebar": "aside", "main": "main", "content": "main",
}  # fmt: skip
# Of an article or a section these are parts, not those of the page (HTML-AAM).
_PARTS: Final = frozenset({"header", "footer"})
_WITHIN: Final = frozenset({"article", "aside", "main", "nav", "section"})
_INLINE: Final = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "code", "em", "font", "i", "kbd", "mark", "s", "small", "span", "strong",
    "sub", "sup", "u", "wbr",
})  # fmt: skip

AnchorText = Annotated[str, Meta(max_length=LONGEST_TEXT)]


class Anchor(NamedTuple):
    """The first link to an address that says something, or else the first."""

    href: str  # as `ParsedPage.followed` has it; empty: the base
    text: AnchorText = ""
    place: Place = ""


Anchors = Annotated[tuple[Anchor, ...], Meta(max_length=MOST_ANCHORS)]


def anchors(tree: LexborHTMLParser, name: str = "utf-8") -> Anchors:
    """The links of a page in the encoding `name`, one for each address."""
    found: dict[str, Anchor] = {}
    for tag, linking in _LINKING:
        for node in tree.tags(tag):
            given = node.attributes
            href = (given.get(linking) or "").strip(ASCII_WHITESPACE).partition("#")[0]
            known, is_link = found.get(href), href or (tag in CLICKABLE and linking in given)
            if not is_link or (known and known.text) or (not known and len(found) >= MOST_ANCHORS):
                continue
            text, is_image = _text(node, tag)
            if known is None or text:
                found[href] = Anchor(href, text, _place(node) or ("image" if is_image else ""))
    hrefs = encoding.spell_queries(found, name)
    return tuple(one._replace(href=href) for href, one in zip(hrefs, found.values(), strict=True))


def pictures(tree: LexborHTMLParser, name: str = "utf-8") -> Anchors:
    """The images, scripts and style sheets of a page in the encoding `name`, one for each address, with the
    text in place of them.
    """
    found: dict[str, Anchor] = {}
    for node in tree.css(f"{images.SHOWING},{files.LOADING}"):
        href = images.image_of(node) or files.file_of(node)[1]
        if href and href not in found and len(found) < MOST_PICTURES:
            shown = node.parent.css_first("img") if node.tag == "source" and node.parent else node
            said = (shown.attributes.get("alt") or "") if shown else ""
            found[href] = Anchor(href, clean(said[: 10 * LONGEST_TEXT]), _place(node))
    hrefs = encoding.spell_queries(found, name)
    return tuple(one._replace(href=href) for href, one in zip(hrefs, found.values(), strict=True))


def clean(text: str) -> str:
    """A text in one line, cut, without characters that are not visible."""
    if not text.isprintable():  # as few are
        text = "".join(" " if one.isspace() else one for one in text if one.isspace() or one.isprintable())
    return " ".join(text.split())[:LONGEST_TEXT].strip()


def _text(node: LexborNode, tag: str) -> tuple[str, bool]:
    """What a link says, in text or else by its picture or its label; and whether a picture is all it has."""
    words, pictures, length = list[str](), list[str](), 0
    inner = node.traverse(include_text=True) if tag == "a" else iter(())
    for one in islice(inner, MOST_NODES):
        if one.is_text_node and one.parent is not None and one.parent.tag not in {"script", "style"}:
            words.append((one.text_content or "")[: 10 * LONGEST_TEXT])
            length += len(words[-1].strip())
        elif one.tag == "img":
            pictures.append(one.attributes.get("alt") or "")
        elif one.tag not in _INLINE:
            words.append(" ")
        if length > LONGEST_TEXT:
            break
    given = node.attributes
    said = clean("".join(words))
    for other in (" ".join(pictures), *(given.get(name) or "" for name in ("alt", "aria-label", "title"))):
        said = said or clean(other[: 10 * LONGEST_TEXT])
    return said, tag == "area" or (bool(pictures) and not clean("".join(words)))


def _place(node: LexborNode) -> Place:
    """The innermost landmark around a link."""
    part: Place = ""
    at = node.parent
    for _ in range(MOST_ANCESTORS):
        if at is None or at.tag in {"body", "html"}:
            break
        place = _landmark(at)
        if at.tag in _WITHIN:
            part = ""
        if place in _PARTS:
            part = part or place
        elif place and not part:
            return place
        at = at.parent
    return part


def _landmark(node: LexborNode) -> Place:
    given = node.attributes
    if (role := (given.get("role") or "").strip(ASCII_WHITESPACE).lower()) in _ROLES:
        return _ROLES[role]
    if node.tag in _TAGS:
        return _TAGS[node.tag]
    names = f"{given.get('id') or ''} {given.get('class') or ''}"[:1_000].lower().split()
    return next((_NAMES[name] for name in names if name in _NAMES), "")
