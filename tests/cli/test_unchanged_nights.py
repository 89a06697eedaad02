"""A night on which pages answer 304 says what a first one does, whatever earlier nights left out of the sitemap."""

import json
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

from crawler.cli.demo import faults_site
from crawler.cli.demo.site import Site
from tests.commands import Run
from tests.postgres import new_state

WORDS = ("--rate", "0", "--retries", "0", "-q", "--force", "--hreflang", "--images", "--bots", "bingbot")
PLACE = "/faults/stated/"


def every_fault() -> Site:
    """The demo's site, with pages whose faults the demo does not have. Each page has a validator."""
    site = faults_site()
    names = (
        "one",
        "two",
        "three",
        "bots",
        "header",
        "images",
        "copy",
        "copy.html",
        "several",
        "lost",
        "both",
    )
    site.page("/places/", title="Places", links=[PLACE, *(f"/places/{number:03}" for number in range(100))])
    site.page(PLACE, links=[f"{PLACE}{name}" for name in names])
    versions = '<link rel="alternate" hreflang="{}" href="{}">'
    site.page(f"{PLACE}one", head=versions.format("de", f"{PLACE}two") + versions.format("xx-YY", "/"))
    site.page(f"{PLACE}two", head=versions.format("en", f"{PLACE}three") + versions.format("en", "/places/"))
    site.page(f"{PLACE}three", head=versions.format("en", f"{PLACE}header"))
    site.page(f"{PLACE}bots", head='<meta name="googlebot-news" content="noindex">')
    site.page(f"{PLACE}header", headers={"X-Robots-Tag": "googlebot: noindex"})
    images = "".join(f'<img src="/images/{number}.png">' for number in range(1_005))
    site.page(
        f"{PLACE}images", text=images, head='<meta property="article:modified_time" content="2024-05-06">'
    )
    for name in ("copy", "copy.html"):
        site.page(
            PLACE + name, title="Copy", text="Word for word.", head='<link rel="canonical" href="/places/">',
            headers={"Link": '</stories/>; rel="canonical"'},
        )  # fmt: skip
    site.page(
        f"{PLACE}several",
        canonical="/places/",
        noindex=True,
        headers={"Link": '</stories/>; rel="canonical"'},
    )
    site.page(
        f"{PLACE}lost", canonical="/faults/errors/gone-00", headers={"X-Robots-Tag": "bingbot: noindex"}
    )
    for target in list(site.answers):
        answer = site.answers[target](None)
        if answer.status == 200:
            body = answer.body.decode("latin-1")
            site.raw(
                target, body=answer.body, headers=[*answer.headers, ("ETag", f'"{crc32(body.encode()):x}"')]
            )
    return site


@pytest.fixture
def site() -> Iterator[tuple[Site, str]]:
    site = every_fault()
    with site.serve(port=0) as origin:
        yield site, origin


def night(run: Run, origin: str, *words: str) -> dict[str, list[Any]]:
    """The findings of a crawl, without what tells that they are new."""
    code, _, err = run("crawl", f"{origin}/", *WORDS, *words, "--report", "r.json")
    assert code in {0, 8}, err
    with open("r.json") as file:
        report = json.load(file)
    facts = ("url", "status", "detail", "links", "from")
    return {
        one["code"]: [tuple(item[fact] for fact in facts) for item in one["items"]]
        for one in report["findings"]
    }


def differing(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> dict[str, tuple[Any, Any]]:
    """By code: what only one of two nights found."""
    codes = found.keys() | expected.keys()
    both = {code: (found.get(code, []), expected.get(code, [])) for code in codes}
    alone = {
        code: ([one for one in some if one not in others], [one for one in others if one not in some])
        for code, (some, others) in both.items()
    }
    return {code: sides for code, sides in alone.items() if any(sides)}


CHANGES = {
    "nothing": (),
    "pages that are not listed": ("--no-list", "/faults/*"),
    "pages that are not visited": ("--exclude", "/faults/canonical/*"),
    "no rule of canonicals": ("--no-rule", "canonical"),
    "no rule of duplicates": ("--no-rule", "duplicate"),
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_later_night_says_what_a_first_one_does(
    run: Run, site: tuple[Site, str], change: str, backend: str
) -> None:
    """Under the same settings, though the night before had others."""
    pages, origin = site
    state = () if backend == "sqlite" else ("--state", new_state())
    first = night(run, origin, *state)
    second = night(run, origin, *state, *CHANGES[change])
    assert differing(second, night(run, origin, "--state", "alone.db", *CHANGES[change])) == {}
    asked = len(pages.log)
    assert differing(night(run, origin, *state), first) == {}
    assert sum(one.status == 304 for one in pages.log[asked:]) > 200 or change.startswith("no rule")


@pytest.mark.slow
def test_findings_return_after_a_limit(run: Run, site: tuple[Site, str]) -> None:
    _, origin = site
    first = night(run, origin)
    run.ok("crawl", f"{origin}/", *WORDS, "--max-pages", "30")
    run.ok("crawl", f"{origin}/", *WORDS, "--max-depth", "1")
    assert differing(night(run, origin), first) == {}


@pytest.mark.parametrize("state", [(), pytest.param("postgres", marks=pytest.mark.slow)])
def test_nothing_is_shown_of_what_a_url_was(run: Run, state: str) -> None:
    """Of a page of the first night that the second did not ask for, or that is none any more."""
    names = ("excluded", "avoided", "deep", "moved", "gone", "down", "empty", "page")
    site, words = Site(), ("--state", new_state()) if state else ()
    site.page("/", links=[f"/{name}" for name in names])
    for name in names:
        dated = "Mon, 01 Jan 2024 00:00:00 GMT"
        site.page(f"/{name}", lastmod=dated, headers={"X-Robots-Tag": "bingbot: noindex"})
    with site.serve(port=0) as origin:
        run.ok("crawl", origin, *WORDS[:6], *words)
        avoided = '<a href="/avoided" rel="nofollow">Avoided</a><a href="/page">Page</a>'
        site.page("/", links=[f"/{name}" for name in names if name not in {"avoided", "deep"}], text=avoided)
        site.page("/page", links=["/deep"], title="Page", lastmod="Tue, 02 Jan 2024 00:00:00 GMT")
        site.redirect("/moved", "/")
        site.raw("/gone", status=404)
        site.raw("/down", status=503)
        site.raw("/empty", headers=[("Content-Type", "text/html")])
        night = ("--exclude", "/excluded", "--max-depth", "1", "--keep-failing", "0", *words)
        run.ok("crawl", origin, *WORDS[:6], *night)
        fields = ("outcome", "status", "title", "type", "bytes", "took", "lastmod", "lastmod_source")
        where = words or (origin,)
        out = run("list", "pages", *where, "--format", "jsonl", "--fields", ",".join(("url", *fields)))[1]
        rows = {row["url"].removeprefix(origin): row for row in map(json.loads, out.splitlines())}
        seen = {path: [name for name in fields if row[name] is not None] for path, row in rows.items()}
        assert seen["/page"] == [*fields]
        del seen["/"]
        assert seen == {
            "/avoided": ["outcome"], "/deep": ["outcome"], "/excluded": ["outcome"], "/page": [*fields],
            "/down": ["outcome", "status"], "/gone": ["outcome", "status"], "/moved": ["outcome", "status"],
            "/empty": ["outcome", "status", "type", "bytes", "took"],
        }  # fmt: skip
        assert run("list", "findings", *where, "--only", "noindex-for-bot")[1] == ""
        story = run("explain", f"{origin}/excluded", *words)[1]
        assert "status     not fetched\n" in story
        assert "header" not in story
        assert "200" not in story


@pytest.mark.parametrize("state", [(), pytest.param("postgres", marks=pytest.mark.slow)])
def test_what_the_last_night_did_not_find_is_new(run: Run, state: str) -> None:
    """Though an earlier night had found it: it is added, and its faults are new."""
    site, words = Site(), ("--state", new_state()) if state else ()
    names = ["/gone", "/page", "/kept", "/left"]
    site.page("/", links=names)
    for name in names[1:]:
        site.page(name)
    with site.serve(port=0) as origin:
        for links in (names, names, ["/kept"], [*names[:3]]):
            site.page("/", links=links)
            run.ok("crawl", origin, *WORDS[:6], *words, "--report", "r.json")
        with open("r.json") as file:
            report = json.loads(file.read().replace(origin, ""))
        assert (report["changes"]["since"], report["sitemap"]["added"], report["sitemap"]["removed"]) == (
            3,
            1,
            0,
        )
        assert report["changes"]["added"] == [{"url": "/page", "why": "not found then"}]
        [broken] = [one for one in report["findings"] if one["code"] == "broken-link"]
        assert (broken["count"], broken["new"]) == (1, 1)
        rows = run("list", "pages", *(words or (origin,)), "--fields", "url,was", "--format", "csv")[1]
        was = dict(line.replace(origin, "").split(",") for line in rows.splitlines()[1:])
        assert was == {"/": "listed", "/gone": "", "/kept": "listed", "/page": ""}


def test_a_refused_night_makes_nothing_new(run: Run) -> None:
    """What is new, added, removed or dated is so since the run that was published last."""
    names = [f"/{number}" for number in range(20)]
    nights = (  # what the start page links to, the date of a page, and the exit code
        (["/gone", *names], "2024-01-01", 0),
        (["/later", "/passing", "/18", "/0"], "2025-01-01", 6),
        (["/gone", "/later", *names[:18]], "2025-01-01", 0),
    )
    site = Site()
    with site.serve(port=0) as origin:
        for links, day, code in nights:
            site.page("/", links=links)
            for name in (*names, "/later", "/passing"):
                site.page(name)
            site.page("/0", head=f'<meta property="article:modified_time" content="{day}">', text=day)
            if code:
                site.raw("/18", status=500)
            assert run("crawl", origin, *WORDS[:5], "--report", "r.json")[0] == code
        with open("r.json") as file:
            report = json.loads(file.read().replace(origin, ""))
        changes = {
            kind: [change["url"] for change in report["changes"][kind]]
            for kind in ("added", "removed", "dated")
        }
        assert report["changes"]["since"] == 1
        assert changes == {"added": ["/later"], "removed": ["/18", "/19"], "dated": ["/", "/0"]}
        assert [report["sitemap"][kind] for kind in ("added", "removed", "changed")] == [1, 2, 2]
        [broken] = [one for one in report["findings"] if one["code"] == "broken-link"]
        assert (broken["count"], broken["new"]) == (1, 0)


@pytest.mark.parametrize("state", [(), pytest.param("postgres", marks=pytest.mark.slow)])
def test_what_a_refused_partial_night_listed_is_added_later(run: Run, state: str) -> None:
    site, words = Site(), ("--state", new_state()) if state else ()
    nights = ((["/a", "/b"], (), 0), (["/a", "/new"], ("--min-urls", "100"), 6), (["/a", "/new"], (), 0))
    with site.serve(port=0) as origin:
        for links, more, code in nights:
            site.page("/", links=links)
            for name in links:
                site.page(name)
            shown = run("crawl", origin, *WORDS[:5], *words, "--budget", "20", *more, "--report", "r.json")
            assert shown[0] == code, shown
        with open("r.json") as file:
            changes = json.loads(file.read().replace(origin, ""))["changes"]
        assert (changes["since"], [one["url"] for one in changes["added"]]) == (1, ["/new"])
