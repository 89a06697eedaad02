"""What the state says of its newest run: where its sitemap lies and under which base, what is listed, what is doubtful."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from crawler.model.facts import Entry
from crawler.model.note import OUTPUT, PUBLISH_BASE
from crawler.model.outcome import Moved
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import History, Record, Runs
from crawler.rules.doubts import Doubts, Landing, doubts
from crawler.settings.sections import DEFAULTS, Settings


async def home_of(pages: Record, start: Url) -> Url:
    """A start URL, or where it moved to."""
    for _ in range(100):
        record = await pages.record(start)
        if record is None or not isinstance(record.outcome, Moved):
            break
        start = record.outcome.to
    return start


async def published_as(history: History, settings: Settings, start: Url | None = None) -> PublishBase | None:
    """How crawled URLs are published: by `--publish-base`, else as they were last, else as the newest run was told.

    `start`: None, or one that the state does not know, is the one that the newest run began with. None if there is no run.
    """
    known = start if start and await history.record(start) else await history.first()
    if known is None:
        return None
    site = urls.origin(await home_of(history, known))
    last = await history.last_publication()
    told = last.base if last and last.base else await history.recall(PUBLISH_BASE)
    return PublishBase(settings.output.publish_base or told or site, site)


async def output_folder(runs: Runs, settings: Settings) -> Path:
    """Where the sitemap lies: as --output says, else where it was published last, else as the newest run was told."""
    told = settings.output.output
    if told != DEFAULTS.output.output:
        return Path(told)
    last = await runs.last_publication()
    kept = last.folder if last and last.folder else await runs.recall(OUTPUT)
    return Path(kept or told)


async def in_published_order(pages: Record, base: PublishBase) -> AsyncIterator[Sequence[Entry]]:
    """What is listed, in the order of the URLs that are published."""
    for first, below in base.ranges():
        async for chunk in pages.entries(first, below):
            yield chunk


async def doubts_of(pages: Record, starts: Sequence[Url]) -> Doubts:
    """What there is to doubt of the newest run."""
    landings = []
    for start in starts:
        url = await home_of(pages, start)
        record = await pages.record(url)
        landings.append(Landing(url, record.facts.look if record and record.facts else None, url != start))
    return doubts(landings, await pages.survey(urls.origin(landings[0].url)))
