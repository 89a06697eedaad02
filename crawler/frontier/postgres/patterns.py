"""The patterns of URLs that may be crawler traps in the PostgreSQL frontier: the statements of `frontier.patterns`.

The leader decides on patterns and begins rounds; other members refresh what they cached.
"""

from crawler.frontier import patterns
from crawler.frontier.patterns import READ, NewPattern, Statements
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp

COUNT = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (
    SELECT trap AS id, count(*) AS pages FROM known
    WHERE id = ANY (:ids::bigint[]) AND round IS NOT NULL AND {READ} GROUP BY trap
) AS n WHERE trap.id = n.id
"""

COUNT_FAMILY = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM known JOIN trap AS t ON t.id = known.trap
    WHERE known.id = ANY (:ids::bigint[]) AND round IS NOT NULL AND {READ} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""

# A page of a closed pattern is listed if it is the only one, or the first, of its family with its content.
REPEATS = """
UPDATE page SET outcome = 'unlisted:trap', detail = 'same content as ' || r.best
FROM (
    SELECT id, closed, url, first_value(url) OVER (
        PARTITION BY family, content ORDER BY closed, waited, named DESC, url
    ) AS best
    FROM (
        SELECT u.id, u.url, u.content, f.pattern AS family, t.closed::integer AS closed, (u.round IS NOT NULL)::integer AS waited, t.named::integer AS named
        FROM trap AS f JOIN trap AS t ON t.family = f.id JOIN known AS u ON u.trap = t.id
        WHERE f.run = :run AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL AND f.pattern IN (
            SELECT f.pattern FROM trap AS f JOIN trap AS t ON t.family = f.id WHERE t.run = :run AND t.closed
        )
        UNION ALL
        SELECT u.id, u.url, u.content, f.pattern, -1, 0, 0
        FROM trap AS f JOIN known AS u ON u.fp = f.bare
        WHERE f.run = :run AND f.family IS NULL AND f.batch > 0 AND NOT f.named AND f.kind = 'query'
        AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
    ) AS shown
) AS r
WHERE page.id = r.id AND r.closed = 1 AND r.best <> r.url
"""

STATEMENTS = Statements(COUNT, COUNT_FAMILY, REPEATS)

FIND = "SELECT id, closed FROM trap WHERE run = :run AND pattern = :pattern AND named = :named"

ADD = """
INSERT INTO trap (run, batch_round, family, kind, pattern, named, bare, batch, batch_left, closed)
VALUES (:run, :round, :family, :kind, :pattern, :named, :bare::uuid, :batch, :batch, :closed) ON CONFLICT DO NOTHING
"""


class PatternTable(patterns.PatternTable):
    """The rows of patterns in the current run."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, STATEMENTS)
        self._closings = 0

    def refresh(self) -> None:
        """Clear the caches if the leader has closed patterns or begun a round."""
        now, closings = self._db.one(
            "SELECT round, closings FROM run WHERE number = :run", {"run": self._db.run}
        )
        if closings != self._closings:
            self.forget()
        self._round, self._closings = now, closings

    def note_closing(self) -> None:
        """Patterns were closed: the caches of all members are out of date."""
        self._db.do("UPDATE run SET closings = closings + 1 WHERE number = :run", {"run": self._db.run})
        super().note_closing()

    def _added(self, new: NewPattern) -> tuple[int, bool]:
        key = {"run": self._db.run, "pattern": new.pattern, "named": new.named}
        found = self._db.one_or_none(FIND, key)
        if found is None:
            is_query = new.family is None and "?" in new.pattern
            bare = fp(new.pattern.partition("?")[0]) if is_query else None
            self._db.do(ADD, new._asdict() | {"run": self._db.run, "round": self.round, "bare": bare})
            found = self._db.one(FIND, key)
        return found[0], found[1]
