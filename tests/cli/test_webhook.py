"""`--webhook-env` and `--webhook-when`: real crawls, a receiver on loopback that answers in every bad way, and a secret."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme

from crawler.app import webhook
from crawler.app.state import open_frontier
from crawler.app.webhook import ENDS, is_due, text
from crawler.cli.demo.site import Site
from crawler.errors import Exit
from crawler.model.rows import PublicationRow
from crawler.report.catalogue import Code
from crawler.report.report import Finding
from crawler.settings.sections import Settings, State
from tests.commands import Run
from tests.server import Answer, LoggedRequest, Origin, Talk, serving, taken_port

SECRET = "s3cr3t-T0KEN-5f2a"
QUICK = ("--rate", "0", "--retries", "0", "--state", "crawl.db", "--webhook-env", "HOOK")
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Receiver:
    """Takes posts and answers each with `answer`."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answer: Answer = GOOD
        self._origin = Origin("hook", "127.0.0.1", others=lambda _: self.answer, context=context)
        self._serving = ExitStack()
        self._serving.enter_context(serving(self._origin))

    @property
    def url(self) -> str:
        return self._origin.url(f"/hooks/{SECRET}?token={SECRET}")

    @property
    def posts(self) -> list[LoggedRequest]:
        return self._origin.log

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(post.body) for post in self.posts]

    def close(self) -> None:
        self._serving.close()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    receiver = Receiver()
    monkeypatch.setenv("HOOK", receiver.url)
    monkeypatch.setattr(webhook, "PAUSE", 0.0)
    yield receiver
    receiver.close()


def shop() -> Site:
    site = Site()
    site.page("/", links=["/a", "/b", "/c"])
    for name in "abc":
        site.page(f"/{name}", text=f"<p>{name} has a text of its own</p>")
    return site


def breaks(site: Site, *names: str) -> None:
    site.page("/", links=["/a", "/b", "/c", *names])


# -- when ---------------------------------------------------------------------------------------------------


def test_a_successful_run_sends_no_message_unless_asked_to(run: Run, hook: Receiver) -> None:
    with shop().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)
        assert hook.posts == []
        run.ok("crawl", origin + "/", *QUICK, "--webhook-when", "change")
        assert hook.posts == [], "nothing changed"
        run.ok("crawl", origin + "/", *QUICK, "--webhook-when", "always")
    [post], [body] = hook.posts, hook.bodies
    assert (post.method, post.path) == ("POST", f"/hooks/{SECRET}?token={SECRET}")
    assert post.headers["content-type"].startswith("application/json")
    assert body["text"].splitlines()[0] == f"sitemap-crawler: run 3 of `{origin}/` is complete (exit 0)"
    assert "4 listed" in body["text"]
    assert body["report"]["run"]["exit"] == 0
    assert body["report"]["sitemap"]["urls"] == 4


def test_new_errors_are_reported_once(run: Run, hook: Receiver) -> None:
    site = shop()
    with site.serve() as origin:
        run("crawl", origin + "/", *QUICK)
        breaks(site, *(f"/gone{n}" for n in range(9)))
        run.ok("crawl", origin + "/", *QUICK, "--max-failed", "1")
        run.ok("crawl", origin + "/", *QUICK, "--max-failed", "1")
    [body] = hook.bodies
    lines = body["text"].splitlines()
    assert lines[2] == "New errors: broken-link 9"
    assert lines[3] == f"• 404 `{origin}/gone0`, linked from 1 page"
    assert len(lines) == 3 + 5
    assert "items" not in json.dumps(body["report"])
    [broken] = [finding for finding in body["report"]["findings"] if finding["code"] == "broken-link"]
    assert (broken["count"], broken["new"]) == (9, 9)


def test_a_change_of_the_sitemap_is_reported_if_asked(run: Run, hook: Receiver) -> None:
    site = shop()
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--webhook-when", "change")
        run(*words)
        site.page("/d", text="<p>new</p>")
        breaks(site, "/d")
        run(*words)
    assert [body["report"]["sitemap"]["added"] for body in hook.bodies] == [4, 1]


@pytest.mark.parametrize(
    ("worsen", "words", "code", "says"),
    [
        (lambda site: site.respond("/", lambda _: Site.answer(500)), (), 4, "the start URL is unreachable (exit 4)"),
        (lambda site: site.page("/"), (), 6, "was refused by the publish guard; the old sitemap stays (exit 6)"),
        (lambda _: None, ("--max-pages", "1", "--exclude", "/none"), 7, "is not complete"),
        (lambda _: None, ("--report", "nowhere/x.html"), 2, "wrong settings (exit 2)"),
        (lambda _: None, ("--metrics-file", "x" * 250 + ".prom"), 3, "could not be written or read (exit 3)"),
        (lambda site: breaks(site, "/gone"), ("--fail-on", "broken-link"), 8, "that --fail-on names (exit 8)"),
    ],
    ids=["unreachable", "refused", "limit", "usage", "metrics", "findings"],
)  # fmt: skip
def test_a_bad_end_is_reported(
    run: Run, hook: Receiver, worsen: Callable[[Site], None], words: tuple[str, ...], code: int, says: str
) -> None:
    site = shop()
    with site.serve() as origin:
        run("crawl", origin + "/", *QUICK)
        worsen(site)
        assert run("crawl", origin + "/", *QUICK, *words)[0] == code
    [body] = hook.bodies
    first, *rest = body["text"].splitlines()
    assert says in first
    assert len(rest) <= 3
    assert (body["report"] is None) == (code == 2)
    if code == 6:
        assert rest[0].startswith("`URLs listed: 1, where 4 are published"), "the sentence of the guard"


def test_a_metrics_port_in_use_is_reported(run: Run, hook: Receiver) -> None:
    with shop().serve() as origin, taken_port() as port:
        words = ("crawl", origin + "/", *QUICK, "--metrics-port", str(port), "--metrics-file", "m.prom")
        assert run(*words)[0] == 3
    [body] = hook.bodies
    assert "another program listens there" in body["text"]
    assert "sitemap_crawler_exit_code{" in Path("m.prom").read_text()


def test_a_wrong_metrics_file_is_reported_and_not_written(run: Run, hook: Receiver) -> None:
    assert run("crawl", "http://127.0.0.1:1/", *QUICK, "--metrics-file", "m.txt")[0] == 2
    assert hook.posts == [], "wrong from the beginning: whoever set it up sees it"
    assert not Path("m.txt").exists()


def test_a_run_that_finds_another_at_work_sends_nothing(run: Run, hook: Receiver) -> None:
    other = open_frontier(Settings(state=State(state="crawl.db")), None)
    with shop().serve() as origin:
        code = run("crawl", origin + "/", *QUICK)[0]
    anyio.run(other.close)
    assert (code, hook.posts) == (9, [])


NEW = Finding(Code.BROKEN_LINK, 1, new=1)
CHANGED = PublicationRow(5, added=0, removed=0, changed=1)


@pytest.mark.parametrize(
    ("when", "code", "findings", "published", "due"),
    [
        ("problem", Exit.OK, [], CHANGED, False),
        ("problem", Exit.OK, [NEW], None, True),
        ("problem", Exit.OK, [Finding(Code.BROKEN_LINK, 9)], None, False),
        ("problem", Exit.OK, [Finding(Code.REDIRECT_CHAIN, 9, new=9)], None, False),
        *(("problem", code, [], None, True) for code in Exit if code is not Exit.OK),
        ("change", Exit.OK, [], CHANGED, True),
        ("change", Exit.OK, [], PublicationRow(5), True),
        ("change", Exit.OK, [], PublicationRow(5, added=0, removed=0, changed=0), False),
        ("change", Exit.OK, [], None, False),
        ("always", Exit.OK, [], None, True),
    ],
)  # fmt: skip
def test_when_a_message_is_due(
    when: str, code: Exit, findings: list[Finding], published: PublicationRow | None, *, due: bool
) -> None:
    assert is_due(when, code, findings, published) is due


def test_every_exit_code_has_words() -> None:
    assert set(ENDS) == set(Exit)


# -- a receiver that is ill ---------------------------------------------------------------------------------


def endless(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    while not talk.gone.is_set():
        talk.say(b"x" * 65_536)


BAD: dict[str, tuple[Answer, int, str]] = {
    "500": (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 3, "it answered 500"),
    "429": (b"HTTP/1.1 429 Oh\r\nContent-Length: 0\r\n\r\n", 3, "it answered 429"),
    "404": (b"HTTP/1.1 404 Oh\r\nContent-Length: 0\r\n\r\n", 1, "it answered 404"),
    "redirect": (
        b"HTTP/1.1 302 Oh\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        1,
        "it answered 302",
    ),
    "reset": (Talk.reset, 3, "closed in the middle"),
    "closed": (Talk.close, 3, "closed in the middle"),
    "garbage": (b"SSH-2.0-OpenSSH\r\n", 3, "invalid HTTP response"),
    "huge": (endless, 1, ""),
}


@pytest.mark.parametrize("case", BAD)
def test_a_failing_receiver_is_a_warning_and_no_exit_code(run: Run, hook: Receiver, case: str) -> None:
    hook.answer, tries, says = BAD[case]
    with shop().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always", "--log-format", "json")
    assert code == 0
    assert len(hook.posts) == tries
    told = [json.loads(line) for line in err.splitlines() if "not delivered" in line]
    assert [(one["level"], one["variable"]) for one in told] == ([("warning", "HOOK")] if says else [])
    assert all(says in one["because"] for one in told)
    again = [json.loads(line) for line in err.splitlines() if "trying again" in line]
    assert [one["attempt"] for one in again] == list(range(2, tries + 1))
    assert {one["url"] for one in again} <= {hook.url.partition("/hooks")[0]}
    assert SECRET not in err


def test_a_receiver_that_hangs(run: Run, hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "SECONDS", 0.3)
    hook.answer = Talk.hold
    with shop().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always")
    assert code == 0
    assert "was not delivered: timed out" in err


def test_a_receiver_that_is_not_there(run: Run, hook: Receiver) -> None:
    hook.close()
    with shop().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always")
    assert code == 0
    assert "the message to the URL in HOOK was not delivered: could not connect" in err


@pytest.mark.parametrize("more", [(), ("--insecure",)], ids=["", "insecure"])
def test_a_certificate_that_is_not_trusted(
    run: Run, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Also with --insecure: that is for the crawled site, and the URL of the hook is a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    receiver = Receiver(context)
    monkeypatch.setenv("HOOK", receiver.url)
    try:
        with shop().serve() as origin:
            code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always", *more)
    finally:
        receiver.close()
    assert code == 0
    assert receiver.posts == []
    assert "was not delivered: certificate or TLS handshake failed" in err


def test_a_bug_in_the_delivery_is_a_warning(
    run: Run, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(hook.url)

    monkeypatch.setattr(webhook, "fetcher_of", broken)
    with shop().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always")
    assert code == 0
    assert "not delivered: RuntimeError" in err
    assert SECRET not in err


# -- the URL is a secret ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "the variable HOOK is not set"),
        (f"ftp://example.com/{SECRET}", "does not hold an http or https URL"),
        (f"https://user:{SECRET}@example.com/", "does not hold an http or https URL"),
        (f"{SECRET}", "does not hold an http or https URL"),
    ],
    ids=["absent", "scheme", "password", "none"],
)
def test_a_wrong_variable_is_reported_before_the_crawl(
    run: Run, monkeypatch: pytest.MonkeyPatch, value: str | None, says: str
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    if value is not None:
        monkeypatch.setenv("HOOK", value)
    site = shop()
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK)
    assert (code, site.log) == (2, [])
    assert says in err
    assert SECRET not in err


def test_an_empty_variable_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As compose sets one that is absent."""
    monkeypatch.setenv("HOOK", "")
    with shop().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--webhook-when", "always")
    assert code == 0
    assert "no messages are sent: the variable is empty variable=HOOK" in err


def test_the_secret_itself_instead_of_its_variable(run: Run) -> None:
    err = run.fails(2, "crawl", "http://127.0.0.1:9/", "--webhook-env", f"https://hooks.example.com/{SECRET}")
    assert "must be the name of an environment variable, not its value" in err
    assert SECRET not in err


@pytest.mark.slow
@pytest.mark.parametrize("answer", [GOOD, Talk.reset], ids=["delivered", "failed"])
def test_the_url_appears_nowhere(
    run: Run, hook: Receiver, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.answer = answer
    monkeypatch.setenv("LOGIN", f"user:{SECRET}")
    site = shop()
    outs = list[tuple[str, str]]()
    with site.serve() as origin:
        for more in (("-v",), ("-v", "--log-format", "json"), ("--max-pages", "1"), ("--report", "n/x.html")):
            breaks(site, f"/gone{len(outs)}")
            words = (
                *("crawl", origin + "/", *QUICK, "--webhook-when", "always", "--metrics-file", "m.prom"),
                *(
                    "--auth-env",
                    "LOGIN",
                    "--report",
                    "r.html",
                    "--report",
                    "r.json",
                    "--report",
                    "r.md",
                    *more,
                ),
            )
            outs.append(run(*words)[1:3])
        outs += [
            run(*words)[1:] for words in (("config",), ("report", "--state", "crawl.db", "--format", "json"))
        ]
    assert len(hook.posts) >= 4
    assert not any({"authorization", "cookie"} & set(post.headers) for post in hook.posts)
    assert SECRET not in json.dumps(hook.bodies)
    assert SECRET not in repr(outs)
    found = [path for path in Path().rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert found == []
    assert {"r.html", "r.json", "r.md", "m.prom", "crawl.db"} <= {path.name for path in Path().iterdir()}


# -- what the message says ----------------------------------------------------------------------------------


def test_hostile_urls_cannot_inject_markup_into_the_message(run: Run, hook: Receiver) -> None:
    evil = [
        "/@channel",
        "/<!here>",
        "/`</code>`",
        "/*bold*?x=`@all`",
        "/\u202egnp.exe",
        "/?password=hunter2",
        "/a|b",
    ]
    site = shop()
    with site.serve() as origin:
        run("crawl", origin + "/", *QUICK)
        site.page("/", links=["/a", "/b", "/c", *evil], title="<!channel> @all")
        for number, path in enumerate(evil):
            site.page(f"/{number}", links=[path])
        run("crawl", origin + "/", *QUICK)
    [body] = hook.bodies
    lines = body["text"].splitlines()
    assert body["text"].isascii() or set(body["text"]) - set(map(chr, range(128))) <= set("•·…")
    for line in lines:
        outside = "".join(line.split("`")[::2])
        assert line.count("`") in {0, 2}
        assert not set("@<>*_|") & set(outside.replace("sitemap-crawler", ""))
    assert "<" not in body["text"]
    assert "hunter2" not in json.dumps(body)


def test_the_text_of_a_run_without_a_report() -> None:
    assert (
        text("", Exit.USAGE, "", None)
        == "sitemap-crawler: the crawl of `` did not start: wrong settings (exit 2)"
    )
    said = text("https://a/", Exit.STORAGE, "The disk `x` is <full>.", None)
    assert said.splitlines()[1] == "`The disk 'x' is (full).`"
