"""Which pages need their scripts, what a page may request, and what is stored: tables and laws, without a browser."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crawler.app.compose import check_extras
from crawler.errors import ConfigError
from crawler.fetch.render import chromium, policy, snapshot
from crawler.fetch.render.browser import Browser
from crawler.fetch.render.inputs import Recorder
from crawler.fetch.render.policy import RequestAnswer, answer
from crawler.fetch.render.renderer import GRACE, Renderer, _sentence, _today
from crawler.fetch.render.resources import LONGEST_WAIT, Deadline, Resources
from crawler.fetch.render.tab import Tab
from crawler.frontier.pace import LEASE_SECONDS
from crawler.model import rendering
from crawler.model.facts import Obstacle
from crawler.model.outcome import Listed, code
from crawler.model.reasons import Cause, Why
from crawler.model.rendering import Needs, PageSummary, Rendering, Skipped
from crawler.model.reply import Broken, Headers, Permit, Reply, Response
from crawler.model.survey import PagesOfKind, ScriptedKinds, Survey
from crawler.model.visit import LONGEST_VISIT, Lease, Prior, ScriptedPages, Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.rules import rendering as rules
from crawler.rules.incomplete_site import Landing, doubts
from crawler.rules.judge import Judge, JudgeRules
from crawler.settings import Pace, Render, Settings
from tests.waiting import tick

pytestmark = pytest.mark.anyio

URL = Url("https://a.example/x")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCRIPT = "<script src=/app.js></script>"
TEXT = "<p>Some words that stand here. " * 10
LINK = "<a href=/y>y</a>"


def verdict(
    markup: str, mode: str = "auto", headers: tuple[tuple[str, str], ...] = ()
) -> tuple[str, Rendering | None]:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render=mode))
    fields = Headers([("content-type", "text/html"), *headers])
    found = judge(Lease(1, 1, Visit(URL)), Response(200, fields, f"<!doctype html>{markup}".encode()), NOW)
    assert found.facts
    return code(found.outcome), found.facts.rendering


@pytest.mark.parametrize(
    ("markup", "needs"),
    [
        (SCRIPT, Needs.SHELL),
        (f"{SCRIPT}<a href=#top>top</a><a href=/x>itself</a>", Needs.SHELL),
        (f"{SCRIPT}{TEXT}", None),
        (f"{SCRIPT}{LINK}", None),
        (f"{TEXT}{LINK}", None),
        ("", None),
        (f"<script type='application/ld+json'>{{}}</script>{LINK}<div id='app'></div>", None),
        (f"{SCRIPT}{LINK}<div id=app></div>", None),
    ],
)  # fmt: skip
def test_a_page_needs_its_scripts(markup: str, needs: Needs | None) -> None:
    _, found = verdict(markup)
    assert (found.needs if found else None) is needs
    assert found is None or found.is_due
    _, always = verdict(markup, "always")
    assert always
    assert always.needs is (needs or Needs.ALWAYS)
    assert verdict(markup, "off")[1] is None


@pytest.mark.parametrize(
    ("head", "headers", "outcome", "skipped"),
    [
        ("<meta name=robots content=noindex>", (), "unlisted:noindex", Skipped.NOINDEX),
        ("", (("x-robots-tag", "noindex"),), "unlisted:noindex", Skipped.NOINDEX),
        ("<link rel=canonical href=/y>", (), "unlisted:canonical", Skipped.CANONICAL),
        ("", (("link", "</y>; rel=canonical"),), "unlisted:canonical", Skipped.CANONICAL),
        ("<meta http-equiv=refresh content=0;url=/y>", (), "moved", Skipped.MOVED),
        ("<link rel=canonical href=/x>", (), "listed", None),
    ],
)
def test_noindex_and_canonical_of_the_shell_are_judged_first(
    head: str, headers: tuple[tuple[str, str], ...], outcome: str, skipped: Skipped | None
) -> None:
    for mode in ("auto", "always"):
        found, seen = verdict(f"<head>{head}</head>{SCRIPT}<div id=app></div>", mode, headers)
        assert found == outcome
        if seen is None:  # with a link to that page, it is no shell
            assert mode == "auto"
            assert skipped in {Skipped.CANONICAL, Skipped.MOVED}
            continue
        assert seen.skipped is skipped
        assert seen.is_due is (skipped is None)


def test_a_rendered_page_is_judged_by_what_its_scripts_made() -> None:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
    before = Rendering(Needs.SHELL, PageSummary(0, "index"), requests=3)
    html = b"<!doctype html><meta name=robots content=noindex><a href=/y>y</a><a href=/z>z</a>"
    reply = Response(200, Headers([("content-type", "text/html")]), html, rendering=before)
    seen = judge(Lease(1, 1, Visit(URL)), reply, NOW)
    assert seen.outcome.why is Why.NOINDEX  # type: ignore[union-attr]
    assert seen.facts
    assert seen.facts.rendering == before._replace(after=PageSummary(2, "noindex"))


KINDS = "a" * rules.KIND, "b" * rules.KIND
MORE, SAME = PageSummary(5, text=900), PageSummary(2, text=150)


def sample(after: PageSummary | None, path: str = "/x") -> tuple[Url, str, Rendering]:
    seen = Rendering(Needs.SAMPLE, PageSummary(2, text=100), after)
    return Url(f"https://a.example{path}"), "".join(KINDS), seen


@pytest.mark.parametrize(
    ("first", "seen", "proven", "samples"),
    [
        ("/a", [], [], ["/a"]),
        ("/y", [sample(MORE)], KINDS, []),
        ("/y", [sample(SAME)], [], []),
        ("/y", [sample(SAME), sample(MORE, "/z")], [], []),
        ("/y", [sample(MORE), sample(SAME, "/z")], KINDS, []),
        ("/a", [sample(MORE)], KINDS[1:], ["/a"]),  # a smaller one has appeared
    ],
)
def test_the_first_page_of_a_kind_decides(
    first: str, seen: list[tuple[Url, str, Rendering]], proven: Sequence[str], samples: list[str]
) -> None:
    plain = [PagesOfKind(KINDS[0], 3, Url(f"https://a.example{first}"))]
    found, asked = rules.decided(ScriptedKinds(plain, seen))
    assert found == frozenset(proven)
    assert asked == [f"https://a.example{path}" for path in samples]


@pytest.mark.parametrize(
    ("after", "more"),
    [
        (PageSummary(4, text=300), False),
        (PageSummary(5, text=0), True),
        (PageSummary(0, text=301), True),
        (PageSummary(2, "noindex", text=100), True),
        (PageSummary(2, canonical=URL, text=100), True),
    ],
)
def test_scripts_show_more(after: PageSummary, more: bool) -> None:
    assert sample(after)[2].shows_more is more


def test_pages_of_one_shell_or_one_folder_are_of_a_kind() -> None:
    def kinds(path: str, page: ParsedPage, links: int = 1) -> list[str]:
        found = rules.kinds(Url(f"https://a.example{path}"), page, links) or ""
        return [found[: rules.KIND], found[rules.KIND :]]

    shell, long, other = (
        ParsedPage("", scripts=name, length=size) for name, size in (("a", 9), ("a", 99), ("b", 9))
    )
    assert rules.kinds(URL, ParsedPage(""), 1) is None
    assert kinds("/a/1", shell) == kinds("/a/2?b=/c", shell)
    assert kinds("/a/1", shell)[0] == kinds("/b/1", shell)[0]
    assert kinds("/a/1", shell)[1] != kinds("/b/1", shell)[1]
    assert kinds("/a/1", shell)[0] != kinds("/a/2", long, 5)[0]
    assert kinds("/a/1", shell)[1] == kinds("/a/2", long, 5)[1]
    assert not set(kinds("/a/1", shell)) & set(kinds("/a/1", other))
    assert kinds("/", shell) == kinds("/about", shell)


def test_page_is_rendered_as_sample_by_kind_or_as_before() -> None:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
    reply = Response(200, Headers([("content-type", "text/html")]), f"{SCRIPT}{LINK}{TEXT}".encode())
    lease = Lease(1, 1, Visit(URL))
    facts = judge(lease, reply, NOW).facts
    assert facts
    assert facts.scripts

    def needs(lease: Lease) -> Needs | None:
        seen = judge(lease, reply, NOW).facts
        return seen.rendering.needs if seen and seen.rendering else None

    assert needs(lease) is None
    assert needs(structs.replace(lease, scripted=ScriptedPages(frozenset({URL})))) is Needs.SAMPLE
    for kind in (facts.scripts[: rules.KIND], facts.scripts[rules.KIND :]):
        assert needs(structs.replace(lease, scripted=ScriptedPages(kinds=frozenset({kind})))) is Needs.PATTERN
    for before, now in (
        (sample(MORE)[2], Needs.SAMPLE),
        (sample(SAME)[2], Needs.SAMPLE),
        (sample(MORE)[2]._replace(needs=Needs.PATTERN), Needs.PATTERN),
        (sample(SAME)[2]._replace(needs=Needs.PATTERN), None),
    ):
        prior = Prior(Listed(), facts._replace(rendering=before))
        assert needs(structs.replace(lease, prior=prior)) is now


@pytest.mark.parametrize(("routes", "obstacle"), [(2, Obstacle.HASH_ROUTES), (0, Obstacle.EMPTY)])
def test_a_rendered_page_is_not_told_to_be_rendered(routes: int, obstacle: Obstacle) -> None:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
    html = f"<!doctype html>{SCRIPT}<a href=#/about>About</a>".encode()
    seen = Rendering(Needs.SHELL, hash_routes=routes)
    reply = Response(200, Headers([("content-type", "text/html")]), html, rendering=seen)
    facts = judge(Lease(1, 1, Visit(URL)), reply, NOW).facts
    assert facts
    assert facts.obstacle is obstacle
    said = doubts([Landing(URL, obstacle)], Survey({}, obstacles={obstacle.value: 1})).doubt
    assert obstacle.says in said
    assert "--render" not in said


OWN, OTHER = "https://a.example/f", "https://b.example/f"


@pytest.mark.parametrize(
    ("kind", "method", "url", "headers", "wanted"),
    [
        ("Script", "GET", OWN, {}, RequestAnswer.FETCH),
        ("Script", "GET", OTHER, {}, RequestAnswer.FETCH),
        ("XHR", "GET", OTHER, {"Accept": "application/json"}, RequestAnswer.FETCH),
        ("XHR", "POST", OWN, {}, RequestAnswer.REFUSE),
        ("XHR", "PUT", OWN, {}, RequestAnswer.REFUSE),
        ("XHR", "HEAD", OWN, {}, RequestAnswer.REFUSE),
        ("Preflight", "OPTIONS", OTHER, {}, RequestAnswer.PREFLIGHT),
        ("XHR", "GET", OWN, {"Accept": "text/event-stream"}, RequestAnswer.REFUSE),
        ("Fetch", "GET", OWN, {"Sec-Purpose": "prefetch"}, RequestAnswer.REFUSE),
        ("Fetch", "GET", OWN, {"Purpose": "prefetch"}, RequestAnswer.REFUSE),
        ("Document", "GET", OWN, {}, RequestAnswer.FETCH),
        ("Document", "GET", OTHER, {}, RequestAnswer.REFUSE),
        ("Document", "GET", "http://a.example/f", {}, RequestAnswer.REFUSE),
        ("Stylesheet", "GET", OWN, {}, RequestAnswer.FETCH),
        ("Stylesheet", "GET", OTHER, {}, RequestAnswer.EMPTY_STYLE),
        ("Other", "GET", OWN, {}, RequestAnswer.FETCH),
        ("Other", "GET", OTHER, {}, RequestAnswer.REFUSE),
        *((kind, "GET", OWN, {}, RequestAnswer.REFUSE) for kind in
          ("Image", "Media", "Font", "TextTrack", "EventSource", "WebSocket", "Manifest", "Ping", "Prefetch",
           "CSPViolationReport", "SignedExchange", "Anything")),
        *(("Script", "GET", url, {}, RequestAnswer.REFUSE) for url in
          ("file:///etc/passwd", "ftp://a.example/", "blob:https://a.example/1", "data:,1", "ws://a.example/", "chrome://gpu", "http://user:pass@a.example/", "http://@a.example/", "http://a.example:x/",
           "https://a.example/\u00e4", "https://a.example", "https:///x", "https://a.example/ x", "https://a.example/" + "x" * 9_000)),
    ],
)  # fmt: skip
def test_what_a_page_may_request(
    kind: str, method: str, url: str, headers: dict[str, str], wanted: RequestAnswer
) -> None:
    assert answer(kind, method, url, headers, URL) is wanted


def test_headers_of_scripts_are_sent_without_those_that_are_ours() -> None:
    given = {
        "Accept": "application/json", "X-Requested-With": "XMLHttpRequest", "Origin": "https://a.example", "Cookie": "a=b",
        "User-Agent": "x", "Host": "b.example", "Sec-Fetch-Mode": "cors", "If-None-Match": '"1"', "Range": "bytes=0-",
        "Proxy-Authorization": "x", "X-Line": "a\r\nHost: evil", "Bad Name": "x", "X-Long": "x" * 5_000,
    }  # fmt: skip
    assert policy.forwarded(given) == {
        "accept": "application/json",
        "x-requested-with": "XMLHttpRequest",
        "origin": "https://a.example",
    }
    assert policy.forwarded({}) == {"accept": "*/*"}


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=50))
def test_forwarded_headers_are_always_valid(given: dict[str, str]) -> None:
    sent = policy.forwarded(given)
    assert len(sent) <= policy.MAX_HEADERS + 1
    for name, value in sent.items():
        assert name.isascii()
        assert name == name.lower()
        assert not set(name) & set(" :\r\n")
        assert not set(value) & set("\r\n\0")
        value.encode("latin-1")


SUMMARIES = st.builds(
    PageSummary,
    st.integers(0, 10**6),
    st.text(max_size=50),
    st.sampled_from([None, URL]),
    st.integers(0, 10**6),
)


@given(
    st.builds(
        Rendering,
        st.sampled_from(Needs),
        SUMMARIES,
        st.none() | SUMMARIES,
        st.none() | st.sampled_from(Skipped),
        *[st.integers(0, 10**12)] * 4,
        st.text(max_size=40),
        inputs=st.none(),
        made=st.sampled_from([(), (URL,)]),
        failed=st.none() | st.sampled_from(Cause),
    )
)
def test_the_stored_form_can_be_read_again(seen: Rendering) -> None:
    assert rendering.read(rendering.written(seen)) == seen


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"needs":"x"}', "null", '"shell"'])
def test_other_text_is_not_read(text: str) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        rendering.read(text)


@pytest.mark.parametrize("wrong", ['"<b>"', "-1", "true", "1.5", "9007199254740992"])
def test_counts_must_be_counts(wrong: str) -> None:
    text = rendering.written(Rendering(Needs.SHELL, requests=77))
    assert rendering.read(text).requests == 77
    with pytest.raises(ValueError, match="int"):
        rendering.read(text.replace("77", wrong))


def test_script_redirect_is_refresh_and_stays_in_its_attribute() -> None:
    body = snapshot.redirect('https://a.example/?a="><script>&b=1')
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
    reply = Response(200, Headers([("content-type", "text/html")]), body, rendering=Rendering(Needs.SHELL))
    assert code(judge(Lease(1, 1, Visit(URL)), reply, NOW).outcome) == "moved"
    assert body.count(b"<") == 2


@pytest.mark.parametrize(
    "value", [None, {}, {"html": 1, "base": "", "routes": 0}, [1], {"html": "", "base": None, "routes": 0}]
)
def test_a_snapshot_of_another_form_is_an_error(value: object) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        snapshot.read(value)


@pytest.mark.parametrize(
    ("url", "shown", "to"),
    [
        ("https://a.example/old", "https://a.example/about", "https://a.example/about"),
        ("https://a.example/old/", "https://a.example/old", "https://a.example/old"),
        ("https://a.example/p?utm_source=x", "https://a.example/p", "https://a.example/p"),
        ("https://a.example/p?id=1", "https://a.example/p?id=2", "https://a.example/p?id=2"),
        ("https://a.example/p", "https://a.example/p?page=1", None),
        ("https://a.example/p", "about:blank", None),
    ],
)
def test_an_address_that_scripts_replace_has_moved(url: str, shown: str, to: str | None) -> None:
    assert snapshot.replacement(url, shown) == to


@pytest.mark.parametrize(
    ("options", "node", "during"),
    [
        (None, None, chromium.LITTLE_GARBAGE),
        ("--max-old-space-size=99", None, f"{chromium.LITTLE_GARBAGE} --max-old-space-size=99"),
        ("--title=x", "missing", "--title=x"),
        ("--title=x", "refuses", "--title=x"),
        ("--title=x", "takes", f"{chromium.LITTLE_GARBAGE} --title=x"),
    ],
)
def test_the_driver_keeps_little_garbage(
    options: str | None, node: str | None, during: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rule in (("refuses", "exit 9"), ("takes", f'[ "$NODE_OPTIONS" = "{during}" ]')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{rule}\n")
        (tmp_path / name).chmod(0o700)
    path = node and str(tmp_path / node)
    for name, value in (("NODE_OPTIONS", options), ("PLAYWRIGHT_NODEJS_PATH", path)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with chromium.environment_of_driver(tmp_path):
        assert os.environ["NODE_OPTIONS"] == during
    assert os.environ.get("NODE_OPTIONS") == options


def test_the_driver_has_a_home_where_the_user_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As user 10001 of the image: Node.js does not start without one."""
    monkeypatch.delenv("HOME", raising=False)
    with chromium.environment_of_driver(tmp_path):
        assert os.environ["HOME"] == str(tmp_path)
    assert "HOME" not in os.environ
    monkeypatch.setenv("HOME", "/home/a")
    with chromium.environment_of_driver(tmp_path):
        assert os.environ["HOME"] == "/home/a"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "FATAL:zygote_host_impl_linux.cc:251] Zygote process exited prematurely with exit code -1",
            "its sandbox is not",
        ),
        ("ERROR:zygote_host_impl_linux.cc:130] No usable sandbox! If this is", "its sandbox is not"),
        ("libnss3.so: error while loading shared libraries", "libnss3.so: error while loading"),
    ],
)
def test_why_a_browser_does_not_start(said: str, meant: str) -> None:
    text = f"BrowserType.launch: Target page, context or browser has been closed\n- [pid=16][err] {said}"
    assert _sentence(Exception(text)).startswith(meant)


@pytest.mark.parametrize(
    ("sizes", "frames"),
    [
        ("1111111", 3),  # it asks its server for ever
        ("12345555555", 7),
        ("11223334444444", 10),
    ],
)
async def test_a_page_that_only_makes_requests_is_read(
    sizes: str, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[int]()

    async def measured(_: Tab) -> tuple[int, str]:
        return len(drawn), sizes[len(drawn)]

    async def draw(_: Tab, height: int) -> None:
        drawn.append(height)

    async def spend(_: Tab, budget: int) -> None: ...

    monkeypatch.setattr(Tab, "_measured", measured)
    monkeypatch.setattr(Tab, "_draw", draw)
    monkeypatch.setattr(Tab, "_spend", spend)
    await Tab(None, None, URL, Response(200), resources=None)._rest(1)  # type: ignore[arg-type]
    assert len(drawn) == frames


# -- resources and time ------------------------------------------------------------------------------------------


class Source:
    """A fetcher, robots.txt and slots that note what they are asked for."""

    def __init__(self, *, allowed: bool = True, status: int = 200) -> None:
        self.log: list[str] = []
        self.seconds: float | None = None
        self.allowed, self.status = allowed, status

    async def fetch(self, request: Request) -> Reply:
        self.log.append(f"get {request.url}")
        self.seconds = request.seconds
        await anyio.lowlevel.checkpoint()
        return Response(self.status, body=b"x" * 100)

    async def permission(self, _: Url) -> Permit:
        self.log.append("robots")
        return Permit(self.allowed, None if self.allowed else Why.ROBOTS, "Disallow: /")

    async def slot(self, origin: str) -> None:
        self.log.append(f"slot {origin}")


async def test_request_of_script_asks_robots_txt_and_waits_its_slot() -> None:
    source = Source()
    resources = Resources(source, source.permission, source.slot)
    await resources.get(URL, {}, nullcontext, keep=False)
    assert source.log == ["robots", "slot https://a.example", f"get {URL}"]
    source = Source(allowed=False)
    reply = await Resources(source, source.permission, source.slot).get(URL, {}, nullcontext, keep=True)
    assert reply == Broken(Cause.FORBIDDEN, "robots.txt: Disallow: /")
    assert source.log == ["robots"]


class Session:
    """Of the DevTools protocol: takes every command."""

    async def send(self, *_: object) -> None: ...


@pytest.mark.parametrize("allowed", [True, False])
async def test_requests_count_also_where_nobody_answers(allowed: bool) -> None:
    source = Source(allowed=allowed)
    recorder = Recorder(Resources(source, source.permission, source.slot), nullcontext, "b", 20_000)
    tab = Tab(None, Session(), URL, Response(200), resources=recorder)  # type: ignore[arg-type]
    for number in range(policy.MAX_REQUESTS + 50):
        request = {"method": "GET", "url": f"https://{number}.example/", "headers": {}}
        answered = await tab._handled({"request": request, "resourceType": "XHR", "requestId": str(number)})
        await answered()
    assert source.log.count("robots") == policy.MAX_REQUESTS
    assert (tab.requests, tab.refused) == ((300, 50) if allowed else (0, 350))


async def test_script_is_requested_once_a_run_also_by_pages_at_once() -> None:
    source = Source()
    resources = Resources(source, source.permission, source.slot)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(lambda: resources.get(URL, {}, anyio.CancelScope, keep=True))  # type: ignore[arg-type]
    assert source.log.count(f"get {URL}") == 1
    source.status = 404
    for _ in range(2):
        await resources.get(Url(OWN), {}, nullcontext, keep=True)
    assert source.log.count(f"get {OWN}") == 2, "an error is asked for again"


async def test_an_answer_that_never_ends_leaves_its_page_time() -> None:
    source = Source()
    await Resources(source, source.permission, source.slot, seconds=30.0).get(
        URL, {}, nullcontext, keep=False
    )
    assert source.seconds == 30.0


async def test_the_cache_is_bounded() -> None:
    source = Source()
    resources = Resources(source, source.permission, source.slot, cache=250)
    for number in (1, 2, 3, 3, 1):
        await resources.get(Url(f"{URL}{number}"), {}, nullcontext, keep=True)
    assert [line[-1] for line in source.log if line.startswith("get")] == ["1", "2", "3", "1"]


async def test_time_of_page_stands_still_while_it_waits_for_slot() -> None:
    with anyio.CancelScope() as scope:
        deadline = Deadline(scope, 100.0)
        start = scope.deadline
        with deadline.waiting():
            assert scope.deadline == pytest.approx(start + LONGEST_WAIT, abs=1)
            with deadline.waiting():
                await tick()
            assert scope.deadline > start + 1
        assert start < scope.deadline < start + 5


async def test_one_time_limit_bounds_all_that_a_page_waits_for() -> None:
    with anyio.CancelScope() as scope:
        now = anyio.current_time()
        deadline = Deadline(scope, 100.0, longest=50.0, until=now + 120.0)
        with deadline.waiting():
            assert scope.deadline == now + 120, "and not 150"
            await tick()
        assert scope.deadline <= now + 120


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_visit_ends_before_its_lease_whatever_it_waits_for(is_new: bool) -> None:
    assert LONGEST_VISIT + GRACE < LEASE_SECONDS
    source, asked = Source(), list[str]()

    async def slot(origin: str) -> None:
        asked.append(origin)
        await anyio.sleep_forever()

    resources = Resources(source, source.permission, slot)
    async with Renderer(Settings(), source, resources, __file__, tabs=1).running() as renderer:
        request = Request(URL, until=anyio.current_time() - GRACE)
        if is_new:  # all browsers are taken
            await renderer._places.acquire_on_behalf_of(source)
            request = structs.replace(request, shell=Response(200, rendering=Rendering(Needs.ALWAYS)))
        else:
            recorder = Recorder(
                Resources(source, source.permission, source.slot), nullcontext, renderer._driven, _today()
            )
            await recorder.get(URL, {}, keep=False)
            request = structs.replace(request, inputs=recorder.inputs(URL, Response(200, body=b"x" * 100)))
            assert request.inputs
        reply = await renderer.fetch(request)
    assert isinstance(reply, Broken)
    assert (reply.cause, "waited for slots" in reply.detail) == (Cause.TIMEOUT, True)


# -- what is missing -------------------------------------------------------------------------------------------------

ON = replace(Settings(), render=Render(render="auto"))


def test_what_is_missing_is_said_with_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if find_spec("playwright") is not None:
        monkeypatch.setattr("shutil.which", lambda _: None)
        with pytest.raises(ConfigError, match="apt-get install chromium-headless-shell, or name another"):
            check_extras(ON)
        monkeypatch.undo()
        with pytest.raises(ConfigError, match=r"--browser: /nowhere is not a program"):
            check_extras(replace(Settings(), render=Render(render="always", browser="/nowhere")))
    monkeypatch.setattr(chromium, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'sitemap-crawler\[render\]'"):
        check_extras(ON)
    check_extras(Settings())


def test_a_browser_is_replaced_after_so_many_pages() -> None:
    class Process:
        def on(self, *_: object) -> None:
            pass

    browser = Browser(Process(), 0, pages=2)  # type: ignore[arg-type]
    for fit in (True, False):
        browser.take()
        assert browser.is_fit is fit


def test_worker_processes_are_refused() -> None:
    with pytest.raises(ConfigError, match="--render needs --processes 1"):
        check_extras(replace(ON, pace=Pace(processes=2)))


def test_the_browser_does_not_get_our_environment() -> None:
    assert chromium.environment({"PATH": "/bin", "SITE_TOKEN": "secret", "AWS_SECRET": "x"}) == {
        "PATH": "/bin"
    }
