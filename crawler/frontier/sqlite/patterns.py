"""The patterns of URLs that may be crawler traps in the SQLite frontier: the statements of `frontier.patterns`."""

from crawler.frontier import patterns
from crawler.frontier.patterns import READ, NewPattern, Statements
from crawler.frontier.sqlite.database import Database

COUNT = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (
    SELECT trap AS id, count(*) AS pages FROM url
    WHERE id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {READ} GROUP BY trap
) AS n WHERE trap.id = n.id
"""

COUNT_FAMILY = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM url JOIN trap AS t ON t.id = url.trap
    WHERE url.id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {READ} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""

# A page of a closed pattern is listed if it is the only one, or the first, of its family with its content.
REPEATS = """
UPDATE url SET outcome = 'unlisted:trap', detail = 'same content as ' || r.best
FROM (
    SELECT id, closed, url, first_value(url) OVER (
        PARTITION BY family, content ORDER BY closed, waited, named DESC, url
    ) AS best
    FROM (
        SELECT u.id, u.url, u.content, f.pattern AS family, t.closed, u.round IS NOT NULL AS waited, t.named
        FROM trap AS f JOIN trap AS t ON t.family = f.id JOIN url AS u ON u.trap = t.id
        WHERE f.run = :run AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL AND f.pattern IN (
            SELECT f.pattern FROM trap AS f JOIN trap AS t ON t.family = f.id WHERE t.run = :run AND t.closed
        )
        UNION ALL
        SELECT u.id, u.url, u.content, f.pattern, -1, 0, 0
        FROM trap AS f JOIN url AS u ON u.url = substr(f.pattern, 1, instr(f.pattern, '?') - 1)
        WHERE f.run = :run AND f.family IS NULL AND f.batch > 0 AND NOT f.named AND f.kind = 'query'
        AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
    )
) AS r
WHERE url.id = r.id AND r.closed = 1 AND r.best <> r.url
"""

STATEMENTS = Statements(COUNT, COUNT_FAMILY, REPEATS)

ADD = """
INSERT OR IGNORE INTO trap (run, batch_round, family, kind, pattern, named, batch, batch_left, closed)
VALUES (:run, :round, :family, :kind, :pattern, :named, :batch, :batch, :closed)
"""

FIND = "SELECT id, closed FROM trap WHERE run = :run AND pattern = :pattern AND named = :named"


class PatternTable(patterns.PatternTable):
    """The rows of patterns in the current run."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, STATEMENTS)

    def _added(self, new: NewPattern) -> tuple[int, bool]:
        row = new._asdict() | {"run": self._db.run, "round": self.round}
        self._db.do(ADD, row)
        number, closed = self._db.one(FIND, row)
        return number, bool(closed)
