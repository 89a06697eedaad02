"""The date that a page states about itself: JSON-LD, `article:modified_time`, or an element with `itemprop`.

What is stated is for `lastmod` to believe. Pure, and total: any markup has an answer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from selectolax.lexbor import LexborNode

MOST: Final = 20  # dates that are looked at
LARGEST: Final = 262_144  # characters of a JSON-LD script
# Parts of a page that are dated by themselves.
PARTS: Final = frozenset(
    {
        "comment",
        "review",
        "userreview",
        "answer",
        "offer",
        "imageobject",
        "videoobject",
        "person",
        "organization",
    }
)


def is_stating(tag: str, given: Mapping[str, str | None]) -> bool:
    """Whether an element, by its attributes, states a date of modification."""
    match tag:
        case "script":
            return given.get("type") == "application/ld+json"
        case "meta":
            return given.get("property") == "article:modified_time" or given.get("itemprop") == "dateModified"
        case "time":
            return "dateModified" in (given.get("itemprop") or "").split()
    return False


def dates(nodes: Iterable[LexborNode]) -> list[str]:
    """Every date of modification that elements which are stating one state, as written."""
    found: list[str] = []
    for node in nodes:
        given = node.attributes
        if node.tag == "script":
            found += _of_json(node.text()[:LARGEST])
        elif node.tag == "time":
            found += filter(None, [given.get("datetime") or node.text().strip()])
        else:
            found += filter(None, [given.get("content")])
        if len(found) >= MOST:
            break
    return [text.strip() for text in found[:MOST]]


def _of_json(text: str) -> list[str]:
    try:
        return list(_modified(json.loads(text), 0))
    except (ValueError, RecursionError):
        return []


def _modified(value: Any, depth: int) -> Iterator[str]:
    """The dateModified of the things a script is about: on top, in a list or in its @graph, not of their parts."""
    if isinstance(value, list) and depth < 3:
        for item in value:
            yield from _modified(item, depth + 1)
    elif isinstance(value, dict):
        kinds = value.get("@type")
        names = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds])}
        if isinstance(date := value.get("dateModified"), str) and names.isdisjoint(PARTS):
            yield date
        yield from _modified(value.get("@graph"), depth + 1)
