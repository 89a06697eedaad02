"""What other programs are told when a run ends, however it does: the metrics.

A run that another one keeps out (exit 9) tells nothing: the other one will. Nothing is loaded that is not asked for.
"""

import logging
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from crawler.app.job import Job
from crawler.app.starts import starts_of
from crawler.app.state import open_frontier
from crawler.cli.run_report import RunReport, report_of
from crawler.errors import ConfigError, CrawlerError, Exit, OutputError, StateBusy
from crawler.parse.url import Url
from crawler.ports import Frontier
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.app.metrics import Exporter

log = logging.getLogger("crawler")


class RunEnd:
    """Tells how the runs of this process end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._exporter = _exporter(settings)

    def check(self) -> None:
        """Raises `ConfigError` for settings with which nothing could be told. Called before the first request."""
        if self._exporter:
            self._exporter.check()

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Serves the metrics while the block runs, if asked to. Raises `OutputError` if the port cannot be had."""
        place = self._settings.report.metrics_port
        if self._exporter is None or place is None:
            return nullcontext()
        from crawler.app.metrics_server import serving  # noqa: PLC0415 - loaded only when asked for

        return serving(place, self._exporter.scrape)

    async def begin(self, job: Job) -> None:
        """The job begins. Raises `FrontierError`."""
        if self._exporter:
            await self._exporter.begin(job)

    async def end(self, job: Job, code: Exit, found: RunReport | None) -> None:
        """The job ended with `code`; its state is still open. Raises `OutputError` if the metrics cannot be written."""
        with suppress(CrawlerError):  # the first error counts
            await job.end(code)
            found = found or await report_of(job)
        if self._exporter is None:
            return
        findings = found.findings if found and found.is_gathered else None
        unwritten = await self._exporter.end(job.starts[0], job.frontier, code, findings, job.traffic)
        if unwritten and code is Exit.OK:
            await job.end(unwritten.exit)
            raise unwritten
        if unwritten:
            _say_unwritten(unwritten)

    async def failed(self, error: Exception) -> None:
        """The run ended before its job was open: what the state says is told with the exit code."""
        if isinstance(error, StateBusy) or self._exporter is None:
            return
        start, frontier = self._known()
        try:
            if unwritten := await self._exporter.end(start, frontier, exit_of(error)):
                _say_unwritten(unwritten)
        finally:
            if frontier:
                await frontier.close()

    def _known(self) -> tuple[Url | None, Frontier | None]:
        """The first start URL and the state, as far as wrong settings or a damaged state leave them."""
        start = None
        with suppress(ConfigError):
            start = starts_of(self._settings)[0]
        try:
            return start, open_frontier(self._settings, start, read_only=True)
        except CrawlerError:
            return start, None


def _say_unwritten(error: OutputError) -> None:
    log.error(str(error), extra={"event": "metrics not written", "fields": {"error": str(error)}})


def _exporter(settings: Settings) -> "Exporter | None":
    if not settings.report.metrics_file and not settings.report.metrics_port:
        return None
    from crawler.app.metrics import Exporter  # noqa: PLC0415 - loaded only when asked for

    return Exporter(settings)


def exit_of(error: Exception) -> Exit:
    """The exit code of a run that ended with `error`; as `main` sees it."""
    if isinstance(error, CrawlerError):
        return error.exit
    return Exit.STORAGE if isinstance(error, OSError) else Exit.INTERNAL
