"""`state`: the crawls in a database, for those who operate it."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from crawler.app import database
from crawler.cli.rows import Rows, show_object
from crawler.errors import ConfigError, Exit
from crawler.model.run import StoredCrawl
from crawler.report.formatting import counted, iso, second, size
from crawler.report.printable import printable
from crawler.settings.sections import Settings


def run_state(settings: Settings, what: str, name: str | None, owner: str | None, *, form: str) -> Exit:
    """Runs `state WHAT`. Raises `ConfigError`, `FrontierError`, `StateBusy`."""
    if owner and what != "init":
        raise ConfigError("--owner: only state init creates tables.")
    if name and what == "list":
        raise ConfigError("state list takes no name: it lists all crawls of the database.")
    match what:
        case "init":
            made, is_new = database.create(settings, name, owner)
            words = f"{printable(made, 200)}: {'created' if is_new else 'was there already'}."
            _say(words, {"name": made, "created": is_new}, form)
        case "upgrade":
            upgraded = database.upgrade(settings, name)
            _say(f"{counted(len(upgraded), 'crawl')} up to date.", {"upgraded": upgraded}, form)
        case "drop":
            crawl = database.drop(settings, name)
            words = f"{printable(crawl.name, 200)}: dropped, {size(crawl.bytes)}."
            _say(words, {"name": crawl.name, "bytes": crawl.bytes}, form)
        case _:
            _list(settings, database.list_crawls(settings), form)
    return Exit.OK


def _say(words: str, facts: Mapping[str, Any], form: str) -> None:
    click.echo(words) if form == "text" else show_object(facts, form)


def _list(settings: Settings, crawls: Sequence[StoredCrawl], form: str) -> None:
    if form != "text":
        rows = Rows(form, StoredCrawl._fields)
        for crawl in crawls:
            rows.add(crawl._asdict() | {"started": iso(crawl.started)})
        rows.end()
        return
    if not crawls:
        click.echo(f"There is no crawl in {database.database_of(settings)}.")
        return
    names = [printable(crawl.name, 60) for crawl in crawls]
    width, wide = max(map(len, names)), max(len(crawl.schema) for crawl in crawls)
    for name, crawl in zip(names, crawls, strict=True):
        click.echo(f"{name:<{width}}  {crawl.schema:<{wide}}  {size(crawl.bytes):>9}  {_newest(crawl)}")


def _newest(crawl: StoredCrawl) -> str:
    if crawl.version is None:
        return "not readable by this user"
    if crawl.run is None or crawl.started is None:
        return "no run yet"
    at_work = f", {counted(crawl.members, 'member')} at work" if crawl.members else ""
    return f"run {crawl.run} {crawl.status}, started {second(crawl.started)}{at_work}"
