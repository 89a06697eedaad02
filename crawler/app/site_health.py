"""Asks pages of the site once more before a publication: pages that had answered, if many others failed, and
published pages to which no link leads any more.

The frontier chooses the pages, spread over the site; `rules.failures` and the guard decide what the answers
mean. Nothing here changes what is listed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import anyio
from msgspec import Struct

from crawler.engine.robots import Access
from crawler.engine.together import together
from crawler.errors import Interrupted
from crawler.model.log import log
from crawler.model.note import HEALTH, VANISHED
from crawler.model.outcome import Moved, code
from crawler.model.reply import Broken, Reply
from crawler.model.survey import SiteHealth, VanishedPage, VanishedPages
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, Request, reads
from crawler.rules.failures import ASKED
from crawler.rules.judge import Judge
from crawler.sitemap.publish.difference import LONGEST_SHOWN

SECONDS: Final = 60.0  # for all answers together, apart from the delay between requests
AT_ONCE: Final = 5  # requests
MOST_VANISHED: Final = 100  # pages that are asked
MOST_NAMED: Final = 10_000  # pages that the report has


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


class SiteCheck(Struct, frozen=True):
    """Asks pages, each at a slot of its own, until the job is stopped."""

    frontier: Frontier
    access: Access
    judge: Judge
    stop: Stop

    async def health(self) -> SiteHealth:
        """What pages that had answered answer now. Raises `Interrupted` if the job is stopped."""
        pages = await self.frontier.read(reads.AnsweringPages(ASKED))
        with self.stop.interrupting():
            replies = await self._replies(pages)
            silent = [
                f"{page[:LONGEST_SHOWN]} ({fault})" for page in pages if (fault := _fault(page, replies))
            ]
            health = SiteHealth(len(pages), len(pages) - len(silent), silent)
            log.info(
                "many pages failed; asked some again that had answered",
                asked=health.asked,
                answered=health.answered,
            )
            await self.frontier.remember(HEALTH, health)
            return health
        raise Interrupted

    async def vanished(self) -> VanishedPages:
        """The published pages to which no link leads any more. They are asked unless the job is stopped."""
        outcomes, known = await together(
            self.frontier.read(reads.PublishedOutcomes()), self.frontier.recall(VANISHED)
        )
        count = outcomes.get("", 0)
        if not count or known.count:
            return known
        lost = await self.frontier.read(reads.LostPages(MOST_NAMED))
        passing = len(await self.frontier.read(reads.LostPages(MOST_NAMED, passing=True)))
        found = VanishedPages(count, (), lost, passing)
        hosts = {host.origin for host in await self.frontier.read(reads.BusiestHosts())}
        some = await self.frontier.read(reads.LostPages(MOST_VANISHED))
        pages = [page for page in some if origin(page) in hosts]
        with self.stop.interrupting():
            replies = await self._replies(pages)
            asked = [self._seen(page, replies[page]) for page in pages if page in replies]
            others = set(lost) - {page.url for page in asked}
            found = VanishedPages(count, asked, sorted(others)[: MOST_NAMED - len(asked)], passing)
        await self.frontier.remember(VANISHED, found)
        return found

    def _seen(self, page: Url, reply: Reply | None) -> VanishedPage:
        if reply is None:
            return VanishedPage(page, "unlisted:robots")
        lease, now = Lease(0, 0, Visit(page)), datetime.fromtimestamp(self.frontier.clock(), UTC)
        markup = self.judge.markup(lease, reply, now)
        if markup and (markup.is_risky or markup.is_long):  # parsing it in this process might stall the crawl
            return VanishedPage(page, "")
        outcome = self.judge(lease, reply, now).outcome
        return VanishedPage(page, code(outcome), outcome.to if isinstance(outcome, Moved) else "")

    async def _replies(self, pages: Sequence[Url]) -> dict[Url, Reply | None]:
        """The replies that arrive in time; None if robots.txt forbids a page."""
        replies: dict[Url, Reply | None] = {}
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def ask(page: Url) -> None:
            async with limiter:
                is_allowed = (await self.access.permit(page)).allowed
                request = Request(page, wants_body=self.judge.wants_body)
                replies[page] = await self.access.fetch(request) if is_allowed else None

        with anyio.move_on_after(SECONDS + self.access.delay * len(pages)):
            async with anyio.create_task_group() as tasks:
                for page in pages:
                    tasks.start_soon(ask, page)
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
