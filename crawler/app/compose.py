"""Settings to a visitor: what asks for pages and judges them, put together. A worker process needs no more than this.

The state is opened in `state`; the rest of a crawl is put together in `job`.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import anyio

from crawler.app.starts import normaliser, product_token, starts_of
from crawler.engine.visitor import Local, nobody
from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import Identity
from crawler.fetch.retry import Retrying
from crawler.fetch.routes import Transport
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Pacer, Turn, Visitor
from crawler.rules.judge import TYPES, Judge, Rules
from crawler.rules.lastmod import LADDERS
from crawler.settings.sections import Settings
from crawler.workers.sandbox import CHILDREN, Sandbox


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


def open_fetcher(settings: Settings, transport: Transport | None = None) -> HttpFetcher:
    """Single exchanges, to be entered. `transport`: see `open_job`. Raises `ConfigError`."""
    if transport is not None and settings.pace.processes > 1:
        raise ConfigError(
            "processes must be 1 when a transport is passed in: it cannot be sent to a process."
        )
    starts = starts_of(settings)
    guard = AddressGuard(starts, settings.http.allow_address, settings.scope.allow_host)
    identity = Identity(settings.http, {urls.origin(url) for url in starts})
    connections = settings.pace.concurrency + 2
    return HttpFetcher(settings.http, guard, identity, connections=connections, transport=transport)


@asynccontextmanager
async def open_visitor(
    settings: Settings,
    plain: Fetcher,
    pacer: Pacer,
    turn: Turn,
    throttled: Callable[[float], None],
    session: Callable[[str, str], None],
    base: PublishBase | None,
    *,
    children: int = CHILDREN,
    reading: Callable[[Url], AbstractContextManager[None]] = nobody,
) -> AsyncIterator[Visiting]:
    """A visitor in this process, over `plain`.

    `children`: processes at most that read risky markup; within `reading` a page is read; `throttled` and `session` hear what `Retrying` and
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
            throttled=throttled,
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
