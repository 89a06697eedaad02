"""The alerts, the dashboard and docs/run/metrics.md use only metrics and labels that exist."""

import json
import os
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
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 6
    for rule in RULES:
        assert rule["for"], "one scrape wakes nobody"
        assert "$labels.site" in rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning"}


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("promtool is not installed")
    assert found, "CI installs it: .ci/services"
    return found


@pytest.mark.system
def test_prometheus_accepts_the_alerts(promtool: str) -> None:
    subprocess.run([promtool, "check", "rules", str(ALERTS)], check=True, capture_output=True)


SUCCESS = PREFIX + "last_success_timestamp_seconds"
DAY = 24 * 60  # minutes
STORIES: dict[str, tuple[dict[str, str], dict[int, set[str]]]] = {
    "a first run that takes long": (
        {SUCCESS: f"0x{DAY}"},
        {0: set(), 1: set(), DAY: set()},
    ),
    "no run that succeeds": (
        {SUCCESS: f"0x{3 * DAY}"},
        {DAY: set(), 27 * 60: {"SitemapCrawlNeverSuccessful"}},
    ),
    "a first run that succeeds": (
        {SUCCESS: f"0x600 36000x{DAY}"},
        {600: set(), 601: set(), 602: set(), DAY: set()},
    ),
    "no success any more": (
        {SUCCESS: f"60x{3 * DAY}"},
        {26 * 60: set(), 26 * 60 + 10: set(), 27 * 60: {"SitemapCrawlNotSuccessful"}},
    ),
    "metrics that end": (
        {SUCCESS: "60x60"},
        {25 * 60: set(), 29 * 60: {"SitemapCrawlMetricsAbsent"}, 6 * DAY: {"SitemapCrawlMetricsAbsent"}},
    ),
    "metrics that never were": (
        {"up": f"1x{DAY}"},
        {10: set(), 2 * 60: {"SitemapCrawlMetricsAbsent"}},
    ),
    "a sitemap that was not replaced": (
        {PREFIX + "exit_code": "0x10 6x60", SUCCESS: "60x90"},
        {11: set(), 20: set(), 40: {"SitemapNotReplaced"}},
    ),
    "a sitemap that shrank": (
        {PREFIX + "sitemap_urls": "100x10 70x60", SUCCESS: "60x90"},
        {11: set(), 40: {"SitemapShrunk"}},
    ),
    "broken links that are new": (
        {PREFIX + 'findings{code="broken-link"}': f"1x{2 * DAY} 2x60", SUCCESS: f"{60 * DAY}x{3 * DAY}"},
        {2 * DAY: set(), 2 * DAY + 30: {"SitemapBrokenLinksRisen"}},
    ),
}


@pytest.mark.system
@pytest.mark.parametrize("story", STORIES)
def test_alerts_over_time(story: str, promtool: str, tmp_path: Path) -> None:
    series, expected = STORIES[story]
    given = []
    for name, values in series.items():
        bare, _, labels = name.rstrip("}").partition("{")
        given.append({"series": f'{bare}{{site="a"{labels and "," + labels}}}', "values": values})
    asked = [
        {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{minute}m",
         "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)]}
        for minute, alerts in expected.items()
    ]  # fmt: skip
    test = {"interval": "1m", "input_series": given, "promql_expr_test": asked}
    looks = "5m" if max(expected) > DAY else "1m"  # each look at all rules takes processor time
    file = tmp_path / "test.yaml"
    whole = {"rule_files": [str(ALERTS)], "evaluation_interval": looks, "tests": [test]}
    file.write_text(yaml.safe_dump(whole))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_document_lists_all_metrics() -> None:
    text = (ROOT / "docs/run/metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", text, re.MULTILINE)
    assert [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), says) for name, kind, labels, says in rows
    ] == [
        (PREFIX + m.name, m.kind + (", port only" if m.port_only else ""), m.labels, m.says)
        for m in CATALOGUE
    ]
