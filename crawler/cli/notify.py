"""Tells other programs how a run ended, in every case: by metrics, and by a message.

A run that cannot start because of another one (exit 9) tells nothing: the other one does. Only what the
settings ask for is loaded.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from crawler.app import report as reports
from crawler.app.job import Job
from crawler.app.settings_urls import starts_of
from crawler.app.state import open_frontier
from crawler.cli.run_facts import RunFindings, findings_of
from crawler.cli.signals import received
from crawler.errors import ConfigError, CrawlerError, Exit, OutputError, StateBusy
from crawler.model.log import log
from crawler.parse.url import Url
from crawler.ports import Frontier, reads
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.app.metrics import Exporter
    from crawler.report.metrics import Metrics


class Notifier:
    """Tells how the runs of this process end."""

    def __init__(self, settings: Settings, name: str = "") -> None:
        """`name`: that of one of several sites."""
        self._settings = settings
        self._exporter = _exporter(settings, name)
        self._hook: Url | None = None  # where messages go
        self.listed: int | None = None  # pages, when the last run ended

    def check(self) -> None:
        """Raises `ConfigError` if nothing could be told with these settings."""
        if self._exporter:
            try:
                self._exporter.check()
            except ConfigError:
                self._exporter = None
                raise
        if variable := self._settings.report.webhook_env:
            from crawler.app.webhook import hook_of  # noqa: PLC0415 - loaded only when asked for

            self._hook = hook_of(variable)

    async def scrape(self) -> "Metrics | None":
        """The metrics now, as far as there are any."""
        return await self._exporter.scrape() if self._exporter else None

    async def begin(self, job: Job) -> None:
        """The job begins. Raises `FrontierError`."""
        if self._exporter:
            await self._exporter.begin(job)

    async def end(
        self, job: Job, code: Exit, found: RunFindings | None = None, error: Exception | None = None
    ) -> None:
        """The job ended with `code`; its state is still open.

        `found`: None if the run failed with `error`. Raises `OutputError` if the metrics cannot be written.
        """
        with suppress(CrawlerError):  # the first error counts
            await job.end(code)
            self.listed = (await job.frontier.read(reads.RunBalance())).listed
            if self._exporter or self._hook:
                found = found or await findings_of(job)
        found = found or RunFindings(is_known=False)
        unwritten = await self._export(job, code, found)
        if unwritten and code is Exit.OK:
            code, error = unwritten.exit, unwritten
            await job.end(code)
        elif unwritten:
            _say_unwritten(unwritten)
        await self._send(job, code, found, error)
        if unwritten and error is unwritten:
            raise unwritten

    async def _export(self, job: Job, code: Exit, found: RunFindings) -> OutputError | None:
        if self._exporter is None:
            return None
        return await self._exporter.end(
            job.starts[0],
            job.frontier,
            code,
            findings=found.findings if found.is_known else None,
            traffic=job.parts.traffic,
            submitted=job.submitted.results() if job.submitted else None,
        )

    async def _send(self, job: Job, code: Exit, found: RunFindings, error: Exception | None) -> None:
        """Sends the message, if the run is worth one."""
        if self._hook is None:
            return
        from crawler.app.webhook import is_due, message  # noqa: PLC0415 - loaded only when asked for

        run, report = None, found.report
        with suppress(CrawlerError):
            run = (await job.frontier.read(reads.AllRuns()))[-1]
        when = self._settings.report.webhook_when
        if not is_due(when, code, found.findings, run.publication if run else None):
            return
        with suppress(CrawlerError):
            if not (report or received.first):
                known = await reports.read_known(job.frontier, job.settings)
                report = await reports.build_report(job.frontier, known)
        why = sentence(error) or (run and run.refused) or ""
        await self._post(message(job.starts[0], code, why, report))

    async def _post(self, body: Mapping[str, Any]) -> None:
        from crawler.app.webhook import deliver  # noqa: PLC0415 - loaded only when asked for

        variable, http = self._settings.report.webhook_env, self._settings.http
        if self._hook and variable:
            await deliver(variable, self._hook, body, http, lambda: received.first is not None)

    async def failed(self, error: Exception) -> None:
        """The run ended before its job was open: reports the exit code, with what the state knows."""
        self.listed = None
        if isinstance(error, StateBusy):
            return
        start, code = self._start(), exit_of(error)
        if self._exporter:
            frontier = self._state(start)
            try:
                if unwritten := await self._exporter.end(start, frontier, code):
                    _say_unwritten(unwritten)
            finally:
                if frontier:
                    await frontier.close()
        if self._hook:
            from crawler.app.webhook import message  # noqa: PLC0415 - loaded only when asked for

            await self._post(message(start or "", code, sentence(error), None))

    def _start(self) -> Url | None:
        with suppress(ConfigError):
            return starts_of(self._settings)[0]
        return None

    def _state(self, start: Url | None) -> Frontier | None:
        """The state; None if wrong settings or damage prevent opening it."""
        with suppress(CrawlerError):
            return open_frontier(self._settings, start, read_only=True)
        return None


@asynccontextmanager
async def opened(notifiers: Sequence[Notifier], settings: Settings) -> AsyncIterator[None]:
    """Checks all, and serves the metrics of all at one port while the block runs, if asked to.

    Raises `ConfigError` if nothing could be told with their settings, `OutputError` for the port.
    """
    async with AsyncExitStack() as stack:
        try:
            for notifier in notifiers:
                notifier.check()
            await stack.enter_async_context(_serving(notifiers, settings.report.metrics_port))
        except CrawlerError as error:
            for notifier in notifiers:
                await notifier.failed(error)
            raise
        yield


def _serving(notifiers: Sequence[Notifier], place: str | None) -> AbstractAsyncContextManager[None]:
    if place is None:
        return nullcontext()
    from crawler.app.metrics_server import serving  # noqa: PLC0415 - loaded only when asked for
    from crawler.report.metrics import exposition  # noqa: PLC0415 - as above

    async def scrape() -> str:
        return exposition([known for one in notifiers if (known := await one.scrape())])

    return serving(place, scrape)


def sentence(error: Exception | None) -> str:
    """An error in words: the message of our own exceptions, and only the class of others."""
    if error is None:
        return ""
    return str(error) if isinstance(error, CrawlerError) else type(error).__name__


def _say_unwritten(error: OutputError) -> None:
    log.error(str(error), event="metrics not written", error=str(error))


def _exporter(settings: Settings, name: str) -> "Exporter | None":
    if not settings.report.metrics_file and not settings.report.metrics_port:
        return None
    from crawler.app.metrics import Exporter  # noqa: PLC0415 - loaded only when asked for

    return Exporter(settings, name)


def exit_of(error: Exception) -> Exit:
    """The exit code of a run that ended with `error`; as `main` sees it."""
    if isinstance(error, CrawlerError):
        return error.exit
    return Exit.STORAGE if isinstance(error, OSError) else Exit.INTERNAL
