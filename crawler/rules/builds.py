"""Detects Last-Modified headers that are the time of a build: a deployment that rewrote all files.

A single page cannot show it, so this looks at all listed pages of an origin at the end of a crawl: if nearly
all dates are within minutes while the pages state older ones, the header dates the build and not the pages.
Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from crawler.model.survey import Build

BUILD_SECONDS: Final = 600  # seconds that a build takes
BUILD_SHARE: Final = 90  # percent of the dates of an origin that are within the window
LEAST_PAGES: Final = 5  # pages: fewer may have been edited by hand in that time
# Seconds, 36 hours: a date without a time may be this much earlier than the moment it means.
OLDER: Final = 129_600
MOST_WINDOWS: Final = 20  # windows remembered for each origin

Windows: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""By origin: first and last moment of each known build, in seconds since the epoch."""


def is_build(found: Build) -> bool:
    """Whether nearly all dates of an origin are within one build."""
    return found.within >= LEAST_PAGES and 100 * found.within >= BUILD_SHARE * found.dated


def why_unreliable(found: Build) -> str | None:
    """Why headers are not trusted; None if they are. Pages that state the same dates were really edited."""
    if not is_build(found) or 2 * found.older <= found.stating:
        return None
    return (
        f"{found.within:,} of {found.dated:,} dates are within ten minutes, as after a build, "
        f"and {found.older:,} of {found.stating:,} pages that state a date state an older one"
    )


def note(found: Build) -> str | None:
    """A remark on headers that are trusted but may be the time of a build; None if there is none."""
    if not is_build(found) or found.stating:
        return None
    within = f"{found.within:,} of {found.dated:,}"
    return f"the dates of {found.origin} look like one build: {within} are within ten minutes"


def remembered(windows: Windows, found: Sequence[Build]) -> dict[str, list[tuple[int, int]]]:
    """Earlier builds and the new ones: pages that were not rebuilt since still have the earlier date."""
    known = {origin: list(some) for origin, some in windows.items()}
    for build in found:
        some = known.setdefault(build.origin, [])
        if not any(first <= build.first and build.last <= last for first, last in some):
            some[:] = [(first, last) for first, last in some if first < build.first or last > build.last]
            some.append((build.first, build.last))
            del some[:-MOST_WINDOWS]
    return known
