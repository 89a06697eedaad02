"""IndexNow from end to end, over real sockets: what is due, the key file, each answer of an engine, death between posts."""

import json
import re
import signal
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from crawler.app.state import open_frontier
from crawler.cli.demo.site import Site
from crawler.ports import reads
from crawler.settings.sections import Settings, State
from tests import program
from tests.cli.test_cli import QUICK
from tests.commands import Run
from tests.server import Origin, Talk, http, serving

KEY = "0123abcd-0123abcd"
# At the second of the chosen moments, the process is killed.
FIRST, SECOND = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 5, 5, tzinfo=UTC)


@dataclass
class Engine:
    """A search engine on loopback: what it was sent, and what it answers, the last answer again and again."""

    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=lambda: [(200, {}, b"")])
    origin: Origin = field(default_factory=lambda: Origin("engine", "127.0.0.1"))

    def __post_init__(self) -> None:
        self.origin.put("/indexnow", self._reply)

    @property
    def url(self) -> str:
        return self.origin.url("/indexnow")

    @property
    def posts(self) -> list[dict[str, Any]]:
        assert {asked.method for asked in self.origin.log} <= {"POST"}
        return [json.loads(asked.body) for asked in self.origin.log]

    @property
    def fields(self) -> list[dict[str, str]]:
        return [asked.headers for asked in self.origin.log]

    @property
    def sent(self) -> list[str]:
        return [url for post in self.posts for url in post["urlList"]]

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.answers = [(status, headers, body)]

    def _reply(self, talk: Talk) -> None:
        status, headers, said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        talk.say(http(said, f"{status} x", **headers))


def site_with_key(**changed: str) -> Site:
    site = Site()
    site.page("/", links=["/a", "/b", "/c"], text="home")
    for name in "abc":
        site.page(f"/{name}", text=changed.get(name, f"about {name}"))
    site.raw(f"/{KEY}.txt", body=KEY.encode() + b"\n", headers=[("Content-Type", "text/plain")])
    return site


@dataclass(kw_only=True)
class Case(Engine):
    """The engine, and the program that crawls and submits to it."""

    run: Run

    @property
    def words(self) -> tuple[str, ...]:
        return "--indexnow-key", KEY, "--indexnow-endpoint", self.url, "--retries", "0"

    def crawl(self, origin: str, *words: str) -> str:
        code, _, err = self.run("crawl", origin + "/", *QUICK, *words)
        assert code == 0, err
        return err

    def submit(self, *words: str) -> tuple[int, str, str]:
        return self.run("submit", *self.words, *words)

    def submitted(self, *words: str) -> str:
        code, out, err = self.submit(*words)
        assert code == 0, err
        return out


@pytest.fixture
def case(run: Run) -> Iterator[Case]:
    case = Case(run=run)
    with serving(case.origin):
        yield case


def paths(origin: str, urls: Sequence[str]) -> list[str]:
    return sorted(url.removeprefix(origin) for url in urls)


def told(folder: Path) -> dict[str, str]:
    [state] = (folder / ".sitemap-crawler").glob("*.db")

    async def marks() -> dict[str, str]:
        async with AsyncExitStack() as closing:
            frontier = open_frontier(Settings(state=State(state=str(state))), None, read_only=True)
            closing.push_async_callback(frontier.close)
            chunks = [rows async for rows in frontier.stream(reads.LedgerRows(unchanged=True))]
        return {row.url: row.submitted for rows in chunks for row in rows if row.submitted is not None}

    return anyio.run(marks)


# -- what is due --------------------------------------------------------------------------------------------


def test_the_first_time_only_records_the_listed_pages(case: Case, tmp_path: Path) -> None:
    site = site_with_key()
    with site.serve() as origin:
        case.crawl(origin)
        code, out, err = case.submit(origin, "--dry-run")
        assert (code, told(tmp_path)) == (0, {}), err
        assert "4 listed URLs would be recorded" in out
        out = case.submitted(origin)
        assert "First submission: 4 listed URLs are recorded as known, and nothing is sent" in out
        assert "Google does not take part" in out
        assert len(told(tmp_path)) == 4
        code, out, err = case.submit(origin)
        assert (code, out) == (0, "Nothing changed since the last submission.\n"), err
        assert not site.requests(f"/{KEY}.txt"), "nothing due: no request at all"
    assert case.posts == []


def test_added_changed_and_gone_pages_are_sent_once(case: Case) -> None:
    site = site_with_key()
    site.page("/same", text="same", lastmod=FIRST)
    site.page("/", links=["/a", "/b", "/c", "/same", "/away", "/hidden", "/unlinked"])
    for gone in ("/away", "/hidden", "/unlinked"):
        site.page(gone, text=f"there: {gone}")
    with site.serve() as origin:
        case.crawl(origin)
        case.submitted(origin)
        site.page("/a", text="another text")
        del site.answers["/b"]
        site.redirect("/away", "/a")
        site.page("/hidden", noindex=True)
        site.page("/same", text="same", lastmod=SECOND)  # a date that moved alone is no change
        site.page("/new", text="new")
        site.page("/", links=["/a", "/b", "/c", "/same", "/away", "/hidden", "/new"])
        case.crawl(origin, "--force")
        expected = ["/", "/a", "/away", "/b", "/hidden", "/new", "/unlinked"]
        out = case.submitted(origin, "--dry-run")
        host = origin.removeprefix("http://")
        *shown, _, _ = out.splitlines()
        assert sorted(line.split()[1] for line in shown) == [origin + path for path in expected]
        assert shown.count(f"  added    {origin}/new") == 1
        assert sum(line.startswith("  gone ") for line in shown) == 4
        assert out.splitlines()[7:] == [
            f"7 URLs changed since the last submission (1 added, 2 changed, 4 gone): {host} 7",
            "nothing was sent (--dry-run)",
        ]
        assert [line.split()[0] for line in shown] == ["added", *["changed"] * 2, *["gone"] * 4]
        _, out, _ = case.submit(origin, "--dry-run", "--format", "json")
        due = json.loads(out)
        by_change = {
            change: [one["url"] for one in due["urls"] if one["change"] == change] for change in due["due"]
        }
        assert {change: paths(origin, urls) for change, urls in by_change.items()} == {
            "added": ["/new"], "changed": ["/", "/a"], "gone": ["/away", "/b", "/hidden", "/unlinked"],
        }  # fmt: skip
        assert {change: len(urls) for change, urls in by_change.items()} == due["due"]
        _, lines, _ = case.submit(origin, "--dry-run", "--format", "jsonl")
        assert [json.loads(line) for line in lines.splitlines()[:-1]] == due["urls"]
        assert json.loads(lines.splitlines()[-1]).keys() == due.keys() - {"urls"}
        assert case.posts == []
        out = case.submitted(origin)
        assert f"7 URLs submitted to {case.url.split('/')[2]}" in out
        [post] = case.posts
        assert paths(origin, post["urlList"]) == expected
        assert post["urlList"] == sorted(post["urlList"])
        assert (post["host"], post["key"], post["keyLocation"]) == (host, KEY, f"{origin}/{KEY}.txt")
        assert {fields["content-type"] for fields in case.fields} == {"application/json; charset=utf-8"}
        code, out, _ = case.submit(origin)
        assert (code, out) == (0, "Nothing changed since the last submission.\n")
        case.crawl(origin)
        case.submitted(origin)
    assert len(case.posts) == 1


def test_all_sends_everything_also_the_first_time(case: Case, tmp_path: Path) -> None:
    with site_with_key().serve() as origin:
        case.crawl(origin)
        code, out, err = case.submit(origin, "--all", "--dry-run")
        assert (code, told(tmp_path)) == (0, {}), err
        assert "4 URLs changed since the last submission (4 added)" in out
        case.submitted(origin, "--all")
        assert paths(origin, case.sent) == ["/", "/a", "/b", "/c"]
        code, out, _ = case.submit(origin, "--all")
        assert "4 URLs to submit, all that are listed" in out
        assert len(case.sent) == 8
        assert case.submit(origin)[1] == "Nothing changed since the last submission.\n"


NAMES = [f"/page-{number}" for number in range(24)]


def dated(
    site: Site,
    nonce: int = 0,
    at: datetime = FIRST,
    names: Sequence[str] = NAMES,
    versions: Mapping[str, tuple[str, datetime]] = MappingProxyType({}),
) -> None:
    """Pages with a date that is believed: of most of them the bytes alone are known at first."""
    for name in ("/", *names):
        text, moved = versions.get(name.strip("/"), ("text", at))
        site.page(
            name,
            links=names if name == "/" else (),
            text=f"<p>{name} {text}</p>",
            head=f"<!-- {nonce} -->",
            lastmod=moved,
            headers={"ETag": f'"{nonce} {text} {moved}"'},
        )


def bare_of(folder: Path, origin: str) -> list[str]:
    """The pages in the ledger that are known by their bytes."""
    return [url.removeprefix(origin) for url, mark in told(folder).items() if mark.startswith("=")]


def test_other_bytes_are_a_change_only_with_a_later_date(case: Case, tmp_path: Path) -> None:
    site = site_with_key()
    dated(site)
    with site.serve() as origin:
        case.crawl(origin)
        case.submit(origin)
        bare = bare_of(tmp_path, origin)
        assert len(bare) > 8, "most pages are known by their bytes"
        changed, touched, other = (name.strip("/") for name in bare[:3])
        # New bytes on all pages, the same text on most, a new date on two.
        dated(site, 1, FIRST, versions={changed: ("news", SECOND), touched: ("text", SECOND)})
        case.crawl(origin)
        out = case.submitted(origin)
        assert paths(origin, case.sent) == sorted([f"/{changed}", f"/{touched}"])
        assert "other pages came with different bytes but no later date" in out
        # Now the text of each is known: neither a new date nor new bytes count any more.
        assert bare_of(tmp_path, origin) == []
        dated(site, 2, SECOND, versions={other: ("news", FIRST), changed: ("news", SECOND)})
        case.crawl(origin)
        out = case.submitted(origin)
        assert "other bytes" not in out
    assert paths(origin, case.sent[2:]) == [f"/{other}"]


def test_a_deploy_that_touches_all_pages_is_no_change(case: Case) -> None:
    """New bytes and a new date everywhere: the pages that are always fingerprinted convict the dates."""
    site = site_with_key()
    names = [f"/page-{number}" for number in range(80)]  # of which more than ten are fingerprinted
    dated(site, names=names)
    with site.serve() as origin:
        case.crawl(origin)
        case.submit(origin)
        dated(site, 1, SECOND, names)
        case.crawl(origin)
        out = case.submitted(origin)
    assert out.startswith("Nothing changed since the last submission.")
    assert case.posts == []


def test_the_ledger_waits_for_a_published_run(case: Case) -> None:
    site = site_with_key()
    with site.serve() as origin:
        code, _, err = case.run("crawl", origin + "/", *QUICK, "--max-pages", "1")
        assert code == 7
        code, _, err = case.submit(origin)
        assert (code, "run 1 is not complete and published" in err) == (7, True), err
        case.crawl(origin)
        case.submit(origin)
        for name in "abc":
            del site.answers[f"/{name}"]
        assert case.run("crawl", origin + "/", *QUICK)[0] == 6
        code, _, err = case.submit(origin)
        assert (code, "the publish guard refused run 2" in err) == (6, True)
        site.raw("/", status=404)
        assert case.run("crawl", origin + "/", *QUICK)[0] == 4
        code, _, err = case.submit(origin)
        assert (code, "run 3 is not complete and published" in err) == (7, True), "no page is gone"
    assert case.posts == []


def test_urls_are_sent_in_their_published_form(case: Case) -> None:
    site, public = site_with_key(), site_with_key()
    with site.serve() as copy, public.serve("127.0.0.2") as base:
        words = (copy, "--allow-address", "127.0.0.0/8")
        case.crawl(copy, "--publish-base", base)
        case.submitted(*words)
        site.page("/a", text="another text")
        case.crawl(copy, "--publish-base", base)
        case.submitted(*words)
        assert case.sent == [f"{base}/a"]
        assert public.requests(f"/{KEY}.txt") == 1, "the key is asked for where the site is published"
        assert not site.requests(f"/{KEY}.txt")
        out = case.submitted(*words, "--publish-base", "https://www.example.com")
        assert "First submission: 4 listed URLs" in out, "another base is another ledger"
    assert len(case.posts) == 1


def test_pages_outside_another_scope_are_not_gone(case: Case, tmp_path: Path) -> None:
    site = site_with_key()
    site.page("/", links=["/a", "/docs/"])
    site.page("/docs/", links=["/docs/a", "/docs/b"])
    site.page("/docs/a")
    site.page("/docs/b")
    with site.serve() as origin:
        case.crawl(origin)
        case.submitted(origin)
        folder = ("--scope", "path", "-o", "docs", "--force")
        case.crawl(origin + "/docs", *folder)
        code, out, err = case.submit(origin)
        assert (code, out) == (0, "Nothing changed since the last submission.\n"), err
        assert paths(origin, list(told(tmp_path))) == ["/docs/", "/docs/a", "/docs/b"]
        site.page("/docs/", links=["/docs/a"])
        case.crawl(origin + "/docs", *folder)
        case.submitted(origin)
    assert paths(origin, case.sent) == ["/docs/", "/docs/b"], "in the same scope it is gone"


def test_two_hosts_are_two_posts_and_each_needs_the_key(case: Case) -> None:
    site, other = site_with_key(), site_with_key()
    with site.serve() as origin, other.serve("127.0.0.3", int(origin.rpartition(":")[2])) as second:
        site.page("/", links=["/a", f"{second}/", f"{second}/b"])
        case.crawl(origin, "--allow-host", second.removeprefix("http://"), "--allow-address", "127.0.0.0/8")
        words = (origin, "--allow-address", "127.0.0.0/8", "--all")
        key = other.answers.pop(f"/{KEY}.txt")
        code, _, err = case.submit(*words)
        assert code == 2
        assert f"The key file {second}/{KEY}.txt answers 404" in err
        assert case.posts == [], "nothing is sent before every key was found"
        other.answers[f"/{KEY}.txt"] = key
        case.submitted(*words)
        hosts = [post["host"] for post in case.posts]
        assert hosts == [origin.removeprefix("http://"), second.removeprefix("http://")]
        assert [paths(post["keyLocation"].removesuffix(f"/{KEY}.txt"), post["urlList"]) for post in case.posts] == [
            ["/", "/a"], ["/", "/a", "/b", "/c"],
        ]  # fmt: skip


# -- the key file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Site.answer(404), "answers 404"),
        (Site.answer(301, headers=[("Location", "http://10.0.0.1/key")]), "is a redirect (301) to http://10.0.0.1/key"),
        (Site.answer(200, b"<!doctype html>\x1b[2Jhome"), r'holds "<!doctype html>\x1b[2Jhome" instead of the key'),
        (Site.answer(200, KEY.encode() + b"x" * 1_000_000), f'holds "{KEY}xxx'),
        (Site.answer(200), 'holds "" instead of the key'),
        (Site.answer(200, b"\xff\xfe\x00k"), 'holds "'),
    ],
    ids=["missing", "redirect", "html", "huge", "empty", "binary"],
)  # fmt: skip
def test_without_a_good_key_file_nothing_is_sent(case: Case, answer: Any, said: str) -> None:
    site = site_with_key()
    site.respond(f"/{KEY}.txt", lambda _: answer)
    with site.serve() as origin:
        case.crawl(origin)
        code, out, err = case.submit(origin, "--all")
    assert code == 2
    assert f"The key file {origin}/{KEY}.txt {said}" in err
    assert "\x1b" not in out + err
    assert "Nothing was submitted." in err
    assert len(err) < 700
    assert case.posts == []


def test_a_key_file_elsewhere_counts_for_its_folder(case: Case) -> None:
    site = site_with_key()
    site.raw("/docs/key.txt", body=KEY.encode(), headers=[("Content-Type", "text/plain")])
    site.page("/docs/", links=["/docs/a"])
    site.page("/docs/a")
    with site.serve() as origin:
        case.crawl(origin + "/docs", "--scope", "path", "--state", "docs.db", "-o", "docs")
        words = ("--indexnow-key-location", f"{origin}/docs/key.txt", "--all")
        case.submitted("--state", "docs.db", *words)
        assert case.posts[0]["keyLocation"] == f"{origin}/docs/key.txt"
        case.crawl(origin)
        code, _, err = case.submit(origin, *words)
        assert code == 2
        assert f"{origin}/ is not: put it at the root" in err
    assert len(case.posts) == 1


def test_a_new_key_is_written_where_the_sitemap_is(case: Case, tmp_path: Path) -> None:
    code, _, err = case.run("submit", "https://www.example.com/", "--new-key", "--dry-run", "-o", "made")
    assert (code, "leave out --dry-run" in err, Path("made").exists()) == (2, True, False)
    code, out, err = case.run("submit", "https://www.example.com/", "--new-key", "-o", "made")
    assert code == 0, err
    key = out.splitlines()[0]
    assert re.fullmatch(r"[0-9a-f]{32}", key)
    assert (tmp_path / f"made/{key}.txt").read_text() == key
    assert f"https://www.example.com/{key}.txt" in out
    site = site_with_key()
    with site.serve() as origin:
        case.crawl(origin)
        code, out, err = case.run("submit", "--new-key")
        key = out.splitlines()[0]
        assert f"reachable at {origin}/{key}.txt" in out
        site.raw(f"/{key}.txt", body=(tmp_path / f"sitemaps/{key}.txt").read_bytes())
        case.crawl(origin)
        assert (tmp_path / f"sitemaps/{key}.txt").exists(), "a publication leaves it alone"
        words = ("--indexnow-key", key, "--indexnow-endpoint", case.url)
        assert case.run("submit", *words, "--all")[0] == 0
    assert len(case.sent) == 4


# -- the engine ---------------------------------------------------------------------------------------------

HOSTILE = b"\x1b[2J\x1b]0;owned\x07 line one\nline two \xe2\x80\xae reversed " + b"x" * 5_000_000


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "said"),
    [
        (200, {}, b"", 0, "submitted to"),
        (202, {}, b"", 0, "the key is still to be checked there"),
        (204, {}, b"", 0, "submitted to"),
        (200, {}, HOSTILE, 0, "submitted to"),
        (400, {}, b"bad", 2, '(400): the request is not valid. It says: "bad".'),
        (403, {}, b"", 2, "(403): the key was not found, or is not the one in the file."),
        (422, {}, b"", 2, "(422): the URLs do not belong to the host, or the key is not valid."),
        (404, {}, b"", 2, "(404): it does not take submissions there."),
        (400, {}, HOSTILE, 2, r'It says: "\x1b[2J\x1b]0;owned\x07 line one line two \u202e reversed xxx'),
        (400, {"Content-Encoding": "gzip"}, b"not gzip", 2, "(400): the request is not valid."),
        (302, {"Location": "http://10.0.0.1/x"}, b"", 2, "a redirect (302) to http://10.0.0.1/x, which is not followed"),
        (429, {"Retry-After": "7200"}, b"", 7, "did not accept the URLs (429, Retry-After 7200): the next submission sends the rest."),
        (429, {}, b"slow down", 7, '(429): the next submission sends the rest. It says: "slow down".'),
        (503, {}, b"", 7, "did not accept the URLs (503): the next submission sends the rest."),
        (500, {"Retry-After": "soon \u00ff"}, b"", 7, "did not accept the URLs (500, Retry-After soon"),
        (500, {"Retry-After": "\x1b[31m"}, b"", 7, "could not be reached (invalid HTTP response"),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, int) else "",
)  # fmt: skip
def test_each_answer_of_an_engine(
    case: Case, tmp_path: Path, status: int, headers: dict[str, str], body: bytes, code: int, said: str
) -> None:
    case.answer(status, body, **headers)
    with site_with_key().serve() as origin:
        case.crawl(origin)
        got, out, err = case.submit(origin, "--all")
        assert (got, said in out + err) == (code, True), out + err
        assert "\x1b" not in out + err
        assert len(err) < 1_200
        assert len(told(tmp_path)) == (4 if code == 0 else 0), (
            "the ledger knows what was accepted, and no more"
        )
        assert len(case.posts) == 1
        case.answer(200)
        again = case.submit(origin)
        assert again[0] == 0, again[2]
        assert len(case.posts) == (1 if code == 0 else 2)


def test_a_failure_that_may_pass_is_retried(case: Case) -> None:
    case.answers = [(500, {}, b""), (429, {"Retry_After": "6"}, b""), (200, {}, b"")]
    with site_with_key().serve() as origin:
        case.crawl(origin)
        words = (origin, "--retries", "2", "--all", "--max-wait", "5")
        code, _, err = case.submit(*words)
        assert (code, len(case.posts)) == (7, 2), "longer than --max-wait"
        code, _, err = case.submit(*words)
        assert (code, len(case.posts)) == (0, 3), err


@pytest.mark.usefixtures("hurried")
def test_retries_of_a_submission_are_logged(case: Case) -> None:
    case.answers = [(500, {}, b""), (503, {"Retry_After": "6"}, b""), (200, {}, b"")]
    with site_with_key().serve() as origin:
        case.crawl(origin)
        code, _, err = case.submit(origin, "--retries", "2", "--all", "--log-format", "json")
    assert code == 0, err
    told = [json.loads(line) for line in err.splitlines() if "trying again" in line]
    assert [(one["url"], one["because"], one["attempt"]) for one in told] == [
        (case.url, "status 500", 2), (case.url, "status 503", 2),
    ]  # fmt: skip


def test_an_engine_that_is_not_there_is_exit_7(case: Case) -> None:
    with site_with_key().serve() as origin:
        case.crawl(origin)
        code, _, err = case.submit(origin, "--all", "--indexnow-endpoint", "http://127.0.0.1:9/")
        assert code == 7
        assert "could not be reached" in err
        words = ("--indexnow-endpoint", "http://127.0.0.1:1/x", "--proxy", case.url)
        code, _, err = case.submit(origin, "--all", *words)
        assert code in {2, 7}


def test_no_credentials_are_sent_with_a_submission(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SITE_LOGIN", "user:very-secret")
    (tmp_path / "settings.toml").write_text(
        '[http]\nauth-env = "SITE_LOGIN"\nheader = ["X-Key: very-secret"]\n'
    )
    site = site_with_key()
    with site.serve() as origin:
        words = ("--config", "settings.toml")
        case.crawl(origin, *words)
        case.crawl(origin, *words, *case.words, "--submit")
        site.page("/a", text="another")
        case.crawl(origin, *words, *case.words, "--submit")
        assert any("very-secret" in str(asked.headers) for asked in site.log)
        asked = [
            asked for asked in site.log if asked.target.endswith(".txt") and "robots" not in asked.target
        ]
        assert len(asked) == 1
        assert not any({"Authorization", "X-Key"} & set(one.headers) for one in asked)
    assert len(case.fields) == 1
    assert not {"authorization", "x-key", "cookie"} & set(case.fields[0])


# -- crawl --submit -----------------------------------------------------------------------------------------


def counts(metrics: Path) -> dict[str, int]:
    found = re.findall(r'submitted_urls{.*result="(\w+)"} (\d+)', metrics.read_text())
    return {result: int(count) for result, count in found}


def test_a_crawl_submits_after_its_publication(case: Case, tmp_path: Path) -> None:
    site = site_with_key()
    with site.serve() as origin:
        words = ("--submit", *case.words, "--metrics-file", "m.prom")
        assert "4 listed URLs are recorded" in case.crawl(origin, *words)
        assert counts(tmp_path / "m.prom") == {"accepted": 0, "left": 0, "noted": 4}
        assert "Nothing changed since the last submission." in case.crawl(origin, *words)
        site.page("/a", text="another")
        case.crawl(origin, *words, "--dry-run")
        assert case.posts == []
        case.answer(503)
        code, _, err = case.run("crawl", origin + "/", *QUICK, *words)
        assert code == 7
        assert "Published" in err or "Nothing changed" in err
        assert "did not accept the URLs (503)" in err
        assert counts(tmp_path / "m.prom") == {"accepted": 0, "left": 1, "noted": 0}
        case.answer(200)
        err = case.crawl(origin, *words)
        assert "1 URL changed since the last submission (1 changed)" in err
        assert "1 URL submitted to" in err
        assert counts(tmp_path / "m.prom") == {"accepted": 1, "left": 0, "noted": 0}
        assert case.posts[-1]["urlList"] == [f"{origin}/a"]
        for name in "abc":
            del site.answers[f"/{name}"]
        assert case.run("crawl", origin + "/", *QUICK, *words)[0] == 6
    assert len(case.posts) == 2, "never after a refusal"


def test_the_json_log_has_the_numbers(case: Case) -> None:
    with site_with_key().serve() as origin:
        words = ("--submit", *case.words, "--log-format", "json")
        _, _, err = case.run("crawl", origin + "/", *QUICK, *words)
        done = json.loads(err.splitlines()[-1])
        assert done["submission"]["noted"] == 4
        code, out, _ = case.submit(origin, "--all", "--format", "json")
        assert code == 0
        assert json.loads(out) == {
            "due": {"again": 4}, "hosts": {origin.removeprefix("http://"): 4}, "submitted": 4, "pending": False,
            "noted": None, "unsure": 0, "dry_run": False,
        }  # fmt: skip


def test_failing_finding_keeps_exit_code_if_submission_fails_too(case: Case) -> None:
    site = site_with_key()
    site.page("/", links=["/a", "/b", "/c", "/broken"])
    case.answer(503)
    with site.serve() as origin:
        words = ("--submit", *case.words, "--fail-on", "broken-link")
        assert case.run("crawl", origin + "/", *QUICK, *words)[0] == 8
        site.page("/a", text="another")
        code, _, err = case.run("crawl", origin + "/", *QUICK, *words)
    assert code == 8
    assert "did not accept the URLs (503)" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--submit",), "To submit, set --indexnow-key"),
        (("--submit", "--indexnow-key", KEY, "--state", ":memory:"), "cannot be :memory:"),
        (("--submit", "--indexnow-key", "short"), "must be 8 to 128 letters, digits and hyphens"),
        (("--indexnow-endpoint", "ftp://x/"), "must be a URL such as"),
        (("--indexnow-endpoint", "https://user:secret@engine.example/"), "must be a URL such as"),
    ],
)
def test_settings_of_a_submission_are_checked_before_the_crawl(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    site = site_with_key()
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *words)
    assert (code, said in err, site.log) == (2, True, []), err
    assert "secret" not in err


# -- size, and death ----------------------------------------------------------------------------------------


def many(state: Path, origin: str, count: int) -> None:
    """Add listed pages to the newest run of a state that was crawled."""
    with closing(sqlite3.connect(state)) as db, db:
        db.executemany(
            "INSERT INTO url (url, run, depth, hops) VALUES (?, 1, 1, 0)",
            ((f"{origin}/page-{number:06}",) for number in range(count)),
        )
        db.execute(
            "INSERT INTO page (id, outcome, content, settled) "
            "SELECT id, 'listed', printf('%016x', id), 0 FROM url WHERE url LIKE '%/page-______'"
        )
        db.execute("UPDATE member SET discovered = discovered + ?", (count,))
        db.execute("DELETE FROM checksum")  # that of the file before


def test_25_001_urls_are_three_posts(case: Case, tmp_path: Path) -> None:
    with site_with_key().serve() as origin:
        case.crawl(origin, "--state", "s.db")
        many(tmp_path / "s.db", origin, 24_997)
        out = case.submitted("--state", "s.db", "--all")
    assert "25,001 URLs submitted" in out
    assert [len(post["urlList"]) for post in case.posts] == [10_000, 10_000, 5_001]
    assert case.sent == sorted(set(case.sent))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before commit of enter", "after commit of enter"])
def test_death_between_two_posts_repeats_at_most_one_batch(case: Case, tmp_path: Path, moment: str) -> None:
    with site_with_key().serve() as origin:
        case.crawl(origin, "--state", "s.db")
        many(tmp_path / "s.db", origin, 24_997)
        state = str(tmp_path / "s.db")
        words = ("submit", "--state", state, *case.words)
        died = program.run([*words, "--all"], dies=moment, turn=2)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert len(case.posts) == 2
        done = program.run(words)
        assert done.returncode == 0, done.stderr
    repeated = len(case.sent) - len(set(case.sent))
    assert repeated == (10_000 if moment.startswith("before") else 0)
    assert len(set(case.sent)) == 25_001
    assert [len(post["urlList"]) for post in case.posts][-1] == 5_001


@pytest.mark.slow
@pytest.mark.parametrize("command", ["submit", "crawl"])
def test_a_signal_ends_a_submission_that_waits(case: Case, tmp_path: Path, command: str) -> None:
    site = site_with_key()
    with site.serve() as origin:
        state = ("--state", str(tmp_path / "s.db"))
        case.crawl(origin, *state)
        case.submitted(*state)
        site.page("/a", text="another")
        words: tuple[str, ...] = ("crawl", origin + "/", *QUICK, *state, "-o", str(tmp_path / "sitemaps"))
        if command == "submit":
            case.crawl(origin, *state)
            words = ("submit", *state)
        case.answer(429, Retry_After="500")
        more = ("--submit",) if command == "crawl" else ()
        watch = (
            "import os, signal, crawler.app.submission as s\n"
            "real = s.anyio.sleep\n"
            "async def sleep(seconds):\n"
            "    if seconds > 100: os.kill(os.getpid(), signal.SIGTERM)\n"
            "    await real(seconds)\n"
            "s.anyio.sleep = sleep\n"
        )
        done = program.run([*words, *case.words, "--retries", "1", *more], patch=watch)
        assert done.returncode == 143, done.stderr
        case.answer(200)
        case.submitted(*state)
        assert len(case.posts) == 2
        assert case.posts[1]["urlList"] == [f"{origin}/a"], "what was interrupted is due"


def test_engine_at_private_address_is_not_asked_unless_named(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that turns the default engine into an address of the local network."""
    real = anyio.getaddrinfo

    async def turned(host: Any, port: Any, **more: Any) -> Any:
        return await real("127.0.0.1" if host == "api.indexnow.org" else host, port, **more)

    monkeypatch.setattr("crawler.fetch.address_guard.anyio.getaddrinfo", turned)
    with site_with_key().serve() as origin:
        case.crawl(origin)
        code, _, err = case.run("submit", origin, "--indexnow-key", KEY, "--retries", "0", "--all")
    assert code == 7
    assert "api.indexnow.org could not be reached (private address or blocked port" in err
    assert case.posts == []
