"""Names of one page: a folder and its index page, content negotiation, and the sort orders of one list.

The URLs only suggest that pages are the same: the pages must also have the same content and links
(`Facts.unordered`). For other spellings of an address, see `spellings`. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from crawler.parse.fingerprint import digest
from crawler.parse.late import late
from crawler.parse.url import Url, origin
from crawler.rules import spellings
from crawler.rules.traps import PARAMETERS, calendar_of

KNOWN_SORT_ORDER: Final = ""  # in place of the names of parameters that are known to be sort orders
_INDEX: Final = re.compile(r"(?:index|default)\.[^/]*", re.IGNORECASE)
_SEPARATORS: Final = late(r"[&;]")
_AUTOINDEX: Final = late(r"C=[NMSD][&;]O=[AD]")  # Apache mod_autoindex, nginx fancyindex


def stem(url: str) -> str:
    """The URL without query, index page and extensions: `/a/b.html.en` becomes `/a/b`."""
    folder, _, name = url.partition("?")[0].rpartition("/")
    return f"{folder}/" if _INDEX.fullmatch(name) else f"{folder}/{name.partition('.')[0] or name}"


def names_folder(url: str) -> bool:
    """Whether a URL without a query names a folder, or its index page."""
    name = url.rpartition("/")[2]
    return not name or _INDEX.fullmatch(name) is not None


def outside(url: Url, links: Iterable[Url]) -> Iterator[Url]:
    """The links of a page without those to its own URLs."""
    own = stem(url).rstrip("/")
    return (link for link in links if not link.startswith(own) or stem(link).rstrip("/") != own)


def unordered(url: Url, content: str | None, links: Iterable[Url]) -> str | None:
    """The fingerprint of content and links, without links to the page itself, in any order.

    `content`: that of the content; None: the page shows nothing, so that only its bytes tell what it is.
    """
    if content is None:
        return None
    led = outside(url, links)
    has_session = spellings.without_session(url) != url
    named = sorted(set(map(spellings.without_session, led)) if has_session else led)
    return digest("\n".join([content, *named]).encode())


def variant(url: Url, announced: Url | None) -> Url | None:
    """The Content-Location (RFC 9110 8.7), if it is another URL of the same page.

    Some servers send one location for all pages; that is ignored.
    """
    if announced is None or announced == url or origin(announced) != origin(url):
        return None
    return announced if stem(announced) == stem(url) else None


def unsorted(url: str) -> list[tuple[str, str]]:
    """The pages that a URL may be a sort order of, shortest first, each with the parameters removed for it.

    Sort parameters are adjacent: all parameters, each single one, and each adjacent pair are removed in turn.
    A day of a calendar is not a sort order.
    """
    path, mark, query = url.partition("?")
    if not mark or len(_SEPARATORS.findall(query)) >= PARAMETERS or calendar_of(url) is not None:
        return []
    ends = [0, *(found.end() for found in _SEPARATORS.finditer(query)), len(query) + 1]
    spans = {
        (ends[at], ends[min(at + width, len(ends) - 1)]) for at in range(len(ends) - 1) for width in (1, 2)
    }
    bases: dict[str, str] = {}
    for start, end in sorted({(0, len(query) + 1), *spans}):
        left = query[:start] + query[end:] if end <= len(query) else query[: max(0, start - 1)]
        bases.setdefault(f"{path}?{left}" if left else path, _names(query[start:end].rstrip("&;")))
    return sorted(bases.items(), key=lambda base: (len(base[0]), base[0]))


def _names(part: str) -> str:
    if _AUTOINDEX.fullmatch(part):
        return KNOWN_SORT_ORDER
    return "&".join(pair.partition("=")[0] for pair in _SEPARATORS.split(part))
