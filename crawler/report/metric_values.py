"""Fills in the values of the metrics: from the state, the findings of the newest run, and the traffic.

What is unknown is left out, so that a failed night leaves a gap and not a zero. The names are in `metrics`.
"""

import platform
from collections.abc import Mapping, Sequence
from typing import Final

from crawler.model.external import ExternalCounts
from crawler.model.reasons import Cause, Source, Why
from crawler.model.rows import PublicationRow, RunRow
from crawler.model.survey import Balance
from crawler.report.catalogue import NEEDS_COMPLETE, Code
from crawler.report.external import KINDS
from crawler.report.metrics import Metrics
from crawler.report.report import Finding
from crawler.report.stats import Stats
from crawler.report.traffic import BOUNDS, CLASSES, Traffic

OPEN: Final = "open"
OUTCOMES: Final = (
    "listed",
    OPEN,
    "moved",
    *(f"unlisted:{why.value}" for why in Why),
    *(f"failed:{cause.value}" for cause in Cause if cause is not Cause.ROBOTS_DOWN),
)
"""Outcomes that always have a series; `kept:…` has one while there are such pages."""


def of_build(metrics: Metrics) -> None:
    """The versions."""
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, for crawls without metrics

    metrics.set("build_info", 1, version("sitemap-crawler"), platform.python_version())


def of_runs(metrics: Metrics, runs: Sequence[RunRow], published: PublicationRow | None) -> None:
    """The last run that ended, the last success, and the last publication."""
    metrics.set("last_success_timestamp_seconds", max((run.succeeded or 0 for run in runs), default=0))
    ended = [run for run in runs if run.ended is not None]
    if ended:
        last = max(ended, key=lambda run: run.ended or 0)
        of_end(metrics, last.ended or 0, last.exit, last.seconds)
    if published:
        metrics.set("last_publication_timestamp_seconds", published.files_changed)
        metrics.set("sitemap_urls", published.urls)
        metrics.set("sitemap_files", published.files)
        metrics.set("sitemap_bytes", published.bytes)
        for change in ("added", "removed", "changed"):
            metrics.set("sitemap_changes", getattr(published, change), change)


def of_end(metrics: Metrics, at: float, code: int | None, seconds: float | None = None) -> None:
    """How the last run ended, and when (seconds since the epoch)."""
    metrics.set("last_completion_timestamp_seconds", at)
    metrics.set("exit_code", code)
    metrics.set("run_duration_seconds", seconds)


def of_balance(metrics: Metrics, balance: Balance, dated: Mapping[str, int] | None = None) -> None:
    """The URLs by outcome. `dated`: the listed ones by the source of their date."""
    metrics.set("urls_discovered", balance.discovered)
    counts = {**dict.fromkeys(OUTCOMES, 0), **balance.outcomes, OPEN: balance.open}
    for outcome, count in counts.items():
        metrics.set("urls", count, outcome)
    if dated is not None:
        for source in Source:
            metrics.set("lastmod_urls", dated.get(source.value, 0), source.value)
        metrics.set("lastmod_urls", balance.listed - sum(dated.values()), "none")


def of_external(metrics: Metrics, counts: ExternalCounts) -> None:
    """The URLs on other sites by what is known of them."""
    for kind in KINDS:
        metrics.set("external_urls", counts.of(kind), kind)
    metrics.set("external_urls", counts.unchecked, "unasked")


def of_findings(
    metrics: Metrics, findings: Sequence[Finding], *, complete: bool, external: bool = False
) -> None:
    """The number of findings of each kind. `complete`: the run is; `external`: it checked other sites."""
    counts = {finding.code: finding.count for finding in findings}
    for code in Code:
        if code is Code.BROKEN_EXTERNAL and not external:
            continue
        if complete or code not in NEEDS_COMPLETE:
            metrics.set("findings", counts.get(code, 0), code.value, code.severity.value)


def of_traffic(metrics: Metrics, traffic: Traffic) -> None:
    """The requests of this process."""
    for status in CLASSES:
        metrics.set("requests_total", traffic.requests[status], status)
    metrics.set("received_bytes_total", traffic.bytes)
    metrics.set("retries_total", traffic.retries)
    metrics.observe(
        "request_duration_seconds", dict(zip(BOUNDS, traffic.within, strict=True)), traffic.seconds
    )


def of_progress(metrics: Metrics, stats: Stats) -> None:
    """The crawl at work."""
    metrics.set("in_flight", stats.in_flight)
    metrics.set("queued", stats.queued)
    metrics.set("pace_seconds", stats.delay)
