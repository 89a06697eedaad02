"""What broken links say, and where on their page they stand: from pages that are read again."""

import csv
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import pytest

from crawler.app import link_texts
from crawler.frontier import targets
from tests import program
from tests.commands import Run
from tests.postgres import new_state
from tests.server import Answer, Origin, Talk, http, moved, serving
from tests.waiting import send_signal, until

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

    def told(self, *more: str) -> list[dict[str, Any]]:
        """The events of a crawl that ends well."""
        self.home.log.clear()
        flags = [flag for flag in FLAGS if flag != "--quiet"]
        code, _, err = self._run(
            "crawl", self.url, *flags, "--state", self.state, "--log-format", "json", *more
        )
        assert code == 0, err
        return [json.loads(line) for line in err.splitlines()]

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


def refused(origin: Origin, answer: Answer) -> None:
    """From the second time on, its pages answer that."""

    def then(first: Answer) -> Answer:
        def say(talk: Talk) -> None:
            chosen = first if talk.count == 1 else answer
            talk.say(chosen) if isinstance(chosen, bytes) else chosen(talk)

        return say

    for path, first in list(origin.answers.items()):
        origin.answers[path] = then(first)


HANG = ("--timeout", "10", "--total-timeout", "10")
LATER = http("", "429 Too Many Requests", Retry_After="3600")


@pytest.mark.parametrize(
    "answer",
    [LATER, Talk.reset, pytest.param(Talk.hold, marks=pytest.mark.slow)],
    ids=["later", "reset", "hang"],
)
def test_site_without_answers_is_left_alone_and_said_so(site: Site, answer: Answer) -> None:
    site.home.put(
        "/", page("Home", "".join(f'<a href="/p{n}">{n}</a><a href="/x{n}">x</a>' for n in range(12)))
    )
    for number in range(12):
        site.home.put(f"/p{number}", page(f"p{number}", f'<a href="/lost{number}">Lost</a>'))
    refused(site.home, answer)
    [left] = [one for one in site.told(*HANG) if one["event"] == "not all pages were read again"]
    assert (left["left"], left["because"]) == (13, "no answer")
    asked = site.asked()
    assert len({path for path in asked if asked.count(path) > 1}) == link_texts.MOST_UNANSWERED
    assert Path("sitemaps/sitemap.xml.gz").exists()


def test_site_without_answers_does_not_hide_the_next(run: Run) -> None:
    home, other = Origin("home", "127.0.0.1"), Origin("other", "127.0.0.2")
    with serving(home, other):
        site = Site(run, home)
        other.put("/", page("Other", '<a href="/none">None</a>', footer=""))
        for number in range(12):
            text = page(f"p{number}", f'<a href="/lost{number}">Lost</a><a href="{other.url()}">Other</a>')
            home.put(f"/p{number}", text)
        refused(home, Talk.reset)
        assert site.crawl("--allow-host", f"127.0.0.2:{other.port}", "--allow-address", "127.0.0.0/8")[0] == 0
        rows = site.rows("links", "--to", other.url("/none"))
    assert [(row["source"], row["text"]) for row in rows] == [(other.url(), "None")]


def test_choice_of_pages_does_not_depend_on_a_clock(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def elapsed(seconds: float) -> anyio.CancelScope:
        return anyio.move_on_after(0 if seconds < link_texts.LONGEST else seconds)

    monkeypatch.setattr(link_texts, "anyio", Mock(wraps=anyio, move_on_after=elapsed))
    assert site.crawl()[0] == 0
    assert site.links()["/p3", "/lost"] == ("Lost & found", "main")
    site.state = "limited.db"
    told = site.told("--max-time", "100")
    [left] = [one for one in told if one["event"] == "not all pages were read again"]
    assert (left["left"], left["because"]) == (4, "max-time")


def feed(*names: str) -> bytes:
    items = (
        f"<item><title>About &lt;i&gt;{one}&lt;/i&gt;</title><link>/{one}</link></item>" for one in names
    )
    text = f"<rss><channel><title>News</title>{''.join(items)}</channel></rss>"
    return http(text, Content_Type="application/rss+xml")


def test_broken_links_of_feeds_say_their_titles(site: Site) -> None:
    site.home.put("/p1", page("p1", '<a href="/feed">Feed</a>'))
    site.home.put("/feed", feed("p2", "old-news"))
    assert site.crawl("--report=r.md")[0] == 0
    assert site.links("--from", "/feed") == {("/feed", "/old-news"): ("About old-news", "")}
    assert "`/feed (“About old-news”)`" in Path("r.md").read_text()
    site.home.put("/feed", feed("p2", "old-news", "older"))
    assert site.crawl()[0] == 0
    assert site.links("--from", "/feed")["/feed", "/older"] == ("About older", "")
    assert site.asked().count("/feed") == 2
    assert site.crawl()[0] == 0
    assert site.asked().count("/feed") == 1, "all is known"


def test_pages_that_were_not_read_again_are_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [f"--report=r.{suffix}" for suffix in ("json", "html", "md")]
    with monkeypatch.context() as patch:
        patch.setattr(link_texts, "LONGEST", 0.0)
        patch.setattr(link_texts, "LONGEST_EACH", 0.0)
        assert site.crawl(*reports)[0] == 0
    left = json.loads(Path("r.json").read_text())["left_out"]
    assert left == {"pages": {"count": 4, "because": "slow answers"}}
    words = "4 pages with broken links not read again for the text of these (slow answers)"
    assert words in Path("r.html").read_text()
    assert words in Path("r.md").read_text()
    assert site.crawl(*reports)[0] == 0
    assert json.loads(Path("r.json").read_text())["left_out"] == {}


def test_pages_are_looked_up_and_stored_together(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        site.home.put(f"/p{number}", page(f"p{number}", f'<a href="/lost-{number}">Lost</a>'))
    store = Mock(wraps=targets.store_anchors, __name__="store_anchors")
    monkeypatch.setattr(targets, "store_anchors", store)
    assert site.crawl("--concurrency", "1")[0] == 0
    assert len(site.links("--from", "/p11")) == 2
    assert store.call_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before commit of store_anchors", "after commit of store_anchors"])
def test_texts_come_after_a_kill_with_the_same_bytes(site: Site, moment: str) -> None:
    site.state = "calm.db"
    assert site.crawl("--output", "calm")[0] == 0
    known, site.state = site.links(), "s.db"
    crawl = ["crawl", site.url, *FLAGS, "--state", site.state]
    died = program.run(crawl, dies=moment)
    assert died.returncode == -signal.SIGKILL, died.stderr
    code, _, err = site.crawl()
    assert (code, err) == (0, "")
    assert site.links() == known
    ours, calm = (Path(folder, "sitemap.xml.gz").read_bytes() for folder in ("sitemaps", "calm"))
    assert ours == calm


@pytest.mark.slow
def test_signal_ends_the_second_reading_and_tells_the_truth(site: Site) -> None:
    refused(site.home, Talk.hold)
    crawl = ["crawl", site.url, *FLAGS, "--state", site.state, "--log-format", "json"]
    crawl.remove("--quiet")
    process = program.start(crawl)
    until(lambda: len(site.asked()) > len(set(site.asked())))
    send_signal(process, signal.SIGTERM)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 143, err
    events = [json.loads(line) for line in err.splitlines()]
    [done] = [one for one in events if one["event"] == "done"]
    assert done["published"] is True
    assert Path("sitemaps/sitemap.xml.gz").exists()
    assert not [one for one in events if one["event"] == "not all pages were read again"]
