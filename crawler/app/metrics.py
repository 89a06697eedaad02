"""The metrics of a crawl: read from its state, its job and its report, and written to `--metrics-file`.

`Exporter` also holds what `metrics_server` serves, during a run and between runs. Metrics are written after
every run that began, successful or not; what a failed run does not know (the last success, the published
sitemap) comes from the state.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from crawler.app import atomic
from crawler.app.job import Job
from crawler.errors import ConfigError, CrawlerError, Exit, OutputError
from crawler.model.note import EXTERNAL
from crawler.model.rows import PublicationRow, RunRow
from crawler.model.survey import Balance
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Frontier, reads
from crawler.report import metrics as values
from crawler.report.metrics import Metrics
from crawler.report.report import Finding
from crawler.report.traffic import Traffic
from crawler.settings.sections import Settings

SUFFIX: Final = ".prom"  # node_exporter reads no other
FRESH: Final = 15.0  # seconds that a balance is served while crawling
UNSEEN: Final = frozenset({Exit.UNREACHABLE, Exit.ROBOTS})  # the site was not seen: it has no findings
SHARE: Final = 50  # counting URLs may take one part in so many of the time


class Past(NamedTuple):
    """What the state says of earlier runs."""

    runs: Sequence[RunRow] = ()
    published: PublicationRow | None = None


class _Run(NamedTuple):
    """What decides about which findings the newest run can tell something."""

    complete: bool = False
    external: bool = False  # links to other sites were checked


class Exporter:
    """The metrics of one site: during a run from its job, afterwards as they were at its end."""

    def __init__(self, settings: Settings, name: str = "") -> None:
        """`name`: that of one of several sites, otherwise its host is its label."""
        self._settings, self._name = settings, name
        self._job: Job | None = None
        self._ended: Metrics | None = None  # at the end of the last run
        self._past = Past()
        self._findings: tuple[Sequence[Finding], _Run] | None = None
        self._balance: Balance | None = None
        self._stale = 0.0  # when `_balance` is counted again
        self._lock = anyio.Lock()

    def check(self) -> None:
        """Raises `ConfigError` for a metrics file that cannot be written. Called before the first request."""
        if self._settings.report.metrics_file is None:
            return
        path = Path(self._settings.report.metrics_file)
        if path.suffix != SUFFIX:
            raise ConfigError(f"--metrics-file: {path} must end in {SUFFIX}.")
        if not path.parent.is_dir():
            raise ConfigError(f"--metrics-file: there is no folder {path.parent}.")
        with suppress(OSError):  # such as a name that is too long: reported when it is written
            if path.is_dir():
                raise ConfigError(f"--metrics-file: {path} is a folder.")

    async def begin(self, job: Job) -> None:
        """A run begins. Raises `FrontierError`."""
        async with self._lock:
            self._past = Past(
                await job.frontier.read(reads.AllRuns()), await job.frontier.read(reads.LastPublication())
            )
            self._job, self._balance = job, None

    async def end(
        self,
        site: Url | None,
        frontier: Frontier | None,
        code: Exit,
        *,
        findings: Sequence[Finding] | None = None,
        traffic: Traffic | None = None,
        submitted: Mapping[str, int] | None = None,
    ) -> OutputError | None:
        """A run ended: writes its metrics. Returns the error if they cannot be written.

        `site`: the first start URL; `frontier`: the state, as far as it could be opened.
        """
        async with self._lock:
            self._job = None
            metrics = Metrics(self._name or (urls.netloc(site) if site else ""))
            values.of_build(metrics)
            run = await _of_state(metrics, frontier)
            values.of_end(metrics, time.time(), code)
            if findings is not None and code not in UNSEEN:
                self._findings = findings, run
            if code not in UNSEEN:
                self._of_findings(metrics)
            if traffic:
                values.of_traffic(metrics, traffic)
            for result, count in (submitted or {}).items():
                metrics.set("submitted_urls", count, result)
            self._ended = metrics
        return _written(self._settings.report.metrics_file, values.exposition([metrics]))

    async def scrape(self) -> Metrics | None:
        """The metrics now, for the port; None before the first run."""
        async with self._lock:
            if self._job is None:
                return self._ended
            metrics = Metrics(self._name or urls.netloc(self._job.starts[0]))
            values.of_build(metrics)
            values.of_runs(metrics, *self._past)
            values.of_balance(metrics, await self._balance_of(self._job))
            values.of_progress(metrics, self._job.stats)
            self._of_findings(metrics)
            if self._job.parts.traffic:
                values.of_traffic(metrics, self._job.parts.traffic)
            return metrics

    async def _balance_of(self, job: Job) -> Balance:
        """The balance, counted again every `FRESH` seconds at most, more rarely where it takes long."""
        if self._balance is None or time.monotonic() >= self._stale:
            began = time.monotonic()
            self._balance = await job.frontier.read(reads.RunBalance())
            now = time.monotonic()
            self._stale = now + max(FRESH, SHARE * (now - began))
        return self._balance

    def _of_findings(self, metrics: Metrics) -> None:
        if self._findings:
            findings, run = self._findings
            values.of_findings(metrics, findings, complete=run.complete, external=run.external)


async def _of_state(metrics: Metrics, frontier: Frontier | None) -> _Run:
    """Adds what the state knows. For a state that cannot be read, only the last success is set: to never."""
    values.of_runs(metrics, (), None)
    if frontier is None:
        return _Run()
    try:
        runs = await frontier.read(reads.AllRuns())
        values.of_runs(metrics, runs, await frontier.read(reads.LastPublication()))
        if runs:
            balance = await frontier.read(reads.RunBalance())
            values.of_balance(metrics, balance, balance.dated)
            is_checked = await frontier.recall(EXTERNAL) is not None
            if is_checked:
                values.of_external(metrics, await frontier.read(reads.CountAnswers()))
            return _Run(runs[-1].complete, is_checked)
    except CrawlerError:
        pass
    return _Run()


def _written(name: str | None, text: str) -> OutputError | None:
    try:
        if name is not None:
            atomic.write(Path(name), text)
    except OSError as error:
        return OutputError(f"The metrics {name} cannot be written: {error.strerror or error}.")
    return None
