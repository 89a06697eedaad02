"""The rounds of the PostgreSQL frontier: the statements of `frontier.rounds`, and what happens to a commit in doubt."""

from crawler.frontier import rounds
from crawler.frontier.patterns import READ, SHOWN
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.patterns import PatternTable
from crawler.frontier.rounds import Statements
from crawler.ports import Round

# Patterns with held URLs: one index lookup for each, however many URLs it has. Sorted, and therefore read completely before
# the first row is changed.
WAITING = """
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM visit WHERE state = -1
    UNION ALL
    SELECT (SELECT min(trap) FROM visit WHERE state = -1 AND trap > held.trap) FROM held WHERE held.trap IS NOT NULL
)
SELECT f.id, f.batch_left, t.proven, t.id, t.batch_left, t.kind, t.pattern, t.longest, t.longest_before, t.rounds_growing
FROM held JOIN trap AS t ON t.id = held.trap JOIN trap AS f ON f.id = t.family
WHERE t.run = :run ORDER BY f.id, t.pattern
"""

DUE = "SELECT count(*) FROM visit WHERE state IN (0, 1, 2) AND depth <= :depth"

DECIDABLE = """
SELECT id, family, pattern, batch - batch_left, batch_round FROM trap
WHERE run = :run AND NOT closed AND batch_left <= 0
"""

RELEASE = """
WITH released AS (
    UPDATE visit SET state = 0 WHERE id = ANY (ARRAY(
        SELECT id FROM visit WHERE state = -1 AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
    )) RETURNING id
)
UPDATE url SET round = :round FROM released WHERE url.id = released.id
"""

# URLs of the last publication are fetched even from closed patterns, once no other URL is left.
RELEASE_PUBLISHED = """
WITH released AS (
    SELECT * FROM known
    WHERE run = :run AND state = 3 AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0 AND trap IS NOT NULL
    AND published >= (SELECT max(number) FROM publication WHERE run < :run)
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state) SELECT id, host, depth, trap, sample, 0 FROM released
)
UPDATE page SET outcome = NULL, detail = NULL, settled = NULL FROM released WHERE page.id = released.id
"""

BAR = """
WITH barred AS (
    DELETE FROM visit USING url AS u WHERE u.id = visit.id AND visit.state = -1 AND visit.trap = :trap AND length(u.url) > :longer
    RETURNING visit.id
)
INSERT INTO page (id, outcome, detail, settled) SELECT id, 'unlisted:trap', :detail, :now FROM barred
ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, detail = excluded.detail, settled = excluded.settled, facts_run = NULL
"""

CONTENTS = f"""
SELECT count(*) FROM (
    SELECT 1 FROM known
    WHERE trap = ANY (:traps::bigint[]) AND run = :run AND state = 3 AND outcome IN ({SHOWN})
    AND (content IS NULL OR content IS DISTINCT FROM :bare::text)
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
) AS shown
"""

_NAMED_BY = f"""
FROM (
    SELECT trap, links FROM known
    WHERE trap = ANY (:traps::bigint[]) AND round > :since AND run = :run AND state = 3
    AND ({READ} OR outcome = 'moved')
) AS p CROSS JOIN LATERAL unnest(p.links) AS j JOIN known AS u ON u.id = j
WHERE u.run = :run AND u.found > :since AND u.host IS NOT NULL
AND u.outcome NOT LIKE 'failed:%'
"""

LINKS_OUT = f"""
SELECT count(*) FROM (SELECT DISTINCT coalesce(u.content, u.id::text) {_NAMED_BY} AND u.trap IS NULL LIMIT :enough) AS named
"""

LINKS_TO_PATTERNS = f"""
SELECT u.trap, count(DISTINCT u.id) {_NAMED_BY} AND u.trap IN
    (SELECT id FROM trap WHERE id = u.trap AND NOT closed AND family <> :family)
GROUP BY u.trap
"""

# New content and new links that only one pattern has: counts by pattern.
ALONE = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM known
    WHERE trap = ANY (:traps::bigint[]) AND round > :since AND run = :run AND state = 3
    AND outcome IN ({SHOWN}) AND (content IS NULL OR content IS DISTINCT FROM :bare::text)
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) AS alone GROUP BY trap
"""

BARE = """
SELECT u.content FROM trap AS f JOIN known AS u ON u.fp = f.bare
WHERE f.id = :id AND f.kind = 'query' AND u.run = :run AND u.outcome = 'listed'
"""

STATEMENTS = Statements(
    waiting=WAITING,
    decidable=DECIDABLE,
    release=RELEASE,
    release_published=RELEASE_PUBLISHED,
    bar=BAR,
    contents=CONTENTS,
    links_out=LINKS_OUT,
    links_to_patterns=LINKS_TO_PATTERNS,
    alone=ALONE,
    bare=BARE,
    example="SELECT url FROM known WHERE state = -1 AND trap = :trap ORDER BY sample LIMIT 1",
    held="SELECT count(*) FROM (SELECT 1 FROM visit WHERE state = -1 AND trap = :trap LIMIT :most) AS held",
)


class Rounds(rounds.Rounds):
    """The rounds of the current run."""

    def __init__(self, db: Database, patterns: PatternTable) -> None:
        super().__init__(db, patterns, STATEMENTS)
        self._database = db

    def advance(self, depth: int) -> Round:
        """See `ports.Queue.advance`."""
        if self._database.is_retry and (due := self._db.count(DUE, {"depth": depth})):
            return Round(due)  # the round was committed, and the answer was lost
        return super().advance(depth)
