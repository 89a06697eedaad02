"""The rounds of the SQLite frontier: the statements of `frontier.rounds`."""

from crawler.frontier.patterns import READ, SHOWN
from crawler.frontier.rounds import Statements

# Patterns with held URLs: one index lookup for each, however many URLs it has. Sorted, and therefore read completely before
# the first row is changed.
WAITING = """
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM url WHERE state = -1
    UNION ALL
    SELECT (SELECT min(trap) FROM url WHERE state = -1 AND trap > held.trap) FROM held WHERE held.trap IS NOT NULL
)
SELECT f.id, f.batch_left, t.proven, t.id, t.batch_left, t.kind, t.pattern, t.longest, t.longest_before, t.rounds_growing
FROM held JOIN trap AS t ON t.id = held.trap JOIN trap AS f ON f.id = t.family
WHERE t.run = :run ORDER BY f.id, t.pattern
"""

DECIDABLE = """
SELECT id, family, pattern, batch - batch_left, batch_round FROM trap INDEXED BY ripe
WHERE run = :run AND closed = 0 AND batch_left <= 0
"""

RELEASE = """
UPDATE url SET state = 0, round = :round WHERE id IN (
    SELECT id FROM url WHERE state = -1 AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
)
"""

# URLs of the last publication are fetched even from closed patterns, once no other URL is left.
RELEASE_PUBLISHED = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL
WHERE run = :run AND state = 3 AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0 AND trap IS NOT NULL
AND published >= (SELECT max(number) FROM publication WHERE run < :run)
"""

BAR = """
UPDATE url SET state = 3, outcome = 'unlisted:trap', detail = :detail, settled = :now, facts_run = NULL
WHERE state = -1 AND trap = :trap AND length(url) > :longer
"""

CONTENTS = f"""
SELECT count(*) FROM (
    SELECT 1 FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND run = :run AND state = 3 AND outcome IN ({SHOWN})
    AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
)
"""

_NAMED_BY = f"""
FROM (
    SELECT trap, links FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND ({READ} OR outcome = 'moved')
) AS p, json_each(p.links) AS j, url AS u
WHERE u.id = j.value AND u.run = :run AND u.found > :since AND u.host IS NOT NULL
AND u.outcome NOT LIKE 'failed:%'
"""

LINKS_OUT = f"""
SELECT count(*) FROM (SELECT DISTINCT coalesce(u.content, u.id) {_NAMED_BY} AND u.trap IS NULL LIMIT :enough)
"""

LINKS_TO_PATTERNS = f"""
SELECT u.trap, count(DISTINCT u.id) {_NAMED_BY} AND u.trap IN
    (SELECT id FROM trap WHERE id = u.trap AND closed = 0 AND family <> :family)
GROUP BY u.trap
"""

# New content and new links that only one pattern has: counts by pattern.
ALONE = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND outcome IN ({SHOWN}) AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) GROUP BY trap
"""

BARE = """
SELECT u.content FROM trap AS f JOIN url AS u ON u.url = substr(f.pattern, 1, instr(f.pattern, '?') - 1)
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
    example="SELECT url FROM url WHERE state = -1 AND trap = :trap ORDER BY sample LIMIT 1",
    held="SELECT count(*) FROM (SELECT 1 FROM url WHERE state = -1 AND trap = :trap LIMIT :most)",
)
