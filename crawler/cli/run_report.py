"""The report at the end of `crawl`: made for the files of --report; the summary and --fail-on need its findings only."""

from collections.abc import Sequence
from dataclasses import dataclass

from crawler.app import report as reports
from crawler.app.job import Job
from crawler.cli.program import suggested
from crawler.cli.run_summary import FindingLine
from crawler.cli.signals import received
from crawler.report.forms.as_text import measure
from crawler.report.report import Finding, Report
from crawler.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class RunReport:
    """What was found in a run."""

    findings: Sequence[Finding] = ()  # the most severe first
    report: Report | None = None  # None: no file was asked for
    is_gathered: bool = True


async def report_of(job: Job) -> RunReport:
    """The findings of the run that `job` has just ended, as far as they are needed."""
    settings = job.settings
    chosen = settings.report
    is_reported = bool(chosen.metrics_file or chosen.metrics_port or chosen.webhook_env)
    is_wanted = chosen.report or chosen.fail_on
    if not is_wanted and (received.first or (settings.log.quiet and not is_reported)):
        return RunReport(is_gathered=False)  # after an interruption, the program should exit quickly
    known = await reports.read_known(job.frontier, settings)
    if not settings.report.report:
        return RunReport(await reports.count_findings(job.frontier, known))
    report = await reports.build_report(job.frontier, known)
    return RunReport(report.findings, report)


async def full_report(job: Job) -> Report:
    """The whole report, whatever was asked for. Raises `FrontierError`."""
    known = await reports.read_known(job.frontier, job.settings)
    return await reports.build_report(job.frontier, known)


def finding_lines(findings: Sequence[Finding]) -> Sequence[FindingLine]:
    """The findings in the summary, the most severe first."""
    return [FindingLine(f.code.value, f.code.severity.value, f.count, f.new, measure(f)) for f in findings]


def command(settings: Settings, start: str) -> str:
    """The command that shows all findings; empty for a state that was not kept."""
    where = reports.state_words(settings, start)
    return suggested(f"report {where}") if where else ""
