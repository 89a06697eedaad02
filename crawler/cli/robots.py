"""`robots`: which group and which line of robots.txt decide; and how answers to questions are laid out.

All of it goes to stdout as plain lines (or one JSON object), so that it can be piped; all of it that came from the
network is made printable first.
"""

import json
import time
from collections.abc import Iterator
from typing import Final

import anyio
import click
import httpx

from crawler.app.starts import normaliser, product_token, start_url
from crawler.cli.answers import show_lines, wants_json
from crawler.engine.robots import Robots
from crawler.errors import Exit
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.politeness import Politeness
from crawler.fetch.request_headers import Identity
from crawler.model.robots import RobotsFile
from crawler.parse import url as urls
from crawler.parse.robots_txt import Decision
from crawler.report.printable import printable
from crawler.settings.sections import Settings

STATUSES: Final = {
    "rules": "read",
    "none": "there is none",
    "down": "could not be read, so nothing may be asked for",
    "unreachable": "could not be reached, so nobody knows what may be asked for",
}
VERDICTS: Final = {"allowed": Exit.OK, "forbidden": Exit.ROBOTS, "unreachable": Exit.UNREACHABLE}


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
        turn=Politeness(time.time, anyio.sleep),
    )


def _never(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no network here", request=request)


async def show_permit(settings: Settings, text: str) -> Exit:
    """Read robots.txt of the URL's origin and name the line that decides.

    Exit 5 when it forbids, or answers with a server error; exit 4 when it cannot be reached.
    """
    url = start_url(text, normaliser(settings))
    site = urls.origin(url)
    guard = AddressGuard([url], settings.http.allow_address)
    async with HttpFetcher(settings.http, guard, Identity(settings.http, {site})) as fetcher:
        robots = robots_of(settings, fetcher)
        file = await robots.ask(site)
        await robots.learn(site, file)
    decision = robots.decide(url)
    word = file.status if file.status == "unreachable" else "allowed" if decision.allowed else "forbidden"
    if wants_json(settings):
        facts = {"url": url, "allowed": decision.allowed, "group": decision.group, "line": decision.line}
        click.echo(json.dumps(facts | {"status": file.status, "detail": file.detail}))
    else:
        click.echo(f"{word}  {printable(url, 2_100)}")
        show_lines(_permit(file, decision, product_token(settings.http.user_agent)))
    return VERDICTS[word]


def _permit(file: RobotsFile, decision: Decision, agent: str) -> Iterator[tuple[str, str]]:
    """What was read and what decided; a file that could not be read has no lines to name."""
    yield "robots.txt", STATUSES[file.status] + (f" ({file.detail})" if file.detail else "")
    yield "agent", agent
    if file.status in ("rules", "none"):
        yield "group", decision.group or "none applies"
        yield "line", decision.line or "none matches"
