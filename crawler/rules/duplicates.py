"""Duplicates: one page under several names, of which one is listed.

Three kinds: a folder and its index page, names that content negotiation makes (`Content-Location`), and the sort orders
of one list. Names alone decide nothing: the pages must also say and link to the same (`Facts.unordered`). Here is what
the names tell; the frontier looks at all pages of a complete crawl with it, so arrival cannot matter. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from crawler.parse.url import Url, origin
from crawler.rules.trap_patterns import PARAMETERS, calendar_of

KNOWN: Final = ""  # instead of the names of parameters that are known to sort
_INDEX: Final = re.compile(r"(?:index|default)\.[^/]*", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[&;]")
_AUTOINDEX: Final = re.compile(r"C=[NMSD][&;]O=[AD]")  # Apache mod_autoindex, nginx fancyindex


def stem(url: str) -> str:
    """The URL without query and without what negotiation or a directory index adds: `/a/b.html.en` is `/a/b`."""
    folder, _, name = url.partition("?")[0].rpartition("/")
    return f"{folder}/" if _INDEX.fullmatch(name) else f"{folder}/{name.partition('.')[0] or name}"


def outside(url: Url, links: Iterable[Url]) -> Iterator[Url]:
    """The links of a page that do not lead to the page itself under one of its names."""
    own = stem(url)
    return (link for link in links if not link.startswith(own) or stem(link) != own)


def variant(url: Url, announced: Url | None) -> Url | None:
    """What Content-Location names (RFC 9110 8.7), where it is another name of the same page.

    A server that names one location for all its pages tells nothing.
    """
    if announced is None or announced == url or origin(announced) != origin(url):
        return None
    return announced if stem(announced) == stem(url) else None


def resource(url: str, announced: str | None) -> str:
    """The name that all twins of a page share. `announced`: its `variant`."""
    path, mark, query = url.partition("?")
    if announced:
        path, its_mark, its_query = announced.partition("?")
        mark, query = (its_mark, its_query) if its_mark else (mark, query)
    folder, _, name = path.rpartition("/")
    return f"{folder}/{'' if _INDEX.fullmatch(name) else name}{mark}{query}"


def unsorted(url: str) -> list[tuple[str, str]]:
    """The pages that a URL could be a sort order of, the shortest first, each with the parameters it has less.

    Those that sort stand side by side: all parameters, any one, and any two neighbours are left out in turn. A day of
    a calendar is no sort order.
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
        return KNOWN
    return "&".join(pair.partition("=")[0] for pair in _SEPARATORS.split(part))
