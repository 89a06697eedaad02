"""HTML to links and directives: what a page names, as the HTML Standard's parser (Lexbor) sees it.

Links come from a, area, iframe and frame, and from link elements that say alternate, next or prev; also inside
noscript. Not from comments, scripts, templates, forms or images. What they mean is for `judge`. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawler.parse import date_modified, encoding
from crawler.parse import fingerprint as content
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.refresh import ASCII_WHITESPACE, parse_refresh
from crawler.parse.url import Url

MAX_LINKS: Final = 50_000  # different ones of one page
MAX_LINK_BYTES: Final = 4_000_000  # of the URLs that they lead to: a long base makes one of each short link
MAX_CANONICALS: Final = 10  # two that differ are no answer already
LONGEST_BASE: Final = (
    8_192  # characters, as of a URL that is asked for: what is relative to a longer one is longer
)
# All that is looked at, in one query: links, directives, dates, and what the fingerprint leaves out. Each name costs
# time at each element, so those that most pages consist of are told to go first.
PLAIN: Final = "div,span,code,p,td,li,tr,dd,dt"
WANTED: Final = ":not({}):is({})".format(
    PLAIN,
    ",".join(
        [
            "a[href]",
            "area[href]",
            "link[rel][href]",
            "base[href]",
            "meta",
            "frame[src]",
            "time",
            "main",
            *sorted(content.SILENT | content.AROUND),
        ]
    ),
)
WANTED_OR_MAIN: Final = f":is({WANTED},{content.ROLE_MAIN})"
LIKE_ASCII: Final = frozenset({"utf-8", "windows-1252"})  # a word is on the page only if it is in the bytes
PASSED: Final = (content.SILENT | content.AROUND) - {"script", "iframe"}  # they say nothing themselves
LINKING: Final = frozenset({"alternate", "next", "prev", "previous"})
MAX_ELEMENTS: Final = 300_000  # tags of one page that are looked at
# Lexbor is quadratic in depth and in attributes, and cubic in formatting elements that are nested wrongly. What stays
# below all of these takes it 100 ms at worst, whatever stands there; most pages do.
PLAIN_BYTES: Final = 65_536
PLAIN_TAGS: Final = 5_000
FEW_TAGS: Final = 1_000  # elements that are nested wrongly cannot hurt
PLAIN_FORMATTED: Final = 800  # formatting elements that differ from each other
FEW_COMPARED: Final = (
    100  # elements whose attributes are worth a closer look: to read a page apart takes less time
)
PLAIN_COMPARED: Final = 5_000  # attributes that are compared with those of other elements, each with each

FEW_LINKS: Final = 30  # of a page that may be all there is to see of a site

_HTML_WITHIN: Final = frozenset({"foreignObject", "desc", "title", "annotation-xml"})  # of SVG and MathML
# With attributes: of those without, the standard keeps three (13.2.4.3). Spelled out, as most tags are none of these.
_FORMATTED: Final = re.compile(
    rb"<(?:[bisuBISU]|(?=[bcefnstBCEFNST])(?i:big|code|em|font|nobr|small|strike|strong|tt))[\t\n\x0c\r /]"
)
# Elements whose attributes are compared with those of others: formatting elements (13.2.4.3), html and body (13.2.6.4.7).
_COMPARED: Final = re.compile(
    rb"<(?:[bisuBISU]|(?=[bcefhnstBCEFHNST])(?i:big|body|code|em|font|html|nobr|small|strike|strong|tt))(?=[\t\n\x0c\r /])"
)
# A start tag that every parser reads the same way. One that is odd may be longer than it looks.
_SIMPLE_TAG: Final = re.compile(
    rb"<[A-Za-z]++(?:[\t\n\x0c\r /]++[A-Za-z_:@*-][\w:.@*-]*+(?:=(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\t\n\x0c\r \"'<>=`]++))?+)*+"
    rb"[\t\n\x0c\r /]*+>"
)
ODD: Final = PLAIN_COMPARED + 1  # attributes that such a one may have
_BETWEEN: Final = b"\t\n\x0c\r /\"'"  # where an attribute may begin


class Page(NamedTuple):
    """What a page says, as it is written there. Hrefs have no blanks around them and no fragment."""

    base: str  # what relative links are relative to
    followed: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()  # linked with nofollow only
    canonicals: tuple[str, ...] = ()
    robots: tuple[tuple[str, str], ...] = ()  # name in lower case, and content, of meta elements
    refresh: tuple[float, str] | None = None  # seconds, and the URL
    encoding: str = "utf-8"
    truncated: bool = False  # there were more links than are looked at
    dates: tuple[str, ...] = ()  # of modification, that the page states
    content: str | None = None  # fingerprint, if it was asked for
    unordered: str | None = None  # the same, whatever the order of what it says
    scripted: bool = False  # it runs scripts
    password: bool = False  # it asks for a password
    length: int | None = (
        None  # characters of text; of pages with few links only, if one of the two above holds
    )


@dataclass(frozen=True, slots=True)
class PageSource:
    """A page that is to be read, and how."""

    body: bytes
    url: str
    charset: str | None = None  # of Content-Type
    dated: bool = False  # look for the dates that it states
    printed: bool = False  # take the fingerprint of its content
    dateless: bool = False  # whatever the numbers and months in it

    def read(self) -> Page:
        """What it says."""
        return extract(
            self.body,
            self.url,
            charset=self.charset,
            dated=self.dated,
            printed=self.printed,
            dateless=self.dateless,
        )

    @property
    def is_risky(self) -> bool:
        """Whether the parser may take longer over it than others should wait."""
        if len(self.body) > PLAIN_BYTES:
            return True
        tags = self.body.count(b"<")
        if tags > PLAIN_TAGS or _compares_much(self.body):
            return True
        return tags > FEW_TAGS and len(_FORMATTED.findall(self.body)) > PLAIN_FORMATTED


def _compares_much(body: bytes) -> bool:
    """Whether elements that are compared with each other may have many attributes: the work is the square of these."""
    if _places(body) <= PLAIN_COMPARED:
        return False
    tags = [
        _SIMPLE_TAG.match(body, begun.start()) for begun in islice(_COMPARED.finditer(body), FEW_COMPARED)
    ]
    return len(tags) == FEW_COMPARED or sum(_places(tag[0]) if tag else ODD for tag in tags) > PLAIN_COMPARED


def _places(text: bytes) -> int:
    """Where an attribute may begin: at least as many as there are."""
    return len(text) - len(text.translate(None, _BETWEEN))


def extract(
    body: bytes,
    url: str,
    *,
    charset: str | None = None,
    max_links: int = MAX_LINKS,
    dated: bool = False,
    printed: bool = False,
    dateless: bool = False,
) -> Page:
    """Read a page found at `url`. `charset` is that of Content-Type. Never raises on any bytes.

    `dated` looks for the dates that the page states, `printed` takes the fingerprint of its content, the same for
    all numbers and months if `dateless`.
    """
    shown, cut = _cut(body)
    tree, name = _parse(shown, charset)
    reading = _Reading(url, name, max_links, truncated=cut)
    reading.take(tree.css(WANTED_OR_MAIN if b"main" in shown or name not in LIKE_ASCII else WANTED))
    page = reading.page(tuple(date_modified.dates(reading.stating)) if dated else ())
    alone = len(reading.links) <= FEW_LINKS
    password = alone and _asks_password(tree, shown, name)
    measured = alone and (reading.scripted or password)
    said = content.said(tree, reading.leaving, measured=measured) if printed or measured else None
    del tree, reading  # it takes ten times the memory of the page
    if said and measured:
        page = page._replace(password=password, length=said.length)
    return _printed(page, said, shown, url, dateless=dateless) if said and printed else page


def _printed(page: Page, said: content.Said, body: bytes, url: str, *, dateless: bool) -> Page:
    """The page with its fingerprints. Only one that leads to queries can be a list with several sort orders."""
    ordered = content.fingerprint(said, dateless=dateless)
    if not said.text:
        unordered = content.digest(body)
    elif "?" in url or any("?" in href for href in (*page.followed, *page.avoided)):
        unordered = content.unordered(said)
    else:
        unordered = content.fingerprint(said) if dateless else ordered
    return page._replace(content=ordered, unordered=unordered)


def _asks_password(tree: LexborHTMLParser, body: bytes, name: str) -> bool:
    if name in LIKE_ASCII and b"assword" not in body and b"ASSWORD" not in body:
        return False
    return any((node.attributes.get("type") or "").lower() == "password" for node in tree.css("input[type]"))


def _runs(given: dict[str, str | None]) -> bool:
    """Whether a script element holds a script, and no data (HTML 4.12.1)."""
    kind = (given.get("type") or "").strip(ASCII_WHITESPACE).lower()
    return kind in {"", "module"} or kind.endswith(("javascript", "ecmascript"))


def _cut(body: bytes) -> tuple[bytes, bool]:
    """As many tags as are looked at, and whether there are more: a tree takes a hundred times the bytes of a tag."""
    if len(body) <= MAX_ELEMENTS or body.count(b"<") <= MAX_ELEMENTS:
        return body, False
    rest = body.split(b"<", MAX_ELEMENTS + 1)[-1]
    return body[: len(body) - len(rest) - 1], True


def _parse(body: bytes, charset: str | None) -> tuple[LexborHTMLParser, str]:
    """The tree, and the encoding. A meta element past the first bytes changes a mere guess (13.2.3.5)."""
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
    # Our text is encoded again by the parser; bytes that are UTF-8 already go in as they are.
    plain = name == "utf-8" and not body.startswith(b"\xef\xbb\xbf")
    source: bytes | str = body if plain else encoding.decode(body, name)
    return LexborHTMLParser(source, options=LexborDocumentOptions.WO_EVENTS)


def _declared_later(tree: LexborHTMLParser) -> str | None:
    for node in tree.css("meta[charset],meta[http-equiv][content]"):
        given = node.attributes
        pragma = (given.get("http-equiv") or "").lower() == "content-type"
        found = encoding.declared(given.get("charset"), given.get("content") if pragma else None)
        if found:
            return found
    return None


@dataclass(slots=True)
class _Reading:
    """What was seen so far, element by element in tree order."""

    url: str
    encoding: str
    max_links: int
    base: str | None = None
    links: dict[str, bool] = field(default_factory=dict)  # href -> nofollow
    canonicals: dict[str, None] = field(default_factory=dict)
    robots: list[tuple[str, str]] = field(default_factory=list)
    refresh: tuple[float, str] | None = None
    truncated: bool = False
    scripted: bool = False
    stating: list[LexborNode] = field(default_factory=list)
    leaving: list[LexborNode] = field(default_factory=list)

    def take(self, nodes: Sequence[LexborNode]) -> None:
        """Look at elements in tree order. Most are links, and most of these say nothing but where they lead."""
        links, room = self.links, self.max_links
        for node in nodes:
            tag = node.tag or ""
            if tag in PASSED:
                self.leaving.append(node)
                continue
            given = node.attributes
            href = given.get("href")
            if tag != "a" or "rel" in given or not href or len(links) >= room:
                self._take(node, tag, given)
            elif text := href.strip(ASCII_WHITESPACE).partition("#")[0]:
                links[text] = False

    def _take(self, node: LexborNode, tag: str, given: dict[str, str | None]) -> None:
        match tag:
            case "a" | "area":
                self._link(given.get("href"), given.get("rel"))
            case "frame":
                self._link(given.get("src"), None)
            case "iframe":
                self._link(given.get("src"), None)
                self.leaving.append(node)
            case "time":
                self._stating(node, tag, given)
            case "script":
                self.scripted = self.scripted or _runs(given)
                self._stating(node, tag, given)
                self.leaving.append(node)
            case "link":
                self._relation(node, (given.get("rel") or "").lower().split(), given.get("href"))
            case "base":
                if self.base is None and not _is_drawn(node):
                    self.base = _base(given.get("href"), self.url)
            case "meta":
                self._meta(node, given)
                self._stating(node, tag, given)
            case _:
                self.leaving.append(node)

    def _stating(self, node: LexborNode, tag: str, given: dict[str, str | None]) -> None:
        if date_modified.is_stating(tag, given):
            self.stating.append(node)

    def _link(self, href: str | None, rel: str | None) -> None:
        text = (href or "").strip(ASCII_WHITESPACE).partition("#")[0]
        if not text:
            return
        nofollow = rel is not None and "nofollow" in rel.lower().split()
        if text not in self.links and len(self.links) >= self.max_links:
            self.truncated = True
            return
        self.links[text] = nofollow and self.links.get(text, True)

    def _relation(self, node: LexborNode, rels: list[str], href: str | None) -> None:
        if "canonical" in rels and href and len(self.canonicals) < MAX_CANONICALS and _is_in_head(node):
            self.canonicals[href.strip(ASCII_WHITESPACE)] = None
        if not LINKING.isdisjoint(rels) and "stylesheet" not in rels:
            self._link(href, " ".join(rels))

    def _meta(self, node: LexborNode, given: dict[str, str | None]) -> None:
        name, content = given.get("name"), given.get("content") or ""
        if name:
            self.robots.append((name.strip(ASCII_WHITESPACE).lower(), content))
        pragma = (given.get("http-equiv") or "").lower()
        if pragma == "refresh" and self.refresh is None and not _is_in_noscript(node):
            self.refresh = parse_refresh(content)

    def page(self, dates: tuple[str, ...]) -> Page:
        """All that was seen."""
        base = self.base or self.url
        followed = tuple(
            encoding.spell_query(href, self.encoding) for href, nofollow in self.links.items() if not nofollow
        )
        avoided = tuple(
            encoding.spell_query(href, self.encoding) for href, nofollow in self.links.items() if nofollow
        )
        return Page(
            base,
            followed,
            avoided,
            tuple(encoding.spell_query(href, self.encoding) for href in self.canonicals),
            tuple(self.robots),
            self.refresh,
            self.encoding,
            self.truncated,
            dates,
            scripted=self.scripted,
        )


def _base(href: str | None, url: str) -> str | None:
    """The document base URL: the first base with an href counts, even if it turns out useless (HTML 4.2.3)."""
    base = urls.join(url, (href or "").strip(ASCII_WHITESPACE))
    return url if base is None or base.startswith(("data:", "javascript:")) else base


def _is_in_head(node: LexborNode) -> bool:
    """Search engines take a canonical from the head only. A noscript in the head does not end it."""
    parent = node.parent
    while parent is not None and parent.tag == "noscript":
        parent = parent.parent
    return parent is not None and parent.tag == "head"


def _is_drawn(node: LexborNode) -> bool:
    """Within SVG or MathML an element is another one, whatever its name. Nobody nests deeper than is looked."""
    parent = node.parent
    for _ in range(50):
        if parent is None or parent.tag in _HTML_WITHIN:
            return False
        if parent.tag in {"svg", "math"}:
            return True
        parent = parent.parent
    return False


def _is_in_noscript(node: LexborNode) -> bool:
    """What sends away those without scripts does not send a search engine away."""
    parent = node.parent
    while parent is not None:
        if parent.tag == "noscript":
            return True
        parent = parent.parent
    return False


class Resolved(NamedTuple):
    """The http(s) URLs that a page links to, each once."""

    followed: tuple[Url, ...]
    avoided: tuple[Url, ...]  # with nofollow only
    left: int  # bytes that further URLs may have; below zero: there were more


def resolve(page: Page, normalise: Normaliser, most: int = MAX_LINK_BYTES) -> Resolved:
    """Where the links of a page lead, up to `most` bytes of URLs, in their order."""
    base = page.base if len(page.base) <= LONGEST_BASE else ""
    followed, left = within(normalise.all(page.followed, base), most)
    avoided, left = within(normalise.all(page.avoided, base), left, known=followed)
    return Resolved(tuple(followed), tuple(avoided), -1 if page.followed and not base else left)


def within(
    found: Iterable[Url], most: int, known: Mapping[Url, None] | None = None
) -> tuple[dict[Url, None], int]:
    """Each of the URLs once, without those `known`, up to `most` bytes; and how many are left, or a number below zero."""
    taken: dict[Url, None] = {}
    for url in found:
        if url in taken or (known and url in known):
            continue
        most -= len(url)
        if most < 0:
            break
        taken[url] = None
    return taken, most
