"""The seeds of the SQLite frontier: the statements of `frontier.seeds`."""

import json
from collections.abc import Sequence
from typing import Any

from crawler.frontier import seeds
from crawler.frontier.rows import FoundRow
from crawler.frontier.seeds import Statements
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.rows import FOUND
from crawler.model.seed import Seed
from crawler.parse.url import Url

ADD = """
INSERT INTO seed (kind, name, run, parent, depth)
SELECT value ->> 0, value ->> 1, :run, :parent, value ->> 2 FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
GROUP BY value ->> 0, value ->> 1 ORDER BY min(j.key) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""

LEFT_OUT = """
SELECT count(DISTINCT json_array(value ->> 0, value ->> 1)) FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
"""

NAMED_BEFORE = """
SELECT s.kind, s.name, s.depth, json_group_array(u.url) FROM url AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND :now - s.failing < :keep
GROUP BY s.id ORDER BY s.id
"""

# A URL that was found before is also in a seed. The first seed by kind and id counts, whichever was read first.
SEEDED = f"""
UPDATE url SET seed = :seed
WHERE url IN (SELECT url FROM {FOUND}) AND run = :run
AND (seed IS NULL OR (SELECT kind, id FROM seed AS s WHERE s.id = url.seed) > (:kind, :seed))
"""

# A URL in a seed is fetched even if its links are nofollow or too deep, and is no longer held for a round or barred with
# its pattern.
REQUEUE = f"""
UPDATE url SET state = 0, host = r.host, detail = NULL, settled = NULL,
    outcome = iif(url.state = -1, url.outcome, NULL), trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample),
    via = CASE WHEN url.state = -1 OR url.outcome <> 'unlisted:nofollow' THEN url.via END
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND r.outcome IS NULL AND (
    url.state = -1
    OR (url.state = 3 AND url.host IS NULL
        AND url.outcome IN ('unlisted:nofollow', 'unlisted:depth', 'unlisted:not-named', 'unlisted:trap'))
    OR (url.state = 3 AND url.outcome = 'unlisted:trap' AND url.attempts = 0)
)
"""

LIFT = f"""
UPDATE url SET depth = 0 WHERE url IN (SELECT url FROM {FOUND}) AND run = :run AND depth > 0
"""

ORPHANS = """
SELECT s.name, count(*) FROM url AS u JOIN seed AS s ON s.id = u.seed
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
        return {"seeds": json.dumps([[seed.kind.value, seed.name, seed.depth] for seed in seeds])}

    def _given_rows(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        return {"rows": json.dumps(rows)}

    def _requeued(self, given: dict[str, Any]) -> int:
        return self._db.do(REQUEUE, given)

    def _urls(self, value: Any) -> list[Url]:
        return [Url(url) for url in json.loads(value)]
