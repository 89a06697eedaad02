"""Extracts links, directives, dates and fingerprints from HTML, parsed as in the HTML Standard (by Lexbor).

Links and directives are collected in `html_elements`; what they mean is decided by `judge`. Pure.
"""

from bisect import bisect_right
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from crawler.parse import anchors as page_anchors
from crawler.parse import date_modified, echo, encoding, risk, shadow, versions
from crawler.parse import files as loaded_files
from crawler.parse import fingerprint as content
from crawler.parse import images as shown_images
from crawler.parse import url as urls
from crawler.parse.extract import Extract
from crawler.parse.fingerprint import MOST_BLOCKS
from crawler.parse.html_elements import SMALL_PAGE, Collector
from crawler.parse.parsed_page import MAX_LINKS, ParsedPage

LONGEST_TITLE: Final = 200  # characters that are kept of a title
LONGEST_TITLE_READ: Final = 10_000  # and that are looked at
LIKE_ASCII: Final = frozenset({"utf-8", "windows-1252"})  # encodings
SHOWN: Final = frozenset({Extract.IMAGES, Extract.FILES, Extract.ANCHORS, Extract.PICTURES})
# Tags of one page that are read, and attributes with a value: each takes 150 to 250 bytes of the tree.
MAX_ELEMENTS: Final = 300_000
MAX_ATTRIBUTES: Final = 600_000
OTHER_MEDIA: Final = 4  # beside pictures, that a page may have
FEW_LINKS: Final = 30  # up to here a page may be a login form or need scripts

_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160)))


class PageSource(Struct, frozen=True):
    """A page to be parsed, and what to extract.

    `charset`: of Content-Type. `ignored`: CSS selector of elements that are no content. `known`: the
    fingerprint of the last run; empty if there is none. `part`: of the URL, which its page may repeat.
    `most_blocks`: up to which they are also wanted with what repeats the URL.
    """

    body: bytes
    url: str
    charset: str | None = None
    wanted: frozenset[Extract] = frozenset()
    max_links: int = MAX_LINKS
    ignored: str = ""
    known: str = ""
    part: str = ""
    most_blocks: int = MOST_BLOCKS

    def read(self) -> ParsedPage:
        """Parses the page. Never raises."""
        return extract(self)

    @property
    def is_risky(self) -> bool:
        """Whether parsing may take so long that it should happen in the sandbox."""
        return risk.is_risky(self.body)

    @property
    def is_long(self) -> bool:
        """Whether reading it takes so long that it should happen in a thread."""
        return len(self.body) > risk.SHORT_BYTES


def is_selector(text: str) -> bool:
    """Whether a text is a CSS selector that the parser knows."""
    try:
        LexborHTMLParser("").css(text)
    except (SelectolaxError, ValueError):
        return False
    return True


class _Document(NamedTuple):
    tree: LexborHTMLParser
    encoding: str
    body: bytes  # as far as it was parsed
    truncated: bool = False

    @property
    def is_like_ascii(self) -> bool:
        """Whether ASCII words of the page are in its bytes as they are."""
        return self.encoding in LIKE_ASCII


def extract(source: PageSource) -> ParsedPage:
    """Parses a page. Never raises."""
    wanted, document = source.wanted, _parse(source)
    page, has_few_links = _linked(document, source)
    measured = page.password or (
        page.scripted
        and (Extract.SCRIPTS in wanted or (has_few_links and not _links_to_another_page(page, source.url)))
    )
    fingerprinted, in_blocks = Extract.FINGERPRINT in wanted, Extract.BLOCKS in wanted
    if fingerprinted and Extract.SPARING in wanted:
        fingerprinted = versions.leads_to_queries(page, source.url)
    if not (fingerprinted or measured or in_blocks):
        return page
    visible, varying = _texts(document, page, source, measured=measured, fingerprinted=fingerprinted)
    del document  # the tree takes ten times the memory of the page
    if measured:
        page = page._replace(length=visible.length)
    if in_blocks:
        page = _with_blocks(page, visible, source)
    return versions.versioned(page, visible, varying, source) if fingerprinted else page


def _linked(document: _Document, source: PageSource) -> tuple[ParsedPage, bool]:
    """What a page has beside its text, and whether it has few links."""
    tree, wanted = document.tree, source.wanted
    found = Collector(
        source.url,
        document.encoding,
        source.max_links,
        truncated=document.truncated,
        versioned=Extract.VERSIONS in wanted,
    )
    found.take(tree, is_small=len(document.body) <= SMALL_PAGE)
    dates = tuple(date_modified.dates(found.stating)) if Extract.DATES in wanted else ()
    page, has_few_links = found.page(dates, _title(tree)), len(found.links) <= FEW_LINKS
    if not SHOWN.isdisjoint(wanted):
        page = _with_shown(page, document, wanted)
    if has_few_links and _asks_password(tree):
        page = page._replace(password=True)
    return page, has_few_links


def _texts(
    document: _Document, page: ParsedPage, source: PageSource, *, measured: bool, fingerprinted: bool
) -> tuple[content.VisibleText, content.VisibleText]:
    """The visible text, and the same without links to variations of the address, if it is to be compared."""
    tree, body = document.tree, document.body
    has_main, media = True, content.MOST_MEDIA
    if document.is_like_ascii:
        # A page with more text than these pictures could outweigh is not searched for media.
        has_main, media = b"main" in body, body.count(b"<img") + OTHER_MEDIA
    if source.ignored:
        content.remove(tree.css(source.ignored))
    visible = content.visible_text(tree, may_have_main=has_main, measured=measured, media=media)
    if fingerprinted and (links := versions.links_that_vary(tree, page, source)):
        content.remove(links)
        return visible, content.visible_text(tree, may_have_main=has_main, media=media)
    return visible, visible


def _with_blocks(page: ParsedPage, visible: content.VisibleText, source: PageSource) -> ParsedPage:
    """The page with what it says, with and without what repeats the URL."""
    folded, url = content.fold(visible), source.url
    said = [content.said(folded, echo.Echo(url, part=source.part))]
    if len(said[0].blocks) <= source.most_blocks:
        said += [content.said(folded, None), content.said(folded, echo.Echo(url, name=True))]
    return page._replace(said=tuple(said))


def _with_shown(page: ParsedPage, document: _Document, wanted: frozenset[Extract]) -> ParsedPage:
    """The page with its images, files, and what is said of them and of links, as far as wanted."""
    tree, name = document.tree, document.encoding
    if Extract.IMAGES in wanted:
        page = page._replace(images=encoding.spell_queries(shown_images.images(tree), name))
    if Extract.FILES in wanted:
        found = loaded_files.files(tree)
        page = page._replace(files=tuple((kind, encoding.spell_query(url, name)) for kind, url in found))
    if Extract.ANCHORS in wanted:
        page = page._replace(anchors=page_anchors.anchors(tree, name))
    elif Extract.PICTURES in wanted:
        page = page._replace(anchors=page_anchors.pictures(tree, name))
    return page


def _title(tree: LexborHTMLParser) -> str | None:
    """The title in the head, which is its child; those of SVG stand in the body."""
    node = tree.head.child if tree.head else None
    while node is not None and node.tag != "title":
        node = node.next
    return shown_title(node.text()) if node else None


def shown_title(title: str) -> str | None:
    """A title in one line, cut, without control characters and lone surrogates. None: empty."""
    folded = " ".join(title[:LONGEST_TITLE_READ].split())
    if not folded.isprintable():
        folded = folded.translate(_CONTROLS).encode("utf-8", "replace").decode()
    return folded[:LONGEST_TITLE].strip() or None


def _links_to_another_page(page: ParsedPage, url: str) -> bool:
    """Whether the page links to another page on its own host, as far as that shows without resolving the
    link.

    Such a page shows something without its scripts, so that nobody asks how much text it has.
    """
    name = url.partition("?")[0].rpartition("/")[2]
    return page.base == url and any(
        urls.is_plain_path(href) and href.rpartition("/")[2] != name
        for href in (*page.followed, *page.avoided)
    )


def _asks_password(tree: LexborHTMLParser) -> bool:
    return any((node.attributes.get("type") or "").lower() == "password" for node in tree.tags("input"))


def _cut(body: bytes) -> tuple[bytes, bool]:
    """The page up to the most tags and attributes, and whether there are more."""
    kept = len(body)
    for mark, most in ((b"<", MAX_ELEMENTS), (b"=", MAX_ATTRIBUTES)):
        if kept > most and (count := partial(body.count, mark, 0))(kept) > most:
            kept = bisect_right(range(kept), most, key=count) - 1
    return (body, False) if kept == len(body) else (body[:kept], True)


def _parse(source: PageSource) -> _Document:
    """The document in its encoding. A meta element after the prescan overrides a guess (13.2.3.5)."""
    body, truncated = _cut(shadow.opened(source.body))
    sniffed = encoding.sniff(body, source.charset)
    tree, name = tree_of(body, sniffed.name), sniffed.name
    later = None if sniffed.certain else _declared_later(tree)
    if later and later != name:
        tree, name = (tree if body.isascii() else tree_of(body, later)), later
    return _Document(tree, name, body, truncated)


def tree_of(body: bytes, name: str) -> LexborHTMLParser:
    """The tree of a page in the encoding `name`."""
    # The parser would encode a str again; bytes that are already UTF-8 are passed unchanged.
    plain = name == "utf-8" and not body.startswith(b"\xef\xbb\xbf")
    source: bytes | str = body if plain else encoding.decode(body, name)
    return LexborHTMLParser(source, options=LexborDocumentOptions.WO_EVENTS)


def _declared_later(tree: LexborHTMLParser) -> str | None:
    for node in tree.css("meta[charset],meta[http-equiv][content]"):
        given = node.attributes
        pragma = (given.get("http-equiv") or "").lower() == "content-type"
        if found := encoding.declared(given.get("charset"), given.get("content") if pragma else None):
            return found
    return None
