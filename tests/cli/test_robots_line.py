"""The line for robots.txt: shown while it is missing, not when it is there; and what `robots` shows about it."""

import json
from pathlib import Path

import pytest

from crawler.app.robots_line import compare
from crawler.cli.demo.site import Site
from crawler.model.reply import RobotsFile
from crawler.settings.sections import Settings
from tests.commands import Run
from tests.sites import star

ADVICE = "Add this line to robots.txt"
ENTRY = "https://www.example.com/Maps/sitemap.xml.gz"
QUICK = ("--rate", "0", "--retries", "0", "--state", "crawl.db")


def said(text: str, entry: str = ENTRY) -> tuple[bool | None, tuple[str, ...]]:
    found = compare(RobotsFile("rules", text.encode()), Settings(), entry)
    return found.is_named, found.others


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (ENTRY, True),
        ("HTTPS://WWW.Example.com:443/Maps/sitemap.xml.gz", True),
        ("https://www.example.com/Maps/./a/../sitemap.xml.gz#top", True),
        ("https://www.example.com/maps/sitemap.xml.gz", False),
        ("https://www.example.com/Maps/sitemap.xml", False),
        ("http://www.example.com/Maps/sitemap.xml.gz", False),
        ("/Maps/sitemap.xml.gz", False),
        ("sitemap.xml.gz", False),
    ],
)
def test_lines_are_compared_as_absolute_urls(line: str, named: bool) -> None:
    assert said(f"sitemap : {line}")[0] is named


def test_other_sitemaps_are_those_that_are_not_written_with_ours() -> None:
    lines = [ENTRY, "https://www.example.com/Maps/sitemap-00001.xml.gz", "https://other.example/news.xml"]
    assert said("\n".join(f"Sitemap: {line}" for line in lines)) == (
        True,
        ("https://other.example/news.xml",),
    )


@pytest.mark.parametrize("status", ["down", "unreachable"])
def test_a_robots_txt_that_cannot_be_read_is_unknown(status: str) -> None:
    assert compare(RobotsFile(status), Settings(), ENTRY).is_named is None
    assert compare(None, Settings(), ENTRY).is_named is None


def test_a_site_without_robots_txt_does_not_name_it() -> None:
    assert compare(RobotsFile("none"), Settings(), ENTRY).is_named is False


def spaced(text: str) -> str:
    return " ".join(text.split())


def test_the_line_is_shown_until_robots_txt_has_it(run: Run) -> None:
    site = star("/a")
    site.robots("User-agent: *\nDisallow: /cart\n")
    with site.serve() as origin:
        _, _, missing = run("crawl", origin, *QUICK)
        site.robots("Sitemap: {origin}/sitemap.xml.gz\n")
        _, _, there = run("crawl", origin, *QUICK, "--state", "2.db", "--report", "r.json")
    assert ADVICE in missing
    assert f"Sitemap: {origin}/sitemap.xml.gz" in missing
    assert "robots-line: 1 line" in missing
    assert ADVICE not in there
    assert "names the sitemap" in there
    assert "robots-line" not in there
    assert json.loads(Path("r.json").read_text())["robots"]["names_sitemap"] is True


def test_another_sitemap_in_its_place_is_named(run: Run) -> None:
    site = star("/a")
    site.robots("Sitemap: {origin}/wp-sitemap.xml\n")
    with site.serve() as origin:
        _, _, err = run("crawl", origin, *QUICK)
        _, _, lines = run("crawl", origin, *QUICK, "--log-format", "json")
        _, out, _ = run("report", "--state", "crawl.db")
    assert ADVICE in err
    assert f"robots.txt names {origin}/wp-sitemap.xml, which this crawl does not write." in " ".join(
        err.split()
    )
    done = json.loads(lines.splitlines()[-1])
    assert (done["robots_named"], done["robots_others"]) == (False, [f"{origin}/wp-sitemap.xml"])
    assert f"it names {origin}/wp-sitemap.xml, which is not written here" in spaced(out)


@pytest.mark.parametrize("named", [True, False, None], ids=["named", "missing", "unreachable"])
def test_robots_txt_of_published_site_is_read_once_for_a_copy(run: Run, named: bool | None) -> None:
    copy, published = star("/a"), Site()
    copy.robots("Sitemap: {origin}/sitemap.xml.gz\n")  # that of the copy does not count
    published.robots("Sitemap: {origin}/sitemap.xml.gz\n" if named else "User-agent: *\nDisallow:\n")
    if named is None:
        published.respond("/robots.txt", lambda _: Site.answer(503))
    with copy.serve() as origin, published.serve() as base:
        words = ("crawl", origin, *QUICK, "--publish-base", base, "--allow-address", "127.0.0.1")
        _, err = run.ok(*words)
        if named is not None:
            assert [asked.target for asked in published.log] == ["/robots.txt"]
        run(*words)
    if named is not None:
        assert [asked.target for asked in published.log] == ["/robots.txt"], "it is remembered for a day"
    assert ("names the sitemap" in err) is (named is True)
    assert (ADVICE in err) is (named is not True)
    assert ("robots-line: 1 line" in err) is (named is False)


def test_a_name_that_cannot_exist_is_not_looked_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the demo, which needs no network."""
    monkeypatch.setattr("crawler.app.robots_line.ask_robots", pytest.fail)
    with star("/a").serve() as origin:
        run.ok("crawl", origin, *QUICK, "-q", "--publish-base", "https://shop.example")


def test_a_published_site_that_does_not_exist_delays_nothing(run: Run) -> None:
    with star("/a").serve() as origin:
        code, _, err = run(
            "crawl", origin, *QUICK, "--publish-base", "http://127.0.0.1:9", "--seed-sitemaps", "off"
        )
    assert code == 0
    assert ADVICE in err
    assert "robots-line" not in err


# -- `robots` ---------------------------------------------------------------------------------------------------


def test_robots_shows_whether_sitemap_is_named_and_what_is_there(run: Run) -> None:
    site = star("/a")
    site.robots("Sitemap: {origin}/old.xml\n")
    with site.serve() as origin:
        run("crawl", origin, "--rate", "0", "-q")
        _, out, _ = run("robots", origin + "/")
        assert f"sitemap {origin}/old.xml (named; answers 404)" in spaced(out)
        assert f"sitemap {origin}/sitemap.xml.gz (published, and not named; answers 404)" in spaced(out)
        site.robots("Sitemap: {origin}/sitemap.xml.gz\n")
        site.raw("/sitemap.xml.gz", body=b"x" * 100_000)
        _, out, _ = run("robots", origin + "/")
        assert f"sitemap {origin}/sitemap.xml.gz (named; answers 200)" in spaced(out)
        code, out, _ = run("robots", origin + "/", "--format", "json")
    assert code == 0
    assert json.loads(out)["sitemaps"] == [
        {"url": f"{origin}/sitemap.xml.gz", "answer": "answers 200", "named": True}
    ]


def test_robots_of_a_site_that_was_never_crawled(run: Run) -> None:
    site = star("/a")
    site.robots(
        "Sitemap: {origin}/a\x1b[31m.xml\nSitemap: http://127.0.0.1:9/x.xml\n" + "Sitemap: {origin}/s\n" * 99
    )
    with site.serve() as origin:
        code, out, _ = run("robots", origin + "/a")
    assert code == 0
    assert "\x1b" not in out
    assert "http://127.0.0.1:9/x.xml (named; private address or blocked port" in out
    assert not Path(".sitemap-crawler").exists()
