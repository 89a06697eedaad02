"""What is published of the newest run, from the state: where, which entries, and doubts about them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from crawler.app.features import writing
from crawler.app.settings_digests import site_of
from crawler.engine.start_urls import end_of
from crawler.engine.together import together
from crawler.errors import PublishRefused
from crawler.model.facts import Entry
from crawler.model.note import HEALTH, IDENTITY, OUTPUT, PUBLISH_BASE
from crawler.model.outcome import Listed
from crawler.model.rows import UrlRecord
from crawler.model.survey import NONE_VANISHED, AlikePages, Balance, Failures, VanishedPages
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, History, Reads, Record, Runs, reads
from crawler.rules.incomplete_site import MANY_SHELLS, Landing, SiteDoubts, doubts
from crawler.rules.page_rules import PageRules
from crawler.settings.sections import DEFAULTS, HTML, Settings
from crawler.sitemap.publish.difference import LONGEST_SHOWN
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.identity import SitemapIdentity

EXAMPLES = 3  # pages in a sentence
MOVED = "moved"  # code of an outcome
MOST_MOVED = 100  # published pages that redirect now, of which it is looked up where they lead


async def final_site(rows: Reads, start: Url, known: UrlRecord | None = None) -> str:
    """The origin at which a start URL is after redirects. `known`: its record."""
    url, _ = await end_of(rows, start, known)
    return urls.origin(url)


async def published_as(history: History, settings: Settings, start: Url | None = None) -> PublishBase | None:
    """How URLs are published: by `--publish-base`, else as in the last publication, else by the newest run.

    `start`: if None or not in the state, the first start URL of the newest run. Returns None without a run.
    """
    last, noted = await together(history.read(reads.LastPublication()), history.recall(PUBLISH_BASE))
    known, record = start, await history.read(reads.RecordOf(start)) if start else None
    if record is None:
        known = await history.read(reads.FirstStart())
    if known is None:
        return None
    site = await final_site(history, known, record)
    known_base = last.base if last and last.base else noted
    return PublishBase(settings.output.publish_base or known_base or site, site)


async def identity_of(runs: Runs, base: PublishBase) -> SitemapIdentity | None:
    """What the newest run crawls, as it is published."""
    noted: Mapping[str, Any] = await runs.recall(IDENTITY)
    known = SitemapIdentity.read(noted)
    if known is None:
        return None
    if base.base != base.site:
        name = base.base.partition("://")[2].removeprefix("www.")
        folders = [f"{name}/{folder.partition('/')[2]}" for folder in known.folders]
        return replace(known, sites=[name], folders=folders)
    return replace(known, sites=sorted({*known.sites, site_of(base.site)}))


async def output_of(runs: Runs, settings: Settings) -> str:
    """The folder of the sitemap, or its URL in an object store.

    From --output, else from the last publication, else from the newest run's settings.
    """
    chosen = settings.output.output
    if chosen != DEFAULTS.output.output:
        return chosen
    last = await runs.read(reads.LastPublication())
    kept = last.folder if last and last.folder else await runs.recall(OUTPUT)
    return kept or chosen


async def in_published_order(
    frontier: Frontier, base: PublishBase, settings: Settings
) -> AsyncIterator[Sequence[Entry]]:
    """The entries as these settings want them, sorted by published URL."""
    rules = PageRules(settings.rules.rule)
    for first, below in base.ranges():
        listed = reads.ListedEntries(first, below, titled=settings.output.format == HTML)
        entries = _by_rules(frontier.stream(listed), rules)
        for feature in writing(settings):
            entries = feature.extended(frontier, settings, entries)
        async for chunk in entries:
            yield chunk


async def _by_rules(
    entries: AsyncIterator[Sequence[Entry]], rules: PageRules
) -> AsyncIterator[Sequence[Entry]]:
    async for chunk in entries:
        yield rules.apply(chunk) if rules else chunk


async def lacks_published_pages(history: History) -> bool:
    """Whether pages of the last publication are still to be visited in the newest run, or found."""
    run = await history.read(reads.NewestRun())
    published = await history.read(reads.PublishedOutcomes())
    return "" in published or (run is not None and run.follows is not None and not run.complete)


async def result_of(
    frontier: Frontier,
    base: PublishBase,
    balance: Balance,
    found: SiteDoubts,
    vanished: VanishedPages = NONE_VANISHED,
    *,
    complete: bool,
) -> CrawlResult:
    """What the guard is told of the newest run. `vanished`: what it did not find, as far as that was asked;
    `complete`: every URL is settled.
    """
    has_failed = any(code.startswith("failed:") for code in balance.outcomes)
    run, is_read_anew, outcomes, health, identity = await together(
        frontier.read(reads.NewestRun()),
        frontier.read(reads.IsReadAnew()),
        frontier.read(reads.PublishedOutcomes()),
        frontier.recall(HEALTH),
        identity_of(frontier, base),
    )
    is_comparable = complete and not is_read_anew
    return CrawlResult(
        complete,
        balance.visited,
        outcomes,
        found.doubt,
        await frontier.read(reads.FailuresOfRun()) if has_failed else Failures(),
        health,
        vanished,
        await _moved_pages(frontier, run.number, outcomes, vanished) if run else 0,
        identity,
        is_partial=run is not None and run.follows is not None,
        alike=await frontier.read(reads.PagesTurnedAlike()) if is_comparable else AlikePages(),
        unseen=found.partial,
    )


async def _moved_pages(pages: Reads, run: int, outcomes: Mapping[str, int], vanished: VanishedPages) -> int:
    """How many published pages redirect to a page of their own that is listed now, as samples show.

    `outcomes`: of the published pages in this run. `vanished`: those that it did not find.
    """
    count = outcomes.get(MOVED, 0)
    found = await pages.read(reads.PublishedExamples({MOVED}, MOST_MOVED)) if count else ()
    known = [(url, await end_of(pages, url)) for url in found]
    asked = [(page.url, await end_of(pages, Url(page.target))) for page in vanished.asked if page.target]
    some = ((known, len(found), count), (asked, len(vanished.asked), vanished.count))
    return sum(times * _own_pages(ends, run) // size for ends, size, times in some if size)


def _own_pages(moved: Sequence[tuple[Url, tuple[Url, UrlRecord | None]]], run: int) -> int:
    """How many listed pages these lead to. One with a query may be for a login, or of a session."""
    listed = {
        (url, end)
        for url, (end, record) in moved
        if record and record.run == run and isinstance(record.outcome, Listed)
    }
    return len({end for url, end in listed if "?" in url or "?" not in end})


async def with_examples(frontier: Frontier, refusal: PublishRefused) -> PublishRefused:
    """The refusal, with a few of the pages that were decisive: published ones, if there are any."""
    pages = await frontier.read(reads.PublishedExamples(refusal.codes)) if refusal.codes else ()
    for code in () if pages else sorted(refusal.codes):
        pages = [*pages, *await frontier.read(reads.Examples(code))]
    if not pages:
        return refusal
    named = ", ".join(page[:LONGEST_SHOWN] for page in pages[:EXAMPLES])
    return PublishRefused(f"{refusal} For example: {named}.", refusal.codes)


async def doubts_of(pages: Record, starts: Sequence[Url]) -> SiteDoubts:
    """Doubts about the result of the newest run."""
    landings, known = [], await pages.read(reads.WhatIsKnown())
    for start in starts:
        first = await pages.read(reads.RecordOf(start))
        url, record = await end_of(pages, start, first)
        landings.append(
            Landing(
                url,
                record.facts.obstacle if record and record.facts else None,
                url != start,
                was_open=bool(known and first and first.was == "listed"),
                is_elsewhere=bool(known and known.pages > known.visited)
                and urls.origin(url) != urls.origin(start),
            )
        )
    survey, shell = await together(
        pages.read(reads.SiteSurvey(urls.origin(landings[0].url))), pages.read(reads.SameShell(MANY_SHELLS))
    )
    return doubts(landings, survey, shell)
