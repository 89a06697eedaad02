"""Asks pages of the site once more before a publication: pages that had answered, if many others failed, and
published pages to which no link leads any more.

The frontier chooses the pages, spread over the site; `rules.failures` and the guard decide what the answers
mean. Nothing here changes what is listed.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import anyio
from msgspec import Struct

from crawler.engine.robots import Access
from crawler.model.outcome import Moved, code
from crawler.model.reply import Broken, Reply
from crawler.model.survey import SiteHealth, VanishedPage
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.rules.judge import Judge
from crawler.sitemap.publish.difference import LONGEST_SHOWN

SECONDS: Final = 60.0  # for all answers together, apart from the delay between requests
AT_ONCE: Final = 5  # requests
MOST_VANISHED: Final = 100  # pages that are asked
MOST_NAMED: Final = 10_000  # pages that the report has

log = logging.getLogger("crawler")

Ask = Callable[[Url], Awaitable[Reply | None]]


class Stop(Struct, eq=False):
    """Why a job was stopped, if it was. It interrupts what is asked after the crawl."""

    why: str | None = None
    _asking: anyio.CancelScope | None = None

    def __call__(self, why: str) -> None:
        """Ends what is being asked, and all that would be."""
        self.why = why
        if self._asking:
            self._asking.cancel()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """A block that ends early when the job is stopped."""
        with anyio.CancelScope() as self._asking:
            if self.why:
                self._asking.cancel()
            yield


def asking(access: Access, judge: Judge) -> Ask:
    """Requests a page at a slot of its own; None if robots.txt forbids it."""

    async def ask(page: Url) -> Reply | None:
        if not (await access.permit(page)).allowed:
            return None
        return await access.fetch(Request(page, wants_body=judge.wants_body))

    return ask


async def ask_again(pages: Sequence[Url], ask: Ask, delay: float) -> SiteHealth:
    """What pages answer now that had answered. `delay`: seconds between two requests to the site."""
    replies = await _replies(pages, ask, delay)
    silent = [f"{page[:LONGEST_SHOWN]} ({fault})" for page in pages if (fault := _fault(page, replies))]
    health = SiteHealth(len(pages), len(pages) - len(silent), silent)
    fields = {"asked": health.asked, "answered": health.answered}
    log.info("many pages failed; asked some again that had answered", extra={"fields": fields})
    return health


class VanishedCheck(Struct, frozen=True):
    """Asks the published pages to which no link leads any more. `now`: seconds since the epoch."""

    ask: Ask
    delay: float
    judge: Judge
    now: Callable[[], float]

    async def __call__(self, pages: Sequence[Url]) -> Sequence[VanishedPage]:
        """What the pages answer."""
        replies = await _replies(pages, self.ask, self.delay)
        return [self._seen(page, replies[page]) for page in pages if page in replies]

    def _seen(self, page: Url, reply: Reply | None) -> VanishedPage:
        if reply is None:
            return VanishedPage(page, "unlisted:robots")
        lease, now = Lease(0, 0, Visit(page)), datetime.fromtimestamp(self.now(), UTC)
        markup = self.judge.markup(lease, reply, now)
        if markup and (markup.is_risky or markup.is_long):  # it would stall the crawl: it is parsed here
            return VanishedPage(page, "")
        outcome = self.judge(lease, reply, now).outcome
        return VanishedPage(page, code(outcome), outcome.to if isinstance(outcome, Moved) else "")


async def _replies(pages: Sequence[Url], ask: Ask, delay: float) -> dict[Url, Reply | None]:
    """The replies that arrive in time."""
    replies: dict[Url, Reply | None] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def note(page: Url) -> None:
        async with limiter:
            replies[page] = await ask(page)

    with anyio.move_on_after(SECONDS + delay * len(pages)):
        async with anyio.create_task_group() as tasks:
            for page in pages:
                tasks.start_soon(note, page)
    return replies


def _fault(page: Url, replies: dict[Url, Reply | None]) -> str | None:
    if page not in replies:
        return "no answer in time"
    reply = replies[page]
    if reply is None:
        return "robots.txt forbids it now"
    if isinstance(reply, Broken):
        return reply.cause.says
    return None if reply.status < 400 else f"answered {reply.status}"
