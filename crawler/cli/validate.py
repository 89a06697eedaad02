"""`validate`: prints findings as `PLACE:LINE: severity code: sentence`, which editors and scripts read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

import click

from crawler.cli.output import remark
from crawler.cli.rows import Rows
from crawler.cli.sitemap_sources import opened_sources, source_named
from crawler.errors import Exit
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.settings.sections import Settings
from crawler.sitemap.tree import is_web
from crawler.sitemap.validate.findings import SitemapFinding
from crawler.sitemap.validate.tree import Totals, Validation

FIELDS: Final = ("place", "line", "severity", "code", "says")


async def validate_sitemaps(settings: Settings, places: Sequence[str], *, form: str, most: int) -> Exit:
    """Checks each place and prints the findings. Exit 8 if there are any, 2 if a place is a web page."""
    show = _Lines(form, most)
    places = [source_named(place) for place in places]
    async with opened_sources(settings, [place for place in places if is_web(place)]) as reading:
        validation = Validation(reading, datetime.now(UTC), settings.output.publish_base)
        for place in places:
            async for found in validation.check(place):
                show(found)
    show.end(validation.totals)
    if validation.found_web_page:
        return Exit.USAGE
    return Exit.FINDINGS if validation.totals.errors or validation.totals.warnings else Exit.OK


class _Lines:
    """Prints findings as they are found, up to `most` of one kind in one file."""

    def __init__(self, form: str, most: int) -> None:
        self._rows, self._most = None if form == "text" else Rows(form, FIELDS, "findings"), most
        self._shown: Counter[tuple[str, str]] = Counter()

    def __call__(self, found: SitemapFinding) -> None:
        key = found.place, found.code.value
        self._shown[key] += 1
        if self._rows:
            values = found.place, found.line, found.severity, found.code.value, found.says
            self._rows.add(dict(zip(FIELDS, values, strict=True)))
        elif not self._most or self._shown[key] <= self._most:
            at = printable(found.place, 2_100) + (f":{found.line}" if found.line else "")
            click.echo(f"{at}: {found.severity} {found.code.value}: {printable(found.says, 1_000)}")

    def end(self, totals: Totals) -> None:
        """Prints the totals: on stderr, as the findings may be piped."""
        if self._rows:
            self._rows.end(totals=asdict(totals))
            return
        for (place, code), count in self._shown.items():
            if self._most and count > self._most:
                remark(f"{printable(place, 2_100)}: {count - self._most:,} more of {code}")
        remark(_summary(totals))


def _summary(totals: Totals) -> str:
    listed = f", {counted(totals.sitemaps, 'sitemap')} in an index" if totals.sitemaps else ""
    checked = f"{counted(totals.files, 'file')}{listed}, {counted(totals.urls, 'URL')}"
    if not totals.errors and not totals.warnings:
        return f"{checked}: valid."
    return f"{checked}: {counted(totals.errors, 'error')}, {counted(totals.warnings, 'warning')}."
