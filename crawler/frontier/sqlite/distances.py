"""The shortest distance of URLs from the start, computed from the links of all pages while no request is in flight.

During a crawl, a URL has the depth of the path that was found first. That matters only for URLs that were filtered as too
deep, so this is computed only if there are any, as it reads all pages. With `--max-depth`, depths are exact from the start.
"""

from typing import Final

from crawler.frontier.sqlite.database import Database

# URLs that were filtered as too deep. The index `barred` finds them.
TOO_DEEP: Final = (
    "outcome = 'unlisted:trap' AND run = :run AND state = 3 AND host IS NULL AND depth > :deepest"
)
ANY = f"SELECT EXISTS (SELECT 1 FROM url WHERE {TOO_DEEP})"

TABLE = "CREATE TEMP TABLE IF NOT EXISTS near (id INTEGER PRIMARY KEY, depth INTEGER NOT NULL)"
INDEX = "CREATE INDEX IF NOT EXISTS temp.level ON near (depth)"
CLEAR = "DELETE FROM near"
FIRST = "INSERT INTO near SELECT id, 0 FROM url WHERE run = :run AND host IS NOT NULL AND seed IS NOT NULL"
REDIRECTED = """
INSERT OR IGNORE INTO near
SELECT t.id, n.depth FROM near AS n JOIN url AS s ON s.id = n.id JOIN url AS t ON t.url = s.detail
WHERE n.depth = :depth AND s.state = 3 AND s.outcome = 'moved' AND t.run = :run
"""
LINKED = """
INSERT OR IGNORE INTO near
SELECT u.id, n.depth + 1
FROM near AS n JOIN url AS p ON p.id = n.id, json_each(p.links) AS j JOIN url AS u ON u.id = j.value
WHERE n.depth = :depth AND p.run = :run AND p.state = 3 AND p.facts_run >= :since AND u.run = :run
"""
NEARER = f"SELECT count(*) FROM url JOIN near USING (id) WHERE {TOO_DEEP.replace('depth', 'url.depth')} AND near.depth <= :deepest"
LOWER = "UPDATE url SET depth = near.depth FROM near WHERE url.id = near.id AND url.run = :run AND near.depth < url.depth"


class Distances:
    """Distances in the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def shorten(self, deepest: int) -> int:
        """See `ports.Queue.shorten`."""
        given = {"run": self._db.run, "deepest": deepest, "since": self._db.since}
        if not self._db.one(ANY, given)[0]:
            return 0
        for statement in (TABLE, INDEX, CLEAR):
            self._db.do(statement)
        self._db.do(FIRST, given)
        for depth in range(deepest):
            level = given | {"depth": depth}
            while self._db.do(REDIRECTED, level):
                pass
            if not self._db.do(LINKED, level):
                break
        nearer = int(self._db.one(NEARER, given)[0])
        self._db.do(LOWER, given)
        self._db.do(CLEAR)
        return nearer
