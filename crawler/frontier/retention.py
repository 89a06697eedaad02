"""Retention: deletes old runs, and the URLs that none of the last runs found.

The leader does this after its run, in transactions of a few thousand URLs, so that no lock and no rollback
segment lasts long. It stops if another run begins meanwhile, whose conclusion goes on with it.
"""

from typing import Final

from crawler.frontier.database import Database

PORTION: Final = 10_000  # URLs that are looked at in a transaction

UP_TO: Final = "SELECT max(id) FROM (SELECT id FROM url WHERE id > :after ORDER BY id LIMIT :most) AS portion"

ANY: Final = "SELECT EXISTS (SELECT 1 FROM run WHERE number <= :last)"

OLD: Final = "SELECT id FROM url WHERE id > :after AND id <= :up_to AND run <= :last"

_OF_URLS: Final = ("url", "visit", "page", "published", "feature", "external", "anchor")
# By the ids of URLs; of links that have a finding there are few.
LARGE: Final = (*(f"{table} WHERE id" for table in _OF_URLS), "anchor WHERE target")
SMALL: Final = (
    "run WHERE number <= :last",
    *(f"{table} WHERE run <= :last" for table in ("run_key", "member", "note", "trap", "seed")),
)


class Retention:
    """Deletes what is older than `keep_runs` runs."""

    def __init__(self, db: Database, keep_runs: int) -> None:
        self._db, self._keep_runs = db, keep_runs

    def prune(self, after: int) -> int | None:
        """Delete what is old among the next URLs after the id `after`, 0 at first.

        The last id; None when none is left.
        """
        self._db.lock_runs()  # no run begins while URLs are deleted
        last = self._db.run - self._keep_runs
        if self._db.newest() != self._db.run or not self._db.one(ANY, {"last": last})[0]:
            return None
        up_to: int | None = self._db.one(UP_TO, {"after": after, "most": PORTION})[0]
        if up_to is None:
            for rows in SMALL:
                self._db.do(f"DELETE FROM {rows}", {"last": last})
            return None
        old = [number for (number,) in self._db.all(OLD, {"after": after, "up_to": up_to, "last": last})]
        for rows in LARGE if old else ():
            self._db.do(f"DELETE FROM {rows} @any(old)", {"old": self._db.dialect.all_of(old)})
        return up_to
