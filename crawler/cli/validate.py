"""`validate`: findings as lines that editors and scripts understand, `PLACE:LINE: severity code: sentence`, on stdout."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import click

from crawler.cli.phrases import counted
from crawler.cli.reading import place_named, reading_places
from crawler.errors import Exit
from crawler.report.printable import printable
from crawler.settings.sections import Settings
from crawler.sitemap.tree import is_web
from crawler.sitemap.validate.findings import Finding
from crawler.sitemap.validate.tree import Totals, Validation


async def validate_sitemaps(settings: Settings, places: Sequence[str], *, form: str, most: int) -> Exit:
    """Check every place and say what is wrong. Exit 8 when anything is, 2 when a web page was named."""
    show = _Lines(form, most)
    places = [place_named(place) for place in places]
    async with reading_places(settings, [place for place in places if is_web(place)]) as reading:
        validation = Validation(reading, datetime.now(UTC), settings.output.publish_base)
        for place in places:
            async for found in validation.check(place):
                show(found)
    show.end(validation.totals)
    if validation.met_web_page:
        return Exit.USAGE
    return Exit.FINDINGS if validation.totals.errors or validation.totals.warnings else Exit.OK


class _Lines:
    """Findings as they come; of many of one kind in one file, some."""

    def __init__(self, form: str, most: int) -> None:
        self._json, self._most = form == "json", most
        self._shown: Counter[tuple[str, str]] = Counter()

    def __call__(self, found: Finding) -> None:
        key = found.place, found.code.value
        self._shown[key] += 1
        if self._json:
            facts = {"place": found.place, "line": found.line, "severity": found.severity}
            click.echo(json.dumps(facts | {"code": found.code.value, "says": found.says}))
        elif not self._most or self._shown[key] <= self._most:
            at = printable(found.place, 2_100) + (f":{found.line}" if found.line else "")
            click.echo(f"{at}: {found.severity} {found.code.value}: {printable(found.says, 1_000)}")

    def end(self, totals: Totals) -> None:
        """The last words, on stderr: the findings may be piped."""
        if self._json:
            click.echo(json.dumps({"totals": asdict(totals)}))
            return
        for (place, code), count in self._shown.items():
            if self._most and count > self._most:
                click.echo(f"{printable(place, 2_100)}: {count - self._most:,} more of {code}", err=True)
        click.echo(_summary(totals), err=True)


def _summary(totals: Totals) -> str:
    named = f", {counted(totals.sitemaps, 'sitemap')} named by an index" if totals.sitemaps else ""
    looked = f"{counted(totals.files, 'file')}{named}, {counted(totals.urls, 'URL')}"
    if not totals.errors and not totals.warnings:
        return f"{looked}: valid."
    return f"{looked}: {counted(totals.errors, 'error')}, {counted(totals.warnings, 'warning')}."
