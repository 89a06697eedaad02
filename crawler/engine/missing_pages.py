"""What the site answers for a page that cannot exist, asked before it is crawled.

Most sites answer 404, and that was all. Where the answer is a page, pages that equal it but for what they
repeat of their URL, numbers and suggestions (`rules.soft_404`) are not listed, and their links not followed.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from crawler.model.note import MISSING
from crawler.model.reply import Reply
from crawler.model.visit import Lease, MissingPage, Visit
from crawler.parse.extract import Extract
from crawler.parse.url import Url, origin
from crawler.ports import Runs
from crawler.rules import soft_404
from crawler.rules.judge import Judge

SAMPLES = 6  # pages to which the start page links, that are compared


@dataclass
class MissingPages:
    """What the origins of the site show for nonexistent pages. Asked by the leader, recalled by all."""

    runs: Runs
    judge: Judge
    fetch: Callable[[Url], Awaitable[Reply | None]]
    _known: dict[str, MissingPage] | None = field(init=False, default=None)

    def prepared(self, lease: Lease, starts: Sequence[Url]) -> Lease:
        """The lease with what its origin shows for a nonexistent page. Start pages always exist."""
        missing = self._known.get(origin(lease.visit.url)) if self._known else None
        return lease._replace(missing=missing) if missing and lease.visit.url not in starts else lease

    async def recall(self) -> None:
        """Restores what this run was answered."""
        if self._known is None:
            known = await self.runs.recall(MISSING)
            self._known = None if known is None else dict(known)

    async def ask(self, starts: Sequence[Url]) -> None:
        """Asks each origin, once a run."""
        await self.recall()
        if self._known is None:
            known = {site: await self._answer(site, starts) for site in sorted(set(map(origin, starts)))}
            self._known = {site: page for site, page in known.items() if page}
            await self.runs.remember(MISSING, self._known)

    async def _answer(self, site: str, starts: Sequence[Url]) -> MissingPage | None:
        asked = list[frozenset[int]]()
        for url in soft_404.at_origin(site):
            blocks, _ = await self._read(url)
            if blocks is None:
                return None
            asked.append(blocks)
            if soft_404.is_settled(asked):
                break
        start = next(url for url in reversed(starts) if origin(url) == site)
        home, links = await self._read(start)
        if home is None:
            return None
        linked = [url for url in links if origin(url) == site and url not in starts and "?" not in url]
        spread = linked[:: -(-len(linked) // SAMPLES)] if linked else ()
        others = [blocks for url in spread if (blocks := (await self._read(url))[0]) is not None]
        return soft_404.missing_page(asked, home, others)

    async def _read(self, url: Url) -> tuple[frozenset[int] | None, Sequence[Url]]:
        """The blocks and the links of a page; None if it is no page, or if it may stall the parser, since it
        is parsed in this process.
        """
        lease, now = Lease(0, 0, Visit(url)), datetime.now(UTC)
        reply = await self.fetch(url)
        markup = self.judge.markup(lease, reply, now) if reply else None
        if reply is None or markup is None or markup.is_risky or markup.is_long:
            return None, ()
        page = replace(markup, wanted=markup.wanted | {Extract.BLOCKS}).read()
        return frozenset(page.blocks), self.judge(lease, reply, now, page).links.followed
