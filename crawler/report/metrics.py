"""The catalogue of metrics, their values for one site, and the Prometheus text format (version 0.0.4).

Names and labels are stable: alerts and dashboards use them (docs/run/metrics.md). No URL, path or title is
ever a label value. What is unknown is left out, so that a failed night leaves a gap and not a zero.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from crawler.model.external import ExternalCounts
from crawler.model.reasons import Cause, Source, Why
from crawler.model.rows import PublicationRow, RunRow
from crawler.model.survey import Balance
from crawler.report.catalogue import NEEDS_COMPLETE, Code
from crawler.report.external import EXTERNAL_KINDS
from crawler.report.report import Finding
from crawler.report.stats import Stats
from crawler.report.traffic import BOUNDS, CLASSES, Traffic

PREFIX: Final = "sitemap_crawler_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One metric. All of them also have the label `site`."""

    name: str  # without PREFIX
    kind: str  # gauge, counter or histogram
    says: str
    labels: tuple[str, ...] = ()
    port_only: bool = False


CATALOGUE: Final = (
    Metric("last_completion_timestamp_seconds", "gauge", "When the last run ended, successfully or not."),
    Metric(
        "last_success_timestamp_seconds", "gauge",
        "When a run last ended with exit code 0 or 8; kept by runs that fail; 0: never.",
    ),
    Metric("last_publication_timestamp_seconds", "gauge", "When files of the sitemap last changed."),
    Metric("exit_code", "gauge", "The exit code of the last run."),
    Metric("run_duration_seconds", "gauge", "How long the last run worked, over all its sessions."),
    Metric("urls_discovered", "gauge", "Known URLs; the sum of sitemap_crawler_urls."),
    Metric("urls", "gauge", "Known URLs by outcome; open: not visited yet.", ("outcome",)),
    Metric("sitemap_urls", "gauge", "URLs in the published sitemap."),
    Metric("sitemap_files", "gauge", "Files of the published sitemap."),
    Metric("sitemap_bytes", "gauge", "Size of these files."),
    Metric(
        "sitemap_changes", "gauge",
        "URLs added, removed, or listed with another date by the last publication.", ("change",),
    ),
    Metric(
        "findings", "gauge",
        "Findings of the last run; absent where they are unknown.", ("code", "severity"),
    ),
    Metric(
        "external_urls", "gauge",
        "URLs on other sites that pages link to, by their last answer; absent if they were not checked.",
        ("answer",),
    ),
    Metric(
        "submitted_urls", "gauge",
        "URLs of the last run by the result of their submission; absent if nothing was to be submitted.",
        ("result",),
    ),
    Metric("lastmod_urls", "gauge", "Listed URLs by the source of their lastmod.", ("source",)),
    Metric(
        "requests_total", "counter",
        "Requests of this process by class of status; error: no usable response.", ("status",),
    ),
    Metric("received_bytes_total", "counter", "Decoded bytes of the bodies that this process received."),
    Metric("retries_total", "counter", "Requests of this process that repeat a failed one."),
    Metric("request_duration_seconds", "histogram", "From the request to the last byte of the response."),
    Metric("in_flight", "gauge", "Requests in flight.", port_only=True),
    Metric("queued", "gauge", "Known URLs that are neither done nor in flight.", port_only=True),
    Metric("pace_seconds", "gauge", "Interval between requests to the slowest active host.", port_only=True),
    Metric("build_info", "gauge", "Always 1; the versions are labels.", ("version", "python")),
)  # fmt: skip
"""All metrics, in the order in which they are written."""

_BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}
OPEN: Final = "open"
OUTCOMES: Final = (
    "listed",
    OPEN,
    "moved",
    *(f"unlisted:{why.value}" for why in Why),
    *(f"failed:{cause.value}" for cause in Cause if cause is not Cause.ROBOTS_DOWN),
)
"""Outcomes that always have a series; `kept:…` has one while there are such pages."""


class Metrics:
    """The values of the metrics of one site. A metric without a value is left out."""

    def __init__(self, site: str) -> None:
        """`site`: the value of the label `site`."""
        self._site = site
        self._samples: dict[str, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[str, tuple[Mapping[float, int], float]] = {}

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Sets the value for these labels; None: unknown. `KeyError`, `ValueError`: not in the catalogue."""
        if len(labels) != len(_BY_NAME[name].labels):
            raise ValueError(f"{name} has the labels {_BY_NAME[name].labels}")
        if value is not None:
            self._samples.setdefault(name, {})[labels] = value

    def observe(self, name: str, buckets: Mapping[float, int], total: float) -> None:
        """Sets a histogram: the observations in each bucket, by its upper bound; and the sum of all."""
        self._histograms[_BY_NAME[name].name] = buckets, total

    def samples_of(self, metric: Metric) -> Iterator[tuple[str, Sequence[tuple[str, str]], float]]:
        """The suffix of the name, the labels and the value of each sample."""
        site = ("site", self._site)
        for values, value in self._samples.get(metric.name, {}).items():
            yield "", [site, *zip(metric.labels, values, strict=True)], value
        if metric.name in self._histograms:
            buckets, total = self._histograms[metric.name]
            count = 0
            for bound, within in buckets.items():
                count += within
                yield "_bucket", [site, ("le", _number(bound))], count
            yield "_sum", [site], total
            yield "_count", [site], count


def exposition(sites: Sequence[Metrics]) -> str:
    """The text format, in the order of the catalogue, without timestamps."""
    return "".join(f"{line}\n" for metric in CATALOGUE for line in _lines(metric, sites))


def _lines(metric: Metric, sites: Sequence[Metrics]) -> Iterator[str]:
    name = PREFIX + metric.name
    samples = [sample for site in sites for sample in site.samples_of(metric)]
    if samples:
        yield f"# HELP {name} {_escaped(metric.says)}"
        yield f"# TYPE {name} {metric.kind}"
        for suffix, labels, value in samples:
            shown = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels)
            yield f"{name}{suffix}{{{shown}}} {_number(value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """A label value. Lone surrogates cannot be encoded and become a question mark."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _escaped(text).replace('"', '\\"')


# -- the values ---------------------------------------------------------------------------------------------


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
    for kind in EXTERNAL_KINDS:
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
