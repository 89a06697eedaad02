"""The fifth role of the frontier: everything that can be read from the state.

A `Query` has one answer, read in one transaction; a `RowKind` may have a row for each URL. They are values,
and two verbs take them all: `Reads.read` and `Reads.stream`. Reading changes nothing and takes no lock. "This
run" is the newest one. What changes the state is a verb of the other roles.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from crawler.errors import Exit
from crawler.model import survey
from crawler.model.external import DueLink, ExternalCounts, ExternalRow
from crawler.model.facts import Entry
from crawler.model.ledger import LedgerHead, LedgerRow
from crawler.model.progress import Member
from crawler.model.rows import EdgeRow, FeatureRow, HostRow, PageRow, PublicationRow, RunRow
from crawler.model.rows import Tallies as Counts
from crawler.model.run import Run
from crawler.model.seed import Seed
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Visit
from crawler.parse.url import Url

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST_HOSTS: Final = 50  # in a report
ABOVE_ALL: Final = "\x7f"  # sorts after every URL


class Query(Generic[T_co]):
    """A question with one answer of type `T_co`."""


class RowKind(Generic[T_co]):
    """A kind of rows, each a `T_co`."""


class Reads(Protocol):
    """Reads of the state. Values missing in it are None."""

    async def read(self, query: Query[T]) -> T:
        """The answer to a query."""
        ...

    def stream(self, kind: RowKind[T]) -> AsyncIterator[Sequence[T]]:
        """The rows of a kind, in constant memory. The backend chooses the size of the chunks."""
        ...


# -- the run -------------------------------------------------------------------------------------------------


class NewestRun(Query[Run | None]):
    """The newest run in any state; None before the first."""


class AllRuns(Query[Sequence[RunRow]]):
    """The stored runs, newest last."""


class ExitOfRun(Query[Exit | None]):
    """The exit code with which the last leader ended this run; None while it is at work."""


class MembersOfRun(Query[Sequence[Member]]):
    """The members that worked on this run since it was last resumed."""


class LastPublication(Query[PublicationRow | None]):
    """The newest publication of any run; None before the first."""


class PublishedOutcomes(Query[Mapping[str, int]]):
    """The outcomes in this run of the pages of the last publication: counts by code; "" for none yet."""


# -- counts of the run ---------------------------------------------------------------------------------------


class RunBalance(Query[survey.Balance]):
    """The counts of all URLs of this run."""


@dataclass(frozen=True)
class SiteSurvey(Query[survey.Survey]):
    """Counts over all URLs of the site with origin `site`. Reads all of them."""

    site: str


class ListedTallies(Query[Counts]):
    """Counts over the listed pages of this run, for findings that need no other row."""


class Sitemaps(Query[survey.SitemapCounts]):
    """The counts of the sitemaps of this run."""


class BusiestHosts(Query[Sequence[HostRow]]):
    """The origins that this run asked for pages, the busiest first, at most `MOST_HOSTS`."""


class TrapsOfRun(Query[Sequence[Trap]]):
    """The crawler traps of this run: those stored by `Queue.store_traps`, and closed patterns."""


# -- single URLs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordOf(Query[UrlRecord | None]):
    """All that is known about one URL."""

    url: Url


@dataclass(frozen=True)
class CountLinking(Query[int]):
    """The number of pages of this run that link to a URL. Slow, as it reads all of them."""

    url: Url


class FirstStart(Query[Url | None]):
    """The first start URL of this run."""


@dataclass(frozen=True)
class LastAnswered(Query[Url | None]):
    """The listed page of an origin that answered last in this run."""

    origin: str


@dataclass(frozen=True)
class Examples(Query[Sequence[Url]]):
    """A few URLs of this run with that outcome, independent of the order of discovery."""

    outcome_code: str
    limit: int = 3


# -- for the walk and the rules over all pages ---------------------------------------------------------------


@dataclass(frozen=True)
class Filtered(Query[Sequence[Visit]]):
    """The next URLs after `after`, sorted, that this run filtered as outside the site or as too deep."""

    after: str = ""


class PagesOfFailingSeeds(Query[Sequence[tuple[Seed, Sequence[Url]]]]):
    """Pages of the last publication not found in this run, from sitemaps that are failing temporarily."""


@dataclass(frozen=True)
class DateEvidence(Query[tuple[Sequence[survey.Evidence], Sequence[survey.Build]]]):
    """For each origin, whether its Last-Modified headers are reliable, and its largest build.

    That is the `window` seconds with most Last-Modified headers of listed pages. A page states an older
    date if that is more than `older` seconds before its header.
    """

    window: int
    older: int


@dataclass(frozen=True)
class SameContentGroups(Query[Sequence[survey.SameContent]]):
    """Groups of at least that many listed pages with the same content; the largest twenty."""

    least: int


# -- pages, for the sitemap, reports and lists ---------------------------------------------------------------


@dataclass(frozen=True)
class ListedEntries(RowKind[Entry]):
    """The entries of this run from `first` up to, but not including, `below`, by URL."""

    first: str = ""
    below: str = ABOVE_ALL


class AllUrls(RowKind[Url]):
    """All known URLs of the site in this run, with any outcome."""


class Pages(RowKind[PageRow]):
    """Every URL found by a run that is still stored, sorted by URL."""


@dataclass(frozen=True)
class PagesOf(Query[Mapping[int, PageRow]]):
    """Rows of `Pages` by their ids; unknown ids are left out."""

    ids: Sequence[int]


class Edges(RowKind[EdgeRow]):
    """The links, redirect and canonical of each URL of this run that has any, sorted by URL."""


class Suspects(RowKind[PageRow]):
    """The settled URLs of this run that may have a finding of their own, in any order.

    These are all that are not listed, apart from those on other sites that are not known to be broken,
    and the listed ones that a sitemap or input contains. Only `id`, `run`, `outcome`, `was`, `seed` and
    `external` are filled in.
    """


# -- what optional features read of pages --------------------------------------------------------------------


@dataclass(frozen=True)
class ReadingPages(RowKind[FeatureRow]):
    """The listed pages of this run of which a feature read more than that many URLs, sorted by URL.

    Without what it read.
    """

    name: str
    more_than: int = 0


@dataclass(frozen=True)
class FeaturesOf(Query[Mapping[Url, FeatureRow]]):
    """Those of these URLs that this run settled, with what a feature read of their pages."""

    name: str
    urls: Sequence[Url]


@dataclass(frozen=True)
class CommonUrls(Query[Collection[Url]]):
    """The URLs that a feature read of at least that many listed pages of this run, and that share of them.

    Reads all pages.
    """

    name: str
    fewest: int
    percent: int


# -- what search engines were told, and what other sites answered --------------------------------------------


class LedgerState(Query[LedgerHead | None]):
    """The ledger; None before the first submission."""


@dataclass(frozen=True)
class LedgerRows(RowKind[LedgerRow]):
    """The URLs whose mark differs between ledger and this run, sorted by URL.

    `unchanged`: the listed ones without a difference, too.
    """

    unchanged: bool = False


@dataclass(frozen=True)
class DueLinks(RowKind[DueLink]):
    """Links not checked in this round: first those never checked, then the longest ago."""

    round_number: int


@dataclass(frozen=True)
class CountDueLinks(Query[int]):
    """How many these are."""

    round_number: int


@dataclass(frozen=True)
class ExternalAnswer(Query[ExternalRow | None]):
    """The last answer for a URL."""

    url: Url


class CountAnswers(Query[ExternalCounts]):
    """The links to other sites of this run, by their last answer."""
