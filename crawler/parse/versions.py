"""Which fingerprints a page has: of its content, with and without what repeats its address, and in any order.

`fingerprint` makes what is compared, `echo` finds what repeats an address, and `html` reads the page. Only a
page that is compared without what repeats its address also gets a fingerprint with it, by which the same page
is recognised at other addresses. Pure.
"""

import re
from typing import TYPE_CHECKING, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.parse import echo
from crawler.parse import fingerprint as content
from crawler.parse import url as urls
from crawler.parse.extract import Extract
from crawler.parse.late import late
from crawler.parse.refresh import ASCII_WHITESPACE

if TYPE_CHECKING:
    from crawler.parse.html import PageSource
    from crawler.parse.parsed_page import ParsedPage

WITHOUT_ECHO: Final = frozenset({Extract.ECHOLESS, Extract.VALUELESS})
MOST_ECHOES: Final = 2_000  # links of one page that are compared with its address

_HOST: Final = late(r"(?:https?:)?//(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)", re.IGNORECASE)


def versioned(
    page: "ParsedPage", visible: content.VisibleText, varying: content.VisibleText, source: "PageSource"
) -> "ParsedPage":
    """The page with its fingerprints. Only a page that links to queries can be a list with several sort
    orders; of a page that shows nothing, only the bytes tell what it is. `varying`: without the links to
    variations of its address.
    """
    folded = content.fold(varying)
    lasting = content.lasting(folded)
    ordered = plain = content.fingerprint(lasting)
    if varying is not visible:
        plain = content.fingerprint(content.lasting(content.fold(visible)))
    echoing: str | None = None
    unordered: str | None = plain
    if not (visible.text or visible.media):
        unordered = None
    elif leads_to_queries(page, source.url):
        unordered = content.unordered(visible)
    if Extract.VALUELESS in source.wanted:
        values = echo.Echo(source.url, values=True)
        ordered = content.fingerprint(content.without_echo(folded, values))
    elif Extract.ECHOLESS in source.wanted:
        is_calendar = Extract.CALENDAR in source.wanted
        # A page links to its own path with a query perhaps only where it has one.
        echoing = ordered if "?" in source.url else plain
        lasting = content.echoless(
            folded, echo.Echo(source.url, calendar=is_calendar, part=source.part), lasting
        )
        ordered = content.fingerprint(lasting)
        if unordered and content.is_in_order(unordered, plain) and not is_calendar:
            unordered = ordered
    is_other = source.known != ordered if source.known else Extract.PIECES in source.wanted
    pieces = content.pieces(lasting) if is_other else ()
    return page._replace(
        content=ordered,
        echoing=echoing if echoing != ordered else None,
        unordered=unordered,
        pieces=pieces,
    )


def links_that_vary(tree: LexborHTMLParser, page: "ParsedPage", source: "PageSource") -> list[LexborNode]:
    """Links to variations of the address of their page, whose text only spells it.

    Unless what else repeats the address is left out, these are links to the same path with a query, and then
    to the page itself: the page at such an address has them as well, and may be the same one.
    """
    leading = (*page.followed, *page.avoided)
    if not WITHOUT_ECHO.isdisjoint(source.wanted):
        beside = () if Extract.CALENDAR in source.wanted else echo.only_beside(source.url, source.body)
        found = echo.variations(source.url, leading, beside)
    else:
        at = source.url if "?" in source.url else f"{source.url}?…"
        found = echo.variations(at, [href for href in leading if "?" in href])
        found |= echo.variations(at, leading) if found else {}
    nodes = tree.css("a[href]")[:MOST_ECHOES] if found else []
    hrefs = ((node.attributes["href"] or "").strip(ASCII_WHITESPACE).partition("#")[0] for node in nodes)
    return [
        node
        for node, href in zip(nodes, hrefs, strict=True)
        if href in found and echo.only_spells(node.text(), found[href])
    ]


def leads_to_queries(page: "ParsedPage", url: str) -> bool:
    """Whether the page has a query or links to one on its own host: a list links to its sort orders."""
    queries = [href for href in (*page.followed, *page.avoided) if "?" in href]
    own = urls.host(url).removeprefix("www.") if queries else ""
    return "?" in url or any(_host_of(href, own) == own for href in queries)


def _host_of(href: str, own: str) -> str:
    """The host that a link names as it is written; `own` if it names none."""
    found = _HOST.match(href)
    return found[1].lower().removeprefix("www.") if found else own
