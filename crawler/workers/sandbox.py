"""Pages that may stall or crash the HTML parser, read in a process of their own: `sandbox_child` is what runs there.

Lexbor is quick on what people write and quadratic, or worse, on what some write to hurt. A page that `parse.html`
calls risky goes to a child, which is killed when it takes too long and replaced when it dies: that costs the page,
not the crawl. What comes back is plain JSON, as a process that parsed hostile bytes is not trusted either.
"""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import fields
from typing import Any, Final

import anyio

from crawler.model.reasons import Cause
from crawler.model.reply import Broken
from crawler.parse.html import MAX_CANONICALS, MAX_LINKS, Page, PageSource, shown_title
from crawler.parse.url import Url
from crawler.workers.messages import NONSENSE
from crawler.workers.sandbox_child import give_back
from crawler.workers.spawn import Child, plain_environment, python, start

DEADLINE: Final = (
    6.0  # seconds of processor time for one page; less once pages of this crawl got stuck, down to:
)
SHORTEST: Final = 1.0
# What the clock may show for a second of processor time, with the start of the child: only a guard, as on a busy
# machine the clock says little about a page, and the sitemap must not depend on what else the machine does.
BUSY: Final = 20.0
TRIES: Final = 3  # of a page that the parser dies on
CHILDREN: Final = 1  # processes at most: each may take as much memory as all else
LARGE: Final = 1_000_000  # bytes of a page that is worth giving memory back for
LEAVING: Final = 5.0  # seconds that a child which broke off may take to end, so that we learn why
OUT_OF_TIME: Final = (
    -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None
)  # how it ends then; Windows has no such limit
LONGEST_DETAIL: Final = 200  # characters of its reason for giving up
LONGEST_PRINT: Final = 200  # characters of a fingerprint
LONGEST_ANSWER: Final = 64_000_000  # bytes
MEMORY: Final = 1 << 30  # bytes of address space that a child may have

_QUESTION: Final = tuple(name.name for name in fields(PageSource) if name.name != "body")


class Sandbox:
    """A `ports.Reader`. Children are started when they are first needed, and end with `running`."""

    def __init__(
        self,
        command: list[str] | None = None,
        *,
        deadline: float = DEADLINE,
        children: int = CHILDREN,
        reading: Callable[[Url], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """`children`: at most; within `reading` one of them has the page with that URL.

        `command` starts one, `deadline` is in seconds of processor time: for tests.
        """
        self._reading = reading
        self._command = command or python("crawler.workers.sandbox_child:serve", MEMORY)
        self._deadline, self._stuck = deadline, 0
        self._free: list[Child] = []
        self._places = anyio.CapacityLimiter(children)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Sandbox"]:
        """Leaves no process behind."""
        try:
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                while self._free:
                    await self._free.pop().end()

    async def read(self, markup: PageSource) -> Page | Broken:
        """What the page says, or why that cannot be told. Never raises for what the page does."""
        async with self._places:
            with self._reading(Url(markup.url)):
                return await self._read(markup)

    async def _read(self, markup: PageSource) -> Page | Broken:
        for _ in range(TRIES):
            seconds = max(SHORTEST, self._deadline / (1 + self._stuck))
            try:
                with anyio.fail_after(seconds * BUSY):
                    page = await self._once(markup, seconds)
            except TimeoutError:
                self._stuck += 1
                return Broken(Cause.PARSE, f"the parser did not finish within {seconds:.0f} s")
            if page is not None:
                return page
        return Broken(Cause.CRASHED, f"the parser crashed on it {TRIES} times")

    async def _once(self, markup: PageSource, seconds: float) -> Page | Broken | None:
        """Nothing, if the child died. Raises `TimeoutError` when it ran out of processor time."""
        try:
            child = self._free.pop() if self._free else await self._start()
        except OSError as error:
            return Broken(Cause.PARSE, f"no parser process could be started ({error.strerror})")
        if len(markup.body) > LARGE:
            give_back()  # what it took to fetch it: the child takes ten times as much now
        try:
            answer = await _ask(child, markup, seconds)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await child.end()
            raise
        if answer is None:
            await child.leave(LEAVING)
            if child.process.returncode == OUT_OF_TIME:
                raise TimeoutError
            return None
        self._free.append(child)
        return answer

    async def _start(self) -> Child:
        return await start(self._command, longest=LONGEST_ANSWER, environment=plain_environment())


async def _ask(child: Child, markup: PageSource, seconds: float) -> Page | Broken | None:
    """What the page says; nothing, if the child died or said what makes no sense."""
    question = {name: getattr(markup, name) for name in _QUESTION}
    try:
        await child.channel.send_json({"seconds": seconds, "page": question})
        await child.channel.send(markup.body)
        (said,) = await child.channel.receive_json()
        return _page(said)
    except (*NONSENSE, MemoryError):
        return None


def _page(said: dict[str, Any]) -> Page | Broken:
    """What the child said. Raises `ValueError` and its like for what none of us wrote."""
    if "failed" in said:
        return Broken(Cause.PARSE, _text(said["failed"])[:LONGEST_DETAIL])
    texts = {
        name: tuple(map(_text, _list(said[name]))) for name in ("followed", "avoided", "canonicals", "dates")
    }
    if (
        len(texts["followed"]) + len(texts["avoided"]) > MAX_LINKS
        or len(texts["canonicals"]) > MAX_CANONICALS
    ):
        raise ValueError("more than a page is allowed to have")
    refresh = said["refresh"]
    return Page(
        base=_text(said["base"]),
        **texts,
        robots=tuple((_text(name), _text(content)) for name, content in _list(said["robots"])),
        refresh=None if refresh is None else (float(refresh[0]), _text(refresh[1])),
        encoding=_text(said["encoding"]),
        truncated=bool(said["truncated"]),
        content=_short(said["content"]),
        unordered=_short(said["unordered"]),
        scripted=bool(said["scripted"]),
        password=bool(said["password"]),
        length=None if said["length"] is None else int(said["length"]),
        title=shown_title(_text(said["title"] or "")),
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _short(value: Any) -> str | None:
    """A fingerprint, if there is one."""
    if value is None:
        return None
    if len(_text(value)) > LONGEST_PRINT:
        raise ValueError("no fingerprint")
    return str(value)
