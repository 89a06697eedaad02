"""Extracts links, directives, dates and fingerprints from HTML, parsed as in the HTML Standard (by Lexbor).

Links come from a, area, iframe and frame, and from link elements with alternate, next or prev; also inside
noscript. Not from comments, scripts, templates or forms. Images are read in `images`. What links mean is
decided by `judge`. Pure.
"""

from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from crawler.parse import anchors as page_anchors
from crawler.parse import date_modified, echo, encoding, risk, versions
from crawler.parse import files as loaded_files
from crawler.parse import fingerprint as content
from crawler.parse import images as shown_images
from crawler.parse import url as urls
from crawler.parse.extract import Extract
from crawler.parse.fingerprint import MOST_BLOCKS, MOST_PIECES
from crawler.parse.refresh import ASCII_WHITESPACE, parse_refresh

MAX_LINKS: Final = 50_000  # distinct links of one page
LONGEST_TITLE: Final = 200  # characters that are kept of a title
LONGEST_TITLE_READ: Final = 10_000  # and that are looked at
MAX_CANONICALS: Final = 10  # two different ones are already ignored
MAX_ALTERNATES: Final = 500  # language versions
MAX_IN_HEAD: Final = 500  # links of link elements that are told from others
LONGEST_LANGUAGE: Final = 40  # characters of their codes
# Elements of interest beside `a`: on a page up to SMALL_PAGE bytes, a walk for each name takes half of what a
# CSS selector for all takes, on a large one twice as much.
NAMES: Final = ("link", "meta", "script", "base", "area", "frame", "iframe", "time")
SMALL_PAGE: Final = 16_000
LIKE_ASCII: Final = frozenset({"utf-8", "windows-1252"})  # ASCII words of a page are in its bytes as they are
LINKING: Final = frozenset({"alternate", "next", "prev", "previous"})
SHOWN: Final = frozenset({Extract.IMAGES, Extract.FILES, Extract.ANCHORS, Extract.PICTURES})
MAX_ELEMENTS: Final = 300_000  # tags of one page that are read
OTHER_MEDIA: Final = 4  # beside pictures, that a page may have
FEW_LINKS: Final = 30  # up to here a page may be a login form or need scripts

_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160)))
_HTML_WITHIN: Final = frozenset({"foreignObject", "desc", "title", "annotation-xml"})  # of SVG and MathML

Fingerprint = Annotated[str, Meta(max_length=200)]
Blocks = Annotated[tuple[int, ...], Meta(max_length=MOST_BLOCKS)]


class ParsedPage(NamedTuple):
    """What a page contains, as written. Hrefs have no surrounding whitespace and no fragment.

    The types of the fields bound what the process that parses risky pages may send.
    """

    base: str  # document base URL
    followed: Annotated[tuple[str, ...], Meta(max_length=MAX_LINKS)] = ()
    # Linked only with nofollow, but for link elements.
    avoided: Annotated[tuple[str, ...], Meta(max_length=MAX_LINKS)] = ()
    # Those of `followed` that only link elements name, which nobody can click; but with nofollow.
    in_head: Annotated[tuple[str, ...], Meta(max_length=MAX_IN_HEAD)] = ()
    canonicals: Annotated[tuple[str, ...], Meta(max_length=MAX_CANONICALS)] = ()
    robots: tuple[tuple[str, str], ...] = ()  # name in lower case, and content, of meta elements
    refresh: tuple[float, str] | None = None  # seconds, and the URL
    encoding: str = "utf-8"
    truncated: bool = False  # there were more links or tags than are read
    dates: tuple[str, ...] = ()  # modification dates that the page states
    content: Fingerprint | None = None  # if requested
    # Of a page whose content is without what repeats the URL: the same with it, but for links to variations.
    echoing: Fingerprint | None = None
    unordered: Fingerprint | None = None  # ignores the order of the pieces of text
    # Digest of the names of its script files; None: it runs no scripts.
    scripts: Annotated[str, Meta(max_length=40)] | None = None
    password: bool = False  # it has a password field
    # Characters of text, if it may be a login form, or what its scripts do is asked for.
    length: int | None = None
    title: str | None = None  # white space folded, and cut
    # Digests of the pieces of text, if the content is not what was known, or on request.
    pieces: Annotated[tuple[int, ...], Meta(max_length=MOST_PIECES)] = ()
    blocks: Blocks = ()  # without what repeats the URL, if requested
    # The same with what repeats the URL, and without its name only, of a page with few.
    echoed: Annotated[tuple[Blocks, ...], Meta(max_length=2)] = ()
    # hreflang and href of language versions, if requested
    alternates: Annotated[tuple[tuple[str, str], ...], Meta(max_length=MAX_ALTERNATES)] = ()
    images: Annotated[tuple[str, ...], Meta(max_length=shown_images.MOST_IMAGES)] = ()  # if requested
    # Kind and URL of the scripts and style sheets that it loads, if requested
    files: Annotated[tuple[tuple[str, str], ...], Meta(max_length=loaded_files.MOST_FILES)] = ()
    anchors: page_anchors.Anchors = ()  # if requested

    @property
    def scripted(self) -> bool:
        return self.scripts is not None


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


def extract(source: PageSource) -> ParsedPage:
    """Parses a page. Never raises."""
    url, wanted = source.url, source.wanted
    shown, cut = _cut(source.body)
    tree, name = _parse(shown, source.charset)
    reading = _Reading(url, name, source.max_links, truncated=cut, versioned=Extract.VERSIONS in wanted)
    reading.take(tree, is_small=len(shown) <= SMALL_PAGE)
    dates = tuple(date_modified.dates(reading.stating)) if Extract.DATES in wanted else ()
    page = reading.page(dates, _title(tree))
    if not SHOWN.isdisjoint(wanted):
        page = _with_shown(page, tree, name, wanted)
    alone = len(reading.links) <= FEW_LINKS
    password = alone and _asks_password(tree, shown, name)
    measured = page.scripted and Extract.SCRIPTS in wanted
    measured |= alone and (password or (page.scripted and not _links_to_another_page(page, url)))
    fingerprinted, in_blocks = Extract.FINGERPRINT in wanted, Extract.BLOCKS in wanted
    if fingerprinted and Extract.SPARING in wanted:
        fingerprinted = versions.leads_to_queries(page, url)
    visible = varying = None
    if fingerprinted or measured or in_blocks:
        has_main = name not in LIKE_ASCII or shown.find(b"main") >= 0
        # A page with more text than these pictures could outweigh is not searched for media.
        media = shown.count(b"<img") + OTHER_MEDIA if name in LIKE_ASCII else content.MOST_MEDIA
        if source.ignored:
            content.remove(tree.css(source.ignored))
        visible = varying = content.visible_text(tree, may_have_main=has_main, measured=measured, media=media)
        is_echoless = fingerprinted and not wanted.isdisjoint(versions.WITHOUT_ECHO)
        if is_echoless and (links := versions.links_that_vary(tree, page, source)):
            content.remove(links)
            varying = content.visible_text(tree, may_have_main=has_main, media=media)
    del tree, reading  # the tree takes ten times the memory of the page
    if visible and measured:
        page = page._replace(password=password, length=visible.length)
    if visible and in_blocks:
        page = _with_blocks(page, visible, source)
    if visible and varying and fingerprinted:
        page = versions.versioned(page, visible, varying, source)
    return page


def _with_blocks(page: ParsedPage, visible: content.VisibleText, source: PageSource) -> ParsedPage:
    """The page with its pieces of text, with and without what repeats the URL."""
    folded, url = content.fold(visible), source.url
    blocks = content.blocks(folded, echo.Echo(url, part=source.part))
    if len(blocks) > source.most_blocks:
        return page._replace(blocks=blocks)
    echoed = tuple(content.blocks(folded, way) for way in (None, echo.Echo(url, name=True)))
    return page._replace(blocks=blocks, echoed=echoed)


def _with_shown(
    page: ParsedPage, tree: LexborHTMLParser, name: str, wanted: frozenset[Extract]
) -> ParsedPage:
    """The page with its images, files, and what is said of them and of links, as far as wanted."""
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


def _asks_password(tree: LexborHTMLParser, body: bytes, name: str) -> bool:
    if name in LIKE_ASCII and b"assword" not in body and b"ASSWORD" not in body:
        return False
    return any((node.attributes.get("type") or "").lower() == "password" for node in tree.css("input[type]"))


def _cut(body: bytes) -> tuple[bytes, bool]:
    """The first MAX_ELEMENTS tags, and whether there are more: a tree takes a hundred times the bytes."""
    if len(body) <= MAX_ELEMENTS or body.count(b"<") <= MAX_ELEMENTS:
        return body, False
    rest = body.split(b"<", MAX_ELEMENTS + 1)[-1]
    return body[: len(body) - len(rest) - 1], True


def _parse(body: bytes, charset: str | None) -> tuple[LexborHTMLParser, str]:
    """The tree, and the encoding. A meta element after the prescan overrides a guess (13.2.3.5)."""
    sniffed = encoding.sniff(body, charset)
    tree = tree_of(body, sniffed.name)
    if sniffed.certain:
        return tree, sniffed.name
    later = _declared_later(tree)
    if later is None or later == sniffed.name:
        return tree, sniffed.name
    return (tree if body.isascii() else tree_of(body, later)), later


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


class _Reading(Struct, eq=False):
    """Collects from the elements: of each name in tree order."""

    url: str
    encoding: str
    max_links: int
    base: str | None = None
    links: dict[str, bool] = {}  # href -> nofollow
    in_head: dict[str, bool] = {}  # the same of link elements
    canonicals: dict[str, None] = {}
    robots: list[tuple[str, str]] = []
    refresh: tuple[float, str] | None = None
    truncated: bool = False
    scripts: set[str] | None = None
    versioned: bool = False
    alternates: dict[tuple[str, str], None] = {}
    stating: list[LexborNode] = []

    def take(self, tree: LexborHTMLParser, *, is_small: bool) -> None:
        """Reads `a` elements and those of NAMES, with a shortcut for the most frequent: links without rel."""
        links, most, nodes = self.links, self.max_links, tree.tags("a")
        are_many = len(nodes) > most
        for node in nodes:
            given = node.attributes
            href = given.get("href")
            if "rel" in given or not href or (are_many and len(links) >= most):
                self._link(given.get("href"), given.get("rel"), may_be_empty="href" in given)
            else:
                links[href.strip(ASCII_WHITESPACE).partition("#")[0]] = False
        if is_small:
            others = [(name, node) for name in NAMES for node in tree.tags(name)]
        else:
            every = [(node.tag or "", node) for node in tree.css(",".join(NAMES))]
            others = sorted(every, key=lambda one: NAMES.index(one[0]))
        for name, node in others:
            self._take(node, name, node.attributes)
        self._add_base()

    def _add_base(self) -> None:
        """Links without a path, such as `#part`, lead to the base, which may be another page (HTML 2.4.1)."""
        nofollow = self.links.pop("", None)
        base = (self.base or self.url).partition("#")[0]
        if nofollow is not None and base != self.url:
            self._link(base, "nofollow" if nofollow else None)

    def _take(self, node: LexborNode, tag: str, given: dict[str, str | None]) -> None:
        match tag:
            case "area":
                self._link(given.get("href"), given.get("rel"), may_be_empty="href" in given)
            case "frame" | "iframe":
                self._link(given.get("src"), None)
            case "time":
                self._stating(node, tag, given)
            case "script":
                self._script(given)
                self._stating(node, tag, given)
            case "link":
                self._relation(node, (given.get("rel") or "").lower().split(), given.get("href"))
                if self.versioned and "hreflang" in given:
                    self._version(given)
            case "base":
                if self.base is None and "href" in given and not _is_in_svg_or_math(node):
                    self.base = _base(given.get("href"), self.url)
            case "meta":
                self._meta(node, given)
                self._stating(node, tag, given)

    def _script(self, given: dict[str, str | None]) -> None:
        if loaded_files.runs(given.get("type")):
            self.scripts = self.scripts or set()
            self.scripts.add((given.get("src") or "").partition("?")[0])

    def _stating(self, node: LexborNode, tag: str, given: dict[str, str | None]) -> None:
        if date_modified.is_stating(tag, given):
            self.stating.append(node)

    def _link(self, href: str | None, rel: str | None, *, may_be_empty: bool = False) -> None:
        text = (href or "").strip(ASCII_WHITESPACE).partition("#")[0]
        if not text and not may_be_empty:
            return
        self._add(self.links, text, nofollow=rel is not None and "nofollow" in rel.lower().split())

    def _add(self, links: dict[str, bool], text: str, *, nofollow: bool) -> None:
        if text not in links and len(self.links) + len(self.in_head) >= self.max_links:
            self.truncated = True
            return
        links[text] = nofollow and links.get(text, True)

    def _relation(self, node: LexborNode, rels: list[str], href: str | None) -> None:
        if "canonical" in rels and href and len(self.canonicals) < MAX_CANONICALS and _is_in_head(node):
            self.canonicals[href.strip(ASCII_WHITESPACE)] = None
        text = (href or "").strip(ASCII_WHITESPACE).partition("#")[0]
        if text and not LINKING.isdisjoint(rels) and "stylesheet" not in rels:
            self._add(self.in_head, text, nofollow="nofollow" in rels)

    def _version(self, given: dict[str, str | None]) -> None:
        """A language version, wherever the element is: some parsers move the head into the body."""
        rels, href = (given.get("rel") or "").lower().split(), (given.get("href") or "")
        text = href.strip(ASCII_WHITESPACE).partition("#")[0]
        if (
            text
            and "alternate" in rels
            and "stylesheet" not in rels
            and len(self.alternates) < MAX_ALTERNATES
        ):
            code = (given.get("hreflang") or "").strip(ASCII_WHITESPACE)[:LONGEST_LANGUAGE]
            self.alternates[code, text] = None

    def _meta(self, node: LexborNode, given: dict[str, str | None]) -> None:
        name, content = given.get("name"), given.get("content") or ""
        if name:
            self.robots.append((name.strip(ASCII_WHITESPACE).lower(), content))
        pragma = (given.get("http-equiv") or "").lower()
        if pragma == "refresh" and self.refresh is None and not _is_in_noscript(node):
            self.refresh = parse_refresh(content)

    def page(self, dates: tuple[str, ...], title: str | None) -> ParsedPage:
        base = self.base or self.url
        links, head = self.links, self.in_head
        avoided = [href for href, nofollow in links.items() if nofollow] if True in links.values() else []
        followed = [href for href, nofollow in links.items() if not nofollow] if avoided else links
        in_head = [href for href, nofollow in head.items() if not nofollow and links.get(href, True)]
        avoided += [href for href, nofollow in head.items() if nofollow and href not in links]
        return ParsedPage(
            base,
            encoding.spell_queries([*followed, *in_head] if in_head else followed, self.encoding),
            encoding.spell_queries(avoided, self.encoding),
            encoding.spell_queries(in_head[:MAX_IN_HEAD], self.encoding),
            encoding.spell_queries(self.canonicals, self.encoding),
            tuple(self.robots),
            self.refresh,
            self.encoding,
            self.truncated,
            dates,
            scripts=None
            if self.scripts is None
            else content.digest("\n".join(sorted(self.scripts)).encode("utf-8", "replace")),
            title=title,
            alternates=tuple(
                (code, encoding.spell_query(href, self.encoding)) for code, href in self.alternates
            ),
        )


def _base(href: str | None, url: str) -> str | None:
    """The document base URL: the first base with an href counts, even if it is unusable (HTML 4.2.3)."""
    base = urls.join(url, (href or "").strip(ASCII_WHITESPACE))
    return url if base is None or base.startswith(("data:", "javascript:")) else base


def _is_in_head(node: LexborNode) -> bool:
    """Whether a link element is in the head, or in a noscript there: only there canonicals count."""
    parent = node.parent
    while parent is not None and parent.tag == "noscript":
        parent = parent.parent
    return parent is not None and parent.tag == "head"


def _is_in_svg_or_math(node: LexborNode) -> bool:
    """Whether an element belongs to SVG or MathML, and so is no HTML element. Looks at 50 ancestors."""
    parent = node.parent
    for _ in range(50):
        if parent is None or parent.tag in _HTML_WITHIN:
            return False
        if parent.tag in {"svg", "math"}:
            return True
        parent = parent.parent
    return False


def _is_in_noscript(node: LexborNode) -> bool:
    """Whether an element is in a noscript, where search engines ignore a refresh."""
    parent = node.parent
    while parent is not None and parent.tag != "noscript":
        parent = parent.parent
    return parent is not None
