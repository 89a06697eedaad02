"""The order and the columns of `list`, over the state of a crawl."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.app import finding_rows
from crawler.app import report as reports
from crawler.cli import list_links
from crawler.cli.demo.site import Site
from crawler.cli.list import WITHOUT_PAGES
from crawler.cli.list_links import Filter
from crawler.frontier import queries
from crawler.model.survey import PagesOfKind
from crawler.parse.url import Url
from crawler.report.catalogue import FILES, Code
from crawler.report.findings import Findings
from tests.commands import Run
from tests.report.made import planted

QUICK = ("--rate", "0", "--retries", "0", "-q", "--no-rule", "duplicate")
DATE = "Sat, 01 Mar 2025 10:00:00 GMT"
TWINS = [f"/twin/{number:02}" for number in range(12)]


@pytest.fixture
def site(run: Run) -> Iterator[str]:
    """The origin of a site with broken links, redirects and groups of pages with one title and text."""
    site = Site()
    site.page("/", links=[*TWINS, "/a", "/z", "/z2", "/none"])
    for path in TWINS:
        site.page(path, title="Twin", text="One text for all twins, which is long enough.", links=["/none"])
    site.page("/a", title="Pair", links=["/missing", "/none", "/old", "/z"])
    site.page("/z", title="Pair", links=["/missing", "/old"])
    site.page("/z2", links=["/missing", "/z"])
    site.redirect("/old", "/a")
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK)
        yield origin


def rows_of(run: Run, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("list", *words, "--format", "jsonl")[1].splitlines()]


@pytest.mark.parametrize("batch", [1, 3, 2_000])
def test_findings_are_in_the_order_of_the_report(
    run: Run, site: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding_rows, "BATCH", batch)
    report = json.loads(run("report", site, "--most", "0", "--format", "json")[1])
    expected = [(one["code"], item["url"]) for one in report["findings"] for item in one["items"]]
    rows = rows_of(run, "findings")
    firsts = [(row["code"], row["url"]) for row in rows if row["group"] in {None, row["url"]}]
    assert firsts == expected
    assert [url.removeprefix(site) for code, url in firsts if code == "broken-link"] == ["/none", "/missing"]


def test_list_findings_has_all_pages_of_a_group(run: Run, site: str) -> None:
    rows = rows_of(run, "findings", "--only", "duplicate-title")
    assert [(row["url"].removeprefix(site), row["group"].removeprefix(site)) for row in rows] == [
        ("/a", "/a"), ("/z", "/a"),
    ]  # fmt: skip


def test_list_pages_has_the_links_in_and_out(run: Run, site: str) -> None:
    rows = {row["url"].removeprefix(site): row for row in rows_of(run, "pages")}
    links = {path: (row["links_in"], row["links_out"]) for path, row in rows.items()}
    assert links["/"] == (0, 16)
    assert links["/z"] == (3, 2)
    assert links["/none"] == (14, 0)
    assert links["/old"] == (2, 0), "a redirect is no link"
    assert "links_in" not in rows_of(run, "pages", "--fields", "url")[0]


@pytest.mark.usefixtures("site")
def test_a_list_on_a_terminal_has_a_header(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run("list", "pages")[1].splitlines()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    header, *lines = run("list", "pages")[1].splitlines()
    assert header.split() == ["outcome", "status", "links_in", "links_out", "url"]
    assert [line.split() for line in lines] == [line.split("\t") for line in plain]
    assert lines[0].index("http") == header.index("url")
    assert run("list", "pages", "--only", "failed:tls")[1] == "", "no header without rows"


def test_findings_about_the_site_need_no_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    pages = [f"/{number:02}" for number in range(12)]
    site.page("/", links=pages, lastmod=DATE)
    for path in pages:
        site.page(path, title=path, text=path, lastmod=DATE)
    with site.serve() as origin:
        run("crawl", origin, *QUICK, "--publish-base", "https://example.com")
        report = json.loads(run("report", origin, "--format", "json")[1])
        monkeypatch.setattr(queries, "page", None)
        rows = [(row["code"], row["url"]) for row in rows_of(run, "findings")]
    expected = [(one["code"], item["url"]) for one in report["findings"] for item in one["items"]]
    assert rows == expected
    assert rows


@pytest.mark.usefixtures("site")
def test_links_are_the_same_if_few_targets_are_remembered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(run, "links", "--all-kinds")
    assert {row["kind"] for row in rows} == {"link", "redirect"}
    monkeypatch.setattr(list_links, "BATCH", 5)
    monkeypatch.setattr(list_links, "REMEMBERED", 3)
    assert rows_of(run, "links", "--all-kinds") == rows


@pytest.mark.parametrize("code", [code for code in Code if code not in {*WITHOUT_PAGES, *FILES}])
def test_pages_of_a_finding_are_those_it_names(code: Code) -> None:
    state = planted()
    findings = Findings.of(state.known())
    for page in state.in_order():
        findings.add_page(page)
    findings.close()
    for edges in state.leading():
        findings.link(edges)
    findings.faults.update(state.faults)
    only = Filter(codes=frozenset([code]))
    admitted = {page.url for page in state.in_order() if only.admits(page, findings)}
    [named] = [{item.url for item in one.items} for one in state.report().findings if one.code is code]
    assert named <= admitted
    assert code.value.startswith("duplicate-") or named == admitted


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("what", "code"),
    [
        *((what, code) for what in ("pages", "links") for code in WITHOUT_PAGES),
        *(("links", code) for code in Code if code in FILES),
    ],
)
def test_a_list_without_such_rows_says_what_has_them(run: Run, what: str, code: Code) -> None:
    exit_code, out, said = run("list", what, "--only", code.value)
    assert (exit_code, out) == (2, "")
    assert f"{code.value} is about" in said
    run.ok("list", "findings", "--only", code.value)


@pytest.mark.usefixtures("site")
def test_pages_that_may_need_scripts_are_no_list(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.ok("list", "pages", "--only", "needs-scripts")
    real = reports.read_known

    async def with_shell(*given: Any) -> Any:
        return replace(await real(*given), shell=PagesOfKind("d", 300, Url("https://a.example/")))

    monkeypatch.setattr(reports, "read_known", with_shell)
    exit_code, _, said = run("list", "pages", "--only", "needs-scripts")
    assert (exit_code, "nothing was rendered" in said) == (2, True)


def test_a_crawl_that_read_no_images_says_so(run: Run) -> None:
    site = Site()
    site.page("/", text='<img src="/a.png">')
    with site.serve() as origin:
        for words, rows, remark in (((), 0, True), (("--images",), 1, False)):
            run.ok("crawl", f"{origin}/", "--rate", "0", "-q", "--min-urls", "1", *words)
            code, out, err = run("list", "images", origin)
            assert (code, len(out.splitlines())) == (0, rows)
            assert ("crawl with --images" in err) == remark
