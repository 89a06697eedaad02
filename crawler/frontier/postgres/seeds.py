"""The seeds of the PostgreSQL frontier: the statements of `frontier.seeds`."""

from collections.abc import Sequence
from typing import Any

from crawler.frontier import seeds
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import FOUND, given, given_found, table
from crawler.frontier.rows import FoundRow
from crawler.frontier.seeds import Statements
from crawler.model.seed import Seed
from crawler.parse.url import Url

SEEDS = table(("kind", "name", "depth"))

ADD = f"""
INSERT INTO seed (kind, name, run, parent, depth)
SELECT kind, name, :run, :parent::bigint, min(depth) FROM {SEEDS}
WHERE NOT EXISTS (SELECT 1 FROM seed AS s WHERE s.kind = r.kind AND s.name = r.name AND s.run = :run)
GROUP BY kind, name ORDER BY min(place_) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""

LEFT_OUT = f"""
SELECT count(DISTINCT (kind, name)) FROM {SEEDS}
WHERE NOT EXISTS (SELECT 1 FROM seed AS s WHERE s.kind = r.kind AND s.name = r.name AND s.run = :run)
"""

NAMED_BEFORE = """
SELECT s.kind, s.name, s.depth, array_agg(u.url) FROM known AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND :now - s.failing < :keep
GROUP BY s.id ORDER BY s.id
"""

# A URL that was found before is also in a seed. The first seed by kind and id counts, whichever was read first.
SEEDED = """
UPDATE url SET seed = :seed
WHERE fp = ANY (:fp_s::uuid[]) AND run = :run
AND (seed IS NULL OR (SELECT (kind, id) > (:kind, :seed) FROM seed AS s WHERE s.id = url.seed))
"""

# A URL in a seed is fetched even if its links are nofollow or too deep, and is no longer held for a round or barred with
# its pattern.
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

LIFT = """
WITH raised AS (
    UPDATE url SET depth = 0 WHERE fp = ANY (:fp_s::uuid[]) AND run = :run AND depth > 0 RETURNING id
)
UPDATE visit SET depth = 0 FROM raised WHERE visit.id = raised.id
"""

ORPHANS = """
SELECT s.name, count(*) FROM known AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = 3 AND (u.outcome = 'listed' OR u.outcome LIKE 'kept:%') AND u.via IS NULL AND s.kind = 2
GROUP BY s.id ORDER BY 2 DESC, 1
"""

STATEMENTS = Statements(
    add=ADD, left_out=LEFT_OUT, named_before=NAMED_BEFORE, seeded=SEEDED, lift=LIFT, orphans=ORPHANS
)


class SeedTable(seeds.SeedTable):
    """The rows of seeds."""

    def __init__(self, db: Database, keep_failing: float) -> None:
        super().__init__(db, keep_failing, STATEMENTS)

    def _given_seeds(self, seeds: Sequence[Seed]) -> dict[str, Any]:
        return given(("kind", "name", "depth"), [(seed.kind.value, seed.name, seed.depth) for seed in seeds])

    def _given_rows(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        return given_found(rows)

    def _requeued(self, given: dict[str, Any]) -> int:
        return self._db.count(REQUEUE, given)

    def _urls(self, value: Any) -> list[Url]:
        return [Url(url) for url in value]
