"""Builds a visitor, which fetches and judges pages, from settings: all that a worker process needs.

`state` opens the state; `job` builds the rest of a crawl.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from crawler.app.features import FEATURES
from crawler.app.settings_urls import normaliser, product_token, starts_of
from crawler.engine.robots import Access, Robots
from crawler.engine.visitor import BODY_MEMORY, BodyMemory, LocalVisitor
from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.politeness import AddressPace
from crawler.fetch.request_headers import RequestIdentity
from crawler.fetch.retry import Retrying, no_wait
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, Politeness, Reader, Visitor
from crawler.report.traffic import Traffic
from crawler.rules.judge import LISTABLE_TYPES, Judge, JudgeRules
from crawler.rules.lastmod import DATE_SOURCES
from crawler.settings.object_url import parsed, state_object
from crawler.settings.sections import Settings
from crawler.workers.sandbox import Sandbox
from crawler.workers.surroundings import Surroundings

if TYPE_CHECKING:
    from crawler.fetch.routes import Transport


class Visiting(Struct, frozen=True):
    """The visitor of one process, and those of its parts that are also used on their own."""

    visitor: Visitor
    fetcher: Fetcher
    judge: Judge
    reader: Reader


def traffic_of(settings: Settings) -> Traffic | None:
    """The counters of requests, if they are asked for."""
    return Traffic() if settings.report.metrics_file or settings.report.metrics_port else None


def check_extras(settings: Settings) -> None:
    """Raises `ConfigError`, which names the extra, if one that the settings require is not installed."""
    if settings.http.http2 and find_spec("h2") is None:
        raise ConfigError("--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'.")
    kept, published = state_object(settings.state.state), parsed(settings.output.output)
    for flag, url in ("--state", kept), ("--output", published):
        if url:
            from crawler.sitemap.publish.object_store import check_installed  # noqa: PLC0415 - if asked for

            check_installed(url, flag)
    if settings.render.render != "off":
        from crawler.fetch.render import renderer  # noqa: PLC0415 - as above

        renderer.check(settings)


def access_of(
    settings: Settings,
    frontier: Frontier,
    fetcher: Fetcher,
    politeness: Politeness,
    paced: Callable[[float], None] = lambda _: None,
) -> Access:
    """How origins are contacted. `paced`: called with the delay of the slowest one, in seconds."""
    pace, agent = settings.pace, product_token(settings.http.user_agent)

    async def slot(origin: str) -> None:
        await politeness(origin, await frontier.slot(origin))

    robots = Robots(agent, fetcher, slot, now=frontier.clock, ignore=pace.ignore_robots)
    delay = 1 / pace.rate if pace.rate else 0.0
    return Access(frontier, fetcher, robots, politeness, delay, pace.max_wait, paced)


def open_fetcher(settings: Settings, transport: "Transport | None" = None) -> HttpFetcher:
    """A fetcher without retries, as a context manager. `transport`: see `open_job`. Raises `ConfigError`."""
    if transport is not None and settings.pace.processes > 1:
        raise ConfigError(
            "processes must be 1 when a transport is passed in: it cannot be sent to a process."
        )
    starts = starts_of(settings)
    guard = AddressGuard(starts, settings.http.allow_address, settings.scope.allow_host)
    identity = RequestIdentity(settings.http, {urls.origin(url) for url in starts})
    connections = settings.pace.concurrency + 2
    return HttpFetcher(settings.http, guard, identity, connections=connections, transport=transport)


@asynccontextmanager
async def open_visitor(settings: Settings, plain: Fetcher, around: Surroundings) -> AsyncIterator[Visiting]:
    """A visitor in this process that uses the fetcher `plain`."""
    traffic, clock = around.traffic, around.clock
    sandbox = Sandbox(children=around.children, reading=around.reading)
    async with sandbox.running() as reader, AsyncExitStack() as stack:
        fetcher: Fetcher = Retrying(
            fetcher=plain,
            pacer=around.pacer,
            retries=settings.http.retries,
            total=settings.http.total_timeout,
            clock=clock,
            sleep=anyio.sleep,
            turn=around.turn,
            throttled=around.throttled,
            traffic=traffic,
            repeated=around.repeated,
            at_address=_address_pace(settings, plain, clock),
        )
        if around.permits and settings.render.render != "off":
            from crawler.fetch.render import renderer  # noqa: PLC0415 - as above
            from crawler.fetch.render.resources import Slot  # noqa: PLC0415 - as above

            slot = Slot(around.pacer, around.turn)
            fetcher = await stack.enter_async_context(
                renderer.open_renderer(settings, fetcher, around.permits(fetcher), slot)
            )
        judge = Judge(_rules(settings, normaliser(settings, around.session, around.base), around.base))
        bodies = BodyMemory(BODY_MEMORY // max(1, settings.pace.processes))
        visitor = LocalVisitor(fetcher, judge, reader, clock, around.reading, around.suspect, bodies)
        yield Visiting(visitor, fetcher, judge, reader)


def _address_pace(
    settings: Settings, plain: Fetcher, clock: Callable[[], float]
) -> Callable[[Url], Awaitable[None]]:
    """Paces requests to one address under several names; each process has its share of --rate."""
    pace = settings.pace
    if not pace.rate or not isinstance(plain, HttpFetcher):
        return no_wait
    return AddressPace(pace.processes / pace.rate, clock, anyio.sleep, plain.address)


def _rules(settings: Settings, normalise: Normaliser, base: PublishBase | None) -> JudgeRules:
    return JudgeRules(
        agent=product_token(settings.http.user_agent),
        normalise=normalise,
        types=frozenset[str]().union(*(LISTABLE_TYPES.get(name, {name}) for name in settings.verdicts.types)),
        off=frozenset(settings.verdicts.no_rule),
        date_sources=DATE_SOURCES[settings.dates.lastmod],
        bots=frozenset(map(str.lower, settings.verdicts.bots)),
        features=tuple(
            feature.reader(settings, normalise, base) for feature in FEATURES if feature.is_on(settings)
        ),
        max_redirects=settings.http.max_redirects,
        retries=settings.http.retries,
        max_wait=settings.pace.max_wait,
        render=settings.render.render,
        ignored=",".join(settings.dates.lastmod_ignore),
    )
