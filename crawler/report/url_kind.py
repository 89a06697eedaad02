"""Classifies outcomes into a few kinds for findings, so that the kind of a URL fits into a byte."""

from enum import IntEnum
from functools import lru_cache
from typing import Final

from crawler.report.catalogue import Code

OFF_SITE: Final = "unlisted:offsite"


class UrlKind(IntEnum):
    """The kind of a URL."""

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
    RESTRICTED = 14  # not for every visitor, or not by this method
    CLIENT_ERROR = 15  # another 4xx


FAILED: Final = frozenset({
    UrlKind.BROKEN, UrlKind.SERVER_ERROR, UrlKind.UNREACHABLE, UrlKind.LOOP, UrlKind.RESTRICTED,
    UrlKind.CLIENT_ERROR,
})  # fmt: skip
LINKED: Final = FAILED | {UrlKind.MOVED, UrlKind.ROBOTS, UrlKind.NOINDEX, UrlKind.EXTERNAL}
"""Kinds for which the linking pages are reported."""
OF_READERS: Final = frozenset({UrlKind.ROBOTS, UrlKind.NOINDEX})
"""Those of them that link elements may name, as language versions: they are reported if readers can click."""
RESTRICTING: Final = frozenset({401, 403, 405, 407, 451})
"""Statuses of a page that exists, and that not everybody is shown."""

BY_KIND: Final = {
    UrlKind.BROKEN: Code.BROKEN_LINK,
    UrlKind.SERVER_ERROR: Code.SERVER_ERROR,
    UrlKind.UNREACHABLE: Code.UNREACHABLE,
    UrlKind.LOOP: Code.REDIRECT_LOOP,
    UrlKind.MOVED: Code.REDIRECT_LINKED,
    UrlKind.ROBOTS: Code.ROBOTS_LINKED,
    UrlKind.NOINDEX: Code.NOINDEX_LINKED,
    UrlKind.EXTERNAL: Code.BROKEN_EXTERNAL,
    UrlKind.RESTRICTED: Code.RESTRICTED,
    UrlKind.CLIENT_ERROR: Code.CLIENT_ERROR,
}
"""The finding about a URL of that kind to which pages link."""
FAILING: Final = frozenset(BY_KIND[kind] for kind in FAILED)
"""Of these, those about a URL that fails."""
LINK_CODES: Final = FAILING | {Code.REDIRECT_LINKED, Code.BROKEN_EXTERNAL}
"""Findings that are mended where the links are."""
LINKED_CODES: Final = frozenset(BY_KIND.values())

_FAILURES: Final = {
    "not-found": UrlKind.BROKEN,
    "forbidden": UrlKind.RESTRICTED,
    "client-error": UrlKind.CLIENT_ERROR,
    "server-error": UrlKind.SERVER_ERROR,
    "redirect": UrlKind.LOOP,
    "redirect-loop": UrlKind.LOOP,
    "redirects": UrlKind.LOOP,
}  # other codes: no usable response
_UNLISTED: Final = {
    "robots": UrlKind.ROBOTS,
    "robots-down": UrlKind.UNREACHABLE,
    "noindex": UrlKind.NOINDEX,
    "canonical": UrlKind.CANONICAL,
    "scheme": UrlKind.DROPPED,
    "too-long": UrlKind.DROPPED,
    "soft-404": UrlKind.DROPPED,
    "empty": UrlKind.DROPPED,
    "duplicate": UrlKind.DROPPED,
}  # other codes: not listed because of the settings
WHY: Final = {
    UrlKind.BROKEN: "it is not found",
    UrlKind.SERVER_ERROR: "the server fails there",
    UrlKind.UNREACHABLE: "it gives no usable answer",
    UrlKind.LOOP: "its redirects have no final target",
    UrlKind.MOVED: "it redirects",
    UrlKind.ROBOTS: "robots.txt forbids it",
    UrlKind.NOINDEX: "it says noindex",
    UrlKind.CANONICAL: "it names another canonical URL",
    UrlKind.DROPPED: "it is not listed itself",
    UrlKind.EXTERNAL: "it is on another site, and broken",
    UrlKind.RESTRICTED: "access to it is restricted",
    UrlKind.CLIENT_ERROR: "it answers with an error",
}


def kind_of(outcome: str, status: int | None = None) -> UrlKind:
    """The kind of an outcome by its code, and the status; an empty code means open."""
    kind = _kind(outcome)
    return UrlKind.RESTRICTED if kind is UrlKind.CLIENT_ERROR and status in RESTRICTING else kind


@lru_cache(maxsize=256)
def _kind(outcome: str) -> UrlKind:
    sort, _, reason = outcome.partition(":")
    match sort:
        case "":
            return UrlKind.OPEN
        case "listed":
            return UrlKind.LISTED
        case "moved":
            return UrlKind.MOVED
        case "failed" | "kept":
            return _FAILURES.get(reason, UrlKind.UNREACHABLE)
        case _:
            return _UNLISTED.get(reason, UrlKind.CHOSEN)


def is_listed(outcome: str) -> bool:
    """Whether the URL is in the sitemap, including failing pages that stay listed for a while."""
    return outcome == "listed" or outcome.startswith("kept:")
