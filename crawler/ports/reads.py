"""A role of the frontier: everything that can be read from the state.

A `Query` has one answer, read in one transaction; a `RowKind` may have a row for each URL. Reading changes
nothing and takes no lock. "This run" is the newest one. What changes the state is a verb of the other roles.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from crawler.errors import Exit
from crawler.model import rows, survey
from crawler.model.external import BrokenFile, DueLink, ExternalCounts, ExternalRow
from crawler.model.facts import Entry
from crawler.model.ledger import LedgerHead, LedgerRow
from crawler.model.reply import RobotsFile
from crawler.model.run import Member, Run, Wait
from crawler.model.seed import Seed, SeedCopy
from crawler.model.trap import Trap
from crawler.model.visit import Lease, Link, Visit
from crawler.parse.url import Url

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST_HOSTS: Final = 50  # in a report
ABOVE_ALL: Final = "\x7f"  # sorts after every URL


class Query(Struct, Generic[T_co], frozen=True):
    """A question with one answer of type `T_co`."""


class RowKind(Struct, Generic[T_co], frozen=True):
    """A kind of rows, each a `T_co`."""


class Reads(Protocol):
    """Reads of the state. Values missing in it are None."""

    async def read(self, query: Query[T]) -> T:
        """The answer to a query."""

    def stream(self, kind: RowKind[T]) -> AsyncIterator[Sequence[T]]:
        """The rows of a kind, in constant memory. The backend chooses the size of the chunks."""


# -- the run -------------------------------------------------------------------------------------------------


class NewestRun(Query[Run | None], frozen=True):
    """The newest run in any state; None before the first."""


class AllRuns(Query[Sequence[rows.RunRow]], frozen=True):
    """The stored runs, newest last."""


class ExitOfRun(Query[Exit | None], frozen=True):
    """The exit code with which the last leader ended this run; None while it is at work."""


class MembersOfRun(Query[Sequence[Member]], frozen=True):
    """The members that worked on this run since it was last resumed."""


class SettledSoFar(Query[int], frozen=True):
    """How many URLs all members of this run have settled."""


class LeastDepth(Query[int | None], frozen=True):
    """The least depth of what is queued, waits or is leased; None if nothing is."""


class Waits(Query[Sequence[Wait]], frozen=True):
    """What open work waits for, longer than a few seconds: the first to be due first."""


class LastPublication(Query[rows.PublicationRow | None], frozen=True):
    """The newest publication of any run; None before the first."""


class IsReadAnew(Query[bool], frozen=True):
    """Whether pages are read in another way than in the last published run: their contents may differ."""


class PublishedOutcomes(Query[Mapping[str, int]], frozen=True):
    """The outcomes in this run of the pages of the last publication: counts by code; "" for none yet."""


class PagesTurnedAlike(Query[survey.AlikePages], frozen=True):
    """Published pages that were visited since, and of which many say the same now, unlike before."""


class FailuresOfRun(Query[survey.Failures], frozen=True):
    """The failed URLs of this run that count for its publication (`rules.failures`)."""


class AnsweringPages(Query[Sequence[Url]], frozen=True):
    """Listed pages that answered in this run, spread over the site by URL: at most `most`."""

    most: int


class LostPages(Query[Sequence[Url]], frozen=True):
    """Pages of the last publication that this run did not find, spread over the site: at most `most`.
    `passing`: those that came lately, all but one for each page that had led to them.
    """

    most: int
    passing: bool = False


class PublishedExamples(Query[Sequence[Url]], frozen=True):
    """A few pages of the last publication with one of these outcomes in this run, sorted by URL."""

    outcome_codes: Collection[str]
    limit: int = 3


# -- counts of the run ---------------------------------------------------------------------------------------


class RunBalance(Query[survey.Balance], frozen=True):
    """The counts of all URLs of this run."""


class SiteSurvey(Query[survey.Survey], frozen=True):
    """Counts over all URLs of the site with origin `site`. Reads all of them."""

    site: str


class ListedTallies(Query[rows.Tallies], frozen=True):
    """Counts over the listed pages of this run, for findings that need no other row."""


class GroupedPages(Query[Mapping[str, Sequence[tuple[int, int]]]], frozen=True):
    """Ids of listed pages that share `content`, or only `title`, each with that of the first of its group."""


class PagesWithFindings(Query[Sequence[int]], frozen=True):
    """Ids by URL: of the suspects, of listed pages without a date or that share something, and `also`."""

    also: Sequence[int]


class WhatIsKnown(Query[survey.Knowledge | None], frozen=True):
    """How old the knowledge of the listed pages is, after a partial run; None: the run visits every page."""


class Sitemaps(Query[survey.SitemapCounts], frozen=True):
    """The counts of the sitemaps of this run."""


class BusiestHosts(Query[Sequence[rows.HostRow]], frozen=True):
    """The origins that this run asked for pages, the busiest first, at most `MOST_HOSTS`."""


class RobotsOf(Query[RobotsFile | None], frozen=True):
    """The stored robots.txt of an origin, unless it is more than a day old.
    `stale`: an older one too, if this run fetched it or started with it.
    """

    origin: str
    stale: bool = False


class TrapsOfRun(Query[Sequence[Trap]], frozen=True):
    """The crawler traps of this run: those stored by `Queue.store_traps`, and closed patterns."""


# -- single URLs ---------------------------------------------------------------------------------------------


class RecordOf(Query[rows.UrlRecord | None], frozen=True):
    """All that is known about one URL."""

    url: Url


class NumberOf(Query[int], frozen=True):
    """The id of a URL, as in `EdgeRow`; 0 if it is unknown."""

    url: Url


class Linking(Query[survey.LinkingPages], frozen=True):
    """The other pages of this run that link to a URL, by URL: at most `most`, or one. Reads all links."""

    url: Url
    most: int = 1


class FirstStart(Query[Url | None], frozen=True):
    """The first start URL of this run."""


class StartNumbers(Query[Sequence[int]], frozen=True):
    """The ids of the start URLs of this run."""


class LastAnswered(Query[Url | None], frozen=True):
    """The listed page of an origin that answered last in this run."""

    origin: str


class Examples(Query[Sequence[Url]], frozen=True):
    """A few URLs of this run with that outcome, independent of the order of discovery."""

    outcome_code: str
    limit: int = 3


# -- for the walk and the rules over all pages ---------------------------------------------------------------


class Filtered(Query[Sequence[Visit]], frozen=True):
    """The next URLs after `after`, sorted, that this run filtered as outside the site or as too deep."""

    after: str = ""


class PagesOfFailingSeeds(Query[Sequence[tuple[Seed, Sequence[Url]]]], frozen=True):
    """Pages of the last publication not found in this run, from sitemaps that are failing temporarily."""


class NextSeed(Query[Seed | None], frozen=True):
    """The next seed to be read in this run, by kind, depth and the order in which they were added."""


class CopyOfSeed(Query[SeedCopy | None], frozen=True):
    """What an earlier run kept of a sitemap; None: nothing."""

    seed: Seed


class LinksToFollow(Query[Sequence[Sequence[Link]]], frozen=True):
    """For each page, its links as last parsed with these settings, if they may lead to anything new.
    Those that `Settled` knows may be left out, but for redirects, other canonicals and URLs in a pattern.
    """

    leases: Sequence[Lease]


class KnownLinks(Query[int], frozen=True):
    """How many links a page had when it was last parsed, without those with nofollow."""

    number: int  # its id


class DateEvidence(Query[survey.DatesSeen], frozen=True):
    """For each origin, whether its dates are reliable, and the largest build by each source of dates.

    That is the `window` seconds with most dates of listed pages. A page states an older date if that is more
    than `older` seconds before the other.
    """

    window: int
    older: int


class HasNews(Query[bool], frozen=True):
    """Whether this run read a listed page that is new, or that has changed since it was published."""


class SameContentGroups(Query[Sequence[survey.SameContent]], frozen=True):
    """Groups of at least that many listed pages with the same content; the largest twenty."""

    least: int


class DoubtfulPlaces(Query[Mapping[str, survey.DoubtfulPlace]], frozen=True):
    """The listed pages of each calendar, folder, path with a query, or shape, that grows from within.
    Pages of it were the first that led to many others, which have one title. `known`: further such places,
    without their pages with that content. `but`: places that are not looked for. `alike`: whether to look
    for shapes as well, which are what addresses have in common (`rules.nonexistent_pages.shapes_of`).
    `only_dated`: calendars alone are looked for.
    """

    known: Mapping[str, str | None] = field(default_factory=dict)
    but: frozenset[str] = frozenset()
    alike: bool = True
    only_dated: bool = False


class NamedErrors(Query[Sequence[Url]], frozen=True):
    """The first listed pages whose title names an error (`rules.soft_404`), by id: at most `most`."""

    most: int


class QuestionsLeft(Query[int | None], frozen=True):
    """How many more requests may be made in this run to learn what the site shows; None: enough for all."""


class KindsOfScripted(Query[survey.ScriptedKinds], frozen=True):
    """The pages with scripts, by what they have in common (`rules.rendering.kinds`)."""


class SameShell(Query[survey.PagesOfKind | None], frozen=True):
    """The most addresses that answer with the same bytes, which run scripts, if nothing was rendered."""

    least: int  # or all listed pages, if there are several


class UnrenderedPages(Query[Sequence[Url]], frozen=True):
    """The listed pages of some kinds that were not rendered, by URL."""

    kinds: Sequence[str]


class RepeatedPages(Query[Sequence[survey.RepeatedPage]], frozen=True):
    """The listed pages, if several have one content or title, or the site is poor: the first 20,000."""


class PagesWithContent(Query[Sequence[Url]], frozen=True):
    """The listed pages of such a group, sorted by URL: at most a thousand."""

    group: survey.SameContent


# -- pages, for the sitemap, reports and lists ---------------------------------------------------------------


class ListedEntries(RowKind[Entry], frozen=True):
    """The entries of this run from `first` up to, but not including, `below`, by URL."""

    first: str = ""
    below: str = ABOVE_ALL
    titled: bool = False


class AllUrls(RowKind[Url], frozen=True):
    """All known URLs of the site in this run, with any outcome."""


class Pages(RowKind[rows.PageRow], frozen=True):
    """Every URL found by a run that is still stored, sorted by URL."""


class PagesOf(Query[Mapping[int, rows.PageRow]], frozen=True):
    """Rows of `Pages` by their ids; unknown ids are left out."""

    ids: Sequence[int]


class TargetsOf(Query[Mapping[int, rows.TargetRow]], frozen=True):
    """What links with these ids lead to; unknown ids are left out."""

    ids: Sequence[int]


class LinksOf(Query[Mapping[int, rows.LinksRow]], frozen=True):
    """Where URLs of this run lead, by their ids; those that lead nowhere are left out."""

    ids: Sequence[int]


class AnchorsOf(Query[Mapping[tuple[int, int], rows.AnchorRow]], frozen=True):
    """What is known of the links of pages, by the ids of page and target."""

    ids: Sequence[int]


class Edges(RowKind[rows.EdgeRow], frozen=True):
    """What each URL of this run leads to, if anything, by URL: from `first` up to, but without, `below`."""

    first: str = ""
    below: str = ABOVE_ALL


class Suspects(RowKind[rows.PageRow], frozen=True):
    """The settled URLs of this run that may have a finding of their own, in any order.
    All that are not listed, but for those on other sites not known to be broken, and the listed ones in a
    sitemap or input. Only `id`, `run`, `outcome`, `status`, `was`, `seed`, `external`, `redirect` are filled.
    """


# -- what optional features read of pages --------------------------------------------------------------------


class ReadingPages(RowKind[rows.FeatureRow], frozen=True):
    """The listed pages of which a feature read more than that many URLs, by URL, without these."""

    name: str
    more_than: int = 0


class FeaturesOf(Query[Mapping[Url, rows.FeatureRow]], frozen=True):
    """Those of these URLs that this run settled, with what a feature read of their pages."""

    name: str
    urls: Sequence[Url]


class CountUrls(Query[int], frozen=True):
    """How many different URLs a feature read of the listed pages of this run. Reads all pages."""

    name: str


class CommonUrls(Query[Collection[Url]], frozen=True):
    """The URLs that a feature read of so many listed pages of this run, and that share. Reads all pages."""

    name: str
    fewest: int
    percent: int


# -- what search engines were told, and what other sites answered --------------------------------------------


class LedgerState(Query[LedgerHead | None], frozen=True):
    """The ledger; None before the first submission."""


class LedgerRows(RowKind[LedgerRow], frozen=True):
    """The URLs whose mark differs between ledger and this run, by URL; `unchanged`: and those listed."""

    unchanged: bool = False


class BrokenFiles(Query[Mapping[str, Mapping[str, BrokenFile]]], frozen=True):
    """Files of pages that do not answer, by kind and URL, by the last check of this or an earlier run.
    `undecided`: also those that did not tell, and were known to be broken.
    """

    undecided: bool = False


class DueLinks(Query[Sequence[DueLink]], frozen=True):
    """The next links not checked in this round: first those never checked, then the longest ago.
    `after`: the last one of those that were read before.
    """

    round_number: int
    after: DueLink | None = None


class ExternalAnswer(Query[ExternalRow | None], frozen=True):
    """The last answer for a URL."""

    url: Url


class CountAnswers(Query[ExternalCounts], frozen=True):
    """The links to other sites of this run, by their last answer."""
