"""`diff`: two sitemaps compared, wherever they are, with reasons from a state."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.sitemap.diff import NEW, OLD, Comparison, EntryChange
from crawler.sitemap.write.writer import Style, Writer
from tests.commands import Run

SITE = "https://example.com"


def put(folder: Path, entries: dict[str, str | None], **style: object) -> None:
    folder.mkdir(exist_ok=True)
    writer = Writer(folder, SITE, Style(**style))  # type: ignore[arg-type]
    writer.add(
        Entry(Url(f"{SITE}/{name}"), datetime.fromisoformat(date).replace(tzinfo=UTC) if date else None)
        for name, date in sorted(entries.items())
    )
    writer.finish()


def test_changes_are_sorted_for_any_order_of_the_sides() -> None:
    with Comparison() as comparison:
        comparison.load(OLD, [("c", None), ("a", "9"), ("b", "2"), ("a", "1")])
        comparison.load(NEW, [("d", None), ("b", "3"), ("a", "9")])
        assert list(comparison.changes(str)) == [
            EntryChange("~", "b", "2", "3"),
            EntryChange("-", "c", None, None),
            EntryChange("+", "d", None, None),
        ]
        assert (comparison.count(OLD), comparison.count(NEW)) == (3, 3)


def test_dates_are_compared_as_instants(run: Run, tmp_path: Path) -> None:
    same = "2026-01-31T23:59:59+00:00"
    put(tmp_path / "old", {str(place): same for place in range(5)})
    spelt = (
        "2026-01-31T23:59:59Z",
        "2026-02-01T00:59:59+01:00",
        "2026-01-31T23:59:59.250Z",
        "2026-02-31",
        "2026",
    )
    entries = (
        f"<url><loc>{SITE}/{place}</loc><lastmod>{date}</lastmod></url>" for place, date in enumerate(spelt)
    )
    xmlns = "http://www.sitemaps.org/schemas/sitemap/0.9"
    (tmp_path / "new.xml").write_text(f'<urlset xmlns="{xmlns}">{"".join(entries)}</urlset>')
    code, out, _ = run.lines("diff", "old", "new.xml")
    assert (code, out) == (8, [
        f"~ {SITE}/3  ({same} → no date)", f"~ {SITE}/4  ({same} → 2026-01-01T00:00:00+00:00)",
    ])  # fmt: skip


def test_files_folders_and_forms_can_be_mixed(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "old", {"a": "2024-01-01", "b": None, "c": None}, max_urls=1)
    put(tmp_path / "new", {"a": "2024-01-02", "b": None, "d": None}, gzip=False)
    code, out, err = run.lines("diff", "old", "new/sitemap.xml")
    assert code == 8
    assert out == [
        f"~ {SITE}/a  (2024-01-01T00:00:00+00:00 → 2024-01-02T00:00:00+00:00)",
        f"- {SITE}/c",
        f"+ {SITE}/d",
    ]
    assert err == "3 URLs before, 3 after: 1 added, 1 removed, 1 changed.\n"
    assert run.lines("diff", "old", "old/sitemap.xml.gz") == (
        0,
        [],
        "3 URLs before, 3 after: 0 added, 0 removed, 0 changed.\n",
    )


def test_changes_as_json(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "old", {"a": None})
    put(tmp_path / "new", {"b": None})
    _, out, _ = run.lines("diff", "old", "new", "--format", "jsonl")
    removed, added, totals = map(json.loads, out)
    _, out, _ = run.lines("diff", "old", "new", "--format", "json")
    assert json.loads("".join(out)) == {"changes": [removed, added], **totals}
    _, out, _ = run.lines("diff", "old", "old", "--format", "json")
    assert json.loads("".join(out))["changes"] == []
    assert removed == {"change": "removed", "url": f"{SITE}/a", "old": None, "new": None, "reason": None}
    assert added["change"] == "added"
    assert totals == {"totals": {"old": 1, "new": 1, "added": 1, "removed": 1, "changed": 0}}


@pytest.mark.system
def test_diff_of_a_sitemap_and_a_state_has_reasons(run: Run) -> None:
    site = Site()
    site.page("/", links=["/kept", "/hidden", "/moved", "/new", "/broken"])
    site.page("/kept")
    site.page("/new")
    site.page("/hidden", noindex=True)
    site.redirect("/moved", "/new")
    site.page("/orphan")
    site.sitemap("/live.xml", ["/", "/kept", "/hidden", "/moved", "/broken", "/orphan"])
    with site.serve() as origin:
        words = ["crawl", origin + "/", "--rate", "0", "--retries", "0", "--state", "s.db", "-q"]
        assert run.lines(*words, "--seed-sitemaps", "off")[0] == 0
        code, out, _ = run.lines("diff", f"{origin}/live.xml", "s.db", "--rate", "0")
        assert code == 8
        assert [line.replace(origin, "") for line in out] == [
            "- /broken  (failed:not-found: not found (404, 410))",
            "- /hidden  (unlisted:noindex: marked noindex)",
            "- /moved  (moved to /new)",
            "+ /new  (new)",
            "- /orphan  (no page links to it, and no seed contains it)",
        ]
        site.page("/", links=["/new"])
        run.lines(*words, "--seed-sitemaps", "off", "--force")
        _, out, _ = run.lines("diff", f"{origin}/live.xml", "sitemaps", "--state", "s.db", "--rate", "0")
        assert f"- {origin}/kept  (no longer linked: run 1 was the last to find it)" in out


@pytest.mark.system
def test_urls_not_reached_by_unfinished_run_are_not_called_lost(run: Run) -> None:
    site = Site()
    site.page("/", links=["/a", "/b"])
    site.page("/a", links=["/deep"])
    site.page("/b")
    site.page("/deep")
    site.sitemap("/live.xml", ["/", "/a", "/deep", "/never"])
    with site.serve() as origin:
        words = ["crawl", origin + "/", "--rate", "0", "--state", "s.db", "-q", "--seed-sitemaps", "off"]
        assert run.lines(*words)[0] == 0
        assert run.lines(*words, "--max-pages", "1", "--exclude", "/none")[0] == 7
        _, out, _ = run.lines("diff", f"{origin}/live.xml", "s.db", "--rate", "0")
        assert [line.replace(origin, "") for line in out] == [
            "- /a  (run 2 is unfinished and has not finished it yet; listed before)",
            "- /deep  (run 2 is unfinished and has not reached it yet; run 1 recorded listed)",
            "- /never  (run 2 is unfinished and has not reached it yet; no earlier run found it)",
        ]


@pytest.mark.parametrize("place", ["none.xml", "empty", "http://127.0.0.1:49151/s.xml"])
def test_an_unreadable_place_is_one_sentence(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path / "new", {"a": None})
    code, _, err = run.lines("diff", place, "new")
    assert code == 2
    assert f"{place} cannot be read" in err
    assert "Traceback" not in err


MEASURE = """
import re, sys
from crawler.__main__ import main
try:
    main(["diff", sys.argv[1], sys.argv[2]])
except SystemExit as left:
    print(left.code, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.slow
def test_memory_use_is_constant(tmp_path: Path) -> None:
    """In 20 MB, 120,000 URLs of two sitemaps have no place."""
    assert peak_of_diff(tmp_path / "many", 60_000) - peak_of_diff(tmp_path / "few", 1_000) < 20


def peak_of_diff(folder: Path, count: int) -> int:
    """The most memory (MB) of a `diff` of two sitemaps of so many URLs, all but a hundred of them the same."""
    for name, shift in (("old", 0), ("new", 100)):
        (folder / name).mkdir(parents=True)
        with (folder / name / "sitemap.txt").open("w") as file:
            file.writelines(f"{SITE}/some/folder/page-{n:07}.html\n" for n in range(shift, count + shift))
    words = [sys.executable, "-c", MEASURE, str(folder / "old"), str(folder / "new")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert (code, len(done.stdout.splitlines())) == (8, 200)
    return peak


@pytest.mark.parametrize("body", ["<!doctype html><a href=x>x</a>", "<svg/>", "some words", "\x00\x01"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_file_that_is_not_a_sitemap_is_exit_2(run: Run, tmp_path: Path, body: str, order: int) -> None:
    put(tmp_path / "old", {"a": None, "b": None})
    (tmp_path / "page.html").write_text(body)
    code, out, err = run.lines("diff", *["old", "page.html"][::order])
    assert (code, out) == (2, [])
    assert "page.html is not a sitemap: it " in err


def test_an_empty_urlset_is_a_sitemap(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "old", {"a": None})
    (tmp_path / "none.xml").write_text('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>')
    assert run.lines("diff", "old", "none.xml")[:2] == (8, [f"- {SITE}/a"])


@pytest.mark.parametrize("gzip", [True, False])
def test_json_lines_are_read(run: Run, tmp_path: Path, gzip: bool) -> None:
    put(tmp_path / "old", {"a": "2024-01-01", "b": None})
    put(tmp_path / "new", {"a": "2024-01-01", "b": None}, form="jsonl", gzip=gzip)
    assert run.lines("diff", "old", "new")[0] == 0
    assert run.lines("validate", "new") == (0, [], "1 file, 2 URLs: valid.\n")


def test_urls_are_normalised(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "old", {"a": None})
    site = Site()
    site.sitemap("/s%C3%BC.xml", [f"{SITE}/a"])
    with site.serve() as origin:
        assert run.lines("diff", "old", origin.upper() + "/sü.xml#top")[0] == 0
    assert {request.target for request in site.log} == {"/s%C3%BC.xml"}
