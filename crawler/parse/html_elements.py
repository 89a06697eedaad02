"""Collects what the elements of a page say: links, canonicals, directives, scripts and where dates stand.

Links come from a, area, iframe and frame, and from link elements with alternate, next or prev; also inside
noscript. Not from comments, scripts, templates or forms. Pure.
"""

from typing import Final

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.parse import date_modified, encoding
from crawler.parse import files as loaded_files
from crawler.parse import fingerprint as content
from crawler.parse import url as urls
from crawler.parse.parsed_page import MAX_ALTERNATES, MAX_CANONICALS, MAX_IN_HEAD, ParsedPage
from crawler.parse.refresh import ASCII_WHITESPACE, parse_refresh

LONGEST_LANGUAGE: Final = 40  # characters of their codes
# Elements of interest beside `a`: on a page up to SMALL_PAGE bytes, a walk for each name takes half of what a
# CSS selector for all takes, on a large one twice as much.
NAMES: Final = ("link", "meta", "script", "base", "area", "frame", "iframe", "time")
SMALL_PAGE: Final = 16_000
LINKING: Final = frozenset({"alternate", "next", "prev", "previous"})

_HTML_WITHIN: Final = frozenset({"foreignObject", "desc", "title", "annotation-xml"})  # of SVG and MathML


class Collector(Struct, eq=False):
    """What was found so far, of each name of elements in tree order."""

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
