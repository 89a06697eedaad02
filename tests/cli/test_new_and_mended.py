"""What is new and what was mended since the run that was published last: a finding is its code and its URL."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from crawler.cli.demo.site import Site
from tests.commands import Run
from tests.postgres import new_state

WORDS = ("--rate", "0", "--retries", "0", "-q", "--force")


def nights(run: Run, sites: Sequence[Site], *words: str, site: Site | None = None) -> Mapping[str, Any]:
    """Crawls one address whose pages are those of each site in turn: new and mended paths, by code."""
    served = site or Site()
    with served.serve(port=0) as origin:
        for pages in sites:
            served.answers = pages.answers
            run.ok("crawl", f"{origin}/", *WORDS, *words, "--report", "r.json")
        with open("r.json") as file:
            report = json.loads(file.read().replace(origin, ""))
        new = {
            one["code"]: paths
            for one in report["findings"]
            if (paths := [item["url"] for item in one["items"] if item["new"]])
        }
        assert report["counts"]["new"] == sum(one["new"] for one in report["findings"])
        assert all(one["new"] == len(new.get(one["code"], ())) for one in report["findings"])
        code, *_ = run("crawl", f"{origin}/", *WORDS, *words, "--fail-on", "new:info")
        assert code == 0, "the same night again brings nothing new"
    return {"new": new, "mended": {one["code"]: one["items"] for one in report["mended"]}}


def site(links: Sequence[str] = (), **redirects: str) -> Site:
    made = Site()
    made.page("/", links=links)
    for name in ("a", "b"):
        made.page(f"/{name}")
    for name, target in redirects.items():
        made.redirect(f"/{name}", target)
    return made


def test_redirect_whose_target_changed_is_new_or_mended(run: Run) -> None:
    links = ["/a", "/b", "/breaks", "/heals", "/moves", "/lengthens", "/hop"]
    before = site(links, breaks="/a", heals="/gone", moves="/a", lengthens="/b", hop="/b")
    after = site(links, breaks="/gone", heals="/a", moves="/b", lengthens="/hop", hop="/b")
    assert nights(run, [before, after]) == {
        "new": {
            "broken-link": ["/breaks"],
            "redirect-chain": ["/lengthens"],
            "redirect-linked": ["/heals"],
        },
        "mended": {"broken-link": ["/heals"]},
    }


@pytest.mark.parametrize("status", [401, 403, 405, 407, 451])
def test_restricted_page_is_mended_as_such(run: Run, status: int) -> None:
    before, after = site(["/a", "/odd"]), site(["/a", "/odd"])
    before.raw("/odd", status=status)
    before.raw("/a", status=418)
    after.page("/odd")
    assert nights(run, [before, after]) == {
        "new": {},
        "mended": {"client-error": ["/a"], "restricted": ["/odd"]},
    }


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_what_depends_on_links_is_new_and_mended(run: Run, backend: str) -> None:
    """Though the pages themselves are as they were: orphans, what robots.txt forbids, noindex."""
    state = () if backend == "sqlite" else ("--state", new_state())
    sites = []
    for links in (["/a", "/no/x", "/hidden-1"], ["/b", "/no/y", "/hidden-2"]):
        made = site(links)
        made.robots("User-agent: *\nDisallow: /no/\nSitemap: {origin}/old.xml\n")
        made.sitemap("/old.xml", ["/a", "/b", "/no/x", "/no/y", "/hidden-1", "/hidden-2"])
        for name in ("/hidden-1", "/hidden-2"):
            made.page(name, noindex=True)
        sites.append(made)
    assert nights(run, sites, *state) == {
        "new": {"orphan": ["/a"], "robots-linked": ["/no/y"], "noindex-linked": ["/hidden-2"]},
        "mended": {"orphan": ["/b"], "robots-linked": ["/no/x"], "noindex-linked": ["/hidden-1"]},
    }


def test_what_depends_on_other_pages_is_new_and_mended(run: Run) -> None:
    sites = []
    for noindex, code in (("/b", "xx-YY"), ("/a", "de")):
        made = site(["/a", "/b", "/to-a", "/to-b", "/versions"])
        for name in ("a", "b"):
            made.page(f"/{name}", noindex=noindex == f"/{name}")
            made.page(f"/to-{name}", canonical=f"/{name}")
        versions = f'<link rel="alternate" hreflang="{code}" href="/versions">'
        made.page("/versions", head=versions)
        sites.append(made)
    assert nights(run, sites, "--hreflang") == {
        "new": {"canonical-chain": ["/to-a"], "noindex-linked": ["/a"]},
        "mended": {"canonical-chain": ["/to-b"], "hreflang-code": ["/versions"], "noindex-linked": ["/b"]},
    }


def test_findings_of_a_setting_are_not_new_when_it_is(run: Run) -> None:
    made = site(["/a"])
    made.page("/a", head='<link rel="alternate" hreflang="xx-YY" href="/a">')
    with made.serve(port=0) as origin:
        for words, code in (((), 0), (("--hreflang",), 0), ((), 0)):
            assert run("crawl", f"{origin}/", *WORDS, *words, "--fail-on", "new:warning")[0] == code
            run.ok("report", f"{origin}/", "--report", "r.json")
            with open("r.json") as file:
                assert json.load(file)["counts"]["mended"] == 0


def test_failing_otherwise_is_not_mended(run: Run) -> None:
    before, after = site(["/x", "/y"], y="/a"), site(["/x", "/a"])
    after.raw("/x", status=500)
    assert nights(run, [before, after], "--keep-failing", "0s") == {
        "new": {"server-error": ["/x"]},
        "mended": {"redirect-linked": ["/y"]},
    }


@pytest.mark.parametrize(("start", "ends"), [("/", 4), ("/no", 5)])
def test_run_without_a_start_page_is_passed_over(run: Run, start: str, ends: int) -> None:
    """The next one is compared with what was published: nothing is new, and no date has changed."""
    made, down = site(["/a", "/gone"]), Site()
    made.page("/a", lastmod="Wed, 05 Nov 2025 08:00:00 GMT")
    for pages in (made, down):
        pages.robots("User-agent: *\nDisallow: /no\n")
    with made.serve(port=0) as origin:
        up, where = made.answers, f"{origin}/"
        for answers, path, code in ((up, "/", 0), (down.answers, start, ends), (up, "/", 0)):
            made.answers = answers
            assert run("crawl", origin + path, *WORDS, "--fail-on", "new:error")[0] == code
            _, text, _ = run("report", where, "--format", "json")
            report = json.loads(text)
            assert (report["counts"]["mended"], report["run"]["complete"]) == (0, code == 0)
        _, runs, _ = run("list", "runs", where, "--fields", "status,changed")
        assert runs == "concluded\t0\nabandoned\t-\nconcluded\t0\n"


def test_a_run_that_a_limit_ended_is_partial(run: Run) -> None:
    """Of a site that is published: pages that the run did not visit are as earlier runs found them."""
    with site(["/a", "/b"]).serve(port=0) as origin:
        for words, partial in ((), False), (("--max-pages", "2"), True), (("--max-pages", "9"), False):
            run.ok("crawl", f"{origin}/", *WORDS, *words)
            _, text, _ = run("report", f"{origin}/", "--format", "json")
            told = json.loads(text)["run"]
            assert (told["complete"], told["partial"]) == (True, partial)


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_pages_of_a_group_are_mended(run: Run, backend: str) -> None:
    state = () if backend == "sqlite" else ("--state", new_state())
    links = ["/a", "/b", "/c", "/same-1", "/same-2", "/stays-1", "/stays-2", "/third"]
    before, after = site(links), site(links)
    for number in (1, 2):
        for made in (before, after):
            made.page(f"/stays-{number}", title="Stays", text=f"Of {number}")
        before.page(f"/same-{number}", title="Same", text="Same")
        after.page(f"/same-{number}", title=f"Same {number}", text=f"Other {number}")
    for name in ("a", "b", "c"):
        before.page(f"/{name}", title="One", text=f"Text of {name}")
        after.page(f"/{name}", title="Another" if name == "b" else "One", text=f"Text of {name}")
    before.page("/third", title="Stays")
    after.page("/third", title="Third")
    assert nights(run, [before, after], *state) == {
        "new": {},
        "mended": {"duplicate-content": ["/same-1", "/same-2"], "duplicate-title": ["/b", "/third"]},
    }


def test_group_is_not_mended_while_a_page_of_it_fails(run: Run) -> None:
    links = ["/a", "/b", "/x", "/y"]
    before, after = site(links), site(links)
    for made in (before, after):
        for name, title in (("a", "One"), ("b", "One"), ("x", "Two"), ("y", "Two")):
            made.page(f"/{name}", title=title, text=f"Text of {name}")
    after.raw("/b", status=500)
    after.page("/y", title="Other", text="Text of y")
    assert nights(run, [before, after], "--keep-failing", "0") == {
        "new": {"server-error": ["/b"]},
        "mended": {"duplicate-title": ["/x", "/y"]},
    }
