"""A fetcher that runs the scripts of a page in a browser when asked to, and passes on all other requests.

The browser starts with the first page that needs it. A page whose time is up takes its browser with it; pages
that were open beside it, or in a browser that died, are rendered again, each in a browser of its own. A page
whose browser dies three times is a failure of that page.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec.structs import replace

from crawler import scratch
from crawler.errors import ConfigError, ungrouped
from crawler.fetch.render import chromium, inputs, snapshot
from crawler.fetch.render.browser import Browser
from crawler.fetch.render.chromium import environment_of_driver
from crawler.fetch.render.inputs import Inspector, Recorder, browser_digest
from crawler.fetch.render.resources import LONGEST_LOOK, Deadline, Permission, Resources
from crawler.fetch.render.snapshot import Snapshot
from crawler.fetch.render.tab import DRIVEN, HEIGHT, WIDTH, Crashed, Tab
from crawler.model.facts import Validators
from crawler.model.log import log
from crawler.model.reasons import Cause
from crawler.model.rendering import Inputs, Rendering
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.model.visit import LONGEST_VISIT
from crawler.parse.url import Url, origin
from crawler.ports import Fetcher, Request
from crawler.report.printable import printable
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page, Playwright

LONGEST_SENTENCE: Final = 300  # characters of what a browser that does not start says
DEATHS: Final = 3  # of the browser, on one page, until it fails
MOST_TABS: Final = 8  # pages at a time; fewer with fewer processors
GRACE: Final = 20.0  # seconds in which the browser of an overdue page is ended
_DRIVER: Final = "--render: the driver of playwright cannot be started"
OVERDUE: Final = f"it waited for slots and browsers for {LONGEST_VISIT:.0f} s"
DAY: Final = 86_400  # seconds: clocks of pages show midnight, so that two renders of a day are alike
_NO_SANDBOX: Final = ("sandboxing failed", "No usable sandbox", "zygote_host")  # in what the browser says
# What the answer of the server says of its bytes, which are no longer those of the page: see
# docs/use/recipes.md.
_OF_THE_SHELL: Final = frozenset({
    "etag", "last-modified", "content-length", "content-encoding", "transfer-encoding", "content-type",
})  # fmt: skip


class Renderer:
    """A `ports.Fetcher`. Open as a context manager: it holds the browser."""

    def __init__(
        self, settings: Settings, fetcher: Fetcher, resources: Resources, path: str, tabs: int
    ) -> None:
        """`path`: of the browser. `tabs`: pages at a time."""
        self._fetcher, self._resources, self._path = fetcher, resources, path
        self._driven = browser_digest(path, chromium.ARGUMENTS, DRIVEN)
        self._inspector = Inspector(resources, self._driven)
        self._seconds, self._limit = settings.http.total_timeout, settings.http.max_body
        self._places = anyio.CapacityLimiter(tabs)
        self._alone, self._starting = anyio.Lock(), anyio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._open: set[Browser] = set()
        self._files = ExitStack()  # of the driver and its browsers
        self._has_warned = False
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Renderer"]:
        """Ends all browsers on exit."""
        try:
            with ungrouped():
                async with anyio.create_task_group() as self._tasks:
                    yield self
                    self._tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                for browser in self._open:
                    await browser.close()
                await self._stop()

    async def fetch(self, request: Request) -> Reply:
        """See `ports.Fetcher.fetch`.

        A request with a `shell` is answered with the page that its scripts make of it.
        """
        with anyio.CancelScope(deadline=request.until + GRACE):
            if request.shell is not None and request.shell.rendering is not None:
                return await self._render(request, request.shell, request.shell.rendering)
            if request.inputs is not None and self._inspector.may_count(request.inputs, _today()):
                return await self._inspect(request, request.inputs)
            return await self._fetcher.fetch(request)
        return Broken(Cause.TIMEOUT, OVERDUE)

    async def _inspect(self, request: Request, known: Inputs) -> Reply:
        """A 304 if the page needs not be rendered again; otherwise its shell."""
        shell = known.shell
        reply = await self._fetcher.fetch(replace(request, validators=Validators(shell.etag, shell.modified)))
        is_confirmed = inputs.is_confirmed(shell, reply)
        if not isinstance(reply, Response) or not (is_confirmed or inputs.digest(reply) == shell.digest):
            return reply
        with anyio.CancelScope() as scope:
            deadline = Deadline(scope, self._seconds, longest=LONGEST_LOOK, until=request.until)
            if await self._inspector.are_same(known, deadline.waiting):
                return Response(304, reply.headers, took=reply.took)
        if not is_confirmed:
            return reply
        await self._resources.slot(origin(request.url))
        return await self._fetcher.fetch(request)

    async def _render(self, request: Request, shell: Response, rendering: Rendering) -> Reply:
        deaths = 0
        while deaths < DEATHS:
            lent = self._shared() if deaths == 0 else self._own()
            async with self._places, lent as browser:
                reply = await self._attempt(browser, request, shell, rendering)
            if reply is not None:
                return reply
            deaths += not browser.is_overdue  # it was killed because of another page
        return Broken(Cause.CRASHED, f"the browser died on it {DEATHS} times")

    async def _attempt(
        self, browser: Browser, request: Request, shell: Response, rendering: Rendering
    ) -> Reply | None:
        """Renders the page once. None if the browser died."""
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        with anyio.CancelScope() as scope:
            deadline = Deadline(scope, self._seconds, until=request.until)
            try:
                return await self._in_context(browser, request.url, shell, rendering, deadline)
            except (Crashed, Error):
                if not browser.process.is_connected():
                    browser.kill()  # or its driver has died
                return None
            except (ValueError, LookupError, TypeError) as error:
                return Broken(Cause.PARSE, f"the browser returned no page ({type(error).__name__})")
        browser.is_overdue = True
        browser.kill()
        if anyio.current_time() >= request.until:
            return Broken(Cause.TIMEOUT, OVERDUE)
        waited = f"within {self._seconds:.0f} s (--total-timeout)"
        return Broken(Cause.TIMEOUT, f"its scripts did not come to rest {waited}")

    async def _in_context(
        self, browser: Browser, url: Url, shell: Response, rendering: Rendering, deadline: Deadline
    ) -> Reply:
        """Renders the page in a context of its own: no cookie and no storage of another page is there."""
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        context = await browser.process.new_context(
            service_workers="block",
            accept_downloads=False,
            locale="en-US",
            timezone_id="UTC",
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        try:
            await context.add_init_script(snapshot.PREPARE)
            page = await context.new_page()
            context.on("page", self._close)
            session = await context.new_cdp_session(page)
            asked = Recorder(self._resources, deadline.waiting, self._driven, _today())
            tab = Tab(page, session, url, shell, resources=asked)
            browser.tabs.add(tab)
            try:
                shown = await tab.render(asked.day * DAY, self._limit)
            finally:
                browser.tabs.discard(tab)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(Error):
                await context.close()
        return self._reply(url, shell, rendering, tab, shown)

    def _close(self, popup: "Page") -> None:
        if self._tasks:
            self._tasks.start_soon(_close, popup)

    def _reply(
        self, url: Url, shell: Response, rendering: Rendering, tab: Tab, shown: Snapshot | None
    ) -> Reply:
        if shown is not None and shown.html is None:
            return Broken(Cause.TOO_LARGE, f"more than {self._limit:,} characters once its scripts ran")
        body = (
            snapshot.redirect(tab.redirect or "")
            if shown is None
            else snapshot.document(shown.html or "", url, shown.base, tab.canonical)
        )
        fields = [(name, value) for name, value in shell.headers if name not in _OF_THE_SHELL]
        essence = (shell.headers.get("content-type") or "text/html").partition(";")[0]
        return Response(
            shell.status,
            Headers([*fields, ("content-type", f"{essence}; charset=utf-8")]),
            body,
            shell.took,
            rendering._replace(
                requests=tab.requests,
                refused=tab.refused,
                bytes=tab.bytes,
                hash_routes=shown.routes if shown else 0,
                inputs=tab.resources.inputs(url, shell),
            ),
        )

    # -- browsers -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _shared(self) -> AsyncIterator[Browser]:
        """The browser that most pages share, or the next one."""
        async with self._starting:
            if self._browser is None or not self._browser.is_fit:
                self._browser = await self._start()
            browser = self._browser
            browser.take()
        try:
            yield browser
        finally:
            browser.lent -= 1
            if not browser.is_fit and browser.lent == 0:
                await self._end(browser)

    @asynccontextmanager
    async def _own(self) -> AsyncIterator[Browser]:
        """A browser for one page that another one died on."""
        async with self._alone:
            async with self._starting:
                browser = await self._start()
            try:
                yield browser
            finally:
                await self._end(browser)

    async def _end(self, browser: Browser) -> None:
        await browser.close()
        self._open.discard(browser)

    async def _start(self) -> Browser:
        """Raises `ConfigError`."""
        from playwright.async_api import Error  # noqa: PLC0415 - an extra

        try:
            return await self._launch()
        except Error:  # the driver may have died
            await self._stop()
        try:
            return await self._launch()
        except Error as error:
            raise ConfigError(f"--render: {self._path} cannot be started: {_sentence(error)}") from error

    async def _launch(self) -> Browser:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - an extra; takes long to import

        if self._playwright is None:
            await _check_driver()
            with environment_of_driver(self._files.enter_context(scratch.folder())):
                try:
                    self._playwright = await async_playwright().start()
                except Exception as error:  # of no class of its own
                    raise ConfigError(f"{_DRIVER}: {_sentence(error)}") from error
        sandbox = chromium.has_sandbox()
        process = await self._playwright.chromium.launch(
            executable_path=self._path,
            args=list(chromium.ARGUMENTS),
            chromium_sandbox=sandbox,
            env=chromium.environment(),
            proxy={"server": chromium.DEAD_PROXY, "bypass": "<-loopback>"},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        session = await process.new_browser_cdp_session()
        known = await session.send("SystemInfo.getProcessInfo")
        pid = next(int(each["id"]) for each in known["processInfo"] if each["type"] == "browser")
        browser = Browser(process, pid)
        self._open.add(browser)
        if self._tasks:
            self._tasks.start_soon(browser.watch)
        log.info("a browser was started", browser=self._path, version=process.version)
        if not (sandbox or self._has_warned):
            self._has_warned = True
            log.warning(
                "the browser runs without its own sandbox, because the crawler runs as root",
                browser=self._path,
            )
        return browser

    async def _stop(self) -> None:
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            with anyio.move_on_after(5), suppress(Exception):
                await playwright.stop()
        self._files.close()


def _today() -> int:
    return int(time.time()) // DAY


async def _close(popup: "Page") -> None:
    from playwright.async_api import Error  # noqa: PLC0415 - an extra

    with suppress(Error):
        await popup.close()


async def _check_driver() -> None:
    """Raises `ConfigError` if the driver of playwright, a Node.js program, cannot run here."""
    from playwright._impl._driver import compute_driver_executable  # noqa: PLC0415 - an extra

    program, _ = compute_driver_executable()
    try:
        done = await anyio.run_process([program, "--version"], check=False)
        why = done.stderr.decode(errors="replace").strip() if done.returncode else ""
    except OSError as error:
        why = str(error)
    if why:
        why = printable(why.splitlines()[-1], LONGEST_SENTENCE)
        raise ConfigError(f"{_DRIVER}: {why}")


def _sentence(error: Exception) -> str:
    """Why the browser did not start, in playwright's message, which contains the log of the browser."""
    text = str(error).strip()
    if any(sign in text for sign in _NO_SANDBOX):
        return (
            "its sandbox is not permitted here; it needs user namespaces "
            "(in Docker: --security-opt seccomp=…, see docs/run/containers.md)."
        )
    lines = [line.partition("[err]")[2].strip() for line in text.splitlines() if "[err]" in line]
    said = next((line for line in lines if "error" in line.lower()), "")
    return printable(said or text.partition("\n")[0], LONGEST_SENTENCE)


def check(settings: Settings) -> None:
    """Checks that pages can be rendered. Raises `ConfigError`, which says what to install."""
    if settings.pace.processes > 1:
        raise ConfigError("--render needs --processes 1: the browser already runs in processes of its own.")
    chromium.find(settings.render.browser)


@asynccontextmanager
async def open_renderer(
    settings: Settings, fetcher: Fetcher, permission: Permission, slot: Callable[[str], Awaitable[None]]
) -> AsyncIterator[Fetcher]:
    """`fetcher` with a browser. `permission` and `slot`: see `Resources`. Raises `ConfigError`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigError(
            "--render runs on asyncio only: playwright, which drives the browser, needs it."
        ) from None
    tabs = min(settings.pace.concurrency, MOST_TABS, 2 * (os.cpu_count() or 1))
    path = chromium.find(settings.render.browser)
    resources = Resources(fetcher, permission, slot, seconds=settings.http.total_timeout / 2)
    async with Renderer(settings, fetcher, resources, path, tabs).running() as renderer:
        yield renderer
