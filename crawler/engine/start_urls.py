"""The start URLs of a crawl and where they redirect to: by that the site grows, and everybody who names it follows.

Whether they led to a page at all is for `start_check`; what belongs to the site then, for `rules.scope`.
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
    """What one crawl knows of its start URLs. `base` follows the first of them."""

    runs: Runs
    candidates: Candidates
    aliases: Aliases
    base: PublishBase | None
    urls: list[Url] = field(init=False)  # and where they moved to
    _home: Url = field(init=False)  # where the first start URL moved to

    def __post_init__(self) -> None:
        """None has moved yet."""
        self.urls = list(self.candidates.scope.starts)
        self._home = self.urls[0]

    @property
    def have_moved(self) -> bool:
        """Whether any of them redirected."""
        return len(self.urls) > len(self.candidates.scope.starts)

    async def recall(self) -> None:
        """Restores what this run knew before it was interrupted."""
        for start, to in await self.runs.recall(MOVED):
            self._admit(start, to)
        await self.aliases.recall()

    async def moved(self, start: Url, to: Url) -> None:
        """A start URL, or one that a start URL moved to, redirects."""
        self._admit(start, to)
        moves = await self.runs.recall(MOVED)
        await self.runs.remember(MOVED, [*moves, (start, to)])

    def _admit(self, start: Url, to: Url) -> None:
        if start == self._home:
            self._home = to
            if self.base:
                self.base.site = origin(to)
        self.urls.append(to)
        self.candidates.scope = self.candidates.scope.admitting(start, to)
        self.aliases.renew()
