"""Parses pages that may stall or crash the HTML parser in a separate process, which runs `sandbox_child`.

Lexbor is fast on ordinary pages, but quadratic or worse on crafted ones. A page that `parse.html` calls risky
goes to a child process, which is killed when it takes too long and replaced when it dies: only that page
fails. The child returns plain JSON, which is validated, as a process that parsed hostile bytes is not trusted
either.
"""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final

import anyio
from msgspec.structs import replace

from crawler.model.reasons import Cause
from crawler.model.reply import Broken
from crawler.parse.anchors import clean
from crawler.parse.html import PageSource, shown_title
from crawler.parse.parsed_page import MAX_LINKS, ParsedPage
from crawler.parse.url import Url
from crawler.workers.channel import MALFORMED
from crawler.workers.sandbox_child import ANSWER, NoPage, Question, return_memory
from crawler.workers.spawn import Child, plain_environment, python, start

# Seconds of CPU time for one page; less after pages of this crawl timed out, down to LEAST_SECONDS.
DEADLINE: Final = 6.0
LEAST_SECONDS: Final = 1.0
# Elapsed seconds allowed for each second of CPU time, with the start of the child. Only a backstop: on a busy
# machine, elapsed time says little about a page, and the sitemap must not depend on the load of the machine.
ELAPSED_PER_CPU_SECOND: Final = 20.0
PARSE_TRIES: Final = 3  # for a page that crashes the parser
CHILDREN: Final = 1  # processes at most: each may use as much memory as the rest of the crawl
LARGE_PAGE: Final = 1_000_000  # bytes of a page from which free memory is returned to the system first
CHILD_EXIT_TIMEOUT: Final = 5.0  # seconds to wait for the exit code of a child that closed its socket
# Exit code of a child that used up its CPU time; Windows has no such limit.
OUT_OF_TIME: Final = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None
LONGEST_ERROR: Final = 200  # characters of the child's error message
LONGEST_ANSWER: Final = 64_000_000  # bytes
PARSER_MEMORY: Final = 1 << 30  # bytes of address space for a child


class Sandbox:
    """A `ports.Reader`. Children are started when first needed, and end when `running` is left."""

    def __init__(
        self,
        command: list[str] | None = None,
        *,
        deadline: float = DEADLINE,
        children: int = CHILDREN,
        reading: Callable[[Url], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """`children`: processes at most. `reading`: a context manager around parsing the page with that URL.

        `command` starts a child, `deadline` is in seconds of CPU time. Both are for tests.
        """
        self._reading = reading
        self._command = command or python("crawler.workers.sandbox_entry:serve", PARSER_MEMORY)
        self._deadline, self._stuck = deadline, 0
        self._free: list[Child] = []
        self._places = anyio.CapacityLimiter(children)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Sandbox"]:
        """Ends all children at the end."""
        try:
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                while self._free:  # idle, so that they exit at once, and profilers see what they did
                    await self._free.pop().exit(CHILD_EXIT_TIMEOUT)

    async def read(self, markup: PageSource) -> ParsedPage | Broken:
        """The parsed page, or why it could not be parsed. Never raises because of the page."""
        async with self._places:
            with self._reading(Url(markup.url)):
                return await self._read(markup)

    async def _read(self, markup: PageSource) -> ParsedPage | Broken:
        for _ in range(PARSE_TRIES):
            seconds = max(LEAST_SECONDS, self._deadline / (1 + self._stuck))
            try:
                with anyio.fail_after(seconds * ELAPSED_PER_CPU_SECOND):
                    page = await self._once(markup, seconds)
            except TimeoutError:
                self._stuck += 1
                return Broken(Cause.PARSE, f"the parser did not finish within {seconds:.0f} s")
            if page is not None:
                return page
        return Broken(Cause.CRASHED, f"the parser crashed on it {PARSE_TRIES} times")

    async def _once(self, markup: PageSource, seconds: float) -> ParsedPage | Broken | None:
        """Parses once. None if the child died. Raises `TimeoutError` if it used up its CPU time."""
        try:
            child = self._free.pop() if self._free else await self._start()
        except OSError as error:
            return Broken(Cause.PARSE, f"no parser process could be started ({error.strerror})")
        if len(markup.body) > LARGE_PAGE:
            return_memory()  # memory used to fetch the page: the child now needs ten times as much
        try:
            answer = await _ask(child, markup, seconds)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await child.end()
            raise
        if answer is None:
            await child.exit(CHILD_EXIT_TIMEOUT)
            if child.process.returncode == OUT_OF_TIME:
                raise TimeoutError
            return None
        self._free.append(child)
        return answer

    async def _start(self) -> Child:
        return await start(self._command, longest=LONGEST_ANSWER, environment=plain_environment())


async def _ask(child: Child, markup: PageSource, seconds: float) -> ParsedPage | Broken | None:
    """The parsed page; None if the child died or sent an invalid message."""
    try:
        await child.channel.send(Question(seconds, replace(markup, body=b"")).written())
        await child.channel.send(markup.body)
        (message,) = await child.channel.receive()
        return _page(message)
    except (*MALFORMED, MemoryError):
        return None


def _page(message: bytes) -> ParsedPage | Broken:
    """Decodes the message of the child. Raises one of `MALFORMED` if it is invalid."""
    answer = ANSWER.decode(message)
    if isinstance(answer, NoPage):
        return Broken(Cause.PARSE, answer.failed[:LONGEST_ERROR])
    page = answer.page
    if len(page.followed) + len(page.avoided) > MAX_LINKS:
        raise ValueError("more links than a page is allowed to have")
    anchors = tuple(one._replace(text=clean(one.text)) for one in page.anchors)
    return page._replace(title=shown_title(page.title or ""), anchors=anchors)
