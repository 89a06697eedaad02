"""What is published of the newest run, from the state: where, which entries, and doubts about them."""

from collections.abc import AsyncIterator, Sequence

from crawler.app.features import writing
from crawler.model.facts import Entry
from crawler.model.note import OUTPUT, PUBLISH_BASE
from crawler.model.outcome import Moved
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, History, Record, Runs, reads
from crawler.rules.doubts import Landing, SiteDoubts, doubts
from crawler.rules.page_rules import PageRules
from crawler.settings.sections import DEFAULTS, Settings


async def final_start(pages: Record, start: Url) -> Url:
    """The final URL of a start URL, after redirects."""
    for _ in range(100):
        record = await pages.read(reads.RecordOf(start))
        if record is None or not isinstance(record.outcome, Moved):
            break
        start = record.outcome.to
    return start


async def published_as(history: History, settings: Settings, start: Url | None = None) -> PublishBase | None:
    """How URLs are published: by `--publish-base`, else as in the last publication, else by the newest run.

    `start`: if None or not in the state, the first start URL of the newest run. Returns None without a run.
    """
    known = start
    if known is None or await history.read(reads.RecordOf(known)) is None:
        known = await history.read(reads.FirstStart())
    if known is None:
        return None
    site = urls.origin(await final_start(history, known))
    last = await history.read(reads.LastPublication())
    known_base = last.base if last and last.base else await history.recall(PUBLISH_BASE)
    return PublishBase(settings.output.publish_base or known_base or site, site)


async def output_of(runs: Runs, settings: Settings) -> str:
    """The folder of the sitemap, or its URL in an object store.

    From --output, else from the last publication, else from the newest run's settings.
    """
    told = settings.output.output
    if told != DEFAULTS.output.output:
        return told
    last = await runs.read(reads.LastPublication())
    kept = last.folder if last and last.folder else await runs.recall(OUTPUT)
    return kept or told


async def in_published_order(
    frontier: Frontier, base: PublishBase, settings: Settings
) -> AsyncIterator[Sequence[Entry]]:
    """The entries as these settings want them, sorted by published URL."""
    rules = PageRules(settings.rules.rule)
    for first, below in base.ranges():
        entries = _by_rules(frontier.stream(reads.ListedEntries(first, below)), rules)
        for feature in writing(settings):
            entries = feature.extended(frontier, settings, entries)
        async for chunk in entries:
            yield chunk


async def _by_rules(
    entries: AsyncIterator[Sequence[Entry]], rules: PageRules
) -> AsyncIterator[Sequence[Entry]]:
    async for chunk in entries:
        yield rules.apply(chunk) if rules else chunk


async def doubts_of(pages: Record, starts: Sequence[Url]) -> SiteDoubts:
    """Doubts about the result of the newest run."""
    landings = []
    for start in starts:
        url = await final_start(pages, start)
        record = await pages.read(reads.RecordOf(url))
        landings.append(
            Landing(url, record.facts.obstacle if record and record.facts else None, url != start)
        )
    return doubts(landings, await pages.read(reads.SiteSurvey(urls.origin(landings[0].url))))
