"""The hosts of the PostgreSQL frontier: robots.txt, crawl delay and throttling of each origin.

The arithmetic is in `frontier.pace`; `leases` assigns the slots to visits. A member that books a slot locks the row.
"""

from collections.abc import Mapping

from crawler.frontier import pace
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import given, table
from crawler.model.robots import RobotsFile

ROBOTS = """
SELECT robots, robots_text, robots_detail, met FROM host
WHERE origin = :origin AND (met > :since OR met > (SELECT started FROM run WHERE number = :run::integer) - :age)
"""

MEET = """
UPDATE host SET robots = :robots, robots_text = :body, robots_detail = :detail, met = :met, gap = :gap, asked = 0,
    next = greatest(next, :now::double precision + :gap) WHERE origin = :origin
"""

STRAIN = """
UPDATE host SET next = greatest(next, :until),
    strain = CASE WHEN strained BETWEEN :now - :pause AND :now THEN strain ELSE least(strain * 2, :most) END,
    strained = CASE WHEN strained BETWEEN :now - :pause AND :now THEN strained ELSE :now END
WHERE id = :id
"""

# Sorted, so that two members that ease the same hosts do not deadlock.
EASE = f"""
UPDATE host SET strain = greatest(1, strain * e.ease)
FROM (
    SELECT host.id, r.ease FROM {table(("origin", "ease"))} JOIN host USING (origin)
    WHERE strain > 1 ORDER BY id FOR NO KEY UPDATE OF host
) AS e WHERE host.id = e.id
"""


class HostTable:
    """The rows of hosts. `gap`: seconds between the slots of a host whose robots.txt was not read yet."""

    def __init__(self, db: Database, gap: float) -> None:
        self._db, self._gap = db, gap
        self._ids: dict[str, int] = {}
        db.on_forget(self._ids.clear)

    def id(self, origin: str) -> int:
        """The number of a host, which is added if it is new."""
        number = self._ids.get(origin)
        if number is None:
            row = self._db.one_or_none("SELECT id FROM host WHERE origin = :origin", {"origin": origin})
            number = self._ids[origin] = row[0] if row else self._add(origin)
        return number

    def _add(self, origin: str) -> int:
        known = {"origin": origin, "gap": self._gap}
        self._db.do("INSERT INTO host (origin, gap) VALUES (:origin, :gap) ON CONFLICT DO NOTHING", known)
        return self._db.count("SELECT id FROM host WHERE origin = :origin", {"origin": origin})

    def store_robots(self, origin: str, file: RobotsFile, gap: float) -> None:
        """See `ports.Hosts.store_robots`."""
        self.id(origin)
        learned = {"robots": file.status, "body": file.text, "detail": file.detail, "met": file.fetched}
        self._db.do(MEET, learned | {"gap": float(gap), "now": self._db.now(), "origin": origin})

    def robots(self, origin: str, *, stale: bool) -> RobotsFile | None:
        """See `ports.Hosts.robots`."""
        asked = {
            "origin": origin,
            "since": self._db.now() - pace.ROBOTS_DAY,
            "run": self._db.run if stale else None,
            "age": pace.ROBOTS_DAY,
        }
        row = self._db.one_or_none(ROBOTS, asked)
        return RobotsFile(row[0], bytes(row[1] or b""), row[2] or "", row[3]) if row else None

    def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`."""
        number = {"id": self.id(origin)}
        gap, strain, upcoming = self._db.one(
            "SELECT gap, strain, next FROM host WHERE id = :id FOR NO KEY UPDATE", number
        )
        at = float(max(upcoming, self._db.now()))
        self._db.do(
            "UPDATE host SET next = :next WHERE id = :id", number | {"next": at + pace.slowed(gap, strain)}
        )
        return at

    def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        self._db.do(
            STRAIN,
            {
                "id": self.id(origin), "until": float(until), "now": self._db.now(),
                "pause": pace.STRAIN_PAUSE, "most": pace.STRAIN_LIMIT,
            },
        )  # fmt: skip

    def ease(self, good: Mapping[str, int]) -> None:
        """Reduce the strain of hosts. `good`: number of good responses, by origin."""
        if good:
            rows = [(origin, pace.CALM**count) for origin, count in good.items()]
            self._db.do(EASE, given(("origin", "ease"), rows))
