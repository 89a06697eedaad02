"""The alerts, the dashboard and docs/run/metrics.md use only metrics and labels that exist."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from crawler.report.catalogue import Code, Severity
from crawler.report.metrics import CATALOGUE, OUTCOMES, PREFIX

ROOT = Path(__file__).parent.parent
ALERTS = ROOT / "config/prometheus-alerts.yaml"
BOARD = json.loads((ROOT / "config/grafana.json").read_text())
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
BY_NAME = {PREFIX + metric.name: metric for metric in CATALOGUE} | {
    f"{PREFIX}{metric.name}_{part}": metric
    for metric in CATALOGUE
    if metric.kind == "histogram"
    for part in ("bucket", "sum", "count")
}
VALUES = {
    "code": {code.value for code in Code},
    "severity": {it.value for it in Severity},
    "outcome": set(OUTCOMES),
}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in BOARD["panels"]:
        yield from (target["expr"].replace("$site", "a") for target in panel["targets"])


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors of an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for part in ("expr", "lhs", "rhs", "vector_selector", "args"):
        below = getattr(node, part, None)
        for one in below if isinstance(below, list) else [below] if below is not None else []:
            yield from selectors(one)


@pytest.mark.parametrize("expression", [*expressions()])
def test_expressions_are_valid_and_use_names_that_exist(expression: str) -> None:
    found = list(selectors(promql_parser.parse(expression)))
    assert len(found) == len(re.findall(r"sitemap_crawler_\w+", expression)) > 0
    for selector in found:
        metric = BY_NAME[selector.name]
        for matcher in selector.matchers.matchers:
            assert matcher.name in {"site", *metric.labels}, selector
            if matcher.name in VALUES:
                assert matcher.value in VALUES[matcher.name]


def test_labels_by_which_is_summed_exist() -> None:
    labels = {label for metric in CATALOGUE for label in metric.labels} | {"site", "le"}
    text = json.dumps(BOARD) + ALERTS.read_text()
    named = {label for group in re.findall(r"by \(([^)]+)\)", text) for label in group.split(", ")}
    named |= set(re.findall(r"\{\{\s*(?:\$labels\.)?([a-z]\w*)\s*\}\}", text))
    assert named <= labels
    assert f"label_values({PREFIX}build_info, site)" in text


def test_the_dashboard_shows_every_metric() -> None:
    shown = set(re.findall(r"sitemap_crawler_\w+", json.dumps(BOARD)))
    assert {BY_NAME[name] for name in shown} == set(CATALOGUE) - {
        BY_NAME[PREFIX + "last_completion_timestamp_seconds"]
    }


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in BOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_alerts_say_what_is_wrong() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 4
    for rule in RULES:
        assert "{{ $labels.site }}" in rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning"}


def test_prometheus_accepts_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    subprocess.run([promtool, "check", "rules", str(ALERTS)], check=True, capture_output=True)


def test_the_document_lists_all_metrics() -> None:
    text = (ROOT / "docs/run/metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", text, re.MULTILINE)
    assert [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), says) for name, kind, labels, says in rows
    ] == [
        (PREFIX + m.name, m.kind + (", port only" if m.port_only else ""), m.labels, m.says)
        for m in CATALOGUE
    ]
