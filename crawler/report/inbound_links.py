"""Inbound links: one pass over all edges of a run, in memory that grows by a few bytes per URL.

Only links to URLs that may be findings are counted, with the first pages that contain them. Which those are
is a byte for each URL, so the many links to other pages are skipped by built-in functions. An inverse table
in the state would need a row for each link.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from itertools import compress
from typing import Final

from crawler.model.rows import EdgeRow
from crawler.report.clicks import numbers
from crawler.report.url_kind import LINKED, OF_READERS, UrlKind

FIRST_SOURCES: Final = 8  # linking pages that are stored for a URL
LONGEST_CHAIN: Final = 20  # most hops of a chain
PAGES: Final = 50  # pages that are kept of each kind
_OF_HEAD: Final = LINKED - OF_READERS
_NONE: Final = array("I", bytes(4 * FIRST_SOURCES))


class LinkCounts:
    """How many other pages link to each URL, and to how many other URLs it links, by its id: with nofollow,
    no link counts.
    """

    def __init__(self) -> None:
        self._into, self._out = numbers(1024), numbers(1024)

    def add(self, row: EdgeRow) -> None:
        targets = {to for to in row.links if to > 0} - {row.id}
        highest = max(targets, default=0)
        for counts in (self._into, self._out):
            if (missing := max(highest, row.id) + 1 - len(counts)) > 0:
                counts.extend(numbers(max(missing, len(counts))))
        for to in targets:
            self._into[to] += 1
        self._out[row.id] = len(targets)

    def of(self, number: int) -> tuple[int, int]:
        """The links to a URL, and those on it."""
        return (self._into[number], self._out[number]) if number < len(self._into) else (0, 0)


class InboundLinks:
    """Links, redirects and canonicals, by target."""

    def __init__(
        self, kinds: bytearray, wanted: bytearray, redirects: Iterable[tuple[int, int]] = ()
    ) -> None:
        """`kinds`: of each URL by id, 0 if not in this run. `wanted`: 1 if its links are counted.

        `redirects`: the redirects of this run, each with its target.
        """
        self._kinds, self._wanted_ids = kinds, wanted
        # Doubled: the negative id of a nofollow link, which counts from the end, finds the same value.
        self._both = wanted + wanted[:1] + wanted[:0:-1]
        self._slot, self._sources = numbers(len(kinds)), array("I", _NONE)
        self.count = numbers(len(kinds))  # other pages that link to it
        self.canonical = numbers(len(kinds))  # the URL that it names as canonical
        self.redirected = numbers(len(kinds))  # the first URL that redirects to it
        self._target = numbers(len(kinds))  # of a redirect
        for number, to in redirects:
            self._add_redirect(number, to)
        # The first URLs of redirect chains; some may end in a failure.
        self._chains = {number for number in self._heads() if len(self.hops(number)[0]) > 1}
        self.pages = 0  # pages with links
        self.pages_to_chains = 0  # pages that link to one of them
        self.linking: Counter[int] = Counter()  # pages that link to a URL of that kind
        # By kind: the pages with links to most of its URLs, as a heap. Of as many, those that came first: ids
        # are in the order in which URLs were found, which is another one each time.
        self._worst: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self._counted_pages = 0

    def add(self, row: EdgeRow) -> None:
        if row.links:
            self.pages += 1
        counted = self._counted(row.links)
        if row.head:
            head = (to for to in self._counted(row.head) if self._kinds[abs(to)] in _OF_HEAD)
            # A link with nofollow may lead there as well.
            counted = [*counted, *(to for to in head if -to not in counted)]
        if counted:
            self._count(counted, row.id)
        if 0 < row.canonical < len(self._kinds) and row.canonical != row.id:
            self.canonical[row.id] = row.canonical

    def _counted(self, links: Sequence[int]) -> Sequence[int]:
        """The links to URLs whose links are counted."""
        try:
            return list(compress(links, map(self._both.__getitem__, links)))
        except IndexError:  # to a URL that a crawl at work has found since
            return [
                link for link in links if abs(link) < len(self._wanted_ids) and self._wanted_ids[abs(link)]
            ]

    def _count(self, links: Iterable[int], source: int) -> None:
        kinds, count, leads_to_chain = dict[int, int](), self.count, False
        for link in links:
            to = abs(link)
            if to == source or to >= len(self._wanted_ids):
                continue
            kind = self._kinds[to]
            kinds[kind] = kinds.get(kind, 0) + 1
            if kind == UrlKind.MOVED and to in self._chains:
                leads_to_chain = True
            if count[to] < FIRST_SOURCES:
                self._add_source(to, source)
            count[to] += 1
        self.pages_to_chains += leads_to_chain
        self._counted_pages += 1
        for kind, targets in kinds.items():
            self.linking[kind] += 1
            worst = self._worst[kind]
            if len(worst) < PAGES:
                heappush(worst, (targets, -self._counted_pages, source))
            elif targets > worst[0][0]:
                heapreplace(worst, (targets, -self._counted_pages, source))

    def worst(self, kind: int) -> Sequence[tuple[int, int]]:
        """Pages with links to most URLs of a kind, and how many, the most first."""
        return [(page, targets) for targets, _, page in sorted(self._worst[kind], reverse=True)]

    def _add_redirect(self, number: int, to: int) -> None:
        if 0 < to < len(self._kinds) and to != number:
            self._target[number] = to
            self.redirected[to] = self.redirected[to] or number

    def _heads(self) -> Iterator[int]:
        """The redirects to which none redirects."""
        return (number for number, to in enumerate(self._target) if to and not self.redirected[number])

    def _add_source(self, to: int, source: int) -> None:
        slot = self._slot[to]
        if not slot:
            slot = self._slot[to] = len(self._sources)
            self._sources.extend(_NONE)
        self._sources[slot + self.count[to]] = source

    def sources(self, number: int) -> Sequence[int]:
        """The first pages that link to it, in the order in which they were added."""
        slot = self._slot[number]
        return self._sources[slot : slot + min(FIRST_SOURCES, self.count[number])].tolist() if slot else []

    def hops(self, number: int) -> tuple[Sequence[int], bool]:
        """What a URL redirects to, hop by hop, and whether that has no end: a loop, or too many hops."""
        hops: list[int] = []
        at = self._target[number]
        while at and at != number and at not in hops and len(hops) < LONGEST_CHAIN:
            hops.append(at)
            at = self._target[at]
        return hops, bool(at)
