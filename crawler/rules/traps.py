"""Crawler traps: endless URLs that a site generates, and the rule that stops following them.

Some are obvious from one URL (`trap_patterns.obvious`) and never fetched. The others are recognised by their
pages: the URLs of a pattern are fetched in batches, and a batch with hardly any new content closes its
pattern. This module has the rule and its constants; the frontier schedules the batches in rounds
(`frontier.rounds`). Pure.
"""

from collections.abc import Iterable
from typing import Final

from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url
from crawler.rules.trap_patterns import DEEPEST, SAME_PARAMETERS, SAME_SEGMENTS, obvious, pattern_of

FIRST_BATCH: Final = 150  # pages of a pattern in its first batch; each further batch has twice as many
FAMILY_BATCH: Final = 600  # the same, for all patterns of a family together that have brought nothing new yet
PAGES_PER_NEW: Final = 75  # pages of a batch for each new page or content that it must bring
GROWN: Final = 20  # consecutive rounds in which the longest URL of a pattern may grow
SOFT_404_PAGES: Final = 10  # listed pages with the same content, from which on a soft 404 is suspected
MAX_REPORTED: Final = 1_000  # traps that are reported


def due(size: int) -> int:
    """How much that is new a batch of `size` pages must bring for its pattern to stay open.

    Counted are contents that are new for the pattern, and newly discovered pages outside its family. The
    first page of any pattern is new, so one is not enough.
    """
    return size // PAGES_PER_NEW + 1


class Traps:
    """Recognises patterns and traps during a crawl, and collects the traps for the report."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """`allowed`: kinds of traps that are crawled anyway."""
        self._allowed = frozenset(allowed)
        self._reported: set[str] = set()
        self._unreported: list[Trap] = []

    def allows(self, kind: str) -> bool:
        """Whether a kind of trap is crawled."""
        return kind in self._allowed

    def bars(self, url: Url, depth: int = 0) -> bool:
        """Whether the URL alone shows that it is in a trap."""
        if url.count("/") > SAME_SEGMENTS + 3 or url.count("&") >= SAME_PARAMETERS or depth > DEEPEST:
            shown = obvious(url, depth)
            if shown and shown[0] not in self._allowed:
                self.report(*shown, url)
                return True
        return False

    def pattern(self, url: Url, *, named: bool = False) -> Pattern | None:
        """The pattern in whose rounds a URL is fetched. `named`: as canonical, or target of a redirect."""
        pattern = pattern_of(url)
        if pattern is None or pattern.kind in self._allowed:
            return None
        return pattern._replace(named=named)

    def report(self, kind: str, pattern: str, example: str) -> None:
        """Records a trap for the report."""
        if pattern not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(pattern)
            self._unreported.append(Trap(kind, pattern, example))

    def unreported(self) -> list[Trap]:
        """The traps recorded since the last call."""
        news, self._unreported = self._unreported, []
        return news

    def session(self, name: str, example: str) -> None:
        """Records a session id that was removed from a URL."""
        self.report("session", f"{name}=…", example)
