"""What all pages of a run say together: counts that the rules at the end of a crawl decide on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crawler.parse.url import Url


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answers of one origin say of its Last-Modified headers. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    fresh: int  # of these, with the time of the request
    compared: int  # whose content is the same as in an earlier run
    slid: int  # of these, whose header moved all the same
    known: int = 0  # whose content was read in an earlier run, too
    changed: int = 0  # of these, whose content is another now


@dataclass(frozen=True, slots=True)
class Build:
    """The ten minutes in which most Last-Modified headers of an origin lie. Counts of listed pages."""

    origin: str
    dated: int  # with a credible header
    first: int  # the earliest header within, in seconds since the epoch
    last: int
    within: int  # with a header from `first` to `last`
    stating: int  # of these, that state a date
    older: int  # of these, that state one well before the header


@dataclass(frozen=True, slots=True)
class Doubts:
    """What is not believed when dates are chosen."""

    lying: tuple[str, ...] = ()  # origins whose headers
    changing: tuple[str, ...] = ()  # origins whose changes of content
    builds: tuple[tuple[str, int, int], ...] = ()  # dates of an origin, from a moment to another


class Survey(NamedTuple):
    """Counts over all that a run knows of its site."""

    outcomes: Mapping[str, int]  # by `code`, of the URLs of the site's own origin
    looks: Mapping[str, int]  # listed pages, by the code of their `Look`
    elsewhere: tuple[str, int] | None = None  # the other origin that most pages name as canonical; how many


@dataclass(frozen=True, slots=True)
class Alike:
    """Listed pages of one origin that say the same."""

    origin: str
    content: str  # their fingerprint
    count: int
    example: Url


@dataclass(frozen=True, slots=True)
class Balance:
    """Where every URL of a run stands. `discovered` is counted as URLs come in, `outcomes` from the records."""

    discovered: int
    outcomes: Mapping[str, int]  # by `code`
    open: int = 0  # queued, waiting or leased

    @property
    def kept(self) -> int:
        """Pages that are listed although they failed."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("kept:"))

    @property
    def listed(self) -> int:
        """Pages in the sitemap, with those that were kept."""
        return self.outcomes.get("listed", 0) + self.kept

    @property
    def balanced(self) -> bool:
        """Every discovered URL is in exactly one place."""
        return self.discovered == self.open + sum(self.outcomes.values())
