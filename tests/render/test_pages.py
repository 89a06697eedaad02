"""One page for each question: what is rendered, what is read of it, what is stored, and what happens when it fails."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from crawler import open_job, scratch
from crawler.cli.demo.site import CannedResponse, Site
from crawler.errors import ConfigError
from crawler.fetch.render import browser as browsers
from crawler.fetch.render import chromium
from crawler.fetch.render.browser import Browser
from crawler.fetch.render.renderer import Renderer
from crawler.model.outcome import code
from crawler.model.reasons import Cause
from crawler.model.rendering import Needs, Rendering, Skipped
from crawler.model.rows import UrlRecord
from crawler.parse.url import Url
from crawler.ports import Request, reads
from tests.render.crawls import crawled, links, settings, shell
from tests.waiting import until

pytestmark = pytest.mark.anyio

in_browser = pytest.mark.usefixtures("browser")

TEXT = "<p>Words that can be read without any script at all. " * 10
SHADOW = """
const host = document.querySelector("#app"), open = host.attachShadow({mode: "open"});
open.innerHTML = "<p>In the shadow <a href=/in-shadow>link</a></p><inner-part></inner-part>";
open.querySelector("inner-part").attachShadow({mode: "open"}).innerHTML = "<a href=/in-nested-shadow>link</a>";
"""
CHANGING = "document.title = `${Date.now()} ${Math.random()} ${performance.now()} ${navigator.language} ${innerHeight}`;"
API = """
fetch("/api/open.json").then((reply) => reply.json()).then((all) => all.forEach((to) => {
    document.body.insertAdjacentHTML("beforeend", `<a href="${to}">${to}</a>`)}));
fetch("/api/closed.json").catch(() => document.body.append("refused"));
fetch("/api/odd").catch(() => document.body.append("odd"));
"""
# Each section asks for its content when it comes into view; the list grows while its end is in view.
SECTIONS = """
for (let n = 0; n < 8; n++) {
    const part = document.createElement("section");
    part.style.height = "1000px";
    document.body.append(part);
    const fill = () => { part.innerHTML = `<a href=/section-${n}>section</a>` };
    new IntersectionObserver(([seen], observer) => {
        if (seen.isIntersecting) { observer.disconnect(); fetch("/api/open.json").then(fill) }
    }).observe(part);
}
"""
LIST = """
const end = document.querySelector("#app");
end.style.height = "10px";
let n = 0;
const more = () => {
    if (n === 10) return;
    end.insertAdjacentHTML("beforebegin", `<p style="height: 900px"><a href=/item-${n++}>item</a></p>`);
    observer.unobserve(end);
    observer.observe(end);
};
const observer = new IntersectionObserver(([seen]) => { if (seen.isIntersecting) setTimeout(more, 300) });
observer.observe(end);
"""
WORKER = f"""
if ("serviceWorker" in navigator) navigator.serviceWorker.ready.then(() => {{ {links("/with-worker")} }});
else {{ {links("/without-worker")} }}
"""
# It waits by each clock, which go on alike, and shows dates as any page.
SLEEPS = """
class Day extends Date {}
const began = Date.now(), exact = performance.now();
while (Date.now() - began < 50) {}
while (performance.now() - exact < 100) {}
while (new Date().getTime() - began < 150) {}
while (new Day() - began < 200) {}
const right = new Day(0).toISOString().startsWith("1970") && typeof Date() === "string" && new Date(2026, 0, 2).getDate() === 2
    && Date.UTC(1970, 0, 2) === 864e5 && new Date() instanceof Date && new Date().constructor === Date;
if (!right) throw new Error("dates are wrong");
"""
WRITTEN = r"""
const frame = document.createElement("iframe");
const script = 'parent.document.querySelector("#app").innerHTML = "<a href=/by-frame>by</a>"';
frame.srcdoc = `<a href=/in-frame>in</a><script>${script}<\/script>`;
document.body.append(frame);
"""


def questions() -> Site:
    site = Site()
    site.robots("User-agent: *\nDisallow: /api/closed")
    pages = {
        "/late": f"setTimeout(() => {{ {links('/late-found')} }}, 5000);",
        "/base": "const b = document.createElement('base'); b.href = '/deep/'; document.head.append(b);"
        + links("in-base"),
        "/pushed": "history.pushState({}, '', '/elsewhere/now');" + links("beside"),
        "/replaced": "history.replaceState({}, '', '/elsewhere/then');" + links("/from-replaced"),
        "/noted": "history.replaceState({}, '', '/noted?page=1');" + links("/from-noted"),
        "/sections": SECTIONS,
        "/list": LIST,
        "/worker": WORKER,
        "/unread": f"(async () => {{ for (let n = 0; n < 60; n++) await fetch('/api/unread'); {links('/after-unread')} }})()",
        "/sleeps": f"{SLEEPS} {links('/after-sleep')}",
        "/written": WRITTEN,
        "/hash": links("#/one", "#!two", "#three", "/after-hash"),
        "/shadow": SHADOW,
        "/changing": links("/after-changing") + CHANGING,
        "/api": API,
        "/noindex-added": links("/x") + "document.head.innerHTML += '<meta name=robots content=noindex>';",
        "/canonical-added": "document.head.innerHTML += '<link rel=canonical href=/>';",
        "/click": "document.querySelector('#app').innerHTML = `<button onclick=\"location='/by-button'\">no link</button>`;",
        "/noscript-link": "document.title = 'Not in the noscript';",
    }
    site.page("/", links=[*pages, "/plain", "/shell-noindex", "/shell-canonical"])
    for path, script in pages.items():
        shell(
            site,
            path,
            script,
            body="<div id=app></div>"
            + ("<noscript><a href=/x-noscript>x</a></noscript>" if "noscript" in path else ""),
        )
    site.page("/plain", links=["/"], text=TEXT + "<script>document.title = 'Rendered'</script>")
    shell(site, "/shell-noindex", "fetch('/never')", head="<meta name=robots content=noindex>")
    shell(site, "/shell-canonical", "fetch('/never')", head="<link rel=canonical href=/>")
    fields = {"Content-Type": "application/json", "X-Odd": "caf\u00e9", "Set-Cookie": "a=b"}
    site.raw("/api/open.json", body=b'["/by-api"]', headers=fields)
    site.raw("/api/unread", body=b"[]", headers={"Content-Type": "application/json"})
    site.raw("/api/odd", body=b"x", status=999)
    return site


def rendering(found: Mapping[str, UrlRecord], path: str) -> Rendering | None:
    facts = found[path].facts
    assert facts
    return facts.rendering


def outcome(found: Mapping[str, UrlRecord], path: str) -> str:
    result = found[path].outcome
    return code(result) if result else ""


@in_browser
@pytest.mark.slow
async def test_each_question_and_a_second_crawl_gives_the_same_answers(tmp_path: Path) -> None:
    site = questions()
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
        other = settings(origin, tmp_path / "again")
        scope = replace(
            other.scope,
            exclude=("/section*", "/list", "/item*", "/s*", "/written", "/n*", "/plain", "/unread"),
        )
        again = await crawled(replace(other, scope=scope))
    assert {
        "/late-found",
        "/after-sleep",
        "/after-unread",
        "/deep/in-base",
        "/elsewhere/beside",
        "/after-hash",
        "/by-api",
    } <= set(found)
    assert {"/in-shadow", "/in-nested-shadow", "/in-frame", "/by-frame", "/without-worker"} <= set(found)
    assert {f"/section-{n}" for n in range(8)} | {f"/item-{n}" for n in range(10)} <= set(found)
    assert [outcome(found, path) for path in ("/replaced", "/noted")] == ["moved", "listed"]
    assert {"/elsewhere/then", "/from-noted"} <= set(found)
    assert not {"/by-button", "/in-base", "/beside", "/from-replaced"} & set(found)
    hidden = rendering(found, "/noscript-link")
    assert hidden
    assert (hidden.needs, hidden.before.links, hidden.after and hidden.after.links) == (Needs.SAMPLE, 1, 0)
    assert rendering(found, "/plain") is None
    assert rendering(found, "/") is None
    late = rendering(found, "/late")
    assert late
    assert (late.needs, late.before.links, late.after and late.after.links) == (Needs.SHELL, 0, 1)
    hashes, api = rendering(found, "/hash"), rendering(found, "/api")
    assert hashes
    assert hashes.hash_routes == 2
    assert api
    assert (api.requests, api.refused, api.bytes) == (2, 2, len(b'["/by-api"]x'))
    assert site.requests("/api/closed.json") == 0, "robots.txt applies to scripts"
    assert (outcome(found, "/noindex-added"), outcome(found, "/canonical-added")) == (
        "unlisted:noindex",
        "unlisted:canonical",
    )
    added = rendering(found, "/noindex-added")
    assert added
    assert (added.before.robots, added.after and added.after.robots) == ("", "noindex")
    left = rendering(found, "/shell-noindex")
    assert left
    assert left.skipped is Skipped.NOINDEX
    assert rendering(found, "/shell-canonical") is None
    assert site.requests("/never") == 0
    fetched = [path for path, page in again.items() if page.facts]
    assert {"/late", "/changing", "/api", "/hash", "/base"} <= {*fetched}
    told = [
        {
            path: (one[path].outcome, (facts := one[path].facts) and facts._replace(took=None))
            for path in fetched
        }
        for one in (found, again)
    ]
    assert told[0] == told[1], "verdicts, titles, fingerprints, links and costs"


# One document for all addresses of an application, which shows something without scripts.
APP = """<!doctype html><title>App</title><div id=any>Loading…</div><footer><a href=/imprint>Imprint</a></footer>
<script>
const links = ["/", "/a", "/b", "/c/1", "/c/2"].map((to) => `<a href=${to}>to ${to}</a> `).join("");
document.querySelector("#any").innerHTML = `${links}<p>This is the page ${location.pathname}`;
</script>"""


@in_browser
@pytest.mark.slow
async def test_of_pages_with_scripts_samples_decide_which_are_rendered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = Site()
    script = "<script>document.body.append('1')</script>"
    site.page("/", links=["/text/1", "/text/2", "/text/3", "/app/"], text=TEXT)
    for number in (1, 2, 3):
        site.page(f"/text/{number}", text=f"{TEXT} {number * 'more '}{script}", links=["/"])
    for path in ("/app/", "/app/a", "/app/b", "/app/c/1", "/app/c/2"):
        site.raw(path, body=APP.replace('"/', '"/app/').encode())
    site.page("/imprint")
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
        assert site.requests("/text/2") == 1
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            await job.publish()
        monkeypatch.delattr(Renderer, "_render")  # the next night decides by what is known of its samples
        again = await crawled(settings(origin, tmp_path))
    for one in (found, again):
        needs = {path: seen.needs for path in one if (seen := rendering(one, path))}
        assert needs == {
            "/text/1": Needs.SAMPLE,
            "/app/": Needs.SAMPLE,
            **dict.fromkeys(("/app/a", "/app/b", "/app/c/1", "/app/c/2"), Needs.PATTERN),
        }
        assert all(outcome(one, path) == "listed" for path in one)


@pytest.fixture
def short_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that hang are ended soon, all others have much time: the machine may be busy."""
    real = Renderer._attempt

    async def attempt(self: Renderer, browser: Browser, request: Request, *rest: Any) -> Any:
        self._seconds = 5.0 if request.url.endswith("-hangs") else 600.0
        return await real(self, browser, request, *rest)

    monkeypatch.setattr(Renderer, "_attempt", attempt)


@in_browser
@pytest.mark.slow
@pytest.mark.usefixtures("short_of_time")
async def test_a_page_that_hangs_and_one_that_crashes_fail_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = [word.replace(f"size={chromium.HEAP}", "size=40") for word in chromium.ARGUMENTS]
    monkeypatch.setattr(chromium, "ARGUMENTS", small)
    site = Site()
    site.page("/", links=["/it-hangs", "/crashes", "/1", "/2"])
    shell(site, "/it-hangs", "for (;;) {}")
    shell(site, "/crashes", "const all = []; for (;;) all.push(new Array(100000).fill(Math.random()));")
    for number in (1, 2):
        shell(site, f"/{number}", links(f"/from-{number}"))
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path, retries=0))
    assert outcome(found, "/it-hangs") == "failed:timeout"
    assert outcome(found, "/crashes") == "failed:crashed"
    assert {"/from-1", "/from-2"} <= set(found)
    assert (outcome(found, "/1"), outcome(found, "/2")) == ("listed", "listed")


@in_browser
@pytest.mark.slow
@pytest.mark.usefixtures("short_of_time")
async def test_pages_with_text_of_their_own_are_judged_by_it(tmp_path: Path) -> None:
    site, forever = Site(), "<script>for (;;) {}</script>"
    site.page("/", text=TEXT, links=["/text-hangs", "/shell-hangs"])
    site.page("/text-hangs", text=TEXT + forever, links=["/below"])
    site.page("/shell-hangs", text="Loading" + forever)
    site.page("/below")
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path, mode="always", retries=0))
    assert [outcome(found, path) for path in ("/text-hangs", "/below")] == ["listed"] * 2
    assert outcome(found, "/shell-hangs") == "failed:timeout"
    assert (seen := rendering(found, "/text-hangs"))
    assert seen.failed is Cause.TIMEOUT


@in_browser
@pytest.mark.slow
async def test_validators_of_a_shell_alone_are_not_trusted(tmp_path: Path) -> None:
    site = Site()
    fields = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 10:00:00 GMT", "Content-Type": "text/html"}
    site.raw(
        "/", body=f"<title>Home</title><div id=app></div><script>{API}</script>".encode(), headers=fields
    )
    site.raw("/plain", body=f"<title>Plain</title>{TEXT}<a href=/>home</a>".encode(), headers=fields)
    site.raw("/api/open.json", body=b'["/plain"]', headers={"Content-Type": "application/json"})
    with site.serve() as origin:
        first = await crawled(settings(origin, tmp_path))
        site.raw("/api/open.json", body=b'["/plain", "/new"]', headers={"Content-Type": "application/json"})
        site.page("/new")
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            await job.publish()
        site.log.clear()
        second = await crawled(settings(origin, tmp_path))
    start = first["/"].facts
    assert start
    assert (start.validators.etag, start.validators.modified, start.header) == (None, None, None)
    assert "/new" in second
    asked = [each.status for each in site.log if each.target == "/"]
    assert asked == [304, 200], "what its scripts load is another"
    assert next(each for each in site.log if each.target == "/plain").status == 304


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for temporary files. A browser keeps a socket there, whose path has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@in_browser
@pytest.mark.slow
def test_no_process_and_no_profile_outlives_a_killed_crawler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_path: Path
) -> None:
    site = Site()
    shell(site, "/", "for (;;) {}")
    with site.serve() as origin:
        words = [
            "crawl",
            f"{origin}/",
            "--render",
            "auto",
            "--state",
            ":memory:",
            "-o",
            str(tmp_path / "out"),
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "crawler", *words],
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": str(short_path)},
        )
        children: set[int] = set()

        def rendering() -> bool:
            assert process.poll() is None
            children.update({*browsers._tree(process.pid)} - {process.pid})
            return any("--type=renderer" in _command(pid) for pid in children)

        until(rendering)
        process.kill()
        process.wait()
        until(lambda: not any(map(_command, children)))
    assert list(short_path.glob(f"{scratch.PREFIX}*"))
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))
    with scratch.folder() as place:
        assert list(short_path.glob(f"{scratch.PREFIX}*")) == [place]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.usefixtures("browser_with_windows")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
async def test_browser_has_no_pages_of_its_own_beside_ours(tmp_path: Path) -> None:
    """Each took more than the page; and what playwright switches off stays off: the last list counts."""
    commands = dict[int, str]()

    def answer(_: object) -> CannedResponse:
        commands.update((pid, _command(pid)) for pid in browsers._tree(os.getpid()))
        return Site.answer(200, b"{}", {"Content-Type": "application/json"})

    site = Site()
    shell(site, "/", f"fetch('/data').then(() => {{ {links('/found')} }})")
    site.respond("/data", answer)
    with site.serve() as origin:
        await crawled(settings(origin, tmp_path))
    assert sum("--type=renderer" in command for command in commands.values()) == 1
    main = next(one for one in commands.values() if "--remote-debugging-pipe" in one and "--type=" not in one)
    flag = "--disable-features="
    *before, ours = [
        set(word.removeprefix(flag).split(",")) for word in main.split("\0") if word.startswith(flag)
    ]
    assert before
    assert all(features <= ours for features in before)


@in_browser
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
async def test_page_survives_death_of_driver_and_of_browser(tmp_path: Path) -> None:
    victims = ["/driver/node", "--remote-debugging-pipe"]
    site = Site()
    shell(site, "/", f"fetch('/data').then(() => {{ {links('/found')} }})")

    def answer(_: object) -> CannedResponse:
        if victims:
            sought = victims.pop(0)
            pids = [pid for pid in browsers._tree(os.getpid()) if sought in _command(pid)]
            os.kill(max(pids), signal.SIGKILL)  # the newest: another may be on its way out
        return Site.answer(200, b"{}", {"Content-Type": "application/json"})

    site.respond("/data", answer)
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert "/found" in found
    assert site.requests("/data") == 3


@in_browser
@pytest.mark.slow
@pytest.mark.parametrize("part", ["browser", "driver", "driver later"])
def test_a_browser_that_cannot_be_started_is_one_sentence(part: str, tmp_path: Path) -> None:
    site, broken = Site(), tmp_path / "broken"
    healthy = '[ "$1" = --version ] && exit\n' if part == "driver later" else ""
    broken.write_text(f"#!/bin/sh\n{healthy}echo libatomic.so.1 is missing >&2; exit 1\n")
    broken.chmod(0o755)
    shell(site, "/", "1")
    with site.serve() as origin:
        words = ["crawl", f"{origin}/", "--render", "auto", "--state", ":memory:"]
        words += ["--browser", str(broken)] if part == "browser" else []
        done = subprocess.run(
            [sys.executable, "-m", "crawler", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | ({} if part == "browser" else {"PLAYWRIGHT_NODEJS_PATH": str(broken)}),
        )
    assert (done.returncode, done.stdout) == (2, "")
    name = broken if part == "browser" else "the driver of playwright"
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"sitemap-crawler: --render: {name} cannot be started: ")
    assert part != "driver" or last.endswith("libatomic.so.1 is missing")
    assert "internal error" not in done.stderr
    assert part == "driver later" or "Traceback" not in done.stderr


@in_browser
async def test_plain_pages_start_no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(_: Renderer) -> Browser:
        raise AssertionError("a browser was started")

    monkeypatch.setattr(Renderer, "_start", start)
    site = Site()
    site.page("/", links=["/a"], text=TEXT)
    site.page("/a", links=["/"], head="<script type='application/ld+json'>{}</script>")
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert all(rendering(found, path) is None for path in ("/", "/a"))


@in_browser
@pytest.mark.slow
async def test_scripts_get_the_login_but_cannot_end_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SITE_LOGIN", "user:secret")
    site = Site()
    own = "fetch('/data.json', {headers: {'X-Own': '1', Authorization: 'Bearer x', Cookie: 'a=b'}});"
    shell(site, "/", own + "fetch('/logout');" + links("/a"))
    site.raw("/data.json", body=b"{}", headers={"Content-Type": "application/json"})
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path, auth_env="SITE_LOGIN"))
    assert site.requests("/logout") == 0
    seen = rendering(found, "/")
    assert seen
    assert (seen.requests, seen.refused) == (1, 1)
    sent = next(asked.headers for asked in site.log if asked.target == "/data.json")
    assert sent["authorization"].startswith("Basic ")
    assert sent["x-own"] == "1"
    assert "cookie" not in sent
    assert sent["user-agent"].startswith("sitemap-crawler")


@pytest.mark.system
@in_browser  # not slow: it is measured
async def test_always_renders_plain_pages_too(tmp_path: Path) -> None:
    site = Site()
    site.page(
        "/",
        text=TEXT
        + "<script>fetch('/data').then(() => { document.body.innerHTML += '<a href=/b>b</a>' })</script>",
    )
    site.raw("/data", body=b"{}", headers={"Content-Type": "application/json"})
    site.page("/b")
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path, mode="always"))
    seen = rendering(found, "/")
    assert seen
    assert seen.needs is Needs.ALWAYS
    assert "/b" in found


@pytest.mark.parametrize("anyio_backend", ["trio"])
@in_browser
async def test_trio_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Settings\.render\.render runs on asyncio only"):
        async with open_job(settings("http://127.0.0.1:8099", tmp_path)):
            pass


class _Process:
    """What `Browser` needs of playwright's."""

    def on(self, _: str, __: object) -> None:
        pass


@pytest.fixture
def process_1() -> Iterator[None]:
    """Orphans become our children, as those of process 1 of a container do."""
    adopting, prctl = 36, ctypes.CDLL(None).prctl
    prctl(adopting, 1, 0, 0, 0)
    yield
    prctl(adopting, 0, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux only")
@pytest.mark.usefixtures("process_1")
async def test_browser_with_too_much_memory_is_killed_with_children() -> None:
    child = "import time; x = bytearray(300_000_000); time.sleep(600)"
    parent = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    )
    script = ["sh", "-c", '"$0" -c "$1" & echo $!; wait', sys.executable, parent]  # as that of Debian
    shell = subprocess.Popen(script, start_new_session=True, stdout=subprocess.PIPE)  # noqa: ASYNC220 - not waited for
    assert shell.stdout
    with shell.stdout as printed:
        browser = Browser(_Process(), int(printed.readline()), memory=200_000_000)  # type: ignore[arg-type]
    with anyio.fail_after(600):
        await browser.watch()
    assert not browser.is_fit
    with pytest.raises(ChildProcessError):  # neither processes nor zombies
        os.waitpid(-shell.pid, os.WNOHANG)  # noqa: ASYNC222 - at once
    shell.wait()


class Fallback(dict[str, Callable[[Any], Any]]):
    """Answers of a server that shows its application at any address."""

    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path, super().get("/", default))


# Its scripts decide what an address shows: two pages, and the same for all others.
ROUTES = r"""
const path = location.pathname;
const known = {
    "/": "Home of the lamps <a href=/about>about</a> <a href=/lost/list>lost</a>",
    "/about": "About us: we have sold lamps since 1890, and still do <a href=/>home</a>",
    "/lost/list": [...Array(4).keys()].map((n) => `<a href=/lost/page-${n}>page ${n}</a>`).join(" "),
};
document.querySelector("#app").innerHTML = known[path] || `<h1>Oh no</h1><p>There is no such page. <a href=/>Home</a></p>`;
"""


@in_browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "outcomes"),
    [
        ("", "", ["unlisted:soft-404"] * 4),
        ("page. <a", "page as ${path.slice(6)}. <a", ["unlisted:soft-404"] * 4),
        (
            "<h1>Oh no",
            "${path === '/404' || history.replaceState(0, '', '/404') || ''}<h1>Oh no",
            ["moved"] * 4 + ["unlisted:soft-404"],
        ),
    ],
)
async def test_pages_that_scripts_do_not_know_are_not_listed(
    before: str, after: str, outcomes: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They show one text, or repeat their address, or lead to one page."""
    site = Site()
    shell(site, "/", ROUTES.replace(before, after, 1))
    site.raw("/robots.txt", status=404)
    site.answers = Fallback(site.answers)
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            await job.publish()
        monkeypatch.delattr(Renderer, "_render")  # the next night needs no browser, for the question either
        again = await crawled(settings(origin, tmp_path))
    for one in (found, again):
        became = {path: outcome(one, path) for path in one}
        true = {"/", "/about", "/lost/list"}
        assert {path for path, code in became.items() if code == "listed"} == true
        assert sorted(became[path] for path in one.keys() - true) == outcomes


@in_browser
@pytest.mark.slow
async def test_pages_without_last_slash_that_server_adds_are_listed(tmp_path: Path) -> None:
    """As Angular leaves it out, and a server of files redirects to the folder; and the other way round."""
    site = Site()
    text = "document.querySelector('#app').innerHTML = location.pathname.repeat(30) + `{}`;"
    shell(site, "/", text.format("<a href=/folder/>f</a><a href=/page>p</a>"))
    left_out = "history.replaceState(0, '', location.pathname.slice(0, -1));"
    shell(site, "/folder/", text.format("f") + left_out)
    site.raw("/folder", status=301, headers={"Location": "/folder/"})
    for path in ("/page", "/page/"):
        shell(site, path, text.format("p") + "history.replaceState(0, '', '/page/');")
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert {path: outcome(found, path) for path in found} == {
        "/": "listed",
        "/folder/": "listed",
        "/folder": "moved",
        "/page": "unlisted:canonical",
        "/page/": "listed",
    }


@in_browser
@pytest.mark.slow
async def test_pages_whose_content_was_refused_stay_listed(tmp_path: Path) -> None:
    site = Site()
    shell(site, "/", ROUTES.replace("const path", "fetch('/api/page').catch(() => {}); const path"))
    site.robots("User-agent: *\nDisallow: /api/")
    site.answers = Fallback(site.answers)
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert {outcome(found, path) for path in found} == {"listed"}


@in_browser
@pytest.mark.slow
async def test_what_rendered_links_say_is_read_in_the_browser(tmp_path: Path) -> None:
    site = Site()
    shell(site, "/", "document.querySelector('#app').innerHTML = '<nav><a href=/gone>Gone</a></nav>'")
    with site.serve() as origin:
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            assert await job.read_link_texts() == 1
            page, target = [
                await job.frontier.read(reads.NumberOf(Url(origin + path))) for path in ("/", "/gone")
            ]
            known = await job.frontier.read(reads.AnchorsOf([page]))
    row = known[page, target]
    assert (row.text, row.landmark) == ("Gone", "nav")


# Each section has a list of six pages, made by its scripts beside a menu of thirty links.
@in_browser
@pytest.mark.slow
async def test_few_links_of_scripts_beside_a_menu_are_followed(tmp_path: Path) -> None:
    site = Site()
    menu = [*(f"/list/{n}" for n in range(5)), *(f"/menu/{n}" for n in range(25))]
    site.page("/", links=menu, text=TEXT)
    for path in menu[5:]:
        site.page(path, links=menu, text=f"{path} {TEXT}")
    for number in range(5):
        items = "".join(f"<a href=/item/{number}{n}>item</a>" for n in range(6))
        script = f"<script>document.querySelector('p').innerHTML += `{items}`</script>"
        site.page(f"/list/{number}", links=menu, text=f"{number * 'more '} {TEXT}{script}")
        for n in range(6):
            known = "<script>document.body.innerHTML += '<a href=/list/0>first</a>'</script>"
            text = f"item {(number * 6 + n) * 'x'} {TEXT}{known}"
            site.page(f"/item/{number}{n}", links=menu[5:8], text=text)
    with site.serve() as origin:
        first = await crawled(settings(origin, tmp_path))
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            await job.publish()
        again = await crawled(settings(origin, tmp_path))
    for found in (first, again):
        needs = {path: seen.needs for path in found if (seen := rendering(found, path))}
        assert sum(path.startswith("/item/") for path in found) == 30
        assert sum(path.startswith("/item/") for path in needs) == 1, "its links are known without scripts"
        lists = {path: code.value for path, code in needs.items() if path.startswith("/list/")}
        assert lists == {"/list/0": "sample"} | dict.fromkeys(menu[1:5], "pattern")
