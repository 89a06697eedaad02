"""The modification date that a page states about itself: JSON-LD, `article:modified_time`, or `itemprop`.

Whether the date is credible is decided by `rules.lastmod`. Pure and total.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from selectolax.lexbor import LexborNode

MOST_DATES: Final = 20  # dates that are read
LARGEST_JSON_LD: Final = 262_144  # characters of a JSON-LD script
# JSON-LD types of parts of a page, whose date is not that of the page.
PARTS: Final = frozenset({
    "comment", "review", "userreview", "answer", "offer", "imageobject", "videoobject", "person",
    "organization",
})  # fmt: skip


def is_stating(tag: str, given: Mapping[str, str | None]) -> bool:
    """Whether an element with these attributes states a modification date."""
    match tag:
        case "script":
            return given.get("type") == "application/ld+json"
        case "meta":
            return given.get("property") == "article:modified_time" or given.get("itemprop") == "dateModified"
        case "time":
            return "dateModified" in (given.get("itemprop") or "").split()
    return False


def dates(nodes: Iterable[LexborNode]) -> list[str]:
    """The modification dates in `nodes` (elements for which `is_stating` holds), as written."""
    found: list[str] = []
    for node in nodes:
        given = node.attributes
        if node.tag == "script":
            found += _of_json(node.text()[:LARGEST_JSON_LD])
        elif node.tag == "time":
            found += filter(None, [given.get("datetime") or node.text().strip()])
        else:
            found += filter(None, [given.get("content")])
        if len(found) >= MOST_DATES:
            break
    return [text.strip() for text in found[:MOST_DATES]]


def _of_json(text: str) -> list[str]:
    try:
        return list(_modified(json.loads(text), 0))
    except (ValueError, RecursionError):
        return []


def _modified(value: Any, depth: int) -> Iterator[str]:
    """The dateModified of top-level items, also in a list or in @graph; not of nested items or PARTS."""
    if isinstance(value, list) and depth < 3:
        for item in value:
            yield from _modified(item, depth + 1)
    elif isinstance(value, dict):
        kinds = value.get("@type")
        names = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds])}
        if isinstance(date := value.get("dateModified"), str) and names.isdisjoint(PARTS):
            yield date
        yield from _modified(value.get("@graph"), depth + 1)
