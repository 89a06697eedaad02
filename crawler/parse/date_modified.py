"""The modification date that a page states about itself: JSON-LD, `itemprop`, or a `meta` of one of the names
that are in use, as `article:modified_time` and `http-equiv=last-modified`.

Beside it, its date of publication, which is later where a page was written before it was published. Whether
a date is credible is decided by `rules.lastmod`. Pure and total.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from selectolax.lexbor import LexborNode

from crawler.parse.dates import read_stated

MOST_DATES: Final = 20  # dates that are read
LARGEST_JSON_LD: Final = 262_144  # characters of a JSON-LD script
# Of `meta`, in lower case: as a property, a name or a pragma.
NAMING: Final = ("property", "name", "http-equiv")
MODIFIED: Final = frozenset({
    "article:modified_time", "article:modified", "article:modified_date", "og:updated_time",
    "og:modified_time", "og:article:modified_time", "last-modified", "lastmodified", "lastmod",
    "dc.modified", "dc.date.modified", "dcterms.modified", "datemodified", "bt:moddate",
})  # fmt: skip
PUBLISHED: Final = "article:published_time"
PROPERTIES: Final = MODIFIED | {PUBLISHED}
ITEM_PROPERTIES: Final = frozenset({"datemodified", "datepublished"})
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
            return not PROPERTIES.isdisjoint(_names(given)) or not ITEM_PROPERTIES.isdisjoint(_items(given))
        case "time":
            return not ITEM_PROPERTIES.isdisjoint(_items(given))
    return False


def _names(given: Mapping[str, str | None]) -> list[str]:
    return [(given.get(name) or "").strip().lower() for name in NAMING]


def _items(given: Mapping[str, str | None]) -> list[str]:
    return (given.get("itemprop") or "").lower().split()


def dates(nodes: Iterable[LexborNode]) -> list[str]:
    """The dates in `nodes` (elements for which `is_stating` holds), as written; none without a modification.

    The publication of a page is among them, so that it is no older than that. Publications on several days
    are those of other things on the page, such as comments, and do not count, unless `meta` states it.
    """
    found: dict[str, list[str]] = {"modified": [], "own": [], "others": []}
    for node in nodes:
        given = node.attributes
        if node.tag == "script":
            for stated in _of_json(node.text()[:LARGEST_JSON_LD]):
                found["modified" if stated[0] else "others"] += stated
        else:
            written = "" if node.tag == "meta" else node.text()
            text = given.get("content") or given.get("datetime") or written
            found[_kind(given)].append(text.strip())
        if len(found["modified"]) >= MOST_DATES:
            break
    modified, published = found["modified"], list(filter(None, found["own"] or found["others"]))
    if modified and len({_day(text) for text in published}) == 1:
        modified += published
    return list(filter(None, modified))[:MOST_DATES]


def _kind(given: Mapping[str, str | None]) -> str:
    """What an element for which `is_stating` holds states: a modification, or a publication."""
    names = {*_names(given), *_items(given)}
    if not names.isdisjoint(MODIFIED):
        return "modified"
    return "own" if PUBLISHED in names else "others"


def _day(text: str) -> date | str:
    at = read_stated(text)
    return at.date() if at else text


def _of_json(text: str) -> list[tuple[str, str]]:
    """Modification and publication of each item that has one of them; control characters are tolerated."""
    try:
        return list(_stated(json.loads(text, strict=False), 0))
    except (ValueError, RecursionError):
        return []


def _stated(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """The dates of top-level items, also in a list or in @graph; not of nested items or PARTS."""
    if isinstance(value, list) and depth < 3:
        for item in value:
            yield from _stated(item, depth + 1)
    elif isinstance(value, dict):
        kinds = value.get("@type")
        names = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds])}
        given = (value.get("dateModified"), value.get("datePublished"))
        modified, published = (text.strip() if isinstance(text, str) else "" for text in given)
        if (modified or published) and names.isdisjoint(PARTS):
            yield modified, published
        yield from _stated(value.get("@graph"), depth + 1)
