"""The report at the end of `crawl`: made for the summary, the files of --report and --fail-on."""

import shlex
from collections.abc import Sequence

from crawler.app import report as reports
from crawler.app.job import Job
from crawler.app.state import MEMORY
from crawler.cli.run_summary import FindingLine
from crawler.cli.signals import noted
from crawler.report.forms.as_text import measure
from crawler.report.report import Report
from crawler.settings.sections import Settings
from crawler.sitemap.publish.publish import Published


async def report_of(job: Job, published: Published | None = None) -> Report | None:
    """The report of the run that `job` has just ended; None if it is not needed."""
    settings = job.settings
    is_wanted = settings.report.report or settings.report.fail_on
    if not is_wanted and (settings.log.quiet or noted.first):
        return None  # after an interruption, the program should exit quickly
    known = await reports.known_of(
        job.frontier,
        settings,
        robots_line=(published.robots_line or None) if published else None,
        settings_told=True,
    )
    return await reports.gathered(job.frontier, known, findings_only=not settings.report.report)


def finding_lines(report: Report | None) -> Sequence[FindingLine]:
    """The findings in the summary, the most severe first."""
    if report is None:
        return ()
    return [
        FindingLine(f.code.value, f.code.severity.value, f.count, f.new, measure(f)) for f in report.findings
    ]


def command(settings: Settings, start: str) -> str:
    """The command that shows all findings; empty for a state that was not kept."""
    if settings.state.state == MEMORY:
        return ""
    where = ["--state", settings.state.state] if settings.state.state else [start]
    return shlex.join(["sitemap-crawler", "report", *where])
