"""Scripts and style sheets that do not answer (`--check-files`): asked for as images are, and findings."""

import csv
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawler.model import failpoints
from tests.cli.test_broken_images import left_out
from tests.cli.test_external import GONE, Web, methods, names, web  # noqa: F401 - fixtures
from tests.commands import Run
from tests.postgres import new_state
from tests.server import http, moved

FILE = http("fine", Content_Type="application/octet-stream")

ALL = "--check-files=images,scripts,styles"
ROBOTS = http("User-agent: *\nDisallow: /private/\n", Content_Type="text/plain")


def loads(web: Web, *files: str, path: str = "/", links: str = '<a href="/b">B</a>') -> None:  # noqa: F811
    """A page of the site with these scripts and style sheets in its head, that links to /b."""
    if path == "/":
        web.home.put("/b", http("<!doctype html><title>B</title><p>Text of B"))
    head = "".join(
        f'<link rel="stylesheet" href="{web.url(file)}">' if file.endswith(".css")
        else f'<script src="{web.url(file)}"></script>'
        for file in files
    )  # fmt: skip
    web.home.put(
        path, http(f"<!doctype html><head><title>{path}</title>{head}</head><p>Text of {path}</p>{links}")
    )


def faulty(web: Web, *words: str) -> dict[str, dict[str, str]]:  # noqa: F811
    """The findings about scripts and style sheets, by their URL."""
    rows = web.rows("findings", "--only", "broken-script", "--only", "broken-style", *words)
    return {row["url"].removeprefix("http://").replace(f".example:{web.port}", ":"): row for row in rows}


def test_broken_scripts_and_styles_are_found(web: Web) -> None:  # noqa: F811
    loads(web, "/ok.js", "/gone.js", "bad:/gone.css", "good:/private/a.js", "good:/fine.css")
    loads(web, "/gone.js", path="/b")
    for host, path in ((web.home, "/ok.js"), (web.good, "/fine.css")):
        host.put(path, FILE)
    web.home.put("/gone.js", GONE)
    web.bad.put("/gone.css", GONE)
    web.good.put("/robots.txt", ROBOTS)

    assert web.crawl(ALL, "--report=r.json", "--fail-on=new:warning")[0] == 0
    found = faulty(web)
    script, style = found["home:/gone.js"], found["bad:/gone.css"]
    assert found.keys() == {"home:/gone.js", "bad:/gone.css"}
    assert [script[name] for name in ("code", "status", "links", "place")] == [
        "broken-script",
        "404",
        "2",
        "head",
    ]
    assert [style[name] for name in ("code", "status", "links", "place")] == [
        "broken-style",
        "404",
        "1",
        "head",
    ]
    assert not [line for line in methods(web.good) if "private" in line], "robots.txt of its host"
    assert "HEAD /fine.css" in methods(web.good)
    for code, paths in (("broken-script", ["/", "/b"]), ("broken-style", ["/"]), ("broken-image", [])):
        assert [row["url"] for row in web.rows("pages", "--only", code)] == [
            web.url(f"home:{at}") for at in paths
        ]
    assert len(web.rows("pages", "--only", "broken-style", "--only", "listed")) == 2
    items = {one["code"]: one["items"] for one in json.loads(Path("r.json").read_text())["findings"]}
    assert items["broken-script"][0]["from"] == [web.url("home:/"), web.url("home:/b")]

    web.home.put("/gone.js", FILE)
    web.good.put("/fine.css", GONE)
    web.home.log.clear()
    assert web.crawl(ALL, "--fail-on=new:broken-style")[0] == 8
    assert {url: row["new"] for url, row in faulty(web).items()} == {
        "bad:/gone.css": "false", "good:/fine.css": "true",
    }  # fmt: skip
    assert web.crawl(ALL, "--fail-on=new:warning")[0] == 0


def test_only_the_kinds_asked_for_are_checked(web: Web) -> None:  # noqa: F811
    loads(web, "/gone.js", "/gone.css")
    assert web.crawl()[0] == 0
    assert not {line for line in methods(web.home) if "gone" in line}
    assert web.crawl("--check-files", "styles")[0] == 0
    assert faulty(web).keys() == {"home:/gone.css"}, "the page is read again"
    assert not {line for line in methods(web.home) if "gone.js" in line}
    assert web.crawl("--check-files", "scripts", "--check-files", "styles", "--fail-on=new:warning")[0] == 0
    assert {url: row["new"] for url, row in faulty(web).items()} == {
        "home:/gone.js": "false", "home:/gone.css": "false",
    }  # fmt: skip
    assert web.crawl()[0] == 0
    assert faulty(web) == {}


def test_an_unknown_kind_of_file_is_refused(web: Web, run: Run) -> None:  # noqa: F811
    loads(web, "/gone.js")
    assert web.crawl("--check-files", "fonts")[0] == 2
    code, _, said = run("crawl", web.url("home:/"), "--check-files", "scripts")
    assert (code, "--check-files has no effect without --check-external" in said) == (2, True)


def test_limits_hold_for_all_files_together(web: Web) -> None:  # noqa: F811
    loads(web, *(f"/{number}.js" for number in range(3)), *(f"/{number}.css" for number in range(3)))
    assert web.crawl(ALL, "--max-external=4", "--report=r.json", "--report=r.html")[0] == 0
    asked = {line.partition(" ")[2] for line in methods(web.home) if line.endswith((".js", ".css"))}
    assert len(asked) == 4
    left = left_out()
    assert {kind: one["because"] for kind, one in left.items()} == dict.fromkeys(left, "max-external")
    assert sum(one["count"] for one in left.values()) == 2
    assert "not checked (max-external)" in Path("r.html").read_text()
    assert web.crawl(ALL, "--max-external-time=0s", "--report=r.json")[0] == 0
    assert {kind: (one["count"], one["because"]) for kind, one in left_out().items()} == {
        "scripts": (3, "max-external-time"), "styles": (3, "max-external-time"),
    }  # fmt: skip
    assert len(faulty(web)) == 4, "as known before"


def blocked(web: Web) -> dict[str, tuple[str, ...]]:  # noqa: F811
    """The findings about disallowed files: detail, uses, and whether they are new."""
    return {
        row["url"].rpartition("/")[2]: tuple(row[name] for name in ("detail", "links", "new"))
        for row in web.rows("findings", "--only", "blocked-file")
    }


def test_files_that_robots_txt_disallows_are_a_finding(web: Web) -> None:  # noqa: F811
    """Of hosts of the site; others are not to be changed by whoever reads the report."""
    web.home.put("/robots.txt", ROBOTS)
    web.good.put("/robots.txt", ROBOTS)
    loads(web, "/private/a.js", "/private/a.css", "good:/private/their.js", "/moved.js", "/fine.js")
    loads(web, "/private/a.js", path="/b")
    web.home.put("/moved.js", moved("/private/there.js"))
    web.home.put("/fine.js", FILE)
    assert web.crawl(ALL, "--report=r.csv", "--report=r.html", "--fail-on=new:warning")[0] == 0
    line = "line 2: Disallow: /private/"
    assert blocked(web) == {
        "a.js": (line, "2", "false"), "a.css": (line, "1", "false"), "moved.js": (line, "1", "false"),
    }  # fmt: skip
    assert not [asked for asked in methods(web.home) if "private" in asked]
    assert [row["url"] for row in web.rows("pages", "--only", "blocked-file")] == [
        web.url("home:/"),
        web.url("home:/b"),
    ]
    assert "blocked-file" in Path("r.html").read_text()
    with Path("r.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["code"] == "blocked-file"]
    assert len(rows) == 4, "one for each file and page"

    web.home.put("/moved.js", moved("/gone.js"))
    loads(web, "/private/a.js", "/private/new.js", "/moved.js", path="/b")
    assert web.crawl(ALL, "--fail-on=new:blocked-file")[0] == 8
    assert {name: new for name, (_, _, new) in blocked(web).items()} == {
        "a.js": "false", "a.css": "false", "new.js": "true",
    }  # fmt: skip
    assert faulty(web)["home:/moved.js"]["new"] == "true", "it was not known to be broken"
    assert web.crawl(ALL, "--fail-on=new:warning")[0] == 0
    assert web.crawl("--check-files=styles")[0] == 0
    assert blocked(web).keys() == {"a.css"}


def test_disallowed_files_on_a_subdomain_are_those_of_the_site(web: Web) -> None:  # noqa: F811
    web.cdn.put("/robots.txt", ROBOTS)
    loads(web, f"http://cdn.home.example:{web.port}/private/a.js")
    assert web.crawl(ALL)[0] == 0
    assert blocked(web) == {"a.js": ("line 2: Disallow: /private/", "1", "false")}


@pytest.mark.parametrize("moment", ["before commit of remember", "after commit of remember"])
def test_a_kill_while_files_are_checked_changes_nothing(
    web: Web,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    loads(web, "/gone.js", "/gone.css")

    def dies(now: str) -> None:
        if now == moment and any("gone.css" in line for line in methods(web.home)):
            raise MemoryError

    monkeypatch.setattr(failpoints, "hook", dies)
    assert web.crawl(ALL)[0] == 1
    monkeypatch.setattr(failpoints, "hook", None)
    assert web.crawl(ALL, "--fail-on=new:warning")[0] == 0
    assert faulty(web).keys() == {"home:/gone.js", "home:/gone.css"}


@pytest.mark.system
def test_members_of_a_run_check_files(web: Web, run: Run) -> None:  # noqa: F811
    loads(web, "/gone.js", "/gone.css")
    state = new_state()
    for _ in range(2):
        assert web.crawl(ALL, "--state", state)[0] == 0
    _, out, _ = run("list", "findings", "--state", state, "--only", "broken-script", "--format", "jsonl")
    assert json.loads(out)["url"] == web.url("home:/gone.js")


def mended() -> dict[str, list[str]]:
    """What the report says was mended, by code: paths."""
    report = json.loads(Path("r.json").read_text())
    every = {one["code"]: [urlsplit(url).path for url in one["items"]] for one in report["mended"]}
    assert report["counts"]["mended"] == sum(map(len, every.values()))
    return every


def test_files_that_answer_or_are_shown_no_more_are_mended(web: Web) -> None:  # noqa: F811
    loads(web, "/back.js", "/unused.js", "/stays.js", "/back.css", "/private/a.css", "bad:/away.js")
    web.home.put("/robots.txt", ROBOTS)
    for path in ("/back.js", "/unused.js", "/stays.js", "/back.css"):
        web.home.put(path, GONE)
    web.bad.put("/away.js", GONE)
    files = ("--check-files=scripts,styles", "--report=r.json")
    assert web.crawl(*files)[0] == 0
    assert mended() == {}
    loads(web, "/back.js", "/stays.js", "/back.css", "/private/a.css", "bad:/away.js")
    for path in ("/back.js", "/back.css"):
        web.home.put(path, FILE)
    web.home.put("/robots.txt", http("User-agent: *\n", Content_Type="text/plain"))
    web.home.put("/private/a.css", FILE)
    web.bad.put("/away.js", http("no", "403 Forbidden"))
    assert web.crawl("--check-files=scripts", "--report=r.json")[0] == 0
    assert mended() == {"broken-script": ["/back.js", "/unused.js"]}, "style sheets are not asked for"
    assert web.crawl(*files)[0] == 0
    assert web.crawl("--report=r.json")[0] == 0
    assert mended() == {}, "nothing is asked for"


def test_a_file_is_not_mended_while_its_host_does_not_tell(web: Web) -> None:  # noqa: F811
    loads(web, "bad:/away.js")
    files = ("--check-files=scripts", "--report=r.json", "--fail-on=new:warning")
    web.bad.put("/away.js", GONE)
    assert web.crawl(*files)[0] == 0
    web.bad.put("/away.js", http("no", "403 Forbidden"))
    assert web.crawl(*files)[0] == 0
    assert (mended(), faulty(web)) == ({}, {})
    web.bad.put("/away.js", GONE)
    assert web.crawl(*files)[0] == 0, "it is not new"
    assert faulty(web).keys() == {"bad:/away.js"}
    web.bad.put("/away.js", FILE)
    assert web.crawl(*files)[0] == 0
    assert mended() == {"broken-script": ["/away.js"]}
