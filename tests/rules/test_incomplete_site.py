"""A start page that hides its site, or rules that exclude most of it: what is reported, and what is not published."""

import json
import re
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.model.facts import Obstacle
from crawler.model.survey import PagesOfKind, Survey
from crawler.parse.html import PageSource, extract
from crawler.parse.url import Url
from crawler.rules.incomplete_site import Landing, doubts
from crawler.workers.sandbox import Sandbox
from tests.cli.test_cli import locs
from tests.commands import Run
from tests.engine.test_crawl import crawl, settings

QUICK = ("--rate", "0", "--retries", "0", "--state", "state.db")
PROSE = "<p>" + "A page that says what it has to say. " * 10 + "</p>"
FORM = '<form method=post><input name=user><input TYPE="Password" name=pw><button>Go</button></form>'
SHELL = b"<!doctype html><title>App</title><div id=root></div><noscript>Please switch on scripts.</noscript><script src=/app.js></script>"


def html(body: str) -> bytes:
    return f"<!doctype html><title>x</title><body>{body}".encode()


def read(body: bytes) -> tuple[bool, bool, int | None]:
    page = extract(PageSource(body, "https://a.example/"))
    return page.scripted, page.password, page.length


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (SHELL, (True, False, 0)),
        (html("<script type=module>go()</script>Loading..."), (True, False, 10)),
        (html("<script type='application/ld+json'>{}</script>word"), (False, False, None)),
        (html("<script type='text/JavaScript'></script>" + "word " * 100), (True, False, 499)),
        (html("<script></script><nav>over</nav><footer>there</footer>"), (True, False, 9)),
        (html("<script></script><main></main><div>beside</div>"), (True, False, 6)),
        (html(FORM), (False, True, 2)),
        (html("<p>The word password alone asks for none.</p>"), (False, False, None)),
        ("\ufeff".encode("utf-16-le") + html(FORM).decode().encode("utf-16-le"), (False, True, 2)),
    ],
)
def test_properties_of_a_page_without_links(body: bytes, said: tuple[bool, bool, int | None]) -> None:
    assert read(body) == said


def test_text_length_is_not_measured_on_a_page_with_many_links() -> None:
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(40))
    assert read(html(FORM + links + "<script></script>")) == (True, False, None)


@pytest.mark.system
@pytest.mark.anyio
async def test_the_sandbox_extracts_the_same() -> None:
    async with Sandbox(children=1).running() as reader:
        for body in (SHELL, html(FORM)):
            markup = PageSource(body, "https://a.example/")
            assert await reader.read(markup) == markup.read()


def site_of(kind: str) -> Site:
    site = Site()
    match kind:
        case "shell":
            site.raw("/", body=SHELL, headers=[("Content-Type", "text/html"), ("ETag", '"1"')])
        case "shell with links elsewhere":
            site.page("/", links=["https://elsewhere.example/"], head="<script src=/app.js></script>")
        case "login":
            site.page("/", text=FORM, links=["/lost", "/imprint"])
            site.page("/lost")
            site.page("/imprint", text=PROSE)
        case "redirect to a login":
            site.redirect("/", "/accounts/login/?next=/", 302)
            site.page("/accounts/login/?next=/", text="<form><input name=email></form>" + PROSE)
        case "meta nofollow":
            site.page("/", text=PROSE, links=["/a"], head="<meta name=robots content=nofollow>")
            site.page("/a")
        case "header nofollow":
            site.page("/", text=PROSE, links=["/a"], headers={"X-Robots-Tag": "nofollow"})
            site.page("/a")
        case "nofollow links":
            site.page("/", text=PROSE, nofollow=["/a", "/b"], links=["https://elsewhere.example/"])
            site.page("/a")
    return site


HIDDEN = {
    "shell": "needs JavaScript",
    "shell with links elsewhere": "needs JavaScript",
    "login": "looks like a login form. --auth-env",
    "redirect to a login": "looks like a login form. --auth-env",
    "meta nofollow": "forbids following its links (nofollow). --no-rule nofollow",
    "header nofollow": "forbids following its links (nofollow). --no-rule nofollow",
    "nofollow links": "forbids following its links (nofollow). --no-rule nofollow",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HIDDEN)
def test_a_start_page_that_hides_the_site_is_not_published(run: Run, tmp_path: Path, kind: str) -> None:
    with site_of(kind).serve() as origin:
        for _ in range(2):  # the second time from the state
            code, _, err = run("crawl", origin + "/", *QUICK, "-q")
            assert (code, (tmp_path / "sitemaps/sitemap.xml.gz").exists()) == (6, False)
            assert HIDDEN[kind] in err
            assert "--min-urls 1 publishes it anyway" in err
        code, _, err = run("export", "--state", "state.db", "-o", "exported")
        assert (code, HIDDEN[kind] in err) == (6, True)
        run.ok("crawl", origin + "/", *QUICK, "--min-urls", "1")
        code, _, err = run("crawl", origin + "/", *QUICK)
        assert code == 0, "no first publication any more"


@pytest.mark.system
@pytest.mark.parametrize("how", ["variable", "file"])
def test_publishing_anyway_can_be_set_by_flag_variable_or_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    words: tuple[str, ...] = ()
    if how == "variable":
        monkeypatch.setenv("SITEMAP_CRAWLER_MIN_URLS", "1")
    else:
        (tmp_path / "s.toml").write_text("[guard]\nmin-urls = 1\n")
        words = ("--config", "s.toml")
    with site_of("shell").serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *words)


@pytest.mark.system
def test_no_rule_nofollow_follows_the_links(run: Run, tmp_path: Path) -> None:
    with site_of("nofollow links").serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, "--no-rule", "nofollow")
        assert locs(tmp_path / "sitemaps/sitemap.xml.gz") == [f"{origin}/", f"{origin}/a"]


@pytest.mark.system
@pytest.mark.parametrize(
    "body",
    [
        PROSE,
        "<p>Short, and no script.</p>",
        PROSE + "<script src=/analytics.js></script>",
        PROSE * 4 + FORM,
        f"<footer>{PROSE}</footer><script></script>",
        "<a href=https://elsewhere.example/ rel=nofollow>x</a>" + PROSE,
    ],
    ids=["prose", "short", "analytics", "a login box", "text in the footer", "nofollow elsewhere"],
)
def test_a_page_with_text_but_no_links_is_a_site_of_one_page(run: Run, tmp_path: Path, body: str) -> None:
    site = Site()
    site.raw("/", body=html(body), headers=[("Content-Type", "text/html")])
    with site.serve() as origin:
        _, err = run.ok("crawl", origin + "/", *QUICK)
        assert locs(tmp_path / "sitemaps/sitemap.xml.gz") == [origin + "/"]
    assert f"The site is one page: {origin}/ has no link to another page of the site." in re.sub(
        r"\s+", " ", err
    )


@pytest.mark.system
def test_a_shell_with_pages_from_a_sitemap_is_published(run: Run) -> None:
    site = site_of("shell")
    site.robots("Sitemap: {origin}/map.xml")
    site.sitemap("/map.xml", ["/", "/a"])
    site.page("/a", text=PROSE)
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK)
    assert code == 0, err
    assert "needs JavaScript" not in err


@pytest.mark.system
def test_a_login_form_on_a_site_with_pages_is_not_reported(run: Run) -> None:
    site = Site()
    pages = [f"/{n}" for n in range(12)]
    site.page("/", text=FORM, links=pages)
    for page in pages:
        site.page(page, text=PROSE)
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)


WWW = "https://www.example.com"


@pytest.mark.system
@pytest.mark.parametrize("listed", [0, 3])
def test_canonicals_on_one_other_origin_suggest_a_copy(run: Run, listed: int) -> None:
    site = Site()
    pages = [f"/{n:02}" for n in range(12)]
    site.page("/", links=pages, canonical=f"{WWW}/", text=PROSE)
    for number, page in enumerate(pages):
        site.page(page, canonical=f"{WWW}{page}" if number >= listed else None)
    with site.serve() as origin:
        err = run.fails(6, "crawl", origin + "/", *QUICK, "-q")
        assert f"{13 - listed} of 13 pages name {WWW} as canonical" in err
        assert f"--publish-base {WWW}" in err
        assert "--no-rule canonical" in err
        run.ok("crawl", origin + "/", *QUICK, "--publish-base", WWW)


@pytest.mark.system
def test_rules_that_exclude_most_of_the_site_are_reported(run: Run) -> None:
    site = Site()
    site.robots("User-agent: *\nDisallow: /x")
    site.page("/", links=["/x1", "/x2", "/x3", "/a"], text=PROSE)
    site.page("/a", nofollow=["https://elsewhere.example/"])
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--log-format", "json")
    assert code == 0
    [done] = [json.loads(line) for line in err.splitlines() if '"done"' in line]
    [note] = done["notes"]
    assert note.startswith("3 of the 5 URLs of the site are disallowed by robots.txt: --ignore-robots")


LOGIN, SHELL_PAGE = (
    Landing(Url("https://a.example/"), Obstacle.LOGIN),
    Landing(Url("https://a.example/"), Obstacle.SHELL),
)


@pytest.mark.parametrize(
    ("landings", "obstacles", "is_doubted"),
    [
        ([LOGIN], {"login": 1, "": 8}, True),
        ([LOGIN], {"login": 1, "": 9}, False),
        ([SHELL_PAGE], {"needs-scripts": 500}, True),
        ([SHELL_PAGE], {"needs-scripts": 500, "": 1}, False),
        ([SHELL_PAGE, Landing(Url("https://a.example/b"), None)], {"needs-scripts": 1}, False),
        ([Landing(Url("https://a.example/login"), None)], {"": 1}, False),
        ([Landing(Url("https://a.example/login"), None, has_moved=True)], {"": 1}, True),
        ([], {}, False),
    ],
)
def test_when_a_start_page_is_doubted(
    landings: list[Landing], obstacles: dict[str, int], is_doubted: bool
) -> None:
    assert bool(doubts(landings, Survey({}, obstacles)).doubt) is is_doubted


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("processes", [1, 2])
async def test_html_is_parsed_for_links_whatever_types_are_listed(tmp_path: Path, processes: int) -> None:
    site = Site()
    site.page("/", links=["/b"])
    site.page("/b", links=["/c.pdf", "/image"])
    site.raw("/c.pdf", body=b"%PDF-1.7", headers=[("Content-Type", "application/pdf")])
    site.raw("/image", body=b"GIF", headers=[("Content-Type", "image/gif")])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, types=("pdf",), processes=processes, concurrency=4))
    assert result.listed == ["/c.pdf"]
    assert result.counts == {"listed": 1, "unlisted:type": 3}


@pytest.mark.slow
@pytest.mark.anyio
async def test_traps_are_closed_even_if_html_is_not_listed(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/list?page=0"])
    for number in range(400):
        site.page(f"/list?page={number}", links=[f"/list?page={number + 1}", "/c.pdf"])
    site.raw("/c.pdf", body=b"%PDF-1.7", headers=[("Content-Type", "application/pdf")])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, types=("pdf",)))
    assert result.listed == ["/c.pdf"]
    assert len(site.log) < 200


@pytest.mark.system
@pytest.mark.parametrize("words", [("--max-pages", "1", "--allow-partial"), ("--force",)])
def test_doubts_do_not_prevent_partial_or_forced_publication(run: Run, words: tuple[str, ...]) -> None:
    with site_of("login").serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, *words, "-q")
    assert code == (7 if "--max-pages" in words else 0), err


@pytest.mark.system
def test_an_empty_start_page_is_an_empty_site(run: Run) -> None:
    site = Site()
    site.raw("/", headers=[("Content-Type", "text/html")])
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "-q")
        assert (code, "No page is listed" in err) == (6, True)
        _, out, _ = run("explain", origin + "/", "--state", "state.db")
    assert "unlisted:empty: empty response" in out


@pytest.mark.system
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "kind", "outcome"),
    [
        (200, b"", "text/html", "unlisted:empty"),
        (200, b" \n", "text/html", "unlisted:empty"),
        (204, b"", "text/html", "unlisted:empty"),
        (205, b"", "text/html", "unlisted:empty"),
        (200, b"", "image/png", "unlisted:type"),
        (200, b"", "", "unlisted:type"),
        (200, b"<title>x</title><body></body>", "text/html", "listed"),
    ],
)
async def test_a_page_without_content_is_judged_as_documented(
    tmp_path: Path, status: int, body: bytes, kind: str, outcome: str
) -> None:
    site = Site()
    site.page("/", links=["/a"])
    site.raw("/a", status=status, body=body, headers=[("Content-Type", kind)] if kind else [])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.counts.get(outcome) == (2 if outcome == "listed" else 1), result.counts


@pytest.mark.parametrize(
    ("link", "measured"),
    [
        ("/other", False),
        ("../x/other.html", False),
        ("page", True),
        ("/a/page", True),
        ("https://b.example/other", True),
        ("?query", True),
    ],
)
def test_text_is_not_measured_of_page_that_leads_to_another(link: str, measured: bool) -> None:
    body = f"<script src=/app.js></script><a href='{link}'>x</a>".encode()
    assert (PageSource(body, "https://a.example/a/page").read().length is not None) is measured
    moved = b"<base href='https://b.example/'>" + body
    assert PageSource(moved, "https://a.example/a/page").read().length is not None


def test_many_addresses_with_one_shell_are_worth_a_note() -> None:
    landings = [Landing(Url("https://a.example/"), None)]
    shell = PagesOfKind("", 47, Url("https://a.example/a"))
    [note] = doubts(landings, Survey({}, {"": 60}), shell).notes
    assert note.startswith(
        "47 addresses answer with the same bytes as https://a.example/a, which run scripts"
    )
    hidden = doubts([Landing(Url("https://a.example/"), Obstacle.SHELL)], Survey({}, {}), shell)
    assert hidden.doubt
    assert hidden.notes == (), "the doubt says it"
