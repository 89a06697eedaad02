"""What broken links say, and where on their page they stand: from pages that are read again."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.postgres import new_state
from tests.server import Origin, http, moved, serving

FLAGS = ("--rate", "0", "--retries", "0", "--quiet")
FOOTER = '<footer><a href="/imprint">Our <b>imprint</b></a></footer>'


def page(title: str, main: str = "", footer: str = FOOTER) -> bytes:
    text = f"<!doctype html><title>{title}</title><main><p>Text of {title}.</p>{main}</main>{footer}"
    return http(text)


class Site:
    """A shop whose footer leads to a page that is gone."""

    def __init__(self, run: Run, home: Origin) -> None:
        self.home, self._run, self.state = home, run, "s.db"
        self.url = f"http://127.0.0.1:{home.port}"
        names = [f"p{number}" for number in range(12)]
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in names)
        home.put("/", page("Home", links + '<nav><a href="/old">Prices</a></nav>'))
        for name in names:
            home.put(f"/{name}", page(name))
        home.put("/p3", page("p3", '<p><a href="/lost">Lost &amp; &#x202e;found</a><a href="/lost"></a>'))
        home.put("/old", moved("/p1"))

    def crawl(self, *more: str) -> tuple[int, str, str]:
        self.home.log.clear()
        return self._run("crawl", self.url, *FLAGS, "--state", self.state, *more)

    def rows(self, what: str, *words: str) -> list[dict[str, str]]:
        _, out, _ = self._run("list", what, "--state", self.state, "--format", "csv", *words)
        return list(csv.DictReader(io.StringIO(out)))

    def links(self, *words: str) -> dict[tuple[str, str], tuple[str, str]]:
        """What is known of links, by source and target."""
        rows = self.rows("links", *words)
        return {
            (row["source"].removeprefix(self.url), row["target"].removeprefix(self.url)): said
            for row in rows
            if any(said := (row["text"], row["place"]))
        }

    def asked(self) -> list[str]:
        return sorted(one.path for one in self.home.log if "." not in one.path)


@pytest.fixture
def site(run: Run) -> Iterator[Site]:
    home = Origin("home", "127.0.0.1")
    with serving(home):
        yield Site(run, home)


def test_report_names_text_and_place_of_broken_links(site: Site) -> None:
    reports = [f"--report=r.{suffix}" for suffix in ("json", "html", "csv", "md")]
    assert site.crawl(*reports)[0] == 0
    assert site.links()["/", "/imprint"] == ("Our imprint", "footer")
    assert site.links()["/p3", "/lost"] == ("Lost & found", "main")
    assert site.links()["/", "/old"] == ("Prices", "nav")
    found: dict[str, Any] = json.loads(Path("r.json").read_text())
    items = {item["url"].removeprefix(site.url): item for one in found["findings"] for item in one["items"]}
    assert (items["/imprint"]["text"], items["/imprint"]["place"]) == ("Our imprint", "footer")
    assert items["/lost"]["on"] == [{"page": f"{site.url}/p3", "text": "Lost & found", "place": "main"}]
    action = next(one for one in found["actions"] if one["target"] == f"{site.url}/imprint")
    assert action["text"].endswith("(“Our imprint”) from the footer")
    assert (action["link"], action["place"]) == ("Our imprint", "footer")
    html = Path("r.html").read_text()
    assert "“Lost &amp; found”, in the main part" in html
    assert "the template" in html
    rows = list(csv.DictReader(io.StringIO(Path("r.csv").read_text())))
    said = {(row["url"], row["source"]): (row["text"], row["place"]) for row in rows}
    assert said[f"{site.url}/lost", f"{site.url}/p3"] == ("Lost & found", "main")
    assert "“Lost & found”, in the main part" in Path("r.md").read_text()
    found_rows = {row["url"]: (row["text"], row["place"]) for row in site.rows("findings")}
    assert found_rows[f"{site.url}/old"] == ("Prices", "nav")


def test_every_page_that_the_report_names_is_read(site: Site) -> None:
    names = [f"p{number}" for number in range(4, 9)]
    for name in names:
        site.home.put(f"/{name}", page(name, f'<aside><a href="/lost">From {name}</a></aside>'))
    assert site.crawl()[0] == 0
    known = site.links("--to", "/lost")
    assert known == {
        ("/p3", "/lost"): ("Lost & found", "main"),
        **{(f"/{name}", "/lost"): (f"From {name}", "aside") for name in names},
    }


def test_explain_names_what_links_say(site: Site, run: Run) -> None:
    assert site.crawl()[0] == 0
    _, out, _ = run("explain", f"{site.url}/lost", "--state", site.state)
    assert f"{site.url}/p3 (“Lost & found”, in the main part)" in out
    _, out, _ = run("explain", f"{site.url}/lost", "--state", site.state, "--format", "json")
    assert json.loads(out)["linked_as"] == [
        {"page": f"{site.url}/p3", "text": "Lost & found", "place": "main"}
    ]


def test_pages_are_read_again_once_until_they_change(site: Site) -> None:
    assert site.crawl()[0] == 0
    twice = {path for path in site.asked() if site.asked().count(path) > 1}
    assert twice == {"/", "/p0", "/p1", "/p3"}, "three examples of each target"
    known = site.links()
    assert site.crawl()[0] == 0
    assert len(site.asked()) == len(set(site.asked())), "all is known"
    assert site.links() == known
    site.home.put("/p3", page("p3", "<p>More words than before.</p><nav><a href='/lost'>Gone</a></nav>"))
    assert site.crawl()[0] == 0
    assert {path for path in site.asked() if site.asked().count(path) > 1} == {"/p3"}
    assert site.links() == known | {("/p3", "/lost"): ("Gone", "nav")}


def test_no_page_is_read_again_without_need_or_wish(site: Site) -> None:
    assert site.crawl("--link-pages", "0")[0] == 0
    assert len(site.asked()) == len(set(site.asked()))
    assert site.links() == {}
    assert site.crawl("--link-pages", "1")[0] == 0
    assert {path for path in site.asked() if site.asked().count(path) > 1} == {"/"}
    site.home.put("/old", page("Old"))
    site.home.put("/lost", page("Lost"))
    site.home.put("/imprint", page("Imprint"))
    assert site.crawl()[0] == 0
    assert len(site.asked()) == len(set(site.asked()))


def test_partial_run_keeps_what_is_known(site: Site) -> None:
    assert site.crawl()[0] == 0
    known = site.links()
    assert site.crawl("--max-pages", "3")[0] == 0
    assert len(site.asked()) <= 3
    assert site.links() == known


@pytest.mark.slow
def test_same_texts_at_any_concurrency_and_processes(site: Site) -> None:
    known = []
    for place, more in enumerate(((), ("--concurrency", "1"), ("--processes", "2"))):
        site.state = f"{place}.db"
        assert site.crawl("--output", f"out{place}", f"--report={place}.csv", *more)[0] == 0
        known.append((site.links(), Path(f"{place}.csv").read_text()))
    assert known[0] == known[1] == known[2]


@pytest.mark.slow
def test_texts_are_kept_in_a_database(site: Site) -> None:
    site.state = new_state()
    assert site.crawl()[0] == 0
    assert site.links()["/p3", "/lost"] == ("Lost & found", "main")


@pytest.mark.slow
def test_page_that_may_stall_the_parser_is_read_in_a_child(site: Site) -> None:
    deep = "<div>" * 3_000
    site.home.put("/p3", page("p3", f'<p><a href="/lost">Lost</a>{deep}'))
    assert site.crawl()[0] == 0
    assert site.links()["/p3", "/lost"] == ("Lost", "main")


def test_links_of_a_stranger_do_not_hide_those_of_the_template(site: Site) -> None:
    posted = "".join(f'<a href="/nothing-{number}">x</a>' for number in range(5))
    for name in ("p1", "p2"):
        site.home.put(f"/{name}", page(name, posted.replace("nothing", f"nothing-{name}")))
    assert site.crawl("--link-pages", "1")[0] == 0
    assert site.links()["/", "/imprint"] == ("Our imprint", "footer")
