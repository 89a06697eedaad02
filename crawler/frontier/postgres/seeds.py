"""The seeds of the PostgreSQL frontier: which are to be read, what became of each, and what they named.

What a sitemap says is for `app/seeding`; how its URLs become known is for `discovery`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.publications import last_publication
from crawler.frontier.postgres.rows import FOUND, FoundRow, given, table
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.seed import Seed, SeedSettlement
from crawler.parse.url import Url

SEEDS = table(("kind", "name", "depth"))

NAME = f"""
INSERT INTO seed (kind, name, run, parent, depth)
SELECT kind, name, :run, :parent::bigint, min(depth) FROM {SEEDS}
WHERE NOT EXISTS (SELECT 1 FROM seed AS s WHERE s.kind = r.kind AND s.name = r.name AND s.run = :run)
GROUP BY kind, name ORDER BY min(place_) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""

PAGES_OF_FAILING_SEEDS = f"""
SELECT count(DISTINCT (kind, name)) FROM {SEEDS}
WHERE NOT EXISTS (SELECT 1 FROM seed AS s WHERE s.kind = r.kind AND s.name = r.name AND s.run = :run)
"""

NEXT_SEED = """
SELECT kind, name, depth FROM seed WHERE run = :run AND kind > 0 AND settled IS NULL ORDER BY kind, depth, id LIMIT 1
"""

SETTLE_SEED = """
UPDATE seed SET settled = :now, outcome = :outcome, detail = :detail, entries = :entries, passed = :passed,
    failing = CASE WHEN :may_pass THEN coalesce(least(failing, :now), :now) WHEN NOT :read THEN failing END,
    may_pass = :may_pass
WHERE id = :id
"""

BELOW = """
SELECT kind, name, depth FROM seed WHERE parent = :id AND run < :run
AND :keep > coalesce((SELECT :now - failing FROM seed WHERE id = :id), 0) ORDER BY id
"""

NAMED_BEFORE = """
SELECT s.kind, s.name, s.depth, array_agg(u.url) FROM known AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND :now - s.failing < :keep
GROUP BY s.id ORDER BY s.id
"""

# A seed names what was found before. The first seed by kind and id counts, whichever was read first.
SEEDED = """
UPDATE url SET seed = :seed
WHERE fp = ANY (:fp_s::uuid[]) AND run = :run
AND (seed IS NULL OR (SELECT (kind, id) > (:kind, :seed) FROM seed AS s WHERE s.id = url.seed))
"""

# What was not to be asked for because of where it was linked is asked for when a seed names it, too; and what was held for a
# round, or barred with its pattern, is no longer.
REQUEUE = f"""
WITH moved AS (
    UPDATE url SET host = r.host, trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample), nofollow = false,
        via = CASE WHEN k.state = -1 OR k.outcome <> 'unlisted:nofollow' THEN url.via END
    FROM {FOUND} JOIN known AS k ON k.fp = r.fp
    WHERE url.id = k.id AND k.run = :run AND r.outcome IS NULL AND (
        k.state = -1
        OR (k.state = 3 AND k.host IS NULL
            AND k.outcome IN ('unlisted:nofollow', 'unlisted:depth', 'unlisted:not-named', 'unlisted:trap'))
        OR (k.state = 3 AND k.outcome = 'unlisted:trap' AND k.attempts = 0)
    )
    RETURNING url.id, url.host, url.depth, url.trap, url.sample, CASE WHEN k.state = -1 THEN k.outcome END AS outcome
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state) SELECT id, host, depth, trap, sample, 0 FROM moved
    ON CONFLICT (id) DO UPDATE SET state = 0, host = excluded.host
),
judged AS (
    UPDATE page SET outcome = moved.outcome, detail = NULL, settled = NULL FROM moved WHERE page.id = moved.id
)
SELECT count(*) FROM moved
"""

RAISE = """
WITH raised AS (
    UPDATE url SET depth = 0 WHERE fp = ANY (:fp_s::uuid[]) AND run = :run AND depth > 0 RETURNING id
)
UPDATE visit SET depth = 0 FROM raised WHERE visit.id = raised.id
"""

SITEMAPS = """
SELECT coalesce(outcome, 'open'), count(*), sum(passed) FROM seed WHERE run = :run AND kind = 2 GROUP BY 1
"""

ORPHANS = """
SELECT s.name, count(*) FROM known AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = 3 AND (u.outcome = 'listed' OR u.outcome LIKE 'kept:%') AND u.via IS NULL AND s.kind = 2
GROUP BY s.id ORDER BY 2 DESC, 1
"""


class SeedTable:
    """The rows of seeds. `keep_failing`: seconds for which what a seed named is remembered while it fails."""

    def __init__(self, db: Database, keep_failing: float) -> None:
        self._db, self._keep_failing = db, float(keep_failing)

    def add_seeds(self, seeds: Sequence[Seed], room: int, parent: int | None = None) -> int:
        """See `ports.Queue.add_seeds`."""
        if not seeds:
            return 0
        asked = _given(seeds) | {"run": self._db.run}
        used = self._db.count(
            "SELECT count(*) FROM seed WHERE run = :run AND kind = :kind AND depth = :depth",
            {"run": self._db.run, "kind": seeds[0].kind.value, "depth": seeds[0].depth},
        )
        self._db.do(NAME, asked | {"room": max(0, room - used), "parent": parent})
        return self._db.count(PAGES_OF_FAILING_SEEDS, asked)

    def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        row = self._db.one_or_none(NEXT_SEED, {"run": self._db.run})
        return Seed(SeedKind(row[0]), row[1], row[2]) if row else None

    def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        number = self.id(read.seed)
        passed = self.add_seeds([*read.below, *self._below(number, read)], room, number)
        self._db.do(
            SETTLE_SEED,
            {
                "id": number, "now": self._db.now(), "outcome": read.outcome.value, "detail": read.detail,
                "entries": read.entries, "passed": passed, "may_pass": read.may_pass,
                "read": read.outcome is SeedOutcome.READ,
            },
        )  # fmt: skip
        return passed

    def _below(self, number: int, read: SeedSettlement) -> list[Seed]:
        """The sitemaps of an index in earlier runs, which are still read while the index fails temporarily."""
        if not read.may_pass:
            return []
        asked = {"id": number, "run": self._db.run, "now": self._db.now(), "keep": self._keep_failing}
        return [Seed(SeedKind(kind), name, depth) for kind, name, depth in self._db.all(BELOW, asked)]

    def pages_of_failing_seeds(self) -> list[tuple[Seed, list[Url]]]:
        """See `ports.Queue.pages_of_failing_seeds`."""
        last = last_publication(self._db)
        asked = {"run": self._db.run, "now": self._db.now(), "keep": self._keep_failing, "last": last or 0}
        rows = self._db.all(NAMED_BEFORE, asked) if last else []
        return [
            (Seed(SeedKind(kind), name, depth), [Url(url) for url in urls])
            for kind, name, depth, urls in rows
        ]

    def reopen(self) -> None:
        """What a robots.txt that could not be read had kept back is to be read after all."""
        self._db.do(
            "UPDATE seed SET settled = NULL, outcome = NULL WHERE run = :run AND outcome = :outcome",
            {"run": self._db.run, "outcome": SeedOutcome.ROBOTS_DOWN.value},
        )

    def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        rows = self._db.all(SITEMAPS, {"run": self._db.run})
        passed = int(sum(row[2] for row in rows))
        return {outcome: count for outcome, count, _ in rows} | ({"passed": passed} if passed else {})

    def id(self, seed: Seed) -> int:
        """The number of a seed, which this run knows from now on."""
        self._db.do(NAME, _given([seed]) | {"run": self._db.run, "room": 1, "parent": None})
        return self._db.count(
            "SELECT id FROM seed WHERE kind = :kind AND name = :name",
            {"kind": seed.kind.value, "name": seed.name},
        )

    def requeue(self, rows: list[FoundRow], seed: Seed, number: int) -> int:
        """What a seed names though it was found before; how many of these are visits now."""
        named = {"fp_s": [row.fp for row in rows], "run": self._db.run}
        self._db.do(SEEDED, named | {"kind": seed.kind.value, "seed": number})
        self._db.do(RAISE, named)
        return self._db.count(REQUEUE, given(FoundRow._fields, rows) | {"run": self._db.run})

    def orphans(self) -> Mapping[str, int]:
        """See `ports.Record.orphans`."""
        return dict(self._db.all(ORPHANS, {"run": self._db.run}))


def _given(seeds: Sequence[Seed]) -> dict[str, Any]:
    return given(("kind", "name", "depth"), [(seed.kind.value, seed.name, seed.depth) for seed in seeds])
