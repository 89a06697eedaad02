"""`crawl`: signals, the progress display, whether to publish, and the summary."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
from msgspec import Struct

from crawler.app import report as reports
from crawler.app.job import Job, open_checked_job
from crawler.app.preflight import preflight
from crawler.app.publication import lacks_published_pages
from crawler.app.sites import SiteSettings
from crawler.cli import schedule
from crawler.cli.interrupt import signalled
from crawler.cli.notify import Notifier, exit_of, opened, sentence
from crawler.cli.output import configure_log
from crawler.cli.run_facts import RunFindings, finding_facts, findings_of, job_facts, state_facts
from crawler.cli.signals import received
from crawler.cli.summary import print_summary, with_defaults
from crawler.cli.typed_url import over_http
from crawler.engine.crawl import Ending
from crawler.errors import (
    CrawlerError,
    Exit,
    Interrupted,
    LeadershipLost,
    OutputError,
    PublishRefused,
    StartForbidden,
    StartSilent,
    StartUnreachable,
    ungrouped,
    worst,
)
from crawler.model.log import log
from crawler.ports import reads
from crawler.report import log as lines
from crawler.report.report import Finding, SiteReport
from crawler.settings.sections import Settings
from crawler.sitemap.publish import publish_command
from crawler.sitemap.publish.publish import check_output
from crawler.sitemap.publish.published import Published


async def crawl_site(settings: Settings) -> Exit:
    """The whole of `crawl` for one site. Raises the exceptions of `errors`."""
    return await crawl_sites([SiteSettings("", settings, ())])


async def crawl_sites(sites: Sequence[SiteSettings]) -> Exit:
    """The whole of `crawl`: one site after the other. Raises the exceptions of `errors` of a single one."""
    settings = sites[0].settings
    configure_log(settings.log)
    for site in sites:
        schedule.check(site.settings)
    stopping = _Stopping()
    async with _listening(stopping):
        await anyio.lowlevel.checkpoint()  # starts the task that waits for signals
        if received.first is None:
            notifiers = [Notifier(site.settings, site.name) for site in sites]
            run = partial(_crawl, settings, stopping, notifiers[0])
            if len(sites) > 1:
                run = partial(_each, sites, notifiers, stopping)
            async with opened(notifiers, settings):
                every = settings.pace.every
                return await (
                    schedule.repeat(run, every, lambda: received.first is not None) if every else run()
                )
    if stopping.has_crawled:
        words = f"{received.word} while waiting for the next run"
        log.info(words, event="stopped between two runs", signal=received.word)
    else:
        words = f"{received.word} before the crawl started"
        log.error(words, event="stopped before the crawl", signal=received.word)
    return Exit(received.exit)


async def _each(sites: Sequence[SiteSettings], notifiers: Sequence[Notifier], stopping: "_Stopping") -> Exit:
    """One run of each site, and a line for each at the end. An error ends that site alone."""
    ended = list[tuple[str, Exit, int | None]]()
    for (name, settings, _), notifier in zip(sites, notifiers, strict=True):
        if received.first:
            break
        log.info("the next site", site=name)
        ended.append((name, await _ended(name, settings, stopping, notifier), notifier.listed))
    for name, code, listed in ended:
        log.info("site ended", site=name, exit=code.value, code=code.name.lower(), listed=listed)
    return Exit(received.exit) if received.first else worst(code for _, code, _ in ended)


async def _ended(name: str, settings: Settings, stopping: "_Stopping", notifier: Notifier) -> Exit:
    """The exit code of one of several sites. An error is logged here, as nothing above this handles it."""
    try:
        return await _crawl(settings, stopping, notifier)
    except Exception as error:  # noqa: BLE001 - also after a bug, the next site is tried
        failure = error
    code, words = exit_of(failure), f"{name}: {sentence(failure)}"
    trace = failure if code is Exit.INTERNAL else None
    log.error(
        words,
        event="site failed",
        site=name,
        exit=code.value,
        code=code.name.lower(),
        error=sentence(failure),
        exc_info=trace,
    )
    return code


async def _crawl(settings: Settings, stopping: "_Stopping", notifier: Notifier) -> Exit:
    """One run, whose end `notifier` tells in every case."""
    try:
        return await _run(settings, stopping, notifier)
    except Exception as error:
        if stopping.job is None:
            await notifier.failed(error)
        raise
    finally:
        stopping.has_crawled = stopping.has_crawled or stopping.job is not None
        stopping.job = stopping.after = None  # a signal from now on ends the wait


async def _run(settings: Settings, stopping: "_Stopping", notifier: Notifier) -> Exit:
    settings = preflight(settings)
    if settings.pace.ignore_robots:
        log.warning("robots.txt is ignored: use this only on your own site")
    if settings.http.insecure:
        log.warning("certificates are not verified: anyone on the network path can alter what is read")
    if not settings.guard.dry_run:
        await check_output(settings.output)
    sinks = [lines.LineSink(settings.log.log_format)]
    async with open_checked_job(settings, sinks=sinks, left=received.left) as job:
        await _log_start(job)
        stopping.job = job
        try:
            await notifier.begin(job)
            code, found = await _job(job, settings, stopping)
        except Exception as error:
            await notifier.end(job, exit_of(error), error=error)
            raise
        await notifier.end(job, code, found)
    return code


async def _job(job: Job, settings: Settings, stopping: "_Stopping") -> tuple[Exit, RunFindings]:
    """Crawls, publishes, reports and prints the summary."""
    began = time.monotonic()
    try:
        published, refused = await _crawl_and_publish(job)
    except (StartUnreachable, StartForbidden) as error:
        await job.end(error.exit)
        await _write(job, (await findings_of(job)).report)
        error.args = (f"{error}{_advice(job, error)}", *error.args[1:])
        raise
    code = _exit(job, refused)
    after = await _follow_up(job, published, stopping.begin_after())
    code = Exit(received.exit) if after.interrupted else code
    await job.end(code)
    found = await findings_of(job)
    writes = job.ending is not Ending.OVER  # the member that ended the run writes the report
    unwritten = await _write(job, found.report) if writes else None
    written = settings.report.report if writes and not unwritten else []
    facts = await state_facts(job.frontier, published, settings)
    facts |= await job_facts(job, refused, is_published=published is not None)
    facts |= {
        "elapsed": round(time.monotonic() - began, 1),
        "findings": finding_facts(found.findings),
        "reports": written,
        **_submission_facts(job),
    }
    print_summary(with_defaults(facts), settings.log, *settings.state.site[-1:])
    if unwritten:
        raise unwritten
    code = _failing(found.findings, settings) if code is Exit.OK else code
    raised = after.errors[0] if after.errors and code is Exit.OK else None
    for failed in after.errors:
        if failed is not raised:
            log.error(str(failed), event="not delivered", error=str(failed))
    if raised:
        raise raised
    return code, found


def _advice(job: Job, error: CrawlerError) -> str:
    """What to try if no page was received from the first start URL; may be empty."""
    start = job.settings.scope.start[0]
    if Path(start).is_file():
        return f" {start} is also a file: --input reads the URLs in it."
    return over_http("crawl", start, job.starts[0]) if isinstance(error, StartSilent) else ""


async def _log_start(job: Job) -> None:
    run = job.run.number
    living = [member for member in await job.frontier.read(reads.MembersOfRun()) if member.alive]
    if len(living) > 1:
        leader = next((member.name for member in living if member.leads), "nobody")
        words = f"joined run {run} as one of {len(living)} members; {leader} leads"
        log.info(words, event="joined", run=run, members=len(living), leader=leader)
    elif job.run.over is not None:
        log.info("this run is over", run=run)
    elif job.run.resumed:
        log.info("resuming an unfinished crawl", run=run)


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


async def _write(job: Job, report: SiteReport | None) -> OutputError | None:
    """Writes the files of --report. An error is returned, not raised: the summary comes first."""
    try:
        if report:
            await reports.write(job.frontier, report, job.settings.report.report)
    except OutputError as error:
        return error
    return None


def _failing(findings: Sequence[Finding], settings: Settings) -> Exit:
    """Exit 8 if there are findings that --fail-on names."""
    codes = reports.failing(findings, settings.report.fail_on)
    if codes:
        words = f"found what --fail-on names: {', '.join(codes)}"
        log.error(words, event="findings of --fail-on", codes=codes)
    return Exit.FINDINGS if codes else Exit.OK


class _Stopping(Struct, eq=False):
    """What a signal stops: the job, once there is one."""

    job: Job | None = None
    after: anyio.CancelScope | None = None  # what follows a publication, once that is done
    has_crawled: bool = False

    def begin_after(self) -> anyio.CancelScope:
        """A publication is done; from now on the first signal cancels what follows it."""
        self.after = anyio.CancelScope()
        return self.after

    async def when_signalled(self, block: anyio.CancelScope) -> None:
        """On the first signal, finishes the requests in flight and a publication; before there is a job,
        cancels `block`.

        A second signal exits at once (`cli.signals`). The state stays consistent, and the next publication
        removes the remains of an interrupted one.
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
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stopping.when_signalled, tasks.cancel_scope)
                yield
                tasks.cancel_scope.cancel()
    finally:
        received.leaving = None


@asynccontextmanager
async def _shown(job: Job) -> AsyncIterator[None]:
    with ungrouped():
        async with anyio.create_task_group() as tasks:
            if not job.settings.log.quiet:
                from crawler.cli import progress  # noqa: PLC0415 - rich is slow to import, and not needed with --quiet

                console = progress.Screen()
                drawn = console.is_terminal and job.settings.log.log_format == "text"
                tasks.start_soon(progress.show if drawn else progress.log_periodically, job.stats, console)
            yield
            tasks.cancel_scope.cancel()


async def _publish(job: Job, ending: Ending) -> tuple[Published | None, PublishRefused | None]:
    """Publishes a complete crawl, or a partial one if allowed. Returns a refusal of the guard."""
    guard = job.settings.guard
    if ending is Ending.OVER or (ending is not Ending.COMPLETE and not guard.allow_partial):
        return None, None
    if ending is not Ending.COMPLETE and not guard.force and await lacks_published_pages(job.frontier):
        log.warning("published pages were not visited yet; the published sitemap stays until they are")
        return None, None
    try:
        return await job.publish(), None
    except PublishRefused as refusal:
        return None, refusal
    except Interrupted:  # by a signal: the next run publishes
        return None, None


# -- after a publication ------------------------------------------------------------------------------------


class _FollowUp(Struct, frozen=True):
    """What followed a publication. Errors are raised later: the summary comes first."""

    errors: Sequence[CrawlerError] = ()
    interrupted: bool = False


async def _follow_up(job: Job, published: Published | None, scope: anyio.CancelScope) -> _FollowUp:
    """Delivers, submits and checks links as the settings say, until `scope` is cancelled by a signal.

    What is left is done by the next run. Links to other sites are also checked if nothing was published.
    """
    if received.first:
        return _FollowUp()
    errors: list[CrawlerError] = []
    with scope:
        for step in _steps(job, published):
            try:
                await step()
            except CrawlerError as error:
                errors.append(error)
    return _FollowUp(errors, scope.cancelled_caught)


def _steps(job: Job, published: Published | None) -> Iterator[Callable[[], Awaitable[object]]]:
    if published and not job.settings.guard.dry_run:
        yield partial(job.deliver, published)
        if job.settings.submit.submit and job.ending is Ending.COMPLETE:
            yield job.submit
    yield job.check_links
    yield job.read_link_texts


def _submission_facts(job: Job) -> Mapping[str, object]:
    if job.submitted is None:
        return {"submission": None, "submission_words": ()}
    from crawler.cli.submit import due_words, result_words, submission_facts  # noqa: PLC0415 - few runs submit

    due = () if job.submitted.noted is not None else (due_words(job.submitted),)
    words = (*due, *result_words(job.submitted, job.settings))
    return {"submission": submission_facts(job.submitted), "submission_words": words}
