"""Host aliases: `www.` and bare, under http and https, are one site if the alias redirects to it.

An alias that a link or a seed names is asked for its root page, once a run, before anything that it names is placed:
so what belongs to the site depends on no order of arrival. An alias that does not redirect here is another site.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import anyio

from crawler.model.note import ALIASES
from crawler.model.protocol import REDIRECTS
from crawler.model.reply import Broken
from crawler.model.robots import Permit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url, origin
from crawler.ports import Fetcher, Pacer, Politeness, Request, Runs
from crawler.rules.candidates import Candidates
from crawler.rules.scope import aliases_of

MOST: Final = 3  # aliases in a chain: the other three of {www, bare} x {http, https}

log = logging.getLogger("crawler.crawl")


@dataclass
class Aliases:
    """What one crawl knows of the aliases of its site. `starts` gives the start URLs, and where they moved to."""

    runs: Runs
    pacer: Pacer
    fetcher: Fetcher
    permit: Callable[[Url], Awaitable[Permit]]
    turn: Politeness
    candidates: Candidates
    starts: Callable[[], Iterable[Url]]
    _asked: dict[str, bool] = field(init=False, default_factory=dict)  # by origin: whether it redirects here
    _open: tuple[str, ...] = field(init=False, default=())  # with what URLs begin whose alias was not asked
    _lock: anyio.Lock = field(init=False, default_factory=anyio.Lock)

    async def recall(self) -> None:
        """What this run learned before it was interrupted."""
        asked = await self.runs.recall(ALIASES)
        self._asked = dict(asked)
        self.renew()

    def renew(self) -> None:
        """The start URLs changed, or an alias was asked."""
        here = frozenset(site for site, redirects in self._asked.items() if redirects)
        self.candidates.scope = self.candidates.scope.with_aliases(here)
        found = {site for url in self.starts() for site in aliases_of(url)} - self._asked.keys()
        self._open = tuple(sorted(s + "/" for s in found if not self.candidates.scope.on_site(Url(s + "/"))))

    async def ask(self, urls: Iterable[Url]) -> None:
        """Make sure that for each of `urls` it is known whether it lies on an alias of the site."""
        if not self._open:
            return
        for url in urls:
            if url.startswith(self._open):
                async with self._lock:
                    if url.startswith(self._open):
                        await self._ask(origin(url))

    async def _ask(self, site: str) -> None:
        """Follow an alias as long as it leads to aliases."""
        chain: list[str] = []
        to: Url | None = Url(site + "/")
        while to and to.startswith(self._open) and origin(to) not in chain and len(chain) < MOST:
            chain.append(origin(to))
            to = await self._target(Url(origin(to) + "/"))
        is_here = to is not None and self.candidates.scope.on_site(to)
        self._asked |= dict.fromkeys(chain, is_here)
        await self.runs.remember(ALIASES, dict(sorted(self._asked.items())))
        self.renew()
        log.info("host alias checked", extra={"fields": {"aliases": chain, "redirects_here": is_here}})

    async def _target(self, url: Url) -> Url | None:
        """Where a page redirects to."""
        if not (await self.permit(url)).allowed:
            return None
        await self.turn(origin(url), await self.pacer.slot(origin(url)))
        reply = await self.fetcher.fetch(Request(url, wants_body=lambda *_: False))
        if isinstance(reply, Broken) or reply.status not in REDIRECTS:
            return None
        location = reply.headers.get("location")
        return Normaliser(strip=())(location, url) if location else None
