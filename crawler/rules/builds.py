"""Whether the Last-Modified headers of an origin are the moment of a build: a deployment that wrote all files anew.

One page cannot tell, so this looks at all listed pages of an origin together, at the end of a crawl: where nearly all
dates lie within minutes while the pages state older ones, the header tells of the build and not of the pages. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from crawler.model.survey import Build

WINDOW: Final = 600  # seconds that a build takes
SHARE: Final = 90  # percent of the dates of an origin that lie within
LEAST: Final = 5  # pages: fewer than these somebody may have edited by hand in that time
OLDER: Final = (
    129_600  # seconds, 36 hours: so far a date without a time may lie behind the moment it stands for
)
KEPT: Final = 20  # windows remembered of an origin

Windows: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""By origin: first and last moment of each known build, in seconds since the epoch."""


def is_build(found: Build) -> bool:
    """Whether nearly all dates of an origin lie within one build."""
    return found.within >= LEAST and 100 * found.within >= SHARE * found.dated


def lie(found: Build) -> str | None:
    """Why the headers are not believed; None when they are. Pages that state the same dates were truly edited."""
    if not is_build(found) or 2 * found.older <= found.stating:
        return None
    return (
        f"{found.within:,} of {found.dated:,} dates lie within ten minutes, as after a build, "
        f"and {found.older:,} of {found.stating:,} pages that state a date state an older one"
    )


def note(found: Build) -> str | None:
    """What is said of headers that stand, though a build may have made them; None when there is nothing to say."""
    if not is_build(found) or found.stating:
        return None
    return f"all dates of {found.origin} are of one build: {found.within:,} of {found.dated:,} lie within ten minutes"


def remembered(windows: Windows, found: Sequence[Build]) -> dict[str, list[tuple[int, int]]]:
    """The builds of earlier runs and the new ones: a page that was not built again since still has that date."""
    known = {origin: list(some) for origin, some in windows.items()}
    for build in found:
        some = known.setdefault(build.origin, [])
        if not any(first <= build.first and build.last <= last for first, last in some):
            some[:] = [(first, last) for first, last in some if first < build.first or last > build.last]
            some.append((build.first, build.last))
            del some[:-KEPT]
    return known
