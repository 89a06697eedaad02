"""A crawler trap as it is reported: kind, pattern and example; and a pattern that may be one."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from crawler.model.reasons import TRAPS
from crawler.parse.url import Url

SAYS: Final = {
    "calendar": "endless calendar",
    "depth": "implausibly deep pages",
    "path": "paths that repeat or keep growing",
    "query": "endless query combinations",
    "session": "session IDs in URLs",
    "soft-404": "error page with status 200 (soft 404)",
    "repeats": "pages that repeat each other; the crawl stopped there",
    "links": "page with more links than are read",
}
LONGEST_EXAMPLE: Final = 80  # characters of an example


class Trap(Struct, frozen=True):
    """A crawler trap whose URLs are skipped. `str` is the sentence for a report."""

    kind: str  # a key of SAYS
    pattern: str
    example: str

    @property
    def flag(self) -> str:
        """The flag that crawls this kind of trap."""
        return f"--allow-trap {self.kind}" if self.kind in TRAPS else ""

    def __str__(self) -> str:
        hint = f" ({self.flag} crawls it)" if self.flag else ""
        is_short = len(self.example) <= LONGEST_EXAMPLE
        shown = self.example if is_short else self.example[: LONGEST_EXAMPLE - 1] + "…"
        return f"{SAYS[self.kind]}: {self.pattern}, as in {shown}{hint}"


class PatternPage(Struct, frozen=True):
    """A page of a pattern that was read."""

    url: Url
    content: str | None


class DoubtfulPattern(Struct, frozen=True):
    """A pattern of queries whose last sample brought nothing new, unless its pages are true ones."""

    id: int
    pages: Sequence[PatternPage]


class ImpossibleValues(NamedTuple):
    """What a pattern shows for values that do not exist."""

    shown: str | None  # `rules.impossible_values.shown`
    requests: int  # made to ask
    # It shows that for numbers hardly larger than its own as well; None: it has other values than numbers.
    is_bounded: bool | None = None
