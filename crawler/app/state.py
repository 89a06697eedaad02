"""Settings to the state of a site: where it lies, the frontier over it, and what its newest run was told.

Nothing here can fetch, so that commands which only read the state need not load an HTTP client or a parser of HTML.
"""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from crawler.errors import ConfigError
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.ledger import FAR
from crawler.frontier.sqlite.ownership import Owner, owner_of
from crawler.frontier.sqlite.state_file import remove_state, silence
from crawler.model.facts import Entry
from crawler.model.note import OUTPUT, PUBLISH_BASE
from crawler.model.outcome import Moved
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, History, Record, Runs
from crawler.rules.doubts import Doubts, Landing, doubts
from crawler.settings.sections import DEFAULTS, Settings

log = logging.getLogger("crawler.app.state")

MEMORY: Final = ":memory:"
FOLDER: Final = Path(".sitemap-crawler")


def state_path(settings: Settings, start: Url | None) -> str:
    """Where the state of a site lives. Raises `ConfigError` when neither a state nor a start is known."""
    if settings.state.state:
        return settings.state.state
    if start is None:
        raise ConfigError("Which state? Give --state, or the URL that was crawled.")
    return str(FOLDER / (urls.netloc(start).replace(":", "_").strip("[]") + ".db"))


def states() -> list[str]:
    """The states in the folder where a crawl puts its own, in the order of their names."""
    return sorted(str(path) for path in FOLDER.glob("*.db") if owner_of(path) is Owner.OURS)


def silent_for(settings: Settings, start: Url | None) -> float | None:
    """For how many seconds no run has worked on the state; None if none ever did."""
    return silence(state_path(settings, start), time.time())


def open_frontier(settings: Settings, start: Url | None, *, read_only: bool = False) -> Frontier:
    """The frontier of a site. Raises `FrontierError`, `StateBusy` or `ConfigError`."""
    path = state_path(settings, start)
    if "://" in path:
        raise ConfigError(f"--state: {path.partition(':')[0]} is not supported; name a file.")
    begins_anew = settings.state.fresh and path != MEMORY and not read_only
    if begins_anew and (kept := remove_state(path)):
        log.warning("state file is damaged; kept under another name", extra={"fields": {"file": str(kept)}})
    gap = 1 / settings.pace.rate if settings.pace.rate else 0.0
    return SqliteFrontier(
        path,
        gap=gap,
        keep_runs=settings.state.keep_runs,
        keep_failing=settings.guard.keep_failing,
        far=far_of(settings),
        clock=time.time,
        read_only=read_only,
    )


def far_of(settings: Settings) -> float:
    """Seconds: what is booked farther ahead was booked by another clock."""
    pace = settings.pace
    return max(FAR, 2 * pace.max_wait, 2 / pace.rate if pace.rate else 0.0)


async def home_of(pages: Record, start: Url) -> Url:
    """A start URL, or where it moved to."""
    for _ in range(100):
        record = await pages.record(start)
        if record is None or not isinstance(record.outcome, Moved):
            break
        start = record.outcome.to
    return start


async def published_as(history: History, settings: Settings, start: Url | None = None) -> PublishBase | None:
    """How crawled URLs are published: by `--publish-base`, else as the newest run was told.

    `start`: None, or one that the state does not know, is the one that the newest run began with. None if there is no run.
    """
    known = start if start and await history.record(start) else await history.first()
    if known is None:
        return None
    site = urls.origin(await home_of(history, known))
    told = await history.recall(PUBLISH_BASE)
    return PublishBase(settings.output.publish_base or told or site, site)


async def output_folder(runs: Runs, settings: Settings) -> Path:
    """Where the sitemap lies: as --output says, else as the newest run was told."""
    told = settings.output.output
    if told != DEFAULTS.output.output:
        return Path(told)
    kept = await runs.recall(OUTPUT)
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
