"""`init`: writes a short settings file for a site, after a look at its robots.txt and first page.

On a terminal it asks five questions; elsewhere it takes the defaults. It never overwrites a file, and what
the site says never gets into the file, except the address that it redirects to.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from crawler.app.starts import normaliser, product_token, start_url
from crawler.cli.interrupt import run
from crawler.cli.output import suggested
from crawler.cli.signals import received
from crawler.engine.robots import ask_robots, origin_rules
from crawler.errors import ConfigError, Exit, Interrupted, OutputError
from crawler.fetch.exchange import fetcher_of
from crawler.model.reply import Broken
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Fetcher, Request
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.rules.redirects import Redirects
from crawler.settings.sections import DEFAULTS, Settings, keys

FILE: Final = "sitemap-crawler.toml"
PAGE: Final = 1_000_000  # bytes of the first page that are read
HOPS: Final = 5  # redirects that are followed
SCOPES: Final = ("host", "path", "subdomains", "domain")


@dataclass(frozen=True, slots=True)
class Answers:
    """What goes into the file. The other settings are in it as comments."""

    start: str
    scope: str = DEFAULTS.scope.scope
    exclude: str = ""
    rate: float = DEFAULTS.pace.rate
    output: str = DEFAULTS.output.output


@dataclass(frozen=True, slots=True)
class Look:
    """What a first look at a site shows."""

    start: Url  # where the site is: as given, or at the origin that it redirects to
    remarks: Sequence[str] = ()


def init_site(settings: Settings, text: str | None) -> Exit:
    """Asks, looks, and writes the file. Raises `ConfigError`, `OutputError`."""
    if Path(FILE).exists():
        raise ConfigError(f"{FILE} is there already, and is not overwritten.")
    is_asking = sys.stdin.isatty() and sys.stdout.isatty()
    if text is None and not is_asking:
        raise ConfigError("Name the URL of the site, as in `sitemap-crawler init https://example.com/`.")
    url = start_url(text or _ask("URL of the site"), normaliser(settings))
    seen = run(lambda: look(settings, url))
    for remark in seen.remarks:
        click.echo(printable(remark, 500))
    answers = Answers(seen.start)
    _write(written(_asked(answers) if is_asking else answers))
    click.echo(f"{FILE} is written. Next:\n\n    {suggested(f'crawl --config {FILE}')}\n")
    return Exit.OK


# -- the site -----------------------------------------------------------------------------------------------


async def look(settings: Settings, url: Url) -> Look:
    """Reads robots.txt and the first page. A site that does not answer is a remark."""
    site = urls.origin(url)
    async with fetcher_of(settings.http, [url], {site}) as fetcher:
        file = await ask_robots(site, fetcher, time.time)
        rules = origin_rules(file, product_token(settings.http.user_agent), site)
        remarks = [f"robots.txt names {counted(len(rules.sitemaps), 'sitemap')}."] if rules.sitemaps else []
        if not rules.permit(url).allowed:
            return Look(
                url, [*remarks, "robots.txt forbids the first page, or cannot be read; it was not requested."]
            )
        return await _first_page(fetcher, url, remarks)


async def _first_page(fetcher: Fetcher, url: Url, remarks: list[str]) -> Look:
    redirects = Redirects(url)
    reply = await fetcher.fetch(Request(url, limit=PAGE, cut=True))
    for _ in range(HOPS):
        if (to := redirects.follow(reply)) is None:
            break
        reply = await fetcher.fetch(Request(to, limit=PAGE, cut=True))
    if isinstance(reply, Broken):
        return Look(url, [*remarks, f"The first page cannot be read: {reply.cause.says}."])
    if reply.status != 200:
        return Look(url, [*remarks, f"The first page answers {reply.status}."])
    site = urls.origin(redirects.url)
    if site != urls.origin(url):
        remarks.append(f"{urls.origin(url)} redirects to {site}, so the crawl begins there.")
        url = Url(site + urls.target(url))
    if b"hreflang" in reply.body.lower():
        remarks.append("The first page names versions in other languages (hreflang).")
    return Look(url, remarks)


# -- the questions ------------------------------------------------------------------------------------------


def _asked(answers: Answers) -> Answers:
    """The answers of a person; an empty one keeps the default."""
    return replace(
        answers,
        output=_ask("Folder of the sitemap", answers.output),
        scope=_ask("What belongs to the site", answers.scope, click.Choice(SCOPES)),
        rate=_ask("Requests per second", answers.rate, click.FloatRange(0, 100_000)),
        exclude=_ask("URLs to leave out, as a pattern such as /search* (none)", ""),
    )


def _ask(question: str, default: Any = None, kind: click.ParamType[Any] | None = None) -> Any:
    """A question on the terminal. INT and TERM end the program here, as the prompt would go on waiting."""
    received.listener = _leave
    try:
        if received.first:
            _leave()
        return click.prompt(question, default=default, type=kind, show_default=default != "")
    except click.Abort:
        raise Interrupted from None
    finally:
        received.listener = None


def _leave() -> None:
    raise Interrupted


# -- the file -----------------------------------------------------------------------------------------------


def written(answers: Answers) -> str:
    """The text of the file: ten settings, of which those that are not answered are comments."""
    start = json.dumps([answers.start])
    lines: dict[str, list[tuple[str, str, bool]]] = {
        "scope": [
            ("start", start, True),
            ("scope", json.dumps(answers.scope), True),
            ("exclude", json.dumps([answers.exclude or "/search*"]), bool(answers.exclude)),
        ],
        "pace": [("rate", f"{answers.rate:g}", True)],
        "output": [
            ("output", json.dumps(answers.output), True),
            ("publish-base", '"https://www.example.com"', False),
        ],
        "report": [
            ("report", '["report.html"]', False),
            ("fail-on", '["new:broken-link"]', False),
            ("metrics-file", '"/var/lib/node_exporter/sitemap.prom"', False),
            ("webhook-env", '"SITEMAP_WEBHOOK"', False),
        ],
    }
    return "".join(_lines(answers, lines))


def _lines(answers: Answers, lines: dict[str, list[tuple[str, str, bool]]]) -> Iterator[str]:
    helps = {key.name: key.option.help for key in keys()}
    yield f"# The crawl of {answers.start}\n#\n#     sitemap-crawler crawl --config {FILE}\n#\n"
    yield "# Remove the # before a line to change it; docs/use/settings.md has all settings.\n"
    for section, settings in lines.items():
        yield f"\n[{section}]\n"
        for name, value, is_set in settings:
            yield f"# {helps[name]}\n{'' if is_set else '# '}{name} = {value}\n"


def _write(text: str) -> None:
    try:
        with Path(FILE).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{FILE} is there already, and is not overwritten.") from None
    except OSError as error:
        raise OutputError(f"{FILE} cannot be written: {error.strerror}.") from error
