"""Adds discovered URLs to the frontier: each once, however many pages and seeds contain it. For all backends.

`rules` have already decided whether a URL is to be visited; `leases` and `rounds` decide when. A backend has the statements,
and inserts the rows of new URLs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from crawler.frontier.links import Added, deduplicated, may_change_row
from crawler.frontier.patterns import PatternTable
from crawler.frontier.records import HELD, QUEUED, SETTLED
from crawler.frontier.rows import FoundRow
from crawler.frontier.seeds import SeedTable
from crawler.frontier.tables import CHUNK, Tables
from crawler.model.reasons import Why
from crawler.model.seed import Seed
from crawler.model.visit import Visit
from crawler.parse.url import Url, origin


class Hosts(Protocol):
    """The rows of hosts."""

    def id(self, origin: str) -> int:
        """The number of a host, which is added if it is new."""
        ...


class Statements(NamedTuple):
    """The statements of a backend."""

    lower_depths: str  # records a smaller depth of known URLs
    named: str  # moves URLs that a page names instead of itself to the pattern of such URLs
    admit: str  # adds URLs that were filtered
    list_filtered: str  # the next `:limit` of these, after the URL `:after`


class Discovery(ABC):
    """Adds URLs."""

    def __init__(
        self, db: Tables, hosts: Hosts, patterns: PatternTable, seeds: SeedTable, statements: Statements
    ) -> None:
        self._db, self._hosts, self._patterns, self._seeds = db, hosts, patterns, seeds
        self._statements = statements

    def add(self, visits: Iterable[Visit], seed: Seed | None = None) -> int:
        """Add visits. The number of new ones, without those that are filtered or held, which are stored too."""
        if seed is None:
            return self.add_found(visits, {}).new
        number = self._seeds.id(seed)
        rows = [self._row(visit, {}) for visit in deduplicated(visits)]
        new = self._insert(rows, number).new + self._seeds.requeue(rows, seed, number)
        self._lower_hops([(row.url, 0, 0) for row in rows])
        return new

    def add_found(self, visits: Iterable[Visit], pages: Mapping[Url, int]) -> Added:
        """Add what pages lead to. `pages`: record numbers of URLs that visits may have been found on."""
        maybe = deduplicated(visits)
        known = self._numbers([visit.url for visit in maybe])
        rows = [self._row(visit, pages) for visit in maybe if may_change_row(visit, known.get(visit.url, 0))]
        new, numbers = self._insert(rows, None)
        return Added(new, {**known, **numbers})

    def list_filtered(self, after: str) -> Sequence[Visit]:
        """See `ports.Queue.list_filtered`."""
        given = {"run": self._db.run, "after": after, "limit": CHUNK}
        rows = self._db.all(self._statements.list_filtered, given)
        return [Visit(Url(url), depth, Url(via) if via else None, hops) for url, depth, via, hops in rows]

    def requeue(self, visits: Iterable[Visit]) -> int:
        """See `ports.Queue.requeue`."""
        rows = [self._row(visit, {}) for visit in visits if visit.filtered is None]
        self._db.do(self._statements.admit, self._given(rows))
        return sum(row.state == QUEUED for row in rows)

    def record_targets(self, found: Sequence[Visit]) -> None:
        """Record targets of redirects and canonicals: their depth may be smaller, and their pattern may change."""
        self._lower_depths([visit for visit in found if visit.hops and visit.filtered is None])
        named = [visit for visit in found if visit.pattern and visit.pattern.named]
        if named:
            self._db.do(self._statements.named, self._given([self._row(visit, {}) for visit in named]))

    def record_hops(self, visits: Sequence[Visit]) -> None:
        """Record the redirects of settled visits: a path with fewer redirects may have been found while they were fetched."""
        self._lower_hops([(visit.url, visit.hops, visit.hops) for visit in visits if visit.hops])

    def _lower_depths(self, visits: Sequence[Visit]) -> None:
        """Record a smaller depth for URLs that may be known already."""
        if visits:
            self._db.do(
                self._statements.lower_depths, self._given([self._row(visit, {}) for visit in visits])
            )
            self._lower_hops([(visit.url, visit.hops, 0) for visit in visits])

    def _row(self, visit: Visit, pages: Mapping[Url, int]) -> FoundRow:
        filtered, pattern = visit.filtered, visit.pattern
        state, detail = QUEUED if filtered is None else SETTLED, None
        place = self._patterns.place(visit.url, pattern) if pattern and filtered is None else None
        if place and pattern and visit.via is not None:
            state = HELD
            if place.closed:
                state, filtered, detail = SETTLED, Why.TRAP, pattern.text
        return FoundRow(
            visit.url,
            state,
            self._hosts.id(origin(visit.url)) if visit.filtered is None else None,
            visit.depth,
            visit.hops,
            None if visit.via is None else pages.get(visit.via) or self._id(visit.via),
            None if filtered is None else f"unlisted:{filtered.value}",
            None if filtered is None else self._db.now(),
            detail,
            place.trap if place else None,
            place.sample if place else None,
        )

    def _insert(self, rows: Sequence[FoundRow], seed: int | None) -> Added:
        """Insert the rows of URLs, those to be fetched last."""
        due = [row for row in rows if row.state == QUEUED]
        _, others = self._insert_all([row for row in rows if row.state != QUEUED], seed)
        new, numbers = self._insert_all(due, seed)
        return Added(new, {**others, **numbers})

    @abstractmethod
    def _insert_all(self, rows: Sequence[FoundRow], seed: int | None) -> Added:
        """Insert rows, and record what the others add to known URLs. `seed`: its number."""

    @abstractmethod
    def _lower_hops(self, paths: Sequence[tuple[str, int, int]]) -> None:
        """Record fewer redirects for URLs that may be known already.

        A path is (URL, redirects, redirects that were recorded when the URL was fetched).
        """

    @abstractmethod
    def _numbers(self, urls: Sequence[Url]) -> dict[Url, int]:
        """The record numbers of those URLs that are known in this run, as in `Settled.numbers`."""

    @abstractmethod
    def _id(self, url: Url) -> int | None:
        """The record number of a URL, if it is known."""

    @abstractmethod
    def _given(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """The parameters of a statement that takes rows."""
