"""What an outcome means to a finding: a few kinds, so that what a million URLs are fits into a million bytes."""

from enum import IntEnum
from functools import lru_cache
from typing import Final


class Kind(IntEnum):
    """What a URL is. The values from `BROKEN` to `LOOP` are failures."""

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
    DROPPED = 11  # not listed for what the page is: empty, a duplicate, a soft 404
    CHOSEN = 12  # not listed since the settings say so, or since it is no page of this site


FAILED: Final = frozenset({Kind.BROKEN, Kind.SERVER_ERROR, Kind.UNREACHABLE, Kind.LOOP})
LINKED: Final = FAILED | {Kind.MOVED, Kind.ROBOTS, Kind.NOINDEX}
"""Those of which it matters who links to them."""

_FAILURES: Final = {
    "not-found": Kind.BROKEN,
    "forbidden": Kind.BROKEN,
    "client-error": Kind.BROKEN,
    "server-error": Kind.SERVER_ERROR,
    "redirect": Kind.LOOP,
    "redirect-loop": Kind.LOOP,
    "redirects": Kind.LOOP,
}  # anything else: no usable answer
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
}  # anything else: as the settings say
WHY: Final = {
    Kind.BROKEN: "it is not found",
    Kind.SERVER_ERROR: "the server fails there",
    Kind.UNREACHABLE: "it gives no usable answer",
    Kind.LOOP: "its redirects lead nowhere",
    Kind.MOVED: "it redirects",
    Kind.ROBOTS: "robots.txt forbids it",
    Kind.NOINDEX: "it says noindex",
    Kind.CANONICAL: "it names another canonical URL",
    Kind.DROPPED: "it is not listed itself",
}


@lru_cache(maxsize=256)
def kind_of(outcome: str) -> Kind:
    """The kind of an outcome by its code; what is open has none."""
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
    """Whether the sitemap has it, also for now only."""
    return outcome == "listed" or outcome.startswith("kept:")
