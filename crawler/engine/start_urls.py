"""The start URLs of a crawl and their redirects, which extend the scope and may change the origin of the site.

`start_check` checks that they led to a page; `rules.scope` decides which URLs belong to the site.
"""

from dataclasses import dataclass, field

from crawler.engine.aliases import Aliases
from crawler.model.note import MOVED
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, origin
from crawler.ports import Runs
from crawler.rules.candidates import Candidates


@dataclass
class StartUrls:
    """The start URLs of one crawl. The site of `base` is updated when the first of them redirects."""

    runs: Runs
    candidates: Candidates
    aliases: Aliases
    base: PublishBase | None
    urls: list[Url] = field(init=False)  # with the targets of their redirects
    _home: Url = field(init=False)  # the first start URL, after redirects

    def __post_init__(self) -> None:
        """Starts from the URLs in the settings, without redirects."""
        self.urls = list(self.candidates.scope.starts)
        self._home = self.urls[0]

    @property
    def have_moved(self) -> bool:
        """Whether any of them redirected."""
        return len(self.urls) > len(self.candidates.scope.starts)

    async def recall(self) -> None:
        """Restores the redirects and aliases that this run had found before it was interrupted."""
        for start, to in await self.runs.recall(MOVED):
            self._admit(start, to)
        await self.aliases.recall()

    async def moved(self, start: Url, to: Url) -> None:
        """Stores that `start`, a start URL or the target of its redirect, redirects to `to`."""
        self._admit(start, to)
        move = start, to
        await self.runs.amend(MOVED, lambda moves: moves if move in moves else [*moves, move])

    def _admit(self, start: Url, to: Url) -> None:
        if start == self._home:
            self._home = to
            if self.base:
                self.base.site = origin(to)
        self.urls.append(to)
        self.candidates.scope = self.candidates.scope.admitting(start, to)
        self.aliases.renew()
