"""The part of the ledger that keeps seeds: which are to be read, what became of each, and what they named.

Plain and blocking, within the transaction of `sqlite`, as the rest of the ledger. What a sitemap says is for `seeding`.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crawler.frontier.sqlite import schema
from crawler.frontier.sqlite.rows import FoundRow
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.seed import Seed, SeedSettlement
from crawler.parse.url import Url


class SeedLedger:
    """The verbs on seeds; a base of `Ledger`."""

    _db: sqlite3.Connection
    _clock: Callable[[], float]
    _keep_failing: float
    run: int

    def name_seeds(self, seeds: Sequence[Seed], room: int, parent: int | None = None) -> int:
        """See `ports.Queue.name_seeds`."""
        if not seeds:
            return 0
        rows = json.dumps([[seed.kind.value, seed.name, seed.depth] for seed in seeds])
        given = {"seeds": rows, "run": self.run, "parent": parent}
        used = self._count(
            "SELECT count(*) FROM seed WHERE run = :run AND kind = :kind AND depth = :depth",
            {"run": self.run, "kind": seeds[0].kind.value, "depth": seeds[0].depth},
        )
        self._db.execute(schema.NAME, given | {"room": max(0, room - used)})
        return self._count(schema.UNNAMED, given)

    def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        row = self._db.execute(schema.NEXT_SEED, {"run": self.run}).fetchone()
        return Seed(SeedKind(row[0]), row[1], row[2]) if row else None

    def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        number = self.seed_id(read.seed)
        passed = self.name_seeds([*read.below, *self._below(number, read)], room, number)
        self._db.execute(
            schema.SETTLE_SEED,
            {
                "id": number, "now": self._clock(), "outcome": read.outcome.value, "detail": read.detail,
                "entries": read.entries, "passed": passed, "may_pass": read.may_pass,
                "read": read.outcome is SeedOutcome.READ,
            },
        )  # fmt: skip
        return passed

    def _below(self, number: int, read: SeedSettlement) -> list[Seed]:
        """What an index named in runs before: read all the same while the index fails for now."""
        if not read.may_pass:
            return []
        given = {"id": number, "run": self.run, "now": self._clock(), "keep": self._keep_failing}
        return [
            Seed(SeedKind(kind), name, depth) for kind, name, depth in self._db.execute(schema.BELOW, given)
        ]

    def unnamed(self) -> list[tuple[Seed, list[Url]]]:
        """See `ports.Queue.unnamed`."""
        last = self._db.execute(schema.LAST, {"run": self.run}).fetchone()
        given = {
            "run": self.run,
            "now": self._clock(),
            "keep": self._keep_failing,
            "last": last[0] if last else 0,
        }
        rows = self._db.execute(schema.NAMED_BEFORE, given) if last else ()
        return [
            (Seed(SeedKind(kind), name, depth), [Url(url) for url in json.loads(urls)])
            for kind, name, depth, urls in rows
        ]

    def reopen_seeds(self) -> None:
        """What a robots.txt that could not be read had kept back is to be read after all."""
        self._db.execute(
            "UPDATE seed SET settled = NULL, outcome = NULL WHERE run = ? AND outcome = ?",
            (self.run, SeedOutcome.ROBOTS_DOWN.value),
        )

    def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        rows = self._db.execute(schema.SITEMAPS, {"run": self.run}).fetchall()
        passed = int(sum(row[2] for row in rows))
        return {outcome: count for outcome, count, _ in rows} | ({"passed": passed} if passed else {})

    def seed_id(self, seed: Seed) -> int:
        """The number of a seed, which this run knows from now on."""
        given = {"kind": seed.kind.value, "name": seed.name, "run": self.run}
        self._db.execute(
            schema.NAME, given | {"seeds": json.dumps([[seed.kind.value, seed.name, seed.depth]]), "room": 1, "parent": None}
        )  # fmt: skip
        return self._count("SELECT id FROM seed WHERE kind = :kind AND name = :name", given)

    def name_known(self, rows: list[FoundRow], seed: Seed, number: int) -> int:
        """What a seed names though it was found before; how many of these are visits now."""
        given = {"rows": json.dumps(rows), "run": self.run, "seed": number}
        self._db.execute(schema.SEEDED, given | {"kind": seed.kind.value})
        self._db.execute(schema.RAISE, given)
        return self._db.execute(schema.TAKE_UP, given).rowcount

    def _count(self, sql: str, given: Mapping[str, Any]) -> int:
        return int(self._db.execute(sql, given).fetchone()[0])
