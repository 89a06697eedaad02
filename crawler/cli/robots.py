"""`robots`: whether robots.txt allows a URL, and which group and line decide.

Output goes to stdout as plain lines or one JSON object; text from the network is made printable first.
"""

import json
import time
from collections.abc import Iterator
from typing import Final

import click

from crawler.app.starts import normaliser, product_token, start_url
from crawler.cli.answers import show_lines, wants_json
from crawler.engine.robots import ask_robots, origin_rules
from crawler.errors import Exit
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import Identity
from crawler.model.robots import RobotsFile
from crawler.parse import url as urls
from crawler.parse.robots_txt import Decision
from crawler.report.printable import printable
from crawler.settings.sections import Settings

STATUSES: Final = {
    "rules": "read",
    "none": "there is none, so everything is allowed",
    "down": "could not be read, so nothing may be fetched",
    "unreachable": "could not be reached, so it is unknown what may be fetched",
}
VERDICTS: Final = {"allowed": Exit.OK, "forbidden": Exit.ROBOTS, "unreachable": Exit.UNREACHABLE}


async def show_permit(settings: Settings, text: str) -> Exit:
    """Fetches the robots.txt of the URL's origin and prints the line that decides.

    Exit 5 if it disallows the URL or answers with a server error; exit 4 if it cannot be reached.
    """
    url = start_url(text, normaliser(settings))
    site = urls.origin(url)
    guard = AddressGuard([url], settings.http.allow_address)
    async with HttpFetcher(settings.http, guard, Identity(settings.http, {site})) as fetcher:
        file = await ask_robots(site, fetcher, time.time)
    agent = product_token(settings.http.user_agent)
    decision = origin_rules(file, agent, site).decide(url)
    word = file.status if file.status == "unreachable" else "allowed" if decision.allowed else "forbidden"
    if wants_json(settings):
        facts = {"url": url, "allowed": decision.allowed, "group": decision.group, "line": decision.line}
        click.echo(json.dumps(facts | {"status": file.status, "detail": file.detail}))
    else:
        click.echo(f"{word}  {printable(url, 2_100)}")
        show_lines(_permit(file, decision, agent))
    return VERDICTS[word]


def _permit(file: RobotsFile, decision: Decision, agent: str) -> Iterator[tuple[str, str]]:
    """The lines to print: the status of the file and, if it could be read, the deciding group and line."""
    yield "robots.txt", STATUSES[file.status] + (f" ({file.detail})" if file.detail else "")
    yield "agent", agent
    if file.status in ("rules", "none"):
        yield "group", decision.group or "none applies"
        yield "line", decision.line or "none matches"
