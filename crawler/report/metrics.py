"""The catalogue of metrics, their values for one site, and the Prometheus text format (version 0.0.4).

Names and labels are stable: alerts and dashboards use them (docs/run/metrics.md). No URL, path or title is
ever a label value. Nothing is counted or looked up here:
`metric_values` fills in the values.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

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

    def rendered(self) -> str:
        """The text format, in the order of the catalogue, without timestamps."""
        return "".join(f"{line}\n" for metric in CATALOGUE for line in self._lines(metric))

    def _lines(self, metric: Metric) -> Iterator[str]:
        name = PREFIX + metric.name
        samples = [*self._of(metric)]
        if samples:
            yield f"# HELP {name} {_escaped(metric.says)}"
            yield f"# TYPE {name} {metric.kind}"
            for suffix, labels, value in samples:
                shown = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels)
                yield f"{name}{suffix}{{{shown}}} {_number(value)}"

    def _of(self, metric: Metric) -> Iterator[tuple[str, Sequence[tuple[str, str]], float]]:
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
