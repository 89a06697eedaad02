"""Reads a page of the site once more, outside the queue, and renders it if it was rendered.

By robots.txt, at a slot of its own, and parsed as in a visit. It judges nothing: what becomes of the page is
decided when it is visited.
"""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from itertools import islice

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from crawler.engine.robots import Access
from crawler.model.rendering import Rendering
from crawler.model.reply import Broken, Reply, Response
from crawler.model.visit import Lease, Visit
from crawler.parse import feeds
from crawler.parse.anchors import MOST_ANCHORS, Anchor, clean
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url
from crawler.ports import Reader, Request
from crawler.rules.judge import PAGE_STATUSES, Judge


class PageReader(Struct, frozen=True):
    """Reads pages. `now`: seconds since the epoch."""

    access: Access
    judge: Judge
    reader: Reader
    now: Callable[[], float]

    async def read(
        self, url: Url, wanted: Collection[Extract], rendering: Rendering | None = None
    ) -> ParsedPage | None:
        """What the page contains; None if it may not be asked for, or answers with no page that can be read.

        `rendering`: how it was rendered when it was visited.
        """
        if not (await self.access.permit(url)).allowed:
            return None
        reply: Reply = await self.access.fetch(Request(url, wants_body=self.judge.wants_body))
        if rendering and self.judge.renders and isinstance(reply, Response) and self._markup(url, reply):
            reply = await self.access.render(url, reply, rendering._replace(after=None))
        markup = self._markup(url, reply)
        if markup:
            return await self._page(replace(markup, wanted=frozenset(wanted)))
        return _feed(url, reply) if Extract.ANCHORS in wanted else None

    def _markup(self, url: Url, reply: Reply) -> PageSource | None:
        return self.judge.markup(Lease(0, 0, Visit(url)), reply, datetime.fromtimestamp(self.now(), UTC))

    async def _page(self, markup: PageSource) -> ParsedPage | None:
        if markup.is_risky:
            page = await self.reader.read(markup)
            return None if isinstance(page, Broken) else page
        return await anyio.to_thread.run_sync(markup.read) if markup.is_long else markup.read()


def _feed(url: Url, reply: Reply) -> ParsedPage | None:
    """A feed: its links say what the titles of its items do."""
    if not isinstance(reply, Response) or reply.status not in PAGE_STATUSES or not feeds.is_feed(reply.body):
        return None
    found = (Anchor(item.href, clean(item.title)) for item in feeds.items(reply.body, titled=True))
    return ParsedPage(url, anchors=tuple(islice(found, MOST_ANCHORS)))
