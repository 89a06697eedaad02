"""The modification date that a page states about itself: JSON-LD, `article:modified_time`, or `itemprop`.

Beside it, its date of publication, which is later where a page was written before it was published. Whether
a date is credible is decided by `rules.lastmod`. Pure and total.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from selectolax.lexbor import LexborNode

MOST_DATES: Final = 20  # dates that are read
LARGEST_JSON_LD: Final = 262_144  # characters of a JSON-LD script
PROPERTIES: Final = frozenset({"article:modified_time", "article:published_time"})
ITEM_PROPERTIES: Final = frozenset({"dateModified", "datePublished"})
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
            return given.get("property") in PROPERTIES or given.get("itemprop") in ITEM_PROPERTIES
        case "time":
            return not ITEM_PROPERTIES.isdisjoint((given.get("itemprop") or "").split())
    return False


def _is_publication(given: Mapping[str, str | None]) -> bool:
    """Whether an element for which `is_stating` holds states only when the page was published."""
    names = {given.get("property"), *(given.get("itemprop") or "").split()}
    return names.isdisjoint({"article:modified_time", "dateModified"})


def dates(nodes: Iterable[LexborNode]) -> list[str]:
    """The dates in `nodes` (elements for which `is_stating` holds), as written; none without a modification.

    Several publications are those of other things on the page, such as comments, and do not count.
    """
    modified: list[str] = []
    published: list[str] = []
    for node in nodes:
        given = node.attributes
        if node.tag == "script":
            modified += _of_json(node.text()[:LARGEST_JSON_LD])
        else:
            text = given.get("content") if node.tag == "meta" else given.get("datetime") or node.text()
            (published if _is_publication(given) else modified).append((text or "").strip())
        if len(modified) >= MOST_DATES:
            break
    if len(set(published)) == 1:
        modified += published if modified else []
    return list(filter(None, modified[:MOST_DATES]))


def _of_json(text: str) -> list[str]:
    try:
        return list(_modified(json.loads(text), 0))
    except (ValueError, RecursionError):
        return []


def _modified(value: Any, depth: int) -> Iterator[str]:
    """The dates of top-level items with a dateModified, also in a list or in @graph; not of nested items or
    PARTS.
    """
    if isinstance(value, list) and depth < 3:
        for item in value:
            yield from _modified(item, depth + 1)
    elif isinstance(value, dict):
        kinds = value.get("@type")
        names = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds])}
        if isinstance(date := value.get("dateModified"), str) and names.isdisjoint(PARTS):
            yield date
            if isinstance(date := value.get("datePublished"), str):
                yield date
        yield from _modified(value.get("@graph"), depth + 1)
