"""Counts over all pages of a run, for the rules that are applied at the end of a crawl."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.parse.url import Url


@dataclass(frozen=True, slots=True)
class Evidence:
    """How reliable the Last-Modified headers of one origin are. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    fresh: int  # of `dated`: the header is the time of the request
    compared: int  # with the same content as in an earlier run
    slid: int  # of `compared`: the header changed nevertheless
    known: int = 0  # with content that was also read in an earlier run
    changed: int = 0  # of `known`: the content has changed


@dataclass(frozen=True, slots=True)
class Build:
    """The ten minutes with the most Last-Modified headers of an origin. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    first: int  # the earliest of these headers, in seconds since the epoch
    last: int
    within: int  # with a header from `first` to `last`
    stating: int  # of `within`: the page itself states a date
    older: int  # of `stating`: that date is well before the header


@dataclass(frozen=True, slots=True)
class Doubts:
    """Sources of dates that are not trusted."""

    unreliable: tuple[str, ...] = ()  # origins with unreliable headers
    changing: tuple[str, ...] = ()  # origins on which most content changed at once
    builds: tuple[tuple[str, int, int], ...] = ()  # origin, first and last moment of a build


class SitemapCounts(NamedTuple):
    """What became of the sitemaps of a run."""

    outcomes: Mapping[str, int]  # by the code of their `SeedOutcome`, or "open", or "passed" (skipped)
    orphans: Mapping[str, int]  # listed pages that no page links to, by sitemap, largest first


class Survey(NamedTuple):
    """Counts over all URLs of a run."""

    outcomes: Mapping[str, int]  # by `code`, of the URLs on the site's own origin
    obstacles: Mapping[str, int]  # listed pages, by the code of their `Obstacle`
    elsewhere: tuple[str, int] | None = None  # the other origin that most pages name as canonical; how many


@dataclass(frozen=True, slots=True)
class SameContent:
    """Listed pages of one origin with the same content."""

    origin: str
    content: str  # their fingerprint
    count: int
    example: Url


@dataclass(frozen=True, slots=True)
class Balance:
    """The state of all URLs of a run: `discovered` is counted when URLs are added, the rest from records."""

    discovered: int
    outcomes: Mapping[str, int]  # by `code`
    open: int = 0  # queued, waiting or leased
    filtered: int = 0  # not to be requested
    # Pages of the sitemap with a lastmod, by its source.
    dated: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Pages that failed and stay listed."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("kept:"))

    @property
    def listed(self) -> int:
        """Pages in the sitemap, including `kept`."""
        return self.outcomes.get("listed", 0) + self.kept

    @property
    def balanced(self) -> bool:
        """Whether every discovered URL is counted exactly once."""
        return self.discovered == self.open + sum(self.outcomes.values())
