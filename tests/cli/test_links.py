"""Which pages link to a URL, and what a page links to: `explain` and `list links`, over the state of a crawl."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from crawler.cli.demo.site import Site
from tests.commands import Run
from tests.postgres import new_state

QUICK = ("--rate", "0", "--retries", "0", "-q")
PAGES = [f"/p/{number:02}" for number in range(25)]


@pytest.fixture
def site(run: Run) -> Iterator[str]:
    """The origin of a site whose 25 pages all link to one, and which was crawled."""
    site = Site()
    site.page("/", links=PAGES)
    for path in PAGES:
        site.page(path, links=["/target", "/gone"])
    site.page("/target", links=["/target", "/old"])  # a link to the page itself is none
    site.redirect("/old", "/target")
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK)
        yield origin


def linking(out: str) -> list[str]:
    """The lines below "linked"."""
    after = out.partition("  linked ")[2].splitlines()[1:]
    return [line.strip() for line in after if line.startswith(" " * 13)]


def test_explain_shows_the_first_pages_that_link_to_url(run: Run, site: str) -> None:
    _, out, _ = run("explain", f"{site}/target")
    assert "linked     from 25 pages; found at depth 2\n" in out
    assert linking(out) == [*(site + path for path in PAGES[:20]), "and 5 more: --all shows them"]
    _, out, _ = run("explain", f"{site}/target", "--all")
    assert linking(out) == [site + path for path in PAGES]
    story = json.loads(run("explain", f"{site}/gone", "--format", "json")[1])
    assert (story["linked_from"], story["linked_by"]) == (25, [site + path for path in PAGES[:20]])


def test_a_path_is_one_of_the_only_site(run: Run, site: str) -> None:
    assert run("explain", "/target")[1] == run("explain", f"{site}/target")[1]
    code, out, _ = run("explain", "/never")
    assert (code, out.splitlines()[0]) == (8, f"{site}/never")


def test_a_path_needs_a_choice_among_several_states(run: Run, site: str) -> None:
    other = Site()
    other.page("/")
    with other.serve() as origin:
        run.ok("crawl", origin, *QUICK, "-o", "other")
    code, out, err = run("explain", "/target")
    assert (code, out) == (2, "")
    assert "There are 2 states" in err
    name = site.removeprefix("http://").replace(":", "_")
    run.ok("explain", "/target", "--state", f".sitemap-crawler/{name}.db")


@pytest.mark.parametrize("head", ["", "{site}"])
def test_list_links_to_and_from_url(run: Run, site: str, head: str) -> None:
    prefix = head.format(site=site)

    def links(*words: str) -> list[tuple[str, str, str]]:
        _, out, _ = run("list", "links", "--format", "jsonl", *words)
        rows = [json.loads(line) for line in out.splitlines()]
        return [
            (row["source"].removeprefix(site), row["target"].removeprefix(site), row["kind"]) for row in rows
        ]

    assert links("--to", f"{prefix}/target") == [(path, "/target", "link") for path in PAGES]
    assert links("--from", f"{prefix}/p/07") == [("/p/07", "/target", "link"), ("/p/07", "/gone", "link")]
    assert links("--from", f"{prefix}/p/07", "--to", f"{prefix}/gone") == [("/p/07", "/gone", "link")]
    assert links("--from", f"{prefix}/p/07", "--only", "failed") == [("/p/07", "/gone", "link")]
    assert links("--to", f"{prefix}/target", "--all-kinds")[0] == ("/old", "/target", "redirect")


def test_links_of_an_unknown_url_are_an_error(run: Run, site: str) -> None:
    code, _, err = run("list", "links", "--to", "/never")
    assert (code, err) == (2, f"sitemap-crawler: --to: the state does not know {site}/never.\n")
    code, _, err = run("list", "pages", "--from", "/target")
    assert (code, err) == (2, "sitemap-crawler: --to, --from and --all-kinds are for links, not for pages.\n")


HEAD = "".join(
    f'<link rel="alternate" hreflang="{code}" href="{path}">'
    for code, path in (("en", "/"), ("de", "/de"), ("fr", "/fr"), ("it", "/it"), ("es", "/es"), ("pl", "/pl"))
)


@pytest.fixture(params=["sqlite", "postgres", "workers"])
def languages(run: Run, request: pytest.FixtureRequest) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The origin of a site with language versions that few pages link to, which was crawled; and its state."""
    site = Site()
    words = {"postgres": ("--state", new_state()), "workers": ("--processes", "2")}.get(request.param, ())
    state = words if request.param == "postgres" else ()
    site.robots("User-agent: *\nDisallow: /pl\n")
    site.page(
        "/", head=HEAD, links=["/en", "/it"], headers={"Link": '</feed>; rel="alternate", </it>; rel="next"'}
    )
    site.page("/en", head=f'{HEAD}<link rel="next" href="/de">', canonical="/", links=["/"])
    site.page("/de", head=HEAD, noindex=True)
    site.page("/it", head=HEAD, noindex=True, links=["/fr", "/feed", "/es"])
    site.page("/fr", head=HEAD)
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK, *words)
        yield origin, state


@pytest.mark.slow
def test_nobody_clicks_a_link_element(run: Run, languages: tuple[str, tuple[str, ...]]) -> None:
    origin, state = languages

    def rows(what: str, *words: str) -> list[dict[str, Any]]:
        out = run("list", what, *(state or (origin,)), "--format", "jsonl", *words)[1].replace(origin, "")
        return [json.loads(line) for line in out.splitlines()]

    found = [(row["code"], row["url"], row["links"]) for row in rows("findings")]
    assert ("noindex-linked", "/it", 1) in found
    assert not [one for one in found if one[0] == "robots-linked" or one[1] == "/de"]
    # What does not exist is a finding even so: it is mended where the element is.
    assert [one for one in found if one[0] == "broken-link"] == [
        ("broken-link", "/es", 5),
        ("broken-link", "/feed", 2),
    ]
    pages = {row["url"]: (row["clicks"], row["links_in"], row["links_out"]) for row in rows("pages")}
    assert pages["/"] == (0, 1, 2)
    assert pages["/de"] == (None, 0, 0)
    assert pages["/fr"] == (2, 1, 0)
    assert pages["/it"] == (1, 1, 3)
    links = [(row["source"], row["target"], row["kind"]) for row in rows("links", "--to", "/es")]
    assert links == [
        ("/", "/es", "head"),
        ("/de", "/es", "head"),
        ("/en", "/es", "head"),
        ("/fr", "/es", "head"),
        ("/it", "/es", "link"),
    ]
    assert [row["place"] for row in rows("links", "--from", "/", "--to", "/es")] == ["head"]
    every = {(row["target"], row["kind"]) for row in rows("links", "--from", "/en", "--all-kinds")}
    assert every == {
        ("/", "link"), ("/", "canonical"), ("/de", "head"), ("/es", "head"), ("/fr", "head"), ("/it", "head"), ("/pl", "head"),
    }  # fmt: skip
    report = json.loads(run("report", *(state or (origin,)), "--format", "json")[1])
    assert report["unreachable"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--processes", "2")])
def test_nofollow_link_is_none_that_readers_follow(run: Run, words: tuple[str, ...]) -> None:
    """Where link elements, Link headers or canonicals lead to the same URLs, these are links of their own."""
    site = Site()
    version = '<link rel="alternate" hreflang="de" href="{}">'
    avoided = "".join(f'<a rel="nofollow" href="{to}">{to}</a>' for to in ("/de", "/feed", "/gone", "/top"))
    feed = {"Link": '</feed>; rel="alternate"'}
    site.page(
        "/", head=version.format("/de") + version.format("/gone"), text=avoided, headers=feed, links=["/copy"]
    )
    site.page("/copy", canonical="/top", text=avoided)
    for path in ("/de", "/feed", "/top"):
        site.page(path, links=["/"])
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK, *words)

        def rows(what: str, *more: str) -> list[dict[str, Any]]:
            out = run("list", what, origin, "--format", "jsonl", *more)[1].replace(origin, "")
            return [json.loads(line) for line in out.splitlines()]

        links = {
            (row["source"], row["target"], row["kind"], row["nofollow"])
            for row in rows("links", "--all-kinds")
        }
        every = [("/", to, "link", True) for to in ("/de", "/feed", "/gone", "/top")]
        every += [("/copy", to, "link", True) for to in ("/de", "/feed", "/gone", "/top")]
        every += [("/", to, "head", False) for to in ("/de", "/feed", "/gone")]
        every += [(path, "/", "link", False) for path in ("/de", "/feed", "/top")]
        assert links == {*every, ("/", "/copy", "link", False), ("/copy", "/top", "canonical", False)}
        pages = {row["url"]: (row["clicks"], row["links_in"], row["links_out"]) for row in rows("pages")}
        assert pages["/"] == (0, 3, 1)
        assert pages["/de"] == pages["/feed"] == pages["/top"] == (None, 0, 1)
        [gone] = rows("findings", "--only", "broken-link")
        assert (gone["url"], gone["links"]) == ("/gone", 2)
        run("report", origin, "--report", "r.csv")
        with open("r.csv") as file:
            assert [line for line in file if line.startswith("error,broken-link")] == [
                f"error,broken-link,{origin}/gone,404,,2,{origin}{page},/gone,\n" for page in ("/", "/copy")
            ]


@pytest.mark.parametrize("state", [(), pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_refresh_leads_to_its_target(run: Run, state: str) -> None:
    """Whatever else the page links to or names, and even if it links to its target as well."""
    site, words = Site(), ("--state", new_state()) if state else ()
    refresh = '<meta http-equiv="refresh" content="0; url=/new">'
    site.page("/", links=["/old", "/older", "/other"])
    version = '<link rel="alternate" hreflang="de" href="/gone">'
    site.page("/old", head=refresh + version, canonical="/other", links=["/other", "/new"])
    site.page("/older", head=refresh, links=["/other", "/new"])
    site.page("/new")
    site.page("/other")
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK, *words)
        where = words or (origin,)

        def rows(what: str, *more: str) -> list[dict[str, Any]]:
            out = run("list", what, *where, "--format", "jsonl", *more)[1].replace(origin, "")
            return [json.loads(line) for line in out.splitlines()]

        found = rows("findings", "--only", "redirect-linked")
        assert [(row["url"], row["detail"]) for row in found] == [("/old", "/new"), ("/older", "/new")]
        assert [row["url"] for row in rows("findings", "--only", "redirect-chain")] == []
        ends = {row["target"]: row["final_url"] for row in rows("links", "--from", "/")}
        assert ends == {"/old": "/new", "/older": "/new", "/other": "/other"}
        links = [(row["target"], row["kind"]) for row in rows("links", "--from", "/old", "--all-kinds")]
        assert links == [
            ("/other", "link"), ("/new", "link"), ("/gone", "head"), ("/new", "redirect"), ("/other", "canonical")
        ]  # fmt: skip
        pages = {row["url"]: (row["clicks"], row["links_in"], row["links_out"]) for row in rows("pages")}
        assert pages["/new"] == (1, 2, 0)
        assert pages["/gone"] == (None, 0, 0)
