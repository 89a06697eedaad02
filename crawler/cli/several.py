"""What a command shows of several sites: of each one after the other, and the worst exit code."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any

import click

from crawler.app.sites import SiteSettings
from crawler.cli.output import remark
from crawler.cli.rows import Rows
from crawler.errors import CrawlerError, NoState, worst
from crawler.report.printable import printable
from crawler.settings.sections import Settings


def show_each(sites: Sequence[SiteSettings], show: Callable[[Settings], int], *, form: str) -> int:
    """Runs `show` for each site. Other than as text, each object has the name of its site.

    A site without a state was not crawled yet, which is an error if it is true of all of them.
    """
    if len(sites) == 1:
        return show(sites[0].settings)
    codes, absent = list[int](), list[int]()
    rows: Rows | None = None
    for number, site in enumerate(sites):
        said, shown = "", io.StringIO()
        try:
            with redirect_stdout(shown):
                codes.append(show(site.settings))
        except CrawlerError as error:
            (absent if isinstance(error, NoState) else codes).append(error.exit)
            said = str(error)
        if form == "text":
            words = f"  {printable(said, 1_000)}\n" if said else shown.getvalue()
            click.echo(f"{chr(10) if number else ''}{site.name}\n{words}", nl=False)
            continue
        if said and form == "csv":
            remark(f"{site.name}: {printable(said, 1_000)}")
        for fact in [{"error": said}] if said and form != "csv" else _objects(shown.getvalue(), form):
            rows = rows or Rows(form, ["name", *fact])
            rows.add({"name": site.name} | fact)
    if rows:
        rows.end()
    return worst(codes or absent)


def _objects(text: str, form: str) -> Iterator[dict[str, Any]]:
    if form == "csv":
        yield from csv.DictReader(io.StringIO(text, newline=""))
    else:
        yield from map(json.loads, text.splitlines())
