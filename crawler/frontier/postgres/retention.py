"""Retention in the PostgreSQL frontier: deletes old runs, and the URLs that none of the last runs found.

The leader does this after its run, in transactions of a few thousand URLs, so that no lock and no rollback segment lasts
long. It stops if another run begins meanwhile, whose conclusion goes on with it.
"""

from typing import Final

from crawler.frontier.postgres import images
from crawler.frontier.postgres.database import Database

PORTION: Final = 10_000  # URLs that are looked at in a transaction

NEWEST = "SELECT max(number) FROM run"

UP_TO = "SELECT max(id) FROM (SELECT id FROM url WHERE id > :after ORDER BY id LIMIT :most) AS portion"

FORGET = """
WITH old AS (DELETE FROM url WHERE id > :after AND id <= :up_to AND run <= :last RETURNING id),
opened AS (DELETE FROM visit USING old WHERE visit.id = old.id),
answered AS (DELETE FROM external USING old WHERE external.id = old.id)
DELETE FROM page USING old WHERE page.id = old.id
"""

SMALL: Final = (
    "run WHERE number <= :last",
    "member WHERE run <= :last",
    "note WHERE run <= :last",
    "trap WHERE run <= :last",
    "seed WHERE run <= :last",
)


class Retention:
    """Deletes what is older than `keep_runs` runs."""

    def __init__(self, db: Database, keep_runs: int) -> None:
        self._db, self._keep_runs = db, keep_runs

    def prune(self, after: int) -> int | None:
        """Delete what is old among the next URLs after the id `after`, 0 at first. The last id; None when none is left."""
        self._db.do("LOCK TABLE run IN SHARE ROW EXCLUSIVE MODE")  # no run begins while URLs are deleted
        last = self._db.run - self._keep_runs
        if last <= 0 or self._db.one(NEWEST)[0] != self._db.run:
            return None
        up_to: int | None = self._db.one(UP_TO, {"after": after, "most": PORTION})[0]
        if up_to is None:
            for rows in SMALL:
                self._db.do(f"DELETE FROM {rows}", {"last": last})
            if self._db.run % self._keep_runs == 0:  # reads all pages
                images.prune(self._db)
            return None
        self._db.do(FORGET, {"after": after, "up_to": up_to, "last": last})
        return up_to
