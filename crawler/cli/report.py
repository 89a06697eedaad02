"""`report`: shows the findings about a site, from the saved state."""

import sys

from crawler.app import report as reports
from crawler.cli.output import remark, show_text
from crawler.cli.rows import show_object
from crawler.cli.saved_state import opened_state, remark_other_site, start_of, with_state
from crawler.errors import Exit
from crawler.report.builder import ITEMS
from crawler.report.forms import as_json, as_text
from crawler.report.printable import printable
from crawler.settings.sections import Settings

SHOWN = 10  # items of each finding on stdout, by default


async def show_report(settings: Settings, *, form: str, most: int | None) -> Exit:
    """Runs `report`. Exit 8 if there is a finding of --fail-on."""
    reports.check(settings)
    start = start_of(settings)
    settings = with_state(settings, start)
    async with opened_state(settings, start) as frontier:
        known = await reports.read_known(frontier, settings)
        remark_other_site(start, known)
        kept = most if most is not None else ITEMS if settings.report.report else SHOWN
        report = await reports.build_report(frontier, known, most=kept)
        await reports.write(frontier, report, settings.report.report)
        if form == "csv" and not settings.report.report:
            await reports.write_table(frontier, known, sys.stdout)
    if settings.report.report:  # perhaps by the settings file, so that nothing is printed unexpectedly
        remark(f"Written: {', '.join(map(printable, settings.report.report))}")
    elif form != "csv":
        cut = report.cut(SHOWN if most is None else most)
        if form == "text":
            show_text(as_text.text_of(cut))
        else:
            show_object(as_json.masked_json(cut), form, "findings")
    return Exit.FINDINGS if reports.failing(report.findings, settings.report.fail_on) else Exit.OK
