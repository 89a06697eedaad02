"""Settings to a visitor: what asks for pages and judges them, put together. A worker process needs no more than this.

The rest of a crawl, its state and its files, is put together in `app`.
"""

import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio

from crawler.engine.visitor import Local, nobody
from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.bad_ports import BAD_PORTS
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import Identity
from crawler.fetch.retry import Retrying
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.ledger import FAR
from crawler.frontier.sqlite.state_file import remove_state
from crawler.model.facts import Entry
from crawler.model.outcome import Moved
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.tracking import TRACKING
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, History, Pacer, Record, Turn, Visitor
from crawler.rules.doubts import Doubts, Landing, doubts
from crawler.rules.judge import TYPES, Judge, Rules
from crawler.rules.lastmod import LADDERS
from crawler.settings.sections import Settings
from crawler.workers.sandbox import CHILDREN, Sandbox

_WITH_LOGIN: Final = re.compile(r"[^/\\]*:[/\\]+[^/\\?#]*@|[^/\\:]*:[^/\\?#]*@")


def starts_of(settings: Settings) -> tuple[Url, ...]:
    """The start URLs, normalised. A bare host name is read as https. Raises `ConfigError`."""
    if not settings.scope.start:
        raise ConfigError(
            "No URL to start from: name one, as in `sitemap-crawler crawl https://example.com/`."
        )
    starts = [start_url(text, normaliser(settings)) for text in settings.scope.start]
    base = publish_base(settings, starts)
    return tuple(dict.fromkeys(base.crawled(url) if base else url for url in starts))


def publish_base(settings: Settings, starts: Sequence[Url]) -> PublishBase | None:
    """Where the site of the first start URL is published, if that was said. Raises `ConfigError`."""
    base = settings.output.publish_base
    if base is None:
        return None
    folder = urls.target(base) + "/"
    if folder != "/" and any(urls.target(url).startswith(folder) for url in starts[:1]):
        raise ConfigError(
            f"--publish-base: {starts[0]} lies below {folder} itself and would be published below {base}{folder}: "
            f"give {urls.origin(base)}, or crawl the copy where it is served at /."
        )
    return PublishBase(base, urls.origin(starts[0]))


def start_url(text: str, normalise: Normaliser) -> Url:
    """One URL that a person typed. Raises `ConfigError`, which repeats no password."""
    text = text.strip()
    whole = text if "://" in text else f"https://{text}"
    if _WITH_LOGIN.match(whole):
        raise ConfigError(
            "A URL must not hold a user name or password: put user:password into a variable and name that "
            "with --auth-env."
        )
    url = normalise(whole)
    if url is None or not urls.host(url):
        raise ConfigError(f"{text!r} is not an http or https URL.")
    if urls.port(url) in BAD_PORTS:
        raise ConfigError(f"{text!r}: port {urls.port(url)} belongs to another protocol, and is never asked.")
    return url


def sitemap_of(settings: Settings) -> str:
    """What --seed-sitemaps names: "auto", "off", the path of a file, or a URL. Raises `ConfigError`."""
    chosen = settings.scope.seed_sitemaps
    if chosen in {"auto", "off"}:
        return chosen
    if "://" in chosen:
        return start_url(chosen, normaliser(settings))
    if Path(chosen).is_dir() or not Path(chosen).exists():
        raise ConfigError(
            f"--seed-sitemaps: there is no file {chosen}; a URL begins with https:// or http://."
        )
    return chosen


def normaliser(
    settings: Settings,
    sessions: Callable[[str, str], None] = lambda *_: None,
    base: PublishBase | None = None,
) -> Normaliser:
    """The identity of URLs under these settings. `sessions` hears of each session id that goes.

    `base`: published URLs are read as those of the copy that is crawled.
    """
    chosen = settings.urls
    return Normaliser(
        TRACKING | set(chosen.strip_param),
        keep=chosen.keep_param,
        drop_query=chosen.drop_query,
        sessions=None if "session" in settings.scope.allow_trap else sessions,
        base=base,
    )


def product_token(user_agent: str) -> str:
    """The name that robots.txt and meta robots may call us by: the first word of the User-Agent header."""
    return user_agent.split(maxsplit=1)[0].partition("/")[0].lower()


@dataclass(frozen=True, slots=True)
class Visiting:
    """What visits in one process: with its parts, which also serve what is no visit."""

    visitor: Visitor
    fetcher: Fetcher
    judge: Judge


def check_extras(settings: Settings) -> None:
    """What is chosen must be installed. Raises `ConfigError`, which names the extra."""
    if settings.http.http2 and find_spec("h2") is None:
        raise ConfigError("--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'.")


def open_fetcher(settings: Settings) -> HttpFetcher:
    """Single exchanges, to be entered. Raises `ConfigError`."""
    starts = starts_of(settings)
    guard = AddressGuard(starts, settings.http.allow_address, settings.scope.allow_host)
    identity = Identity(settings.http, {urls.origin(url) for url in starts})
    return HttpFetcher(settings.http, guard, identity, connections=settings.pace.concurrency + 2)


@asynccontextmanager
async def open_visitor(
    settings: Settings,
    plain: Fetcher,
    pacer: Pacer,
    turn: Turn,
    strained: Callable[[float], None],
    session: Callable[[str, str], None],
    base: PublishBase | None,
    *,
    children: int = CHILDREN,
    reading: Callable[[Url], AbstractContextManager[None]] = nobody,
) -> AsyncIterator[Visiting]:
    """A visitor in this process, over `plain`.

    `children`: processes at most that read risky markup; within `reading` a page is read; `strained` and `session` hear what `Retrying` and
    `Normaliser` say.
    """
    async with Sandbox(children=children, reading=reading).running() as reader:
        fetcher = Retrying(
            plain,
            pacer,
            retries=settings.http.retries,
            total=settings.http.total_timeout,
            clock=time.time,
            sleep=anyio.sleep,
            turn=turn,
            strained=strained,
        )
        judge = Judge(_rules(settings, normaliser(settings, session, base)))
        yield Visiting(Local(fetcher, judge, reader, time.time, reading), fetcher, judge)


def _rules(settings: Settings, normalise: Normaliser) -> Rules:
    return Rules(
        agent=product_token(settings.http.user_agent),
        normalise=normalise,
        types=frozenset[str]().union(*(TYPES.get(name, {name}) for name in settings.verdicts.types)),
        off=frozenset(settings.verdicts.no_rule),
        ladder=LADDERS[settings.dates.lastmod],
        max_redirects=settings.http.max_redirects,
        retries=settings.http.retries,
        max_wait=settings.pace.max_wait,
    )


log = logging.getLogger("crawler.app.job.compose")


MEMORY: Final = ":memory:"
PUBLISH_BASE: Final = "publish-base"  # as a word of the run
FOLDER: Final = Path(".sitemap-crawler")


def state_path(settings: Settings, start: Url | None) -> str:
    """Where the state of a site lives. Raises `ConfigError` when neither a state nor a start is known."""
    if settings.state.state:
        return settings.state.state
    if start is None:
        raise ConfigError("No state is named: give --state, or the URL that was crawled.")
    return str(FOLDER / (urls.netloc(start).replace(":", "_").strip("[]") + ".db"))


def open_frontier(settings: Settings, start: Url | None, *, read_only: bool = False) -> Frontier:
    """The frontier of a site. Raises `FrontierError`, `StateBusy` or `ConfigError`."""
    path = state_path(settings, start)
    if "://" in path:
        raise ConfigError(f"--state: {path.partition(':')[0]} is not supported; name a file.")
    begins_anew = settings.state.fresh and path != MEMORY and not read_only
    if begins_anew and (kept := remove_state(path)):
        log.warning("the damaged state is kept under another name", extra={"fields": {"file": str(kept)}})
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
    return PublishBase(settings.output.publish_base or await history.recall(PUBLISH_BASE) or site, site)


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
