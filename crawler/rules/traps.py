"""Crawler traps: URLs that a site makes up faster than anybody could crawl them, and the rule that cuts them off.

Some show by the text of one URL (`trap_patterns.spelled`) and are never asked for. The others show by what they bring: the
URLs of a pattern are asked for in batches, and a batch that brought next to nothing new closes its pattern. Here are the
rule, the numbers and the words; the batches are dealt out by the frontier, in rounds (`frontier.sqlite.rounds`). Pure.
"""

from collections.abc import Iterable
from typing import Final

from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url
from crawler.rules.trap_patterns import DEEPEST, SAME_PARAMETERS, SAME_SEGMENTS, pattern_of, spelled

BATCH: Final = 150  # pages of a pattern, until it is decided whether it goes on: then twice as many
FAMILY_BATCH: Final = 600  # the same for all patterns of a family that brought nothing yet
PAGES_FOR_NEWS: Final = 75  # for which one piece of news is due, and one more
GROWN: Final = 20  # rounds in a row in which the longest URL of a pattern may grow
ALIKE: Final = 10  # listed pages with the same content, from which a site is asked for a page that cannot be
TOLD: Final = 1_000  # traps that are reported


def due(size: int) -> int:
    """How many pieces of news a batch of that many pages has to bring, so that its pattern goes on.

    News are contents that the pattern did not show before, and pages outside of its family that nobody named before.
    The first page of any pattern is new: one is not enough.
    """
    return size // PAGES_FOR_NEWS + 1


class Traps:
    """Which URLs are in a pattern, and which traps were met: what one crawl needs to know of them in memory."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """`allowed`: kinds of traps that are crawled all the same."""
        self._allowed = frozenset(allowed)
        self._told: set[str] = set()
        self._news: list[Trap] = []

    def allows(self, kind: str) -> bool:
        """Whether a kind of trap is crawled."""
        return kind in self._allowed

    def bars(self, url: Url, depth: int = 0) -> bool:
        """Whether the text of a URL alone shows that it is in a trap."""
        if url.count("/") > SAME_SEGMENTS + 3 or url.count("&") >= SAME_PARAMETERS or depth > DEEPEST:
            shown = spelled(url, depth)
            if shown and shown[0] not in self._allowed:
                self.tell(*shown, url)
                return True
        return False

    def pattern(self, url: Url, *, named: bool = False) -> Pattern | None:
        """The pattern whose rounds a URL waits for. `named`: another page names it as canonical, or redirects to it."""
        pattern = pattern_of(url)
        if pattern is None or pattern.kind in self._allowed:
            return None
        return pattern._replace(named=named)

    def tell(self, kind: str, pattern: str, example: str) -> None:
        """A trap was met."""
        if pattern not in self._told and len(self._told) < TOLD:
            self._told.add(pattern)
            self._news.append(Trap(kind, pattern, example))

    def news(self) -> list[Trap]:
        """The traps that were met since the last time."""
        news, self._news = self._news, []
        return news

    def session(self, name: str, example: str) -> None:
        """A session id was taken out of a URL."""
        self.tell("session", f"{name}=…", example)
