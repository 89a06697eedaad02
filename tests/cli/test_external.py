"""`--check-external` as users meet it: several real hosts on loopback, some of which behave badly."""

import csv
import io
import json
import signal
import socket
import sqlite3
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme

from crawler.engine.external import DELAY
from crawler.model import failpoints
from tests import program
from tests.commands import Run
from tests.postgres import new_state
from tests.server import Origin, Talk, free_port, http, moved, page, serving
from tests.waiting import until

# Hosts by name, each at an address of its own; all at one port.
HOSTS = {
    "home.example": "127.0.0.1",
    "good.example": "127.0.70.1",
    "bad.example": "127.0.70.2",
    "other.example": "127.0.70.3",
    "private.example": "10.99.99.99",
    "cdn.home.example": "127.0.70.4",
}
QUICK = (
    "--rate", "0", "--retries", "0", "--state", "s.db", "--check-external",
    "--allow-address", "127.0.70.0/24", "--timeout", "5",
)  # fmt: skip


class Web:
    """A site, and other sites that it links to. A test fills them in before it crawls."""

    def __init__(self, run: Run) -> None:
        self.home, self.good, self.bad, self.other = (
            Origin(name, address) for name, address in list(HOSTS.items())[:4]
        )
        self.cdn = Origin("cdn.home.example", HOSTS["cdn.home.example"])
        self.port = 0
        self._run = run

    def links(self, *urls: str, path: str = "/") -> None:
        """A page of the site with these links; `good:/a` stands for a URL of that host."""
        self.home.put(path, http(page(*map(self.url, urls))))

    def url(self, short: str) -> str:
        name, colon, path = short.partition(":")
        return f"http://{name}.example:{self.port}{path}" if colon and "//" not in short else short

    def crawl(self, *more: str) -> tuple[int, str, str]:
        return self._run("crawl", self.url("home:/"), *QUICK, *more)

    def answers(self, *words: str) -> dict[str, str]:
        """The answers for URLs on other sites, as `list pages` has them."""
        return {
            row["url"].removeprefix("http://").replace(f".example:{self.port}", ":"): row["external"]
            for row in self.rows("pages", *words)
            if row["outcome"] == "unlisted:offsite"
        }

    def rows(self, what: str, *words: str) -> list[dict[str, str]]:
        _, out, _ = self._run("list", what, "--state", "s.db", "--format", "csv", *words)
        return list(csv.DictReader(io.StringIO(out)))


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = anyio.getaddrinfo

    async def resolve(host: str, *rest: Any, **more: Any) -> Any:
        if host.endswith(".example") and host not in HOSTS:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return await real(HOSTS.get(host, host), *rest, **more)

    monkeypatch.setattr("crawler.fetch.address_guard.anyio.getaddrinfo", resolve)


@pytest.fixture
def web(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr("crawler.engine.external.DELAY", 0.0)
    web = Web(run)
    with serving(web.home, web.good, web.bad, web.other, web.cdn):
        web.port = web.home.port
        yield web


def methods(origin: Origin) -> list[str]:
    """What a host was asked for, robots.txt apart."""
    return [f"{one.method} {one.path}" for one in origin.log if one.path != "/robots.txt"]


def by_method(**answers: bytes) -> Callable[[Talk], None]:
    def answer(talk: Talk) -> None:
        reply = answers[talk.asked.method]
        talk.say(reply.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if talk.asked.method == "HEAD" else reply)

    return answer


FINE = http("fine")
GONE = http("gone", "404 Not Found")


def test_broken_links_are_found_and_shown_with_pages_that_link(web: Web, run: Run) -> None:
    web.links("/a", "good:/ok", "bad:/gone")
    web.links("bad:/gone", "good:/moved", path="/a")
    web.good.put("/ok", FINE)
    web.good.put("/moved", moved("/ok"))
    web.bad.put("/gone", GONE)
    code, _, err = web.crawl(
        "--report", "r.json", "--report", "r.html", "--report", "r.csv", "--report", "r.md"
    )
    assert code == 0, err
    assert "3 URLs on other sites: 2 answer, 1 broken, 0 unknown" in " ".join(err.split())
    assert "broken-external: 1 URL, 2 links on 2 pages" in err
    assert web.answers() == {"good:/ok": "ok", "good:/moved": "ok", "bad:/gone": "broken:not-found"}

    report = json.loads(Path("r.json").read_text())
    [found] = [one for one in report["findings"] if one["code"] == "broken-external"]
    [item] = found["items"]
    assert (item["url"], item["status"], item["links"]) == (web.url("bad:/gone"), 404, 2)
    assert sorted(item["from"]) == [web.url("home:/"), web.url("home:/a")]
    assert report["external"] == {
        "urls": 3, "ok": 2, "broken": 1, "unknown": 0, "unasked": 0,
        "answers": {"broken:not-found": 1, "ok": 2}, "finished": True, "left": 0, "because": None,
    }  # fmt: skip
    for name in ("r.html", "r.csv", "r.md"):
        assert "broken-external" in Path(name).read_text(), name
    _, out, _ = run("report", "--state", "s.db")
    assert "3 URLs on other sites: 2 answer, 1 broken, 0 unknown" in out
    assert f"404  {web.url('bad:/gone')}  linked from 2 pages: / (“" in out

    rows = web.rows("links", "--only", "broken-external")
    assert {(row["source"], row["target"], row["status"], row["external"]) for row in rows} == {
        (web.url(source), web.url("bad:/gone"), "404", "broken:not-found") for source in ("home:/", "home:/a")
    }
    assert [row["code"] for row in web.rows("findings", "--only", "broken-external")] == ["broken-external"]
    assert [row["url"] for row in web.rows("pages", "--only", "broken-external")] == [web.url("bad:/gone")]


def test_they_are_off_by_default_and_never_in_the_sitemap(web: Web, run: Run) -> None:
    web.links("good:/ok", "bad:/gone")
    web.good.put("/ok", FINE)
    words = [word for word in QUICK if word != "--check-external"]
    run("crawl", web.url("home:/"), *words, "--no-gzip", "--report", "r.json")
    assert not web.good.log
    assert not web.bad.log
    assert json.loads(Path("r.json").read_text())["external"] is None
    web.crawl("--no-gzip")
    assert web.good.log
    text = Path("sitemaps/sitemap.xml").read_text()
    assert "good.example" not in text
    assert text.count("<loc>") == 1


@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        (FINE, "ok", "H"),
        (by_method(HEAD=http("", "405 Method Not Allowed"), GET=FINE), "ok", "HG"),
        (by_method(HEAD=http("", "501 Not Implemented"), GET=FINE), "ok", "HG"),
        (by_method(HEAD=http("", "403 Forbidden"), GET=FINE), "ok", "HG"),
        (by_method(HEAD=GONE, GET=FINE), "ok", "HG"),
        (GONE, "broken:not-found", "HG"),
        (http("", "410 Gone"), "broken:not-found", "HG"),
        (http("", "400 Bad Request"), "broken:client-error", "HG"),
        (http("", "403 Forbidden"), "unknown:refused", "HG"),
        (http("", "401 Unauthorized"), "unknown:refused", "HG"),
        (http("", "429 Too Many Requests"), "unknown:refused", "H"),
        (http("", "999 Request denied"), "unknown:refused", "H"),
        (http("", "500 Oops"), "broken:server-error", "HG"),
        (http("", "503 Later", Retry_After="60"), "unknown:refused", "H"),
        (http("", "304 Not Modified"), "unknown:status", "H"),
        (moved("/loop"), "broken:redirect-loop", "H"),
        (http("", "302 Found", Location="/loop", Set_Cookie="a=b"), "unknown:cookies", "H"),
        (http("", "302 Found"), "broken:redirect", "H"),
        (http("", "302 Found", Location="mailto:a@b.example"), "unknown:scheme", "H"),
        (b"what?\r\n\r\n", "broken:protocol", "HG"),
        (Talk.reset, "broken:truncated", "HHG"),  # the first reset is of a connection that was idle
    ],
)
def test_each_answer_of_a_host(web: Web, answer: Any, code: str, asked: str) -> None:
    web.links("good:/loop")
    web.good.put("/loop", answer)
    web.good.put("/robots.txt", GONE)
    web.crawl()
    assert web.answers() == {"good:/loop": code}
    assert "".join(line[0] for line in methods(web.good)) == asked


def test_each_url_is_asked_once_a_run_and_again_by_the_next(web: Web, run: Run) -> None:
    web.links("/a", "good:/ok", "bad:/flaky")
    web.links("good:/ok", "bad:/flaky", path="/a")
    web.good.put("/ok", FINE)
    web.bad.put("/flaky", FINE)
    web.crawl()
    assert (methods(web.good), methods(web.bad)) == (["HEAD /ok"], ["HEAD /flaky"])
    web.bad.put("/flaky", GONE)
    code, _, err = web.crawl("--fail-on", "new:broken-external")
    assert code == 8
    assert "broken-external: 1 URL (1 new)" in err
    assert methods(web.good) == ["HEAD /ok"] * 2
    code, _, err = web.crawl("--fail-on", "new:broken-external")
    assert code == 0
    assert web.crawl("--fail-on", "broken-external")[0] == 8
    _, out, _ = run("explain", "--state", "s.db", web.url("bad:/flaky"))
    assert "broken:not-found: not found (404, 410), status 404" in out
    # A run without the check has no such findings, whatever is remembered.
    words = [word for word in QUICK if word != "--check-external"]
    run.ok("crawl", web.url("home:/"), *words, "--fail-on", "error")


def test_explain_says_when_and_why_as_json_too(web: Web, run: Run) -> None:
    web.links("bad:/old")
    web.bad.put("/old", moved("/gone"))
    web.crawl()
    _, out, _ = run("explain", "--state", "s.db", web.url("bad:/old"), "--format", "json")
    told = json.loads(out)["external"]
    assert (told["code"], told["status"]) == ("broken:not-found", 404)
    assert told["detail"] == f"redirects to {web.url('bad:/gone')}"
    with closing(sqlite3.connect("s.db")) as db:
        [row] = db.execute("SELECT url, answer, status FROM external_links").fetchall()
    assert row == (web.url("bad:/old"), "broken:not-found", 404)


def test_robots_txt_of_host_is_obeyed_whatever_our_site_ignores(web: Web) -> None:
    web.links("good:/private", "good:/there", "good:/ok")
    web.good.put("/robots.txt", http("User-agent: *\nDisallow: /private\n", Content_Type="text/plain"))
    web.good.put("/ok", FINE)
    web.good.put("/there", moved(web.url("bad:/private")))
    web.bad.put("/robots.txt", http("User-agent: *\nDisallow: /\n", Content_Type="text/plain"))
    web.bad.put("/private", FINE)
    web.crawl("--ignore-robots")
    assert web.answers() == {
        "good:/private": "unknown:robots",
        "good:/there": "unknown:robots",
        "good:/ok": "ok",
    }
    assert methods(web.good) == ["HEAD /there", "HEAD /ok"]
    assert methods(web.bad) == []


@pytest.mark.parametrize("answer", [http("", "503 Later"), http("User-ag", Content_Length="70"), Talk.reset])
def test_a_host_whose_robots_txt_fails_is_not_asked(
    web: Web, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.app.external.TIMEOUT", 2.0)
    web.links("good:/a", "good:/b")
    web.good.put("/robots.txt", answer)
    web.crawl()
    assert set(web.answers().values()) == {"unknown:robots-down"}
    assert {one.path for one in web.good.log} == {"/robots.txt"}


def test_private_addresses_are_refused_also_after_a_redirect(web: Web) -> None:
    web.links("http://192.168.7.7/", "private:/x", "good:/inside", "http://[::1]/", "http://good.example:22/")
    web.good.put("/inside", moved("http://169.254.169.254/latest/meta-data/"))
    web.crawl()
    assert set(web.answers().values()) == {"unknown:address"}


def test_our_own_private_site_is_not_asked_after_redirect(web: Web) -> None:
    """The start host is exempt from the guard for the crawl only: another site must not aim requests at it."""
    web.links("good:/to-us")
    web.good.put("/to-us", moved(web.url("home:/delete?all")))
    web.crawl()
    assert web.answers() == {"good:/to-us": "unknown:address"}
    assert "/delete?all" not in web.home.counts()


def test_unresolved_names_and_dead_hosts_are_broken_asked_once(web: Web) -> None:
    port = free_port("127.0.70.9")
    dead = [f"http://127.0.70.9:{port}/{number}" for number in range(4)]
    lost = [f"http://nowhere.example/{number}" for number in range(4)]
    web.links("good:/ok", *dead, *lost)
    web.good.put("/ok", FINE)
    _, _, err = web.crawl()
    assert Counter(web.answers().values()) == {"ok": 1, "broken:dns": 4, "broken:connect": 4}
    details = [row["detail"] for row in web.rows("findings", "--only", "broken-external")]
    assert sum("Name or service not known" in detail for detail in details) == 4
    assert sum("Connection refused" in detail for detail in details) == 4
    assert "1 answers, 8 broken" in " ".join(err.split())


def test_slow_host_is_given_up_and_does_not_stall_the_others(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.app.external.TIMEOUT", 2.0)
    web.links(*(f"bad:/{number}" for number in range(6)), "good:/ok")
    web.good.put("/ok", FINE)
    web.bad.put("/robots.txt", GONE)
    web.bad.others = lambda _: Talk.hold
    web.crawl()
    assert Counter(web.answers().values()) == {"ok": 1, "broken:timeout": 2, "unknown:silent": 4}
    assert len(methods(web.bad)) == 4


def test_host_that_refuses_everything_is_not_asked_further(web: Web) -> None:
    web.links(*(f"bad:/{number}" for number in range(9)))
    web.bad.put("/robots.txt", GONE)
    web.bad.others = lambda _: http("", "999 Request denied")
    web.crawl()
    assert set(web.answers().values()) == {"unknown:refused"}
    assert len(methods(web.bad)) == 3


def test_no_site_that_was_reached_is_one_sentence(web: Web) -> None:
    web.links(*(f"nowhere-{number}:/" for number in range(6)))
    _, _, err = web.crawl()
    said = " ".join(err.split())
    assert "6 URLs on other sites, none of them checked yet (no other site could be reached)" in said
    assert "0 broken" not in said


def test_limits_are_said_and_the_next_run_asks_for_the_rest(web: Web) -> None:
    web.links(*(f"good:/{number}" for number in range(4)), "bad:/x", "other:/y")
    for origin in (web.good, web.bad, web.other):
        origin.others = lambda _: FINE
    _, _, err = web.crawl("--max-external", "3")
    assert "3 left to the next run (max-external)" in " ".join(err.split())
    assert Counter(web.answers().values()) == {"ok": 3, "": 3}
    web.crawl("--max-external", "3")
    assert Counter(web.answers().values()) == {"ok": 6}
    assert {
        number for origin in (web.good, web.bad, web.other) for number in Counter(methods(origin)).values()
    } == {1}
    _, _, err = web.crawl("--max-external-hosts", "1", "--max-external-time", "0")
    assert "not all links to other sites were checked" in err
    code, _, err = web.crawl("--max-external-hosts", "1")
    assert "(max-external-hosts)" in err
    assert code == 0


def test_a_host_with_many_links_leaves_the_others_their_share(web: Web) -> None:
    """Links that a stranger posts are found first, and stay due from night to night."""
    web.links("/page", *(f"bad:/{number}" for number in range(60)))
    web.links(*(f"{name}:/{number}" for number in range(3) for name in ("good", "other")), path="/page")
    for origin in (web.good, web.bad, web.other):
        origin.others = lambda _: FINE
    asked = []
    for _ in range(2):
        web.crawl("--max-external", "20")
        asked.append([len(methods(origin)) for origin in (web.good, web.other, web.bad)])
    assert asked == [[3, 3, 14], [4, 4, 32]]


@pytest.mark.parametrize("refused", [False, True])
def test_a_killed_check_is_continued_also_after_a_refusal(
    web: Web, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    web.links("/a", "good:/ok", "bad:/ok")
    web.good.others = web.bad.others = lambda _: FINE

    def dies(moment: str) -> None:
        if moment == "after commit of store_answers":
            raise MemoryError

    monkeypatch.setattr(failpoints, "hook", dies)
    code, _, _ = web.crawl("--max-external", "1", *(["--min-urls", "100"] if refused else []))
    assert code == 1
    monkeypatch.setattr(failpoints, "hook", None)
    code, _, err = web.crawl()
    assert code == 0
    assert "2 URLs on other sites: 2 answer, 0 broken, 0 unknown" in " ".join(err.split())
    assert methods(web.good) == methods(web.bad) == ["HEAD /ok"], "none is asked twice"
    assert web.crawl()[0] == 0
    assert methods(web.good) == methods(web.bad) == ["HEAD /ok"] * 2, "a check that ended is made anew"


def test_secrets_of_ours_are_sent_to_no_other_site(
    web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOGIN", "ann:s3cret-password")
    cookies = tmp_path / "cookies.txt"
    cookies.write_text("# Netscape HTTP Cookie File\n.example\tTRUE\t/\tFALSE\t0\tsid\ts3cret-cookie\n")
    web.links("good:/ok", "bad:/gone")
    web.good.put("/ok", moved(web.url("bad:/after")))
    web.bad.put("/after", FINE)
    web.crawl(
        "--auth-env", "LOGIN", "--cookie-file", str(cookies), "-H", "X-Token: s3cret-header",
        "--header-for", f"good.example:{web.port} X-Other: s3cret-other", "--report", "r.json", "--metrics-file", "m.prom",
    )  # fmt: skip
    sent = [f"{one.headers}" for origin in (web.good, web.bad) for one in origin.log]
    assert sent
    assert "s3cret" in str([one.headers for one in web.home.log])
    assert not [
        headers for headers in sent if "s3cret" in headers or "cookie" in headers or "authoriz" in headers
    ]
    assert not [headers for headers in sent if "referer" in headers]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != cookies]
    assert not [path for path in written if b"s3cret" in path.read_bytes()]


def test_metrics_count_the_answers(web: Web) -> None:
    web.links("good:/ok", "bad:/gone")
    web.good.put("/ok", FINE)
    web.crawl("--metrics-file", "m.prom")
    text = Path("m.prom").read_text()
    site = f'site="home.example:{web.port}"'
    assert f'sitemap_crawler_external_urls{{{site},answer="ok"}} 1' in text
    assert f'sitemap_crawler_external_urls{{{site},answer="broken"}} 1' in text
    assert f'sitemap_crawler_external_urls{{{site},answer="unasked"}} 0' in text
    assert f'sitemap_crawler_findings{{{site},code="broken-external",severity="error"}} 1' in text


def test_drop_query_cannot_be_combined(web: Web) -> None:
    web.links("good:/watch?v=1")
    code, _, err = web.crawl("--drop-query")
    assert code == 2
    assert "--drop-query" in err
    assert not web.home.log


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--min-urls", "100"), 6), (("--max-pages", "1"), 7), (("--dry-run",), 0), (("--format", "txt"), 0)],
)
def test_links_are_checked_whatever_becomes_of_the_sitemap(
    web: Web, words: tuple[str, ...], code: int
) -> None:
    web.links("/a", "bad:/gone")
    assert web.crawl(*words)[0] == code
    assert web.answers() == {"bad:/gone": "broken:not-found"}


def test_too_little_time_for_the_crawl_leaves_none_for_the_check(web: Web) -> None:
    web.links("/a", "bad:/gone")
    web.home.put("/a", lambda talk: talk.hold(3))
    assert web.crawl("--max-time", "3s", "--timeout", "3")[0] == 7
    assert not web.bad.log


@contextmanager
def secure(address: str, authority: trustme.CA, name: str) -> Iterator[int]:
    """A host that answers 404 over TLS, with a certificate of this authority for `name`; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    origin = Origin(name, address, context=context)
    with serving(origin):
        yield origin.port


def test_certificates_are_verified_whatever_holds_for_our_site(web: Web, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with (
        secure("127.0.70.3", authority, "other.example") as right,
        secure("127.0.70.2", authority, "x.example") as wrong,
    ):
        web.links(
            f"https://other.example:{right}/a",
            f"https://other.example:{right}/b",
            f"https://bad.example:{wrong}/",
        )
        web.crawl("--insecure")
        answers = {row["url"]: row["external"] for row in web.rows("pages", "--only", "unlisted:offsite")}
        assert set(answers.values()) == {"broken:tls"}
        [said] = {
            row["detail"] for row in web.rows("findings", "--only", "broken-external") if "bad" in row["url"]
        }
        assert said.startswith("certificate or TLS handshake failed: ")
        web.crawl("--ca-file", "ca.pem")
        answers = {row["url"]: row["external"] for row in web.rows("pages", "--only", "unlisted:offsite")}
        assert answers == {
            f"https://other.example:{right}/a": "broken:not-found",
            f"https://other.example:{right}/b": "broken:not-found",
            f"https://bad.example:{wrong}/": "broken:tls",
        }


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_interrupted_check_is_kept_and_continued_by_the_next_run(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers so far are stored at once; after a kill, at most those of the last five seconds are asked for again."""
    monkeypatch.chdir(tmp_path)
    home, good, bad = (Origin(name, address) for name, address in list(HOSTS.items())[:3])
    arrived, release = threading.Event(), threading.Event()

    def hold(talk: Talk) -> None:
        arrived.set()
        release.wait(600)
        talk.say(FINE)

    with serving(home, good, bad):
        home.put("/", http(page(good.url("/ok"), good.url("/then"), bad.url("/held"))))
        good.put("/ok", FINE)
        good.put("/then", hold)
        bad.put("/held", hold)
        crawl = ("crawl", home.url("/"), *QUICK, "--timeout", "20")
        first = program.start(crawl)
        assert arrived.wait(600)
        published = Path("sitemaps/sitemap.xml.gz").read_bytes()
        until(lambda: "HEAD /then" in methods(good))  # so the answer before it was read
        first.send_signal(how)
        release.set() if how is signal.SIGKILL else None
        _, err = first.communicate(timeout=600)
        release.set()
        assert first.returncode == (-9 if how is signal.SIGKILL else 128 + how), err
        if how is not signal.SIGKILL:
            assert "the check was interrupted, and the next run continues it" in " ".join(err.split())
        again = program.start(crawl)
        _, err = again.communicate(timeout=600)
        assert again.returncode == 0, err
        assert "3 URLs on other sites: 3 answer, 0 broken, 0 unknown" in " ".join(err.split())
        if how is not signal.SIGKILL:
            assert methods(good).count("HEAD /ok") == 1, "not asked again"
        assert Path("sitemaps/sitemap.xml.gz").read_bytes() == published
        third = program.start(crawl)
        third.communicate(timeout=600)
        assert len(methods(bad)) == 3, "a complete check is made anew"


@pytest.mark.slow
def test_worker_processes_and_a_shared_state_check_links_too(run: Run) -> None:
    """The process that leads asks; each URL once."""
    state = new_state()
    home, good, bad = (Origin(name, address) for name, address in list(HOSTS.items())[:3])
    with serving(home, good, bad):
        links = [good.url(f"/{number}") for number in range(3)]
        home.put("/", http(page("/a", *links)))
        home.put("/a", http(page(bad.url("/gone"))))
        good.others = lambda _: FINE
        words = ("--state", state, "--processes", "2", "--concurrency", "4")
        _, err = run.ok("crawl", home.url("/"), *QUICK, *words)
        assert "4 URLs on other sites: 3 answer, 1 broken, 0 unknown" in " ".join(err.split())
        _, out, _ = run("report", "--state", state, "--fail-on", "broken-external")
    assert "broken-external" in out
    assert sorted(methods(good)) == [f"HEAD /{number}" for number in range(3)]


@pytest.mark.slow
def test_members_leave_the_check_to_their_leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = new_state()
    home, good, bad = (Origin(name, address) for name, address in list(HOSTS.items())[:3])
    with serving(home, good, bad):
        links = [*(good.url(f"/{number}") for number in range(2)), bad.url("/gone")]
        home.put("/", http(page(*(f"/{number}" for number in range(20)), *links)))
        home.others = lambda path: http(page(text=path)) if path[1:].isdigit() else None
        good.others = lambda _: FINE
        crawl = ("crawl", home.url("/"), *QUICK, "--state", state, "--run", "tonight", "--rate", "40")
        members = [program.start(crawl) for _ in range(3)]
        said = [member.communicate(timeout=600)[1] for member in members]
    assert [member.returncode for member in members] == [0, 0, 0], said
    assert sorted(methods(good)) == ["HEAD /0", "HEAD /1"]
    assert methods(bad) == ["HEAD /gone", "GET /gone"]


@pytest.mark.slow
def test_real_pace_between_two_requests_to_a_host(run: Run) -> None:
    home, good = (Origin(name, address) for name, address in list(HOSTS.items())[:2])
    with serving(home, good):
        home.put("/", http(page(good.url("/1"), good.url("/2"))))
        good.others = lambda _: FINE
        began = time.monotonic()  # a busy machine notes the first request late
        run("crawl", home.url("/"), *QUICK)
    assert [one.path for one in good.log] == ["/robots.txt", "/1", "/2"]
    assert good.log[2].at - began > 2 * DELAY
