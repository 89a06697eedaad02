"""`robots`: whether robots.txt allows a URL, which group and line decide, and which sitemaps it names.

Each named sitemap is requested, and so is the one that was published last, if the site was crawled. Output
goes to stdout as plain lines or as one JSON object; text from the network is made printable first.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import click
from msgspec import Struct

from crawler.app.robots_line import RobotsLine, compare
from crawler.app.settings_urls import normaliser, product_token, start_url
from crawler.app.state import states
from crawler.cli.output import remark, show_lines
from crawler.cli.rows import show_object
from crawler.cli.saved_state import opened_state, start_of, with_state
from crawler.cli.typed_url import is_path, over_http, url_in_state
from crawler.engine.robots import OriginRules, ask_robots, origin_rules
from crawler.errors import CrawlerError, Exit
from crawler.fetch.exchange import fetcher_of
from crawler.model.note import ROBOTS_LINE
from crawler.model.reply import Broken, RobotsFile
from crawler.parse import url as urls
from crawler.parse.robots_txt import Decision
from crawler.parse.url import Url
from crawler.ports import Fetcher, Request
from crawler.report.printable import printable
from crawler.settings.sections import Settings

STATUSES: Final = {
    "rules": "read",
    "none": "there is none, so everything is allowed",
    "down": "could not be read, so nothing may be fetched",
    "unreachable": "could not be reached, so it is unknown what may be fetched",
}
VERDICTS: Final = {"allowed": Exit.OK, "forbidden": Exit.ROBOTS, "unreachable": Exit.UNREACHABLE}
MAX_SITEMAPS: Final = 5  # sitemaps that are requested


class Sitemap(Struct, frozen=True):
    """A sitemap, and what is at its URL."""

    url: str
    answer: str  # `answers 200`, or why there is no answer
    is_named: bool | None  # by robots.txt; None: it could not be read


async def show_permit(settings: Settings, text: str, *, form: str) -> Exit:
    """Fetches the robots.txt of the URL's origin and prints the line that decides, and the sitemaps.

    Exit 5 if it disallows the URL or answers with a server error; exit 4 if it cannot be reached.
    """
    url = await _url(settings, text)
    site = urls.origin(url)
    async with fetcher_of(settings.http, [url], {site}) as fetcher:
        file = await ask_robots(site, fetcher, time.time)
        rules = origin_rules(file, product_token(settings.http.user_agent), site)
        sitemaps = await _sitemaps(fetcher, rules, file, settings, await _published(settings, url))
    decision = rules.decide(url)
    word = file.status if file.status == "unreachable" else "allowed" if decision.allowed else "forbidden"
    if form != "text":
        facts = {"url": url, "allowed": decision.allowed, "group": decision.group, "line": decision.line}
        shown = [{"url": one.url, "answer": one.answer, "named": one.is_named} for one in sitemaps]
        show_object(facts | {"status": file.status, "detail": file.detail, "sitemaps": shown}, form)
    else:
        click.echo(f"{word}  {printable(url, 2_100)}")
        show_lines(_permit(file, decision, product_token(settings.http.user_agent), sitemaps))
        if word == "unreachable" and (advice := over_http("robots", text, url)):
            remark(advice.strip())
    return VERDICTS[word]


async def _url(settings: Settings, text: str) -> Url:
    """The URL that is meant: a path is one of the site of the settings, or of the state."""
    if is_path(text) and (start := start_of(settings)):
        text = urls.origin(start) + text
    elif is_path(text) and (settings.state.state or states()):
        async with opened_state(with_state(settings, None), None) as frontier:
            return await url_in_state(frontier, settings, text)
    return start_url(text, normaliser(settings))


def _permit(
    file: RobotsFile, decision: Decision, agent: str, sitemaps: Sequence[Sitemap]
) -> Iterator[tuple[str, str]]:
    """The lines to print: the status of the file and, if it could be read, the deciding group and line."""
    yield "robots.txt", STATUSES[file.status] + (f" ({file.detail})" if file.detail else "")
    yield "agent", agent
    if file.status in ("rules", "none"):
        yield "group", decision.group or "none applies"
        yield "line", decision.line or "none matches"
    for sitemap in sitemaps:
        named = {True: "named", False: "published, and not named", None: "published"}[sitemap.is_named]
        yield "sitemap", f"{sitemap.url} ({named}; {sitemap.answer})"


async def _published(settings: Settings, url: Url) -> str | None:
    """The entry point of the last publication, if the site was crawled with a state that is found."""
    with suppress(CrawlerError):
        async with opened_state(with_state(settings, url), url) as frontier:
            entry = (await frontier.recall(ROBOTS_LINE)).partition(" ")[2]
        return entry if entry and urls.origin(entry) == urls.origin(url) else None
    return None


async def _sitemaps(
    fetcher: Fetcher, rules: OriginRules, file: RobotsFile, settings: Settings, entry: str | None
) -> list[Sitemap]:
    """The first sitemaps that robots.txt names, and the published one."""
    published = compare(file, settings, entry) if entry else RobotsLine()
    found = [
        Sitemap(url, await _answer(fetcher, url), is_named=True)
        for url in rules.sitemaps[:MAX_SITEMAPS]
        if not entry or url != entry
    ]
    if entry:
        found.append(Sitemap(entry, await _answer(fetcher, Url(entry)), published.is_named))
    return found


async def _answer(fetcher: Fetcher, url: Url) -> str:
    """What is at a URL, without its body. Redirects are not followed."""
    reply = await fetcher.fetch(Request(url, wants_body=lambda *_: False))
    return reply.cause.says if isinstance(reply, Broken) else f"answers {reply.status}"
