"""`report`, `list`, `--report` and `--fail-on` on the command line, over the states of real crawls."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crawler.app import report as reports
from crawler.cli.demo import demo_site
from crawler.cli.demo.site import Site
from crawler.errors import OutputError
from crawler.report.catalogue import Code
from tests.commands import Run
from tests.report.made import planted
from tests.sites import star

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/use/report.schema.json").read_text())
NO_ROWS: Any = None
QUICK = ("--rate", "0", "--retries", "0")


@pytest.fixture
def shop(run: Run) -> Iterator[str]:
    """The origin of the demo's shop, crawled."""
    with demo_site().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, "-q")
        yield origin


def told(out: str) -> dict[str, list[str]]:
    """The paths in a JSON report, by code."""
    said = json.loads(out)
    jsonschema.validate(said, SCHEMA, cls=jsonschema.Draft202012Validator)
    site = said["site"].rstrip("/")
    return {f["code"]: [item["url"].removeprefix(site) for item in f["items"]] for f in said["findings"]}


@pytest.mark.parametrize("command", [["report"], ["list", "pages"]])
def test_a_state_of_another_site_is_said_to_be(run: Run, shop: str, command: list[str]) -> None:
    state = f".sitemap-crawler/{shop.removeprefix('http://').replace(':', '_')}.db"
    for url, remark in (
        (shop, ""),
        ("http://a.example/", f"This is the state of {shop}/, not of http://a.example/\n"),
    ):
        code, out, err = run(*command, url, "--state", state)
        assert (code, bool(out), err) == (0, True, remark)


def test_on_a_terminal_long_lines_are_broken_between_words(
    run: Run, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, piped, _ = run("report", shop)
    assert max(map(len, piped.splitlines())) > 80, "a pipe gets each item in one line"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    _, shown, _ = run("report", shop)
    assert shown.split() == piped.split()
    assert shown.count("\n\n") == piped.count("\n\n")
    assert max(map(len, shown.splitlines())) <= 80
    assert all(line in shown for line in piped.splitlines() if len(line) <= 80)


def without_exit(said: dict[str, Any]) -> dict[str, Any]:
    """A report in JSON without exit codes: --fail-on, which changes them, needs the report."""
    return {
        **said, "run": {**said["run"], "exit": None}, "runs": [{**run, "exit": None} for run in said["runs"]],
    }  # fmt: skip


def test_the_report_of_the_shop(run: Run, shop: str) -> None:
    code, out, err = run("report", shop, "--format", "json")
    assert (code, err) == (0, "")
    found = told(out)
    assert {code: len(items) for code, items in found.items()} == {
        "broken-link": 2, "server-error": 1, "sitemap-stale": 1, "redirect-chain": 1, "redirect-linked": 10, "orphan": 1,
        "robots-line": 1, "robots-linked": 10, "noindex-linked": 2, "no-lastmod": 4,
    }  # fmt: skip
    assert found["broken-link"] == ["/guides/missing", "/lanterns/tin"]
    assert found["sitemap-stale"] == ["/lanterns/tin"]
    assert found["redirect-chain"] == ["/shop"]
    assert found["orphan"] == ["/workshop"]
    first = json.loads(out)["findings"][0]["items"][0]
    assert first["from"] == [
        f"{shop}/guides/{name}"
        for name in (
            "a-short-history",
            "choosing-a-mantle",
            "cleaning-soot",
            "storing-paraffin",
            "trimming-a-wick",
        )
    ]
    assert (first["status"], first["links"]) == (404, 5)


def test_the_report_as_text_and_cut(run: Run, shop: str) -> None:
    out, _ = run.ok("report", "--most", "1")
    assert out.startswith(f"{shop}/  run 1, ")
    assert (
        "/guides/missing  linked from 5 pages: /guides/a-short-history (“/guides/missing”), /guides/" in out
    )
    assert "  and 9 more\n" in out
    assert "and 9 more" not in run("report", "--most", "0")[1]


def test_the_files_of_a_report(run: Run, shop: str, tmp_path: Path) -> None:
    names = [f"out.{suffix}" for suffix in ("html", "json", "md", "csv")]
    code, out, err = run("report", shop, *(word for name in names for word in ("--report", name)))
    assert (code, out, err) == (0, "", f"Written: {', '.join(names)}\n")
    assert told((tmp_path / "out.json").read_text())["orphan"] == ["/workshop"]
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert f"<code>sitemap-crawler list findings {shop}/</code>" in page
    assert (tmp_path / "out.md").read_text().startswith("# `")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert sum(row["url"].endswith("/guides/missing") for row in rows) == 5
    assert sorted(path.name for path in tmp_path.glob("*")) == sorted(
        [".sitemap-crawler", *names, "sitemaps"]
    )


def test_list_links_shows_broken_links_and_their_sources(run: Run, shop: str) -> None:
    out, _ = run.ok("list", "links", "--only", "broken-link", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {(row["target"], row["status"]) for row in rows} == {(f"{shop}/guides/missing", "404")}
    assert [row["source"].rpartition("/")[2] for row in rows] == [
        "a-short-history", "choosing-a-mantle", "cleaning-soot", "storing-paraffin", "trimming-a-wick",
    ]  # fmt: skip


def test_list_links_shows_where_redirects_end(run: Run) -> None:
    site = Site()
    site.page("/", links=["/chain", "/loop", "/fine"])
    site.redirect("/chain", "/next")
    site.redirect("/next", "/lost")
    site.redirect("/loop", "/pool")
    site.redirect("/pool", "/loop")
    site.page("/fine")
    with site.serve() as origin:
        run("crawl", origin, *QUICK, "-q")
        fields = ("--fields", "target,status,final_url,final_status", "--format", "csv")
        _, out, _ = run("list", "links", *fields)
        rows = out.replace(origin, "").splitlines()[1:]
        assert sorted(rows) == ["/chain,301,/lost,404", "/fine,200,/fine,200", "/loop,301,,"]
        _, out, _ = run("list", "links", "--only", "broken-link", *fields)
        assert out.replace(origin, "").splitlines()[1:] == ["/chain,301,/lost,404"]


def test_list_pages(run: Run, shop: str) -> None:
    _, out, _ = run("list", "pages", "--only", "failed", "--only", "orphan", "--fields", "outcome,status,url")
    assert out.splitlines() == [
        f"failed:not-found\t404\t{shop}/guides/missing",
        f"failed:not-found\t404\t{shop}/lanterns/tin",
        f"failed:server-error\t500\t{shop}/press/3",
        f"listed\t200\t{shop}/workshop",
    ]
    _, out, _ = run("list", "pages", "--format", "jsonl", "--fields", "url, found_at")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 65
    assert rows[0].keys() == {"url", "found_at"}
    assert [row["url"] for row in rows] == sorted(row["url"] for row in rows)


def test_list_links_of_all_kinds(run: Run, shop: str) -> None:
    def kinds(*words: str) -> set[tuple[str, str, str]]:
        _, out, _ = run("list", "links", "--format", "csv", *words)
        rows = csv.DictReader(io.StringIO(out))
        return {
            (row["source"].removeprefix(shop), row["target"].removeprefix(shop), row["kind"]) for row in rows
        }

    links, every = kinds(), kinds("--all-kinds")
    assert ("/", "/shop", "link") in links
    assert {kind for *_, kind in links} == {"link"}
    assert {
        ("/shop", "/store", "redirect"),
        ("/lanterns/?view=grid", "/lanterns/", "canonical"),
    } <= every - links


def test_list_findings_and_runs(run: Run, shop: str) -> None:
    _, out, _ = run("list", "findings", "--only", "sitemap-stale", "--format", "jsonl")
    [row] = map(json.loads, out.splitlines())
    assert (row["url"], row["severity"], row["new"]) == (f"{shop}/lanterns/tin", "error", False)
    _, out, _ = run("list", "findings", "--only", "redirect-chain")
    assert out.endswith(f"{shop}/shop\t{shop}/store → {shop}/lanterns/\n")
    _, out, _ = run("list", "runs", "--format", "csv")
    [first] = csv.DictReader(io.StringIO(out))
    assert (first["number"], first["status"], first["complete"], first["listed"]) == (
        "1",
        "concluded",
        "true",
        "28",
    )


def test_report_shows_changes_since_last_run(run: Run) -> None:
    site = star("/stays", "/goes")
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK, "-q")
        del site.answers["/goes"]
        site.page("/", links=["/stays", "/goes", "/comes", "/lost"])
        site.page("/comes")
        run.ok("crawl", origin, *QUICK, "-q")
        code, out, _ = run("report", origin, "--format", "json", "--fail-on", "new:broken-link")
        assert code == 8
        said = json.loads(out)
        assert {name: len(said["changes"][name]) for name in ("added", "removed")} == {
            "added": 1,
            "removed": 1,
        }
        assert said["changes"]["removed"][0] == {"url": f"{origin}/goes", "why": "not found (404, 410)"}
        assert (said["sitemap"]["added"], said["sitemap"]["removed"]) == (1, 1)
        run.ok("crawl", origin, *QUICK, "-q")
        run.ok("report", origin, "--fail-on", "new:broken-link")
        assert run("report", origin, "--fail-on", "error")[0] == 8
        run.ok("report", origin, "--fail-on", "redirect-chain", "--fail-on", "trap")


def test_a_table_has_every_row(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    pages = [f"/p{number:02}" for number in range(12)]
    site.page("/", links=[*pages, "/twin-1", "/twin-2", "/twin-3"])
    for path in pages:
        site.page(path, title=path, links=["/gone", "/lost", "/moved"])
    for number in range(1, 4):
        site.page(f"/twin-{number}", title="Twins", text=f"twin {number}")
    site.redirect("/moved", "/")
    site.sitemap("/old.xml", ["/moved"])
    site.robots("Sitemap: {origin}/old.xml\n")
    with site.serve() as origin:
        for size in (20_000, 2):  # in one batch, and in several
            monkeypatch.setattr("crawler.app.finding_rows.ROWS", size)
            monkeypatch.setattr("crawler.app.finding_rows.NAMES", size)
            run("crawl", origin, *QUICK, "-q", "--report", "r.csv")
            rows = list(csv.DictReader(io.StringIO(Path("r.csv").read_text())))
            links = [
                (row["url"].removeprefix(origin), row["source"].removeprefix(origin))
                for row in rows
                if row["code"] == "broken-link"
            ]
            assert links == [(target, page) for target in ("/gone", "/lost") for page in pages]
            twins = [row["source"] for row in rows if row["code"] == "duplicate-title"]
            assert twins == [f"{origin}/twin-2", f"{origin}/twin-3"]
            stale = [(row["url"], row["source"]) for row in rows if row["code"] == "sitemap-stale"]
            assert stale == [(f"{origin}/moved", f"{origin}/old.xml")]
            assert sum(row["code"] == "redirect-linked" for row in rows) == len(pages)


def test_clicks_are_counted_from_the_start_url(run: Run) -> None:
    site = Site()
    site.sitemap("/sitemap.xml", ["/far", "/lonely"])
    site.robots("Sitemap: {origin}/sitemap.xml\n")
    site.page("/", links=["/old"], nofollow=["/aside"])
    site.redirect("/old", "/near")
    site.page("/near", links=["/far"])
    for path in ("/far", "/lonely", "/aside"):
        site.page(path)
    with site.serve() as origin:
        run("crawl", origin, *QUICK, "-q", "--report", "r.json")
        fields = "url,clicks,links_in,links_out,found_at"
        _, out, _ = run("list", "pages", "--only", "listed", "--fields", fields, "--format", "csv")
    said = json.loads(Path("r.json").read_text())
    assert said["clicks"] == [{"clicks": clicks, "urls": 1} for clicks in range(3)]
    assert said["unreachable"] == 1
    assert out.replace(origin, "").splitlines()[1:] == [
        "/,0,0,1,0",
        "/far,2,1,0,0",
        "/lonely,,0,0,0",
        "/near,1,0,1,1",
    ]


def faulty_site() -> Site:
    """A site with one of each fault, apart from what takes many pages: crawler traps and unreliable dates."""
    site = Site()
    paths = ["/gone", "/down", "/cut", "/loop", "/red", "/blue", "/thanks", "/shop", "/basket"]
    site.page("/", title="Lanterns", links=[*paths, "/twin-1", "/twin-2", "/same-1", "/same-2"])
    site.robots("User-agent: *\nDisallow: /basket\nSitemap: {origin}/old.xml\n")
    site.sitemap("/old.xml", ["/gone", "/lonely"])
    site.page("/lonely", title="Lonely", text="alone")
    site.raw("/down", status=500)
    site.raw("/cut", body=b"no gzip", headers=[("Content-Encoding", "gzip"), ("Content-Type", "text/html")])
    site.redirect("/loop", "/loop")
    site.redirect("/shop", "/store")
    site.redirect("/store", "/")
    site.page("/red", title="Red", canonical="/gone")
    site.page("/blue", title="Blue", canonical="/shop")
    site.page("/thanks", title="Thanks", canonical="/", noindex=True)
    for number in (1, 2):
        site.page(f"/twin-{number}", title="Twins", text=f"twin {number}")
        site.page(f"/same-{number}", title="Same", text="word for word", canonical=f"/same-{number}")
    return site


def test_crawl_of_site_with_one_of_each_fault(run: Run) -> None:
    with faulty_site().serve() as origin:
        run("crawl", origin, *QUICK, "-q", "--report", "r.json")
    found = told(Path("r.json").read_text())
    assert found.pop("no-lastmod")
    assert found == {
        "broken-link": ["/gone"], "server-error": ["/down"], "unreachable": ["/cut"], "redirect-loop": ["/loop"],
        "canonical-conflict": ["/red"], "sitemap-stale": ["/gone"], "canonical-chain": ["/blue"], "noindex-canonical": ["/thanks"],
        "redirect-chain": ["/shop"], "redirect-linked": ["/shop"], "orphan": ["/lonely"], "duplicate-content": ["/same-1"],
        "duplicate-title": ["/twin-1"], "robots-line": ["/robots.txt"], "robots-linked": ["/basket"],
        "noindex-linked": ["/thanks"],
    }  # fmt: skip


# -- on crawl -------------------------------------------------------------------------------------------------


def test_a_crawl_writes_its_report(run: Run, tmp_path: Path) -> None:
    with demo_site().serve() as origin:
        words = (
            "--report",
            "r.json",
            "--report",
            "r.html",
            "--fail-on",
            "broken-link",
            "--publish-base",
            "https://x.example",
        )
        err = run.fails(8, "crawl", origin + "/", *QUICK, *words)
        assert "found what --fail-on names: broken-link" in err
        assert "findings     broken-link: 2 URLs, 5 links on 5 pages" in err
        assert f"sitemap-crawler report {origin}/" in err
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()
    said = json.loads((tmp_path / "r.json").read_text())
    told(json.dumps(said))
    assert (said["run"]["exit"], said["run"]["complete"], said["run"]["requests"]) == (0, True, 49)
    assert (said["sitemap"]["published"], said["sitemap"]["urls"], said["sitemap"]["files"]) == (True, 28, 1)
    assert said["settings"]["publish-base"] == "https://x.example"
    assert (said["published_as"], said["hosts"][0]["urls"]) == ("https://x.example/", 63)
    assert said["robots"]["line"] == "Sitemap: https://x.example/sitemap.xml.gz"
    _, out, _ = run("report", origin + "/", "--format", "json", "--most", "100")
    assert without_exit(json.loads(out)) == without_exit(said), "a report made afterwards says the same"
    _, out, _ = run("report", origin + "/")
    assert out.startswith("https://x.example/  run 1, ")
    assert out.splitlines()[1] == f"crawled at {origin}/"
    _, out, _ = run("list", "pages", "--only", "orphan", "--fields", "url,published")
    assert out == f"{origin}/workshop\thttps://x.example/workshop\n"


def test_robots_txt_without_the_line_is_a_finding(run: Run) -> None:
    site = Site()
    site.page("/")
    site.robots("User-agent: *\nDisallow:\n")
    with site.serve() as origin:
        run("crawl", origin, *QUICK, "-q", "--report", "r.json", "--state", "1.db")
        assert "robots-line" in told(Path("r.json").read_text())
        site.robots(f"Sitemap: {origin}/sitemap.xml.gz\n")
        run("crawl", origin, *QUICK, "-q", "--report", "r.json", "--state", "2.db")
        assert "robots-line" not in told(Path("r.json").read_text())


@pytest.mark.parametrize(
    ("words", "code"), [(("--min-urls", "900"), 6), (("--max-pages", "3"), 7)], ids=["refused", "partial"]
)
def test_report_is_written_for_every_exit_code(run: Run, words: tuple[str, ...], code: int) -> None:
    with demo_site().serve() as origin:
        got, _, _ = run("crawl", origin, *QUICK, "-q", *words, "--report", "r.json", "--fail-on", "info")
    assert got == code
    said = json.loads(Path("r.json").read_text())
    told(json.dumps(said))
    assert said["run"]["exit"] == code
    assert said["run"]["complete"] is (code == 6)
    assert bool(said["refused"]) is (code == 6)
    assert said["published"] is None
    assert not said["sitemap"]["published"]


def test_unreachable_start_url_is_reported(run: Run) -> None:
    with Site().serve() as origin:
        code, _, _ = run("crawl", origin, *QUICK, "-q", "--report", "r.json")
    assert code == 4
    assert told(Path("r.json").read_text())["broken-link"] == ["/"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--report", "report.pdf"), "must end in .html, .json, .md or .csv"),
        (("--report", "nowhere/report.html"), "there is no folder nowhere"),
        (("--fail-on", "broken-lnik"), "there is no finding broken-lnik; did you mean broken-link?"),
    ],
)
def test_invalid_report_option_is_reported_before_crawl(run: Run, words: tuple[str, ...], said: str) -> None:
    site = demo_site()
    with site.serve() as origin:
        code, _, err = run("crawl", origin, *QUICK, *words)
        assert (code, said in err) == (2, True), err
        assert site.log == []
        assert run("report", origin, *words)[0] == 2


def test_unwritable_folder_is_reported_before_crawl(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # permissions do not bind the root user
    site = demo_site()
    with site.serve() as origin:
        code, _, err = run("crawl", origin, *QUICK, "--report", "r.html")
        assert (code, site.log) == (3, [])
    assert "The report r.html cannot be written: the folder . is not writable." in err


def test_unwritable_report_does_not_affect_publication(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise OutputError("The report r.html cannot be written: No space left on device.")

    monkeypatch.setattr(reports, "write", refuse)
    with demo_site().serve() as origin:
        code, _, err = run("crawl", origin, *QUICK, "--report", "r.html")
    assert (code, err.count("cannot be written")) == (3, 1)
    assert "all accounted for" in err
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


async def test_report_file_is_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "r.md"
    file.write_text("old")

    def fail(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OutputError, match="No space left"):
        await reports.write(NO_ROWS, planted().report(), [str(file)])
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r.md"]


async def test_a_new_report_is_for_its_user_alone(tmp_path: Path) -> None:
    """A web server that was allowed to read it still may."""
    new, known = tmp_path / "new.md", tmp_path / "known.md"
    known.touch()
    known.chmod(0o644)
    await reports.write(NO_ROWS, planted().report(), [str(new), str(known)])
    assert [file.stat().st_mode & 0o777 for file in (new, known)] == [0o600, 0o644]


# -- mistakes, and pipes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("list", "links", "--only", "brokenlink"),
            "there is no outcome or finding brokenlink; did you mean broken-link?",
        ),
        (("list", "findings", "--only", "failed"), "there is no finding failed"),
        (("list", "pages", "--fields", "url,size"), "pages have no field size: choose from url, outcome"),
        (("list", "runs", "--only", "failed"), "does not apply to runs"),
        (("list", "page"), "'page' is not one of"),
    ],
)
def test_usage_error_is_one_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    code, out, err = run(*words)
    assert (code, out, said in err) == (2, "", True), err


@pytest.mark.parametrize("words", [("report",), ("list", "pages")])
def test_report_without_state_is_an_error(run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (3, "")
    assert "There is no state" in err
    assert "crawl first" in err


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_a_closed_pipe_ends_a_list_silently(tmp_path: Path) -> None:
    state = next((tmp_path / ".sitemap-crawler").glob("*.db"))
    words = [sys.executable, "-m", "crawler", "list", "links", "--state", str(state), "--format", "jsonl"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert (process.stderr.read(), process.wait()) == (b"", 3)
    process.stderr.close()


@pytest.mark.usefixtures("shop")
def test_every_code_can_be_listed(run: Run) -> None:
    for code in Code:
        run.ok("list", "findings", "--only", code.value)
