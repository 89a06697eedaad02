"""`init`: writes a short settings file for a site, after a look at its robots.txt and first page.

On a terminal it asks five questions; elsewhere it takes the defaults. It never overwrites a file, and what
the site says never gets into the file, except the address that it redirects to. The file is written for a
site that is down or refuses this program, which may pass, and not for a URL that is wrong.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from crawler.app.settings_urls import normaliser, product_token, start_url
from crawler.cli.interrupt import run
from crawler.cli.output import suggested
from crawler.cli.signals import received
from crawler.cli.typed_url import over_http
from crawler.engine.robots import ask_robots, origin_rules
from crawler.errors import ConfigError, Exit, Interrupted, OutputError, StartUnreachable
from crawler.fetch.exchange import fetcher_of
from crawler.model.outcome import HTML
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Response, RobotsFile
from crawler.parse import url as urls
from crawler.parse.headers import content_type
from crawler.parse.url import Url
from crawler.ports import Fetcher, Request
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.rules.redirects import Redirects
from crawler.settings.load import FILE
from crawler.settings.recipe import recognised
from crawler.settings.sections import DEFAULTS, Settings, keys

PAGE: Final = 1_000_000  # bytes of the first page that are read
HOPS: Final = 5  # redirects that are followed
LOGIN: Final = frozenset({401, 403})
NO_PAGE: Final = frozenset({200, 404, 410})  # statuses of a first page that is none: its URL is wrong
THERE: Final = f"{FILE} is there already: edit it, or remove it and run init again."
UNANSWERED: Final = "The questions were not answered to the end; no file was written."
SCOPES: Final = ("host", "path", "subdomains", "domain")


class Answers(Struct, frozen=True):
    """What goes into the file. The other settings are in it as comments."""

    start: str
    scope: str = DEFAULTS.scope.scope
    exclude: str = ""
    recipe: str = ""
    rate: float = DEFAULTS.pace.rate
    output: str = DEFAULTS.output.output


class Look(Struct, frozen=True):
    """What a first look at a site shows."""

    start: Url  # where the site is: as given, or at the origin that it redirects to
    remarks: Sequence[str] = ()
    recipe: str = ""


def init_site(settings: Settings, text: str | None) -> Exit:
    """Asks, looks, and writes the file. Raises `ConfigError`, `OutputError`."""
    if Path(FILE).exists():
        raise ConfigError(THERE)
    is_asking = sys.stdin.isatty() and sys.stdout.isatty()
    if not text and not is_asking:
        raise ConfigError("Name the URL of the site, as in `sitemap-crawler init https://example.com/`.")
    text = text or str(_ask("URL of the site"))
    url = start_url(text, normaliser(settings))
    instead = over_http("init", text, url)
    seen = run(lambda: look(settings, url, instead))
    for remark in seen.remarks:
        click.echo(printable(remark, 500))
    answers = Answers(seen.start, recipe=seen.recipe)
    _write(written(_asked(answers) if is_asking else answers))
    click.echo(f"{FILE} is written. Next:\n\n    {suggested('crawl')}\n")
    return Exit.OK


# -- the site -----------------------------------------------------------------------------------------------


async def look(settings: Settings, url: Url, instead: str = "") -> Look:
    """Reads robots.txt and the first page. A site that does not answer is a remark.

    `instead`: what to try then, if the scheme is a guess. Raises `StartUnreachable` if the URL is wrong.
    """
    site = urls.origin(url)
    async with fetcher_of(settings.http, [url], {site}) as fetcher:
        file = await ask_robots(site, fetcher, time.time)
        rules = origin_rules(file, product_token(settings.http.user_agent), site)
        remarks = [f"robots.txt names {counted(len(rules.sitemaps), 'sitemap')}."] if rules.sitemaps else []
        if file.detail.startswith(Cause.DNS.says) or (instead and file.is_silent):
            raise _wrong(url, file.detail, instead if file.is_silent else "")
        if file.failed:
            return Look(url, [_unread(site, file)])
        if not (permit := rules.permit(url)).allowed:
            line = f" ({permit.line})" if permit.line else ""
            return Look(url, [*remarks, f"robots.txt forbids the first page{line}; it was not requested."])
        return await _first_page(fetcher, url, remarks)


def _wrong(url: Url, why: str, instead: str = "") -> StartUnreachable:
    return StartUnreachable(f"{url}: {why}; no file was written.{instead}")


def _unread(site: str, file: RobotsFile) -> str:
    """Why the site was not looked at."""
    if file.status == "unreachable":
        return f"{site} does not answer ({file.detail}); the first page was not requested."
    return f"robots.txt cannot be read ({file.detail}); the first page was not requested."


async def _first_page(fetcher: Fetcher, url: Url, remarks: list[str]) -> Look:
    redirects = Redirects(url)
    reply = await fetcher.fetch(Request(url, limit=PAGE, cut=True))
    for _ in range(HOPS):
        if (to := redirects.follow(reply)) is None:
            break
        reply = await fetcher.fetch(Request(to, limit=PAGE, cut=True))
    if isinstance(reply, Broken):
        return Look(url, [*remarks, f"The first page cannot be read: {reply.cause.says}."])
    if (fault := _fault(reply)) and reply.status in NO_PAGE:
        raise _wrong(url, f"the first page {fault}")
    if fault:
        return Look(url, [*remarks, f"The first page {fault}."])
    site = urls.origin(redirects.url)
    if site != urls.origin(url):
        remarks.append(f"{urls.origin(url)} redirects to {site}, so the crawl begins there.")
        url = Url(site + urls.target(url))
    if b"hreflang" in reply.body.lower():
        remarks.append("The first page names versions in other languages (hreflang).")
    recipe = recognised(reply.body)
    if recipe:
        remarks.append(f"The site is made by {recipe.system}: the recipe {recipe.name} is used.")
    return Look(url, remarks, recipe.name if recipe else "")


def _fault(reply: Response) -> str:
    """What is wrong with the first page; empty if it is a page."""
    if 300 <= reply.status < 400:
        return f"redirects, but never to a page (status {reply.status})"
    if reply.status in LOGIN:
        return f"answers {reply.status}: it needs a login, or the server refuses this program"
    if reply.status != 200:
        return f"answers {reply.status}"
    kind, _ = content_type(reply.headers.get("content-type"))
    return f"is {kind}, not HTML: no link can be followed from it" if kind and kind not in HTML else ""


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
    except click.Abort:  # also of Ctrl-D
        raise Interrupted if received.first else ConfigError(UNANSWERED) from None
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
            *([("recipe", json.dumps(answers.recipe), True)] if answers.recipe else []),
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
    yield f"# The crawl of {answers.start}\n#\n#     sitemap-crawler crawl\n#\n# in this folder.\n"
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
        raise ConfigError(THERE) from None
    except OSError as error:
        raise OutputError(f"{FILE} cannot be written: {error.strerror}.") from error
