"""`crawl`: signals, the progress display, whether to publish, and the summary."""

import logging
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import anyio
import anyio.lowlevel

from crawler.app import report as reports
from crawler.app import submission
from crawler.app.compose import check_extras
from crawler.app.images import writes_images
from crawler.app.job import Job, open_job
from crawler.app.robots_line import compared
from crawler.app.state import MEMORY, state_path
from crawler.cli import schedule
from crawler.cli.afterwards import Afterwards, after_publication
from crawler.cli.interrupt import signalled
from crawler.cli.run_end import RunEnd, exit_of
from crawler.cli.run_report import RunReport, command, finding_lines, report_of
from crawler.cli.run_summary import STDOUT, FileLine, RunSummary, as_json, problem, stalled_words
from crawler.cli.signals import received
from crawler.cli.submission_words import facts
from crawler.engine.crawl import Ending
from crawler.errors import (
    Exit,
    LeadershipLost,
    OutputError,
    PublishRefused,
    StartForbidden,
    StartUnreachable,
    first_of,
)
from crawler.model.note import DATE_NOTES, EXTERNAL, PUBLISHED_BY, UNRELIABLE
from crawler.model.survey import Balance
from crawler.parse.url import target
from crawler.ports import Frontier, Record
from crawler.report import log as lines
from crawler.report.external import external_json, external_words
from crawler.report.formatting import duration
from crawler.report.report import Finding, Report
from crawler.rules.doubts import Doubts, without_flag
from crawler.settings.sections import Log, Settings
from crawler.settings.values import compile_pattern
from crawler.sitemap.publish import publish_command
from crawler.sitemap.publish.guard import fetched
from crawler.sitemap.publish.publish import check_output, check_settings
from crawler.sitemap.publish.published import Published

log = logging.getLogger("crawler")


def configure_log(chosen: Log) -> None:
    """Configures logging by the settings."""
    level = logging.ERROR if chosen.quiet else logging.DEBUG if chosen.verbose else logging.INFO
    lines.configure(chosen.log_format, level, sys.stderr)


async def crawl_site(settings: Settings) -> Exit:
    """The whole of `crawl`. Raises the exceptions of `errors`."""
    configure_log(settings.log)
    schedule.check(settings)
    stopping, run_end = _Stopping(), RunEnd(settings)
    async with _listening(stopping):
        await anyio.lowlevel.checkpoint()  # starts the task that waits for signals
        if received.first is None:
            async with run_end.opened():
                return await _crawls(settings, stopping, run_end)
    if stopping.has_crawled:
        words = f"{received.word} while waiting for the next run"
        log.info(words, extra={"event": "stopped between two runs", "fields": {"signal": received.word}})
    else:
        words = f"{received.word} before the crawl started"
        log.error(words, extra={"event": "stopped before the crawl", "fields": {"signal": received.word}})
    return Exit(received.exit)


async def _crawls(settings: Settings, stopping: "_Stopping", run_end: RunEnd) -> Exit:
    """One run, or one after each interval of --every."""

    async def run() -> Exit:
        try:
            return await _crawl(settings, stopping, run_end)
        finally:
            stopping.has_crawled = stopping.has_crawled or stopping.job is not None
            stopping.job = stopping.after = None  # a signal from now on ends the wait

    if settings.pace.every is None:
        return await run()
    return await schedule.repeat(run, settings.pace.every, lambda: received.first is not None)


async def _crawl(settings: Settings, stopping: "_Stopping", run_end: RunEnd) -> Exit:
    """One run, whose end `run_end` reports in every case."""
    try:
        return await _run(settings, stopping, run_end)
    except Exception as error:
        if stopping.job is None:
            await run_end.failed(error)
        raise


async def _run(settings: Settings, stopping: "_Stopping", run_end: RunEnd) -> Exit:
    check_extras(settings)
    reports.check(settings)
    check_settings(settings.output)
    if settings.submit.submit:
        submission.check(settings)
    if settings.pace.ignore_robots:
        log.warning("robots.txt is ignored: use this only on your own site")
    if settings.http.insecure:
        log.warning("certificates are not verified: anyone on the network path can alter what is read")
    if not settings.guard.dry_run:
        await check_output(settings.output)
    async with open_job(settings, sinks=[lines.LineSink(settings.log.log_format)]) as job:
        await _log_start(job)
        stopping.job = job
        try:
            await run_end.begin(job)
            code, found = await _job(job, settings, stopping)
        except Exception as error:
            await run_end.end(job, exit_of(error), error=error)
            raise
        await run_end.end(job, code, found)
    return code


async def _job(job: Job, settings: Settings, stopping: "_Stopping") -> tuple[Exit, RunReport]:
    """Crawls, publishes, reports and prints the summary."""
    began = time.monotonic()
    try:
        published, refused = await _crawl_and_publish(job)
    except (StartUnreachable, StartForbidden) as error:
        await job.end(error.exit)
        _write((await report_of(job)).report, settings)
        raise
    code = _exit(job, refused)
    after = await after_publication(
        job, published, stopping.begin_after(), complete=job.ending is Ending.COMPLETE
    )
    code = Exit(received.exit) if after.interrupted else code
    await job.end(code)
    found = await report_of(job)
    writes = job.ending is not Ending.OVER  # the member that ended the run writes the report
    unwritten = _write(found.report, settings) if writes else None
    written = settings.report.report if writes and not unwritten else []
    await _summarise(job, began, published, refused, found.findings, written, after)
    if unwritten:
        raise unwritten
    code = _failing(found.findings, settings) if code is Exit.OK else code
    raised = after.errors[0] if after.errors and code is Exit.OK else None
    for failed in after.errors:
        if failed is not raised:
            log.error(str(failed), extra={"event": "not delivered", "fields": {"error": str(failed)}})
    if raised:
        raise raised
    return code, found


async def _log_start(job: Job) -> None:
    run = job.run.number
    living = [member for member in await job.frontier.members() if member.alive]
    if len(living) > 1:
        leader = next((member.name for member in living if member.leads), "nobody")
        words = f"joined run {run} as one of {len(living)} members; {leader} leads"
        fields = {"run": run, "members": len(living), "leader": leader}
        log.info(words, extra={"event": "joined", "fields": fields})
    elif job.run.over is not None:
        log.info("this run is over", extra={"fields": {"run": run}})
    elif job.run.resumed:
        log.info("resuming an unfinished crawl", extra={"fields": {"run": run}})


async def _crawl_and_publish(job: Job) -> tuple[Published | None, PublishRefused | None]:
    while True:
        async with _shown(job):
            ending = await job.crawl()
        try:
            return await _publish(job, ending)
        except LeadershipLost:
            log.warning("another member leads the run now; it publishes")


def _exit(job: Job, refused: PublishRefused | None) -> Exit:
    if refused:
        return refused.exit
    if received.first:
        return Exit(received.exit)
    if job.ending is Ending.OVER:
        return job.over or Exit.OK
    return Exit.OK if job.ending is Ending.COMPLETE else Exit.PARTIAL


def _write(report: Report | None, settings: Settings) -> OutputError | None:
    """Writes the files of --report. An error is returned, not raised: the summary comes first."""
    try:
        if report:
            reports.write(report, settings.report.report)
    except OutputError as error:
        return error
    return None


def _failing(findings: Sequence[Finding], settings: Settings) -> Exit:
    """Exit 8 if there are findings that --fail-on names."""
    codes = reports.failing(findings, settings.report.fail_on)
    if codes:
        words = f"found what --fail-on names: {', '.join(codes)}"
        log.error(words, extra={"event": "findings of --fail-on", "fields": {"codes": codes}})
    return Exit.FINDINGS if codes else Exit.OK


@dataclass
class _Stopping:
    """What a signal stops: the job, once there is one."""

    job: Job | None = None
    after: anyio.CancelScope | None = None  # what follows a publication, once that is done
    has_crawled: bool = False

    def begin_after(self) -> anyio.CancelScope:
        """A publication is done; from now on the first signal cancels what follows it."""
        self.after = anyio.CancelScope()
        return self.after

    async def when_signalled(self, block: anyio.CancelScope) -> None:
        """On the first signal, finishes the requests in flight and a publication; before there is a job, cancels `block`.

        A second signal exits at once (`cli.signals`). The state stays consistent, and the next publication removes the
        remains of an interrupted one.
        """
        await signalled()
        if self.after:
            self.after.cancel()
        elif self.job:
            self.job.stop(received.word)
        else:
            block.cancel()

    def leave(self) -> None:
        """Shows the cursor again, which the progress display hides, and kills a command that is running."""
        publish_command.kill_running()
        if self.job and not self.job.settings.log.quiet:
            from crawler.cli import progress  # noqa: PLC0415 - as below

            progress.Screen().show_cursor()


@asynccontextmanager
async def _listening(stopping: _Stopping) -> AsyncIterator[None]:
    """Handles signals while the block runs."""
    received.leaving = stopping.leave
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stopping.when_signalled, tasks.cancel_scope)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    finally:
        received.leaving = None


@asynccontextmanager
async def _shown(job: Job) -> AsyncIterator[None]:
    """Shows progress while the block runs."""
    try:
        async with anyio.create_task_group() as tasks:
            if not job.settings.log.quiet:
                from crawler.cli import progress  # noqa: PLC0415 - rich is slow to import, and not needed with --quiet

                console = progress.Screen()
                drawn = console.is_terminal and job.settings.log.log_format == "text"
                tasks.start_soon(progress.show if drawn else progress.log_periodically, job.stats, console)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_of(group) from group


async def _publish(job: Job, ending: Ending) -> tuple[Published | None, PublishRefused | None]:
    """Publishes a complete crawl, or a partial one if allowed. A refusal of the guard is returned, not raised."""
    if ending is Ending.OVER or (ending is not Ending.COMPLETE and not job.settings.guard.allow_partial):
        return None, None
    try:
        return await job.publish(), None
    except PublishRefused as refusal:
        return None, refusal


async def _summarise(
    job: Job,
    began: float,
    published: Published | None,
    refused: PublishRefused | None,
    findings: Sequence[Finding],
    written: Sequence[str],
    after: Afterwards,
) -> None:
    settings = job.settings
    state = state_path(settings, job.starts[0])
    kept = None if state == MEMORY else state
    unfinished = _unfinished(job)
    unmatched = await _unmatched(job.frontier, settings)
    summary = await summary_of(job.frontier, published, settings)
    summary = replace(
        summary,
        elapsed=time.monotonic() - began,
        fetched=job.stats.exchanges,
        member=job.frontier.name,
        members=len({member.name for member in await job.frontier.members()}),
        published_by=await job.frontier.recall(PUBLISHED_BY),
        state=kept,
        notes=_notes(job.doubts, refused),
        unfinished=unfinished,
        unpublished=job.ending is Ending.LIMIT and not published and not refused,
        unmatched=unmatched,
        resume="run the same command again" if unfinished and kept else None,
        stalled=job.stalled,
        refused=str(refused) if refused else None,
        findings=finding_lines(findings),
        findings_command=command(settings, job.starts[0]),
        reports=written,
        submission=after.words(settings),
        submission_facts=facts(after.submitted) if after.submitted else {},
    )
    print_summary(summary, settings.log)


def _notes(doubts: Doubts, refused: PublishRefused | None) -> Sequence[str]:
    """The notes on the site, and what may hide it, unless the refusal says so."""
    doubt = without_flag(doubts.doubt)
    is_said = refused is not None and doubt in without_flag(str(refused))
    return doubts.notes if not doubt or is_said else (*doubts.notes, doubt)


def _unfinished(job: Job) -> str | None:
    """Why the run is unfinished; None if it is complete."""
    if job.ending in {Ending.COMPLETE, Ending.OVER}:
        return None
    why = job.stats.stopping or "stopped"
    scope = job.settings.scope
    limits = {
        "--max-pages": f"{scope.max_pages or 0:,}",
        "--max-time": duration(scope.max_time or 0),
    }
    return f"stopped at {why} {limits.get(why, '')}".rstrip() if job.ending is Ending.LIMIT else why


async def _unmatched(pages: Record, settings: Settings) -> list[str]:
    """The patterns that matched no known URL of the site: most are typing errors."""
    patterns = {
        f"--{name.replace('_', '-')} {text}": compile_pattern(text)
        for name in ("include", "exclude", "no_fetch", "no_list")
        for text in getattr(settings.scope, name)
    }
    patterns |= {f"[[rule]] {rule.match}": compile_pattern(rule.match) for rule in settings.rules.rule}
    async for chunk in pages.known_urls():
        if not patterns:
            break
        targets = [target(url) for url in chunk]
        matched = [words for words, pattern in patterns.items() if any(map(pattern.search, targets))]
        for words in matched:
            del patterns[words]
    return list(patterns)


async def summary_of(history: Frontier, published: Published | None, settings: Settings) -> RunSummary:
    balance = await history.balance()
    to_stdout = settings.output.output == STDOUT
    line = published.robots_line if published and not to_stdout else ""
    named = await compared(history, settings, line)
    check = await history.recall(EXTERNAL)
    counts = await history.count_answers() if check else None
    return RunSummary(
        balance=balance,
        external=external_words(check, counts) if check and counts else "",
        external_facts=external_json(check, counts),
        files=tuple(FileLine(f.name, f.size, f.urls, unchanged=f.unchanged) for f in published.files)
        if published
        else (),
        folder=(STDOUT if to_stdout else published.folder) if published else None,
        robots_line=line or None,
        robots_named=named.is_named,
        robots_others=named.others,
        images=published.images if published and writes_images(settings) else None,
        site_wide=published.site_wide if published else 0,
        examples=await _examples(history, balance),
        dated=await history.dated(),
        sitemaps=await history.sitemaps(),
        orphans=await history.orphans(),
        unreliable=await history.recall(UNRELIABLE),
        date_notes=await history.recall(DATE_NOTES),
        traps=await history.traps(),
        dry_run=settings.guard.dry_run,
        keeps_many=balance.kept > settings.guard.max_failed * fetched(balance.outcomes),
    )


async def _examples(pages: Record, balance: Balance) -> Mapping[str, Sequence[str]]:
    failed = [code for code in balance.outcomes if code.startswith(("failed:", "kept:"))]
    return {code: await pages.examples(code) for code in failed}


def print_summary(summary: RunSummary, chosen: Log) -> None:
    """Prints the summary in the chosen format. With --quiet only a failure is reported."""
    wrong = problem(summary)
    if summary.stalled and chosen.log_format == "text" and not chosen.quiet:
        log.error(stalled_words(summary))
    if chosen.log_format == "json":
        log.log(logging.ERROR if wrong else logging.INFO, "done", extra={"fields": as_json(summary)})
    elif chosen.quiet and wrong:
        log.error(wrong)
    elif not chosen.quiet:
        from crawler.cli import progress  # noqa: PLC0415 - as above
        from crawler.cli.summary import show_summary  # noqa: PLC0415 - as above

        with suppress(OSError):  # a closed terminal does not make the run fail
            show_summary(progress.Screen(), summary)
