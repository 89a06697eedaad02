"""The seeds of a crawl: which ones to read, the outcome of each, and their URLs. For all backends, which have the statements.

`app/seeding` reads sitemaps; `discovery` adds their URLs.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from crawler.frontier.publications import last_publication
from crawler.frontier.rows import FoundRow
from crawler.frontier.tables import Tables
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.seed import Seed, SeedSettlement
from crawler.parse.url import Url

_USED: Final = "SELECT count(*) FROM seed WHERE run = :run AND kind = :kind AND depth = :depth"
_NEXT: Final = """
SELECT kind, name, depth FROM seed WHERE run = :run AND kind > 0 AND settled IS NULL ORDER BY kind, depth, id LIMIT 1
"""
_SETTLE: Final = """
UPDATE seed SET settled = :now, outcome = :outcome, detail = :detail, entries = :entries, passed = :passed,
    failing = CASE WHEN :may_pass THEN CASE WHEN failing < :now THEN failing ELSE :now END WHEN NOT :read THEN failing END,
    may_pass = :may_pass
WHERE id = :id
"""
_BELOW: Final = """
SELECT kind, name, depth FROM seed WHERE parent = :id AND run < :run
AND :keep > coalesce((SELECT :now - failing FROM seed WHERE id = :id), 0) ORDER BY id
"""
_REOPEN: Final = "UPDATE seed SET settled = NULL, outcome = NULL WHERE run = :run AND outcome = :outcome"
_SITEMAPS: Final = """
SELECT coalesce(outcome, 'open'), count(*), sum(passed) FROM seed WHERE run = :run AND kind = 2 GROUP BY 1
"""
_ID: Final = "SELECT id FROM seed WHERE kind = :kind AND name = :name"


class Statements(NamedTuple):
    """The statements of a backend."""

    add: str  # seeds that this run does not know yet, up to `:room`
    left_out: str  # how many of them it still does not know
    named_before: str  # the published URLs of seeds that fail temporarily
    seeded: str  # records that known URLs are also in a seed
    lift: str  # their depth becomes 0
    orphans: str  # listed pages by sitemap, without links to them


class SeedTable(ABC):
    """The rows of seeds. `keep_failing`: seconds for which the URLs of a failing seed are kept."""

    def __init__(self, db: Tables, keep_failing: float, statements: Statements) -> None:
        self._db, self._keep_failing, self._statements = db, float(keep_failing), statements

    def add_seeds(self, seeds: Sequence[Seed], room: int, parent: int | None = None) -> int:
        """See `ports.Queue.add_seeds`."""
        if not seeds:
            return 0
        first, given = seeds[0], self._given_seeds(seeds) | {"run": self._db.run}
        used = self._db.count(_USED, {"run": self._db.run, "kind": first.kind.value, "depth": first.depth})
        self._db.do(self._statements.add, given | {"room": max(0, room - used), "parent": parent})
        return self._db.count(self._statements.left_out, given)

    def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        row = self._db.one_or_none(_NEXT, {"run": self._db.run})
        return _seed(*row) if row else None

    def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        number = self.id(read.seed)
        passed = self.add_seeds([*read.below, *self._below(number, read)], room, number)
        self._db.do(
            _SETTLE,
            {
                "id": number, "now": self._db.now(), "outcome": read.outcome.value, "detail": read.detail,
                "entries": read.entries, "passed": passed, "may_pass": read.may_pass,
                "read": read.outcome is SeedOutcome.READ,
            },
        )  # fmt: skip
        return passed

    def _below(self, number: int, read: SeedSettlement) -> list[Seed]:
        """The sitemaps that an index listed in earlier runs, which are still read while it fails temporarily."""
        if not read.may_pass:
            return []
        given = {"id": number, "run": self._db.run, "now": self._db.now(), "keep": self._keep_failing}
        return [_seed(*row) for row in self._db.all(_BELOW, given)]

    def pages_of_failing_seeds(self) -> list[tuple[Seed, list[Url]]]:
        """See `ports.Queue.pages_of_failing_seeds`."""
        last = last_publication(self._db)
        if last is None:
            return []
        given = {"run": self._db.run, "now": self._db.now(), "keep": self._keep_failing, "last": last}
        rows = self._db.all(self._statements.named_before, given)
        return [(_seed(*seed), self._urls(urls)) for *seed, urls in rows]

    def reopen(self) -> None:
        """Reopen sitemaps that were not read because a robots.txt was unreachable."""
        self._db.do(_REOPEN, {"run": self._db.run, "outcome": SeedOutcome.ROBOTS_DOWN.value})

    def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        rows = self._db.all(_SITEMAPS, {"run": self._db.run})
        passed = int(sum(row[2] for row in rows))
        return {outcome: count for outcome, count, _ in rows} | ({"passed": passed} if passed else {})

    def id(self, seed: Seed) -> int:
        """The number of a seed, which is added to this run if it is new."""
        given = {"run": self._db.run, "room": 1, "parent": None}
        self._db.do(self._statements.add, self._given_seeds([seed]) | given)
        return self._db.count(_ID, {"kind": seed.kind.value, "name": seed.name})

    def requeue(self, rows: Sequence[FoundRow], seed: Seed, number: int) -> int:
        """Record known URLs that are also in a seed. Returns how many of them became visits."""
        given = self._given_rows(rows) | {"run": self._db.run}
        self._db.do(self._statements.seeded, given | {"kind": seed.kind.value, "seed": number})
        self._db.do(self._statements.lift, given)
        return self._requeued(given)

    def orphans(self) -> Mapping[str, int]:
        """See `ports.Record.orphans`."""
        return dict(self._db.all(self._statements.orphans, {"run": self._db.run}))

    @abstractmethod
    def _given_seeds(self, seeds: Sequence[Seed]) -> dict[str, Any]:
        """The parameters of a statement that takes seeds."""

    @abstractmethod
    def _given_rows(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        """The parameters of a statement that takes rows of URLs."""

    @abstractmethod
    def _requeued(self, given: dict[str, Any]) -> int:
        """Make visits of the URLs of a seed that were filtered, held or barred. How many."""

    @abstractmethod
    def _urls(self, value: Any) -> list[Url]:
        """URLs, as `named_before` returns them."""


def _seed(kind: int, name: str, depth: int) -> Seed:
    return Seed(SeedKind(kind), name, depth)
