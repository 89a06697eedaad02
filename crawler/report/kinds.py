"""Classifies outcomes into a few kinds for findings, so that the kinds of a million URLs fit into a million bytes."""

from enum import IntEnum
from functools import lru_cache
from typing import Final


class Kind(IntEnum):
    """The kind of a URL. The values from `BROKEN` to `LOOP` are failures."""

    ABSENT = 0  # not found in this run
    OPEN = 1
    LISTED = 2
    BROKEN = 3
    SERVER_ERROR = 4
    UNREACHABLE = 5
    LOOP = 6
    MOVED = 7
    ROBOTS = 8
    NOINDEX = 9
    CANONICAL = 10
    DROPPED = 11  # not listed because of its content: empty, a duplicate, a soft 404
    CHOSEN = 12  # not listed because of the settings, or because it is on another site
    EXTERNAL = 13  # on another site, and known to be broken


FAILED: Final = frozenset({Kind.BROKEN, Kind.SERVER_ERROR, Kind.UNREACHABLE, Kind.LOOP})
LINKED: Final = FAILED | {Kind.MOVED, Kind.ROBOTS, Kind.NOINDEX, Kind.EXTERNAL}
"""Kinds for which the linking pages are reported."""

_FAILURES: Final = {
    "not-found": Kind.BROKEN,
    "forbidden": Kind.BROKEN,
    "client-error": Kind.BROKEN,
    "server-error": Kind.SERVER_ERROR,
    "redirect": Kind.LOOP,
    "redirect-loop": Kind.LOOP,
    "redirects": Kind.LOOP,
}  # other codes: no usable response
_UNLISTED: Final = {
    "robots": Kind.ROBOTS,
    "robots-down": Kind.UNREACHABLE,
    "noindex": Kind.NOINDEX,
    "canonical": Kind.CANONICAL,
    "scheme": Kind.DROPPED,
    "too-long": Kind.DROPPED,
    "soft-404": Kind.DROPPED,
    "empty": Kind.DROPPED,
    "duplicate": Kind.DROPPED,
}  # other codes: not listed because of the settings
WHY: Final = {
    Kind.BROKEN: "it is not found",
    Kind.SERVER_ERROR: "the server fails there",
    Kind.UNREACHABLE: "it gives no usable answer",
    Kind.LOOP: "its redirects have no final target",
    Kind.MOVED: "it redirects",
    Kind.ROBOTS: "robots.txt forbids it",
    Kind.NOINDEX: "it says noindex",
    Kind.CANONICAL: "it names another canonical URL",
    Kind.DROPPED: "it is not listed itself",
    Kind.EXTERNAL: "it is on another site, and broken",
}


@lru_cache(maxsize=256)
def kind_of(outcome: str) -> Kind:
    """The kind of an outcome by its code; an empty code means open."""
    sort, _, reason = outcome.partition(":")
    match sort:
        case "":
            return Kind.OPEN
        case "listed":
            return Kind.LISTED
        case "moved":
            return Kind.MOVED
        case "failed" | "kept":
            return _FAILURES.get(reason, Kind.UNREACHABLE)
        case _:
            return _UNLISTED.get(reason, Kind.CHOSEN)


def is_listed(outcome: str) -> bool:
    """Whether the URL is in the sitemap, including failing pages that stay listed for a while."""
    return outcome == "listed" or outcome.startswith("kept:")
