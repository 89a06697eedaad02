"""Spaces without end: URLs that a site makes up faster than anybody could crawl them, recognised and cut off.

Some show by their text: a path that repeats or deepens, a query that grows. The others show by what they bring: a
space (a calendar, or all queries of one path) in which page after page shows nothing new, neither content that this
space has not shown, nor a link out of it, is closed. What lies beside it is crawled on. Pure; the engine asks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from crawler.model import HTML, TRAPS, Listed, Outcome, Unlisted, Why
from crawler.spaces import DEEPEST, SAME_PARAMETERS, SAME_SEGMENTS, space_of, spelled
from crawler.urls import Url

SAYS: Final = {
    "calendar": "a calendar without end",
    "depth": "pages too deep to be found by a person",
    "path": "paths that repeat or grow",
    "query": "queries without end",
    "session": "session ids in URLs",
    "soft-404": "an error page that answers 200",
    "links": "a page with more links than are looked at",
}

_READ: Final = frozenset({Why.CANONICAL, Why.NOINDEX, Why.TRAP})
ROW: Final = 150  # pages in a row that show nothing new, until a space is closed
GROWN: Final = 20  # times in a row that a URL may grow from page to page
ALIKE: Final = 10  # listed pages with the same content, from which a site is asked for a page that cannot be
KEPT: Final = 20_000  # links and fingerprints remembered of one space
SHOWN: Final = 80  # characters of an example
SPACES: Final = 1_000  # spaces remembered
SAVED_EVERY: Final = 25  # pages in a row, after which they are worth writing down


@dataclass(frozen=True, slots=True)
class Trap:
    """A space that is not gone into, in words for a report."""

    kind: str  # a key of SAYS
    pattern: str
    example: str

    @property
    def flag(self) -> str:
        """What would let it through."""
        return f"--allow-trap {self.kind}" if self.kind in TRAPS else ""

    def __str__(self) -> str:
        way = f" ({self.flag} goes in)" if self.flag else ""
        shown = self.example if len(self.example) <= SHOWN else self.example[: SHOWN - 1] + "…"
        return f"{SAYS[self.kind]}: {self.pattern}, as in {shown}{way}"


@dataclass(slots=True)
class _Space:
    """What a space has shown so far."""

    kind: str
    links: set[int] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    row: int = 0  # pages since the last that showed something new
    listed: list[str] = field(default_factory=list)  # of these, the ones that would be listed
    closed: bool = False
    restored: bool = False  # what it showed is forgotten: its next page tells nothing

    def is_new(self, content: str | None, links: Iterable[int]) -> bool:
        """Whether a page shows what no page before it showed. `content` is that of a listed page."""
        if content is not None and content not in self.contents:
            if len(self.contents) >= KEPT:
                self.contents.clear()  # what is forgotten is new again: the harmless side
            self.contents.add(content)
            if len(self.contents) == 1:
                self.links.update(
                    links
                )  # of the first page only: to look at all links of all pages takes long
            return True
        fresh = [link for link in links if link not in self.links]
        if len(self.links) + len(fresh) > KEPT:
            self.links.clear()
        self.links.update(fresh)
        return bool(fresh)


def read(saved: Mapping[str, Any]) -> list[Trap]:
    """The traps in what `Traps.saved` gave."""
    return [Trap(**trap) for trap in saved.get("found", [])]


class Traps:
    """What one crawl knows of the traps of its site."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """`allowed`: kinds that are gone into all the same."""
        self._allowed = frozenset(allowed)
        self._spaces: dict[str, _Space] = {}
        self._open = True  # no space is closed
        self._grown: dict[str, int] = {}  # how many times in a row a URL grew
        self._bare: dict[str, str] = {}  # what pages without a query said: their queries may say the same
        self.found: dict[str, Trap] = {}  # by pattern
        self._news: list[Trap] = []
        self.withdrawn: list[str] = []  # listed, until it showed that they lie in a closed space
        self.is_dirty = False  # there is something worth writing down

    def allows(self, kind: str) -> bool:
        """Whether a kind of trap is gone into."""
        return kind in self._allowed

    def bars(self, url: Url, depth: int = 0, via: Url | None = None) -> bool:
        """Whether a URL lies in a space without end, and is not to be asked for. `via` named it."""
        if (
            via is not None
            and "?" in url
            and len(url) > len(via)
            and url.startswith(via)
            and self._grows(url, via)
        ):
            return True
        if url.count("/") > SAME_SEGMENTS + 3 or url.count("&") >= SAME_PARAMETERS or depth > DEEPEST:
            shown = spelled(url, depth)
            if shown and shown[0] not in self._allowed:
                self.tell(*shown, url)
                return True
        if self._open:
            return False
        space = space_of(url)
        return space is not None and space[1] in self._spaces and self._spaces[space[1]].closed

    def _grows(self, url: Url, via: Url) -> bool:
        """Whether a URL is longer than the one that named it, which was longer than the one that named that…"""
        count = self._grown.get(via, 0) + 1
        if count > GROWN and "query" not in self._allowed:
            self.tell("query", f"{via.partition('?')[0]}?… growing from page to page", url)
            return True
        if len(self._grown) >= KEPT:
            self._grown.clear()
        self._grown[url] = max(count, self._grown.get(url, 0))
        return False

    def note(self, url: Url, outcome: Outcome, content: str | None, links: Iterable[Url]) -> Outcome:
        """Learn from a page that was read: what becomes of it. See also `withdrawn`."""
        where = space_of(url)
        if where is None:
            self._remember(url, content)
            return outcome
        if where[0] in self._allowed or not _is_page(outcome):
            return outcome
        kind, pattern = where
        space = self._space(kind, pattern)
        outside = _leading_out(where, outcome, links)
        is_listed = isinstance(outcome, Listed)
        if space.is_new((content or url) if is_listed else None, outside):
            if not space.closed and not space.restored:
                space.row, space.listed = 0, []
            space.restored = False
            return outcome
        space.row += 1
        self.is_dirty |= space.row % SAVED_EVERY == 0
        if space.row < ROW:
            space.listed += [url] if is_listed else []
            return outcome
        if not space.closed:
            space.closed, self._open = True, False
            self.withdrawn += space.listed
            space.listed = []
            self.tell(kind, pattern, url)
        return Unlisted(Why.TRAP, pattern) if is_listed else outcome

    def _remember(self, url: Url, content: str | None) -> None:
        if content is None:
            return
        space = self._spaces.get(f"{url}?…")
        if space:
            space.contents.add(content)
        if len(self._bare) >= KEPT:
            self._bare.clear()
        self._bare[url] = content

    def _space(self, kind: str, pattern: str) -> _Space:
        space = self._spaces.pop(pattern, None) or _Space(kind)
        if not space.contents and kind == "query" and (known := self._bare.get(pattern.removesuffix("?…"))):
            space.contents.add(known)
        self._spaces[pattern] = space  # the last one used is the last one forgotten
        if len(self._spaces) > SPACES:
            oldest = next((name for name, known in self._spaces.items() if not known.closed), pattern)
            if oldest != pattern:
                del self._spaces[oldest]
        return space

    def tell(self, kind: str, pattern: str, example: str) -> None:
        """A trap was met."""
        if pattern not in self.found and len(self.found) < SPACES:
            self.found[pattern] = Trap(kind, pattern, example)
            self._news.append(self.found[pattern])
            self.is_dirty = True

    def news(self) -> list[Trap]:
        """The traps that were met since the last time."""
        news, self._news = self._news, []
        return news

    def session(self, name: str, example: str) -> None:
        """A session id was taken out of a URL."""
        self.tell("session", f"{name}=…", example)

    def saved(self) -> dict[str, Any]:
        """All that a crawl must know to go on after a death, ready for JSON."""
        self.is_dirty = False
        rows = {
            pattern: [space.kind, space.row, space.listed, space.closed]
            for pattern, space in self._spaces.items()
            if space.row >= SAVED_EVERY
        }
        return {
            "found": [asdict(trap) for trap in self.found.values()],
            "rows": rows,
            "withdrawn": self.withdrawn,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on with what `saved` gave."""
        self.found |= {trap.pattern: trap for trap in read(saved)}
        self.withdrawn += saved.get("withdrawn", [])
        for pattern, (kind, row, listed, closed) in saved.get("rows", {}).items():
            self._spaces[pattern] = _Space(kind, row=row, listed=listed, closed=closed, restored=True)
            self._open = self._open and not closed


def _leading_out(where: tuple[str, str], outcome: Outcome, links: Iterable[Url]) -> Iterator[int]:
    """What a page names outside of its space, and the page that it is a copy of, wherever that is.

    A calendar may have its months in one space and its days in another: each leads to what is new in the other, without
    end. So to a calendar no other is outside.
    """
    for link in links:
        there = space_of(link)
        if there != where and (there is None or there[0] != "calendar" or where[0] != "calendar"):
            yield hash(link)
    if where[0] == "query" and isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL:
        yield hash(outcome.detail)


def _is_page(outcome: Outcome) -> bool:
    """Whether the outcome is that of a page that was read: an error tells nothing of its space."""
    if not isinstance(outcome, Unlisted):
        return isinstance(outcome, Listed)
    # HTML that is not listed, as only other types are, is read for its links all the same.
    return outcome.why in _READ or (outcome.why is Why.TYPE and outcome.detail in HTML)
