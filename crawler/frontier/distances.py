"""The shortest distance of URLs from the start, computed from the links of all pages between requests.

During a crawl, a URL has the depth of the path that was found first. That matters only for URLs that were
filtered as too deep, so this is computed only if there are any, as it reads all pages. With `--max-depth`,
depths are exact from the start. The same walk shows which pages were found by links that are not followed any
more.
"""

from typing import Final

from crawler.frontier.database import Database
from crawler.rules.record import LISTED, SETTLED
from crawler.rules.traps import DEEPEST

# URLs that were filtered as too deep. The index `page_barred` finds them.
TOO_DEEP: Final = f"""
u.outcome = 'unlisted:trap' AND u.run = :run AND u.state = {SETTLED} AND u.host IS NULL AND u.depth > :deepest
"""
ANY: Final = f"SELECT EXISTS (SELECT 1 FROM known AS u WHERE {TOO_DEEP})"

TABLE: Final = "CREATE TEMP TABLE near (id @number, depth integer NOT NULL)"
INDEX: Final = "CREATE INDEX near_level ON near (depth)"
DROP: Final = "DROP TABLE near"
FIRST: Final = (
    "INSERT INTO near SELECT id, 0 FROM url WHERE run = :run AND host IS NOT NULL AND seed IS NOT NULL"
)
REDIRECTED: Final = f"""
INSERT INTO near
SELECT DISTINCT t.id, n.depth FROM near AS n JOIN known AS s ON s.id = n.id
@each(s.links) JOIN url AS t ON t.id = abs(j.value)
WHERE n.depth = :depth AND s.state = {SETTLED} AND s.outcome = 'moved' AND @place = 1 AND t.run = :run
ON CONFLICT DO NOTHING
"""
LINKED: Final = f"""
INSERT INTO near
SELECT DISTINCT u.id, n.depth + 1
FROM near AS n JOIN known AS p ON p.id = n.id @each(p.links) JOIN url AS u ON u.id = j.value
WHERE n.depth = :depth AND p.run = :run AND p.state = {SETTLED} AND p.facts_run >= :since AND u.run = :run
ON CONFLICT DO NOTHING
"""
NEARER: Final = (
    f"SELECT count(*) FROM known AS u JOIN near ON near.id = u.id WHERE {TOO_DEEP} AND near.depth <= :deepest"
)
LOWER: Final = """
UPDATE url SET depth = near.depth
    FROM near WHERE url.id = near.id AND url.run = :run AND near.depth < url.depth
"""
LOWER_VISITS: Final = (
    "UPDATE visit SET depth = near.depth FROM near WHERE visit.id = near.id AND near.depth < visit.depth"
)

# Listed pages to which nothing leads that is still followed.
UNREACHED: Final = f"""
UPDATE page SET outcome = 'unlisted:trap', detail = :why FROM url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome = '{LISTED}'
    AND NOT EXISTS (SELECT 1 FROM near WHERE near.id = page.id)
"""
WHY_UNREACHED: Final = "links of pages that do not exist"


class Distances:
    """Distances in the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def shorten(self, deepest: int) -> int:
        given = {"run": self._db.run, "deepest": deepest}
        if not self._db.one(ANY, given)[0]:
            return 0
        self._walk(deepest)
        nearer = self._db.count(NEARER, given)
        self._db.do(LOWER, {"run": self._db.run})
        self._db.do(LOWER_VISITS)
        self._db.do(DROP)
        return nearer

    def unlist_unreached(self) -> None:
        """See `ports.SiteRule.UNREACHED`."""
        self._walk(DEEPEST)
        self._db.do(UNREACHED, {"run": self._db.run, "why": WHY_UNREACHED})
        self._db.do(DROP)

    def _walk(self, deepest: int) -> None:
        """The temporary table `near`: the URLs that links lead to from the start, with their distance."""
        for statement in (TABLE, INDEX):
            self._db.do(statement)
        self._db.do(FIRST, {"run": self._db.run})
        for depth in range(deepest):
            level = {"run": self._db.run, "depth": depth}
            while self._db.changed(REDIRECTED, level):
                pass
            if not self._db.changed(LINKED, level | {"since": self._db.since}):
                break
