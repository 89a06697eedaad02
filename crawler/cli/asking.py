"""`robots`: which group and which line of robots.txt decide; and how answers to questions are laid out.

All of it goes to stdout as plain lines (or one JSON object), so that it can be piped; all of it that came from the
network is made printable first.
"""

import json
import time
from collections.abc import Iterable

import anyio
import click
import httpx

from crawler import urls
from crawler.errors import Exit
from crawler.fetch import AddressGuard, HttpFetcher, Turns
from crawler.fetch.identity import Identity
from crawler.printable import printable
from crawler.robots import Robots
from crawler.settings import Settings
from crawler.visiting import normaliser, product_token, start_url

WIDTH = 11


def show_lines(pairs: Iterable[tuple[str, str]]) -> None:
    for name, text in pairs:
        click.echo(f"  {name:<{WIDTH}}{printable(text, 2_100)}")


def as_json(settings: Settings) -> bool:
    return settings.log.log_format == "json"


class _NoPace:
    """One request needs no pace."""

    async def slot(self, origin: str) -> float:
        del origin
        return time.time()

    async def slow(self, origin: str, until: float) -> None:
        del origin, until


def robots_of(settings: Settings, fetcher: HttpFetcher | None) -> Robots:
    nobody = HttpFetcher(
        settings.http, AddressGuard(), Identity(settings.http, ()), transport=httpx.MockTransport(_never)
    )
    return Robots(
        product_token(settings.http.user_agent),
        fetcher or nobody,
        _NoPace(),
        now=time.time,
        turn=Turns(time.time, anyio.sleep),
    )


def _never(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no network here", request=request)


async def show_permit(settings: Settings, text: str) -> Exit:
    """Read robots.txt of the URL's origin and name the line that decides. Exit 5 when it forbids."""
    url = start_url(text, normaliser(settings))
    site = urls.origin(url)
    guard = AddressGuard([urls.host(url)], settings.http.allow_address)
    async with HttpFetcher(settings.http, guard, Identity(settings.http, {site})) as fetcher:
        robots = robots_of(settings, fetcher)
        file = await robots.ask(site)
        robots.learn(site, file)
    decision = robots.decide(url)
    if as_json(settings):
        click.echo(
            json.dumps(
                {"url": url, "allowed": decision.allowed, "group": decision.group, "line": decision.line}
            )
        )
    else:
        click.echo(f"{'allowed' if decision.allowed else 'forbidden'}  {printable(url, 2_100)}")
        show_lines(
            [
                ("robots.txt", {"rules": "read", "none": "there is none", "down": "could not be read", "unreachable": "could not be reached"}[file.status]
                 + (f" ({file.detail})" if file.detail else "")),
                ("agent", product_token(settings.http.user_agent)),
                ("group", decision.group or "none applies"),
                ("line", decision.line or "none matches"),
            ]
        )  # fmt: skip
    return Exit.OK if decision.allowed else Exit.ROBOTS
