"""The start URLs of a crawl: their redirects, which extend the scope, and whether any of them led to a page.

A redirect of the first one may change the origin of the site. `rules.scope` decides which URLs belong to the
site.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import anyio

from crawler.engine.aliases import Aliases
from crawler.engine.together import together
from crawler.errors import StartForbidden, StartSilent, StartUnreachable
from crawler.model.note import MOVED
from crawler.model.outcome import HTML, Failed, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.rows import UrlRecord
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, netloc, origin
from crawler.ports import Frontier, Reads, reads
from crawler.rules.candidates import Candidates
from crawler.rules.scope import aliases_of

LOGIN: Final = (
    " A login is provided by --auth-env, --cookie-file or --client-cert; docs/use/how-to.md shows how."
)
MOST_HOPS: Final = 10  # of a start URL that is asked before its visit
MOST_RECORDED_HOPS: Final = 100  # that are followed in the state
NO_PAGE: Final = frozenset({Why.ROBOTS, Why.ROBOTS_DOWN, Why.OFFSITE, Why.TYPE})


class StartUrls:
    """The start URLs of one crawl. The site of `base` is updated when the first of them redirects."""

    def __init__(
        self,
        frontier: Frontier,
        candidates: Candidates,
        aliases: Aliases,
        base: PublishBase | None,
        target_of: Callable[[Url], Awaitable[Url | None]],
    ) -> None:
        """`target_of`: where a page redirects that is not visited yet."""
        self.frontier, self.candidates, self.aliases, self.base = frontier, candidates, aliases, base
        self.target_of = target_of
        self.urls = list(candidates.scope.starts)  # with the targets of their redirects
        self._home = self.urls[0]  # the first start URL, after redirects
        self._moves: set[tuple[Url, Url]] = set()
        self._is_recalled = False
        # Of several, those that may not have been visited yet, and where an alias may stand for them.
        self._open: dict[Url, tuple[str, ...]] = {}
        if len(self.urls) > 1:
            self._open = {url: (origin(url), *aliases_of(url)) for url in self.urls}
        self._asking = anyio.Lock()

    @property
    def have_moved(self) -> bool:
        """Whether any of them redirected."""
        return bool(self._moves)

    @property
    def ends(self) -> list[Url]:
        """Where their redirects end."""
        moved = {start for start, _ in self._moves}
        return [url for url in self.urls if url not in moved]

    async def recall(self) -> None:
        """Restores, once, the redirects and aliases that this run had found before this member visits its
        first page.
        """
        if not self._is_recalled:
            self._is_recalled = True
            moved, _ = await together(self.frontier.recall(MOVED), self.aliases.recall())
            for start, to in moved:
                self._admit(start, to)

    async def moved(self, start: Url, to: Url) -> None:
        """Stores that `start`, a start URL or the target of its redirect, redirects to `to`."""
        move = start, to
        if move in self._moves:
            return
        self._admit(start, to)
        await self.frontier.amend(MOVED, lambda moves: moves if move in moves else [*moves, move])

    def answered(self, url: Url) -> None:
        """A visit of this URL, perhaps of a start URL, has ended."""
        self._open.pop(url, None)

    async def ask_before(self, page: Url, links: Iterable[Url]) -> None:
        """Asks where start URLs redirect to that were not visited yet, before links to their hosts are looked
        at: whichever start URL answers first, links to an alias are links to the site.
        """
        if not self._open:
            return
        others = {origin(url) for url in links} - {origin(page)}
        async with self._asking:
            for start in [url for url, sites in self._open.items() if not others.isdisjoint(sites)]:
                record = await self.frontier.read(reads.RecordOf(start))
                if record and record.state != "settled":
                    await self._follow(start)
                self.answered(start)

    async def _follow(self, url: Url) -> None:
        for _ in range(MOST_HOPS):
            to = await self.target_of(url)
            if to is None:
                return
            await self.moved(url, to)
            if not self.candidates.scope.on_site(to):
                return
            url = to

    def _admit(self, start: Url, to: Url) -> None:
        if start == self._home:
            self._home = to
            if self.base:
                self.base.move(origin(to))
        self._moves.add((start, to))
        self.urls.append(to)
        self.candidates.admit(start, to)
        self.aliases.renew()

    async def check(self) -> None:
        """Raises `StartUnreachable` or `StartForbidden` if none led to a page; the next crawl then begins a
        new run, which is compared with what was published before this one.
        """
        try:
            await _check(self.frontier, self.candidates.scope.starts)
        except (StartUnreachable, StartForbidden):
            await self.frontier.conclude(abandoned=True)
            raise


async def _check(pages: Reads, starts: Sequence[Url]) -> None:
    """Explains the failure of the first start URL if none led to a page."""
    ends = [await end_of(pages, url) for url in starts]
    if any(_is_page(record) for _, record in ends):
        return
    url, record = ends[0]
    end = record.outcome if record else None
    if isinstance(end, Unlisted) and end.why is Why.ROBOTS_DOWN:
        file = await pages.read(reads.RobotsOf(origin(url)))
        if file and file.status == "unreachable":
            raise (StartSilent if file.is_silent else StartUnreachable)(f"{url}: {file.detail}.")
    if isinstance(end, Unlisted) and end.why in {Why.ROBOTS, Why.ROBOTS_DOWN}:
        line = f" ({end.detail})" if end.detail else ""
        raise StartForbidden(f"{url}: {end.why.says}{line}. See the robots command, or --ignore-robots.")
    if isinstance(end, Unlisted) and end.why is Why.OFFSITE:
        raise StartUnreachable(
            f"{starts[0]} redirects to {url}, another site: "
            f"start the crawl there, or add --allow-host {netloc(url)}."
        )
    if isinstance(end, Unlisted) and end.why is Why.TYPE:
        other = "name a sitemap with --seed-sitemaps" if end.detail.endswith("xml") else "URLs with --input"
        raise StartUnreachable(
            f"{url} is {end.detail or 'no page'}, not an HTML page: give the URL of a page, or {other}."
        )
    advice = LOGIN if isinstance(end, Failed) and end.cause is Cause.FORBIDDEN else ""
    raise StartUnreachable(f"{url}: {_reason(end)}.{advice}")


def _reason(end: Outcome | None) -> str:
    match end:
        case Failed(cause, detail):
            return f"{cause.says}: {detail}".removesuffix(": ")
        case Moved():
            return Cause.REDIRECT_LOOP.says
        case Unlisted(why):
            return why.says
    return "no page was received"


async def end_of(rows: Reads, url: Url, known: UrlRecord | None = None) -> tuple[Url, UrlRecord | None]:
    """Where the redirects of a start URL end, and what is known there. `known`: the record of the URL."""
    record = known or await rows.read(reads.RecordOf(url))
    for _ in range(MOST_RECORDED_HOPS):
        if record is None or not isinstance(record.outcome, Moved):
            break
        url = record.outcome.to
        record = await rows.read(reads.RecordOf(url))
    return url, record


def _is_page(record: UrlRecord | None) -> bool:
    """Whether the site responded with a page, listed or not: its links can be followed."""
    if record is None or isinstance(record.outcome, Listed):
        return record is not None
    end = record.outcome
    if not isinstance(end, Unlisted) or record.facts is None:
        return False
    return end.why not in NO_PAGE or (end.why is Why.TYPE and end.detail in HTML)
