"""The demo's second website: its report says exactly the faults that were planted."""

import json
from pathlib import Path

from crawler.cli.demo import faults_site
from crawler.cli.demo.faults import CHAINS, IMPRINT, TRUTH
from tests.commands import Run


def test_the_report_says_the_truth(run: Run) -> None:
    with faults_site().serve() as origin:
        code, _, err = run("crawl", f"{origin}/", "--rate", "0", "--retries", "0", "-q", "--report", "r.json")
    assert code == 0, err
    said = json.loads(Path("r.json").read_text())
    found = {
        finding["code"]: sorted(item["url"].removeprefix(origin) for item in finding["items"])
        for finding in said["findings"]
    }
    assert found == {code: sorted(paths) for code, paths in TRUTH.items()}
    assert len(next(one for one in said["findings"] if one["code"] == "redirect-chain")["items"]) == len(
        CHAINS
    )
    first = said["actions"][0]
    assert first["target"] == origin + IMPRINT
    assert first["mends"] > 0.8 * first["of"]
    assert any(action["page"] == f"{origin}/faults/errors/" for action in said["actions"])
    of_redirects = [one for one in said["actions"] if one["codes"] == ["redirect-linked"]]
    assert [(one["page"], one["mends"]) for one in of_redirects] == [(f"{origin}/faults/", 9)]


def test_the_demo_crawls_it(run: Run, tmp_path: Path) -> None:
    run.ok("demo", "--faults", "--output", str(tmp_path / "out"), "-q")
    assert "https://tidewater.example" in (tmp_path / "out/report.html").read_text()
