"""`report`: shows the findings about a site from the state, and renders the reports that `crawl` writes at its end."""

import click

from crawler.app import report as reports
from crawler.app.starts import normaliser, start_url
from crawler.app.state import open_frontier
from crawler.cli.states import with_state
from crawler.errors import Exit
from crawler.report.builder import ITEMS
from crawler.report.forms import as_json, as_text
from crawler.report.report import Report
from crawler.settings.sections import Settings

SHOWN = 10  # items of each finding on stdout, by default


async def show_report(settings: Settings, *, form: str, most: int | None) -> Exit:
    """Run `report`. Exit 8 if there is a finding of --fail-on."""
    reports.check(settings)
    start = start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None
    settings = with_state(settings, start)
    frontier = open_frontier(settings, start, read_only=True)
    try:
        known = await reports.read_known(frontier, settings)
        kept = most if most is not None else ITEMS if settings.report.report else SHOWN
        report = await reports.build_report(frontier, known, most=kept)
    finally:
        await frontier.close()
    reports.write(report, settings.report.report)
    if not settings.report.report:
        click.echo(shown(report, form, SHOWN if most is None else most), nl=False)
    return Exit.FINDINGS if reports.failing(report.findings, settings.report.fail_on) else Exit.OK


def shown(report: Report, form: str, most: int) -> str:
    """The report for stdout."""
    cut = report.cut(most)
    return as_json.rendered(cut) if form == "json" else as_text.rendered(cut)
