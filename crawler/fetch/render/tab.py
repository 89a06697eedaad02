"""One page in the browser: its document and its requests are answered here, its scripts run in virtual time.

Virtual time (`Emulation.setVirtualTimePolicy`) runs as fast as the page has something to do, and stands still
while a request is open: a busy machine or a slow server changes nothing of what the page has done when the
budget is used up. It stands still until the navigation is committed; only then is the budget set, as a page
that is not there yet would use it up.

What observers of the viewport report depends on frames, which follow the clock. So once the budget is used
up, the window grows to the height of Googlebot's, and a frame and a little more of virtual time alternate
until the document does not change any more. A frame is drawn only once as much virtual time has passed as
real time: a page whose server is slow gets more of it.
"""

import base64
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import anyio.abc

from crawler.fetch.render import policy, snapshot
from crawler.fetch.render.inputs import Recorder
from crawler.fetch.render.policy import RequestAnswer
from crawler.fetch.render.snapshot import Snapshot
from crawler.model.reply import Response
from crawler.parse.url import Url

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

BUDGET: Final = 10_000  # milliseconds of virtual time
MORE: Final = 2_000  # milliseconds of virtual time after each further frame
MOST_FRAMES: Final = 40  # after which a page that still changes is read
MOST_FUTILE: Final = 3  # after which a page that only makes requests, as one that polls its server, is read
WIDTH: Final = 1280  # of the window, in pixels
HEIGHT: Final = 1024  # of the window at first; it decides which address scripts show for the page
TALL: Final = 12_000  # of the window for content that is loaded when it comes into view
DRIVEN: Final = (
    BUDGET, MORE, MOST_FRAMES, MOST_FUTILE, WIDTH, HEIGHT, TALL,
    policy.CSP, snapshot.PREPARE, snapshot.SCRIPT,
)  # fmt: skip
"""What decides how a page is rendered: if it changes, pages are rendered again."""
_FRAME_TIMEOUT: Final = 5.0  # seconds that a frame may take
_WORLD: Final = "snapshot"
_EVENT_TIMEOUT: Final = 2.0  # seconds that an event may come after the request that it is about
_SOON: Final = 0.02  # seconds in which most of them come
_TURNS: Final = 20  # of the page, in which no more of an answer is read that it does read
# Navigations by a refresh, which `judge` reads in the document: only one without delay is a redirect.
_REFRESH: Final = frozenset({"metaTagRefresh", "httpHeaderRefresh"})
_READ_BY_SCRIPTS: Final = frozenset({"XHR", "Fetch"})
_STYLE: Final = [("content-type", "text/css"), ("access-control-allow-origin", "*")]


Send: TypeAlias = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """The request is answered already."""


class Crashed(Exception):  # noqa: N818 - not an error of the program
    """The page crashed its process."""


class Tab:
    """A page that is being rendered."""

    def __init__(
        self, page: "Page", session: "CDPSession", url: Url, shell: Response, *, resources: Recorder
    ) -> None:
        """`shell`: the page as the server sent it."""
        self._page, self._session, self._url, self._shell = page, session, url, shell
        self.resources = resources
        self._frame = ""
        self._is_loaded = False
        self._answered = anyio.Event()  # set when the last request is answered
        self._answered.set()
        self._reasons: dict[str, str] = {}  # why the page navigates, by URL
        self._navigation = anyio.Event()  # set when there is another one
        self._ended, self._has_crashed = anyio.Event(), False
        self._expired = anyio.Event()  # set when the virtual time that was granted is used up
        self._began, self._spent = 0.0, 0  # when virtual time began, and milliseconds of it
        self._address = ""  # of the page, as the browser writes it
        self._loads: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)  # by number of the request
        self._parts = Counter[str]()  # of answers that have come to the page, by the same
        self.redirect: str | None = None  # where its scripts led
        self.replaced: str | None = None  # the address that they show instead
        self.canonical: str | None = None  # the same, but for its last slash
        self.requests = self.refused = self.bytes = self._asked = 0

    async def render(self, now: int, limit: int) -> Snapshot | None:
        """Runs the scripts. None if they led to another page. Raises `Crashed`, playwright's `Error`.

        `now`: what clocks of the page show, in seconds since the epoch; `limit`: characters of HTML.
        """
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._run, tasks, now)
                await self._ended.wait()  # also set by a crash, after which the browser answers nothing
                tasks.cancel_scope.cancel()
        except* Error:
            self.crash()
        finally:
            self._ended.set()
        if self._has_crashed:
            raise Crashed
        self.redirect = self.redirect or self.replaced
        if self.redirect:
            return None
        return snapshot.read(await self._evaluate(f"({snapshot.SCRIPT})({limit})"))

    async def _run(self, tasks: anyio.abc.TaskGroup, now: int) -> None:
        await self._intercept(tasks)
        await self._time("pause", initialVirtualTime=now)
        self._began = anyio.current_time()
        await self._page.goto(self._url, wait_until="commit", timeout=0)
        await self._spend(BUDGET)
        await self._rest(HEIGHT)
        self.replaced = await self._replaced()
        await self._session.send(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDTH, "height": TALL, "deviceScaleFactor": 1, "mobile": False},
        )
        await self._rest(TALL)
        self._ended.set()

    async def _spend(self, budget: int) -> None:
        """Lets that much virtual time pass."""
        self._spent += budget
        self._expired = anyio.Event()
        await self._time("pauseIfNetworkFetchesPending", budget=budget)
        await self._expired.wait()

    async def _rest(self, height: int) -> None:
        """Lets the page do what follows from frames of that height, until nothing does."""
        before, now, futile = None, await self._measured(), 0
        for _ in range(MOST_FRAMES):
            if now == before or futile == MOST_FUTILE:
                break
            before = now
            await self._draw(height)
            await self._spend(MORE)
            now = await self._measured()
            futile = futile + 1 if now[1] == before[1] else 0

    async def _measured(self) -> tuple[int, Any]:
        return self.requests + self.refused, await self._evaluate(snapshot.SIZE)

    async def _draw(self, height: int) -> None:
        is_drawn = False
        while not is_drawn:
            passed = int(1000 * (anyio.current_time() - self._began + _FRAME_TIMEOUT))
            if passed > self._spent:
                await self._spend(passed - self._spent)
            with anyio.move_on_after(_FRAME_TIMEOUT):
                is_drawn = await self._evaluate(f"({snapshot.FRAME})({height})")

    async def _replaced(self) -> str | None:
        """The address that scripts show in place of that of the page; None if a reader can go back to it."""
        history = await self._session.send("Page.getNavigationHistory")
        shown = [entry["url"].partition("#")[0] for entry in history["entries"]]
        if self._address in shown:
            return None
        replaced = snapshot.replacement(self._address, shown[history["currentIndex"]])
        if replaced and snapshot.is_same_but_for_slash(self._address, replaced):
            self.canonical, replaced = replaced, None
        return replaced

    async def _intercept(self, tasks: anyio.abc.TaskGroup) -> None:
        session = self._session
        session.on("Fetch.requestPaused", partial(self._on_request, tasks))
        session.on("Network.responseReceived", self._on_part)
        session.on("Network.dataReceived", self._on_part)
        session.on("Network.loadingFinished", self._on_loaded)
        session.on("Network.loadingFailed", self._on_loaded)
        session.on("Emulation.virtualTimeBudgetExpired", lambda _: self._expired.set())
        session.on("Page.frameRequestedNavigation", self._navigates)
        session.on("Page.frameNavigated", self._has_navigated)
        self._page.on("crash", lambda _: self.crash())
        tree = await session.send("Page.getFrameTree")
        self._frame = tree["frameTree"]["frame"]["id"]
        await session.send("Page.enable")
        await session.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})
        await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    def _navigates(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame:
            self._reasons[event["url"]] = event["reason"]
            self._navigation.set()
            self._navigation = anyio.Event()

    def _has_navigated(self, event: dict[str, Any]) -> None:
        if event["frame"]["id"] == self._frame and not self._address:
            self._address = event["frame"]["url"].partition("#")[0]

    def crash(self) -> None:
        """The page, or the whole browser, has ended."""
        self._has_crashed = True
        self._ended.set()

    async def _time(self, mode: str, **more: int) -> None:
        await self._session.send("Emulation.setVirtualTimePolicy", {"policy": mode, **more})

    async def _evaluate(self, expression: str) -> Any:
        world = await self._session.send(  # the same one, as long as the document is
            "Page.createIsolatedWorld", {"frameId": self._frame, "worldName": _WORLD}
        )
        given = {"contextId": world["executionContextId"], "returnByValue": True, "awaitPromise": True}
        found = await self._session.send("Runtime.evaluate", {"expression": expression, **given})
        return found["result"].get("value")

    # -- requests -----------------------------------------------------------------------------------------

    def _on_request(self, tasks: anyio.abc.TaskGroup, event: dict[str, Any]) -> None:
        if not self._ended.is_set():
            tasks.start_soon(self._answer, event, *self._next())

    def _next(self) -> tuple[anyio.Event, anyio.Event]:
        """Set when the request before is answered; to be set when this one is."""
        before, self._answered = self._answered, anyio.Event()
        return before, self._answered

    async def _answer(self, event: dict[str, Any], before: anyio.Event, answered: anyio.Event) -> None:
        """Answers requests in the order in which they were made, whichever is faster."""
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        with suppress(Error):  # the page is gone, or did not wait
            try:
                send = await self._handled(event)
                await before.wait()
                await send()
            except Error:  # the browser refused the answer
                await self._refuse(event)
            else:
                if event["resourceType"] in _READ_BY_SCRIPTS:
                    await self._loaded(event.get("networkId", ""))
        answered.set()

    def _on_loaded(self, event: dict[str, Any]) -> None:
        self._loads[event["requestId"]].set()

    async def _loaded(self, network: str) -> None:
        """Waits until the page has an answer: one that it reads in parts is later than a refusal.

        One that it does not read does not end. Then it has done much else since the last part came: time
        tells nothing on a busy machine.
        """
        with anyio.move_on_after(_SOON):
            await self._loads[network].wait()
        parts, left = self._parts[network], _TURNS
        with anyio.move_on_after(_EVENT_TIMEOUT):
            while left and not self._loads[network].is_set():
                await self._session.send("Runtime.evaluate", {"expression": "0"})
                left = left - 1 if parts == self._parts[network] else _TURNS
                parts = self._parts[network]
        del self._loads[network], self._parts[network]

    def _on_part(self, event: dict[str, Any]) -> None:
        self._parts[event["requestId"]] += 1

    async def _handled(self, event: dict[str, Any]) -> Send:
        """How the request is answered, once it is its turn."""
        request, kind = event["request"], event["resourceType"]
        if kind == "Document" and event.get("frameId") == self._frame:
            return await self._navigate(event)
        answer = policy.answer(kind, request["method"], request["url"], request["headers"], self._url)
        match answer:
            # Also counted if nobody answers: which are made must not depend on when that is known.
            case RequestAnswer.FETCH if self._asked < policy.MAX_REQUESTS and self.bytes < policy.MAX_BYTES:
                return await self._fetch(event)
            case RequestAnswer.PREFLIGHT:
                return partial(self._fulfil, event, 204, policy.allowing(request["headers"]), b"")
            case RequestAnswer.EMPTY_STYLE:
                return partial(self._fulfil, event, 200, _STYLE, b"")
            case _:
                return partial(self._refuse, event)

    async def _navigate(self, event: dict[str, Any]) -> Send:
        """The document of the page; any further one is a redirect by a script, which is not followed here."""
        request = event["request"]
        if not self._is_loaded:
            self._is_loaded = True
            headers = policy.of_document(self._shell.headers)
            return partial(self._fulfil, event, 200, headers, self._shell.body)
        await self._fulfil(event, 204, (), b"")  # an error would replace the page
        to = request["url"].partition("#")[0]
        if request["method"] == "GET" and to.startswith(("http://", "https://")) and to != self._url:
            reason = await self._reason(request["url"] + request.get("urlFragment", ""))
            if reason not in _REFRESH:
                self.redirect = self.redirect or to
                self._ended.set()
        return _nothing

    async def _reason(self, url: str) -> str:
        """Why the page navigates there: the event may come after the request."""
        with anyio.move_on_after(_EVENT_TIMEOUT):
            while url not in self._reasons:
                await self._navigation.wait()
        return self._reasons.get(url, "")

    async def _fetch(self, event: dict[str, Any]) -> Send:
        request, kind = event["request"], event["resourceType"]
        self._asked += 1
        url, sent = Url(request["url"].partition("#")[0]), policy.forwarded(request["headers"])
        reply = await self.resources.get(url, sent, keep=kind in policy.CACHED)
        if not isinstance(reply, Response):
            return partial(self._refuse, event)
        self.requests += 1
        self.bytes += len(reply.body)
        headers = (policy.of_document if kind == "Document" else policy.returned)(reply.headers)
        return partial(self._fulfil, event, reply.status, headers, reply.body)

    async def _fulfil(
        self, event: dict[str, Any], status: int, headers: Iterable[tuple[str, str]], body: bytes
    ) -> None:
        fields = [{"name": name, "value": value} for name, value in headers]
        answer = {"requestId": event["requestId"], "responseCode": status, "responseHeaders": fields}
        if body:
            answer["body"] = base64.b64encode(body).decode("ascii")
        await self._session.send("Fetch.fulfillRequest", answer)

    async def _refuse(self, event: dict[str, Any]) -> None:
        self.refused += 1
        await self._session.send(
            "Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "BlockedByClient"}
        )
