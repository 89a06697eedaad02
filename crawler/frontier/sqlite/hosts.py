"""The hosts of the SQLite frontier: robots.txt, crawl delay and throttling of each origin.

The arithmetic is in `frontier.pace`; `leases` assigns the slots to visits.
"""

from collections.abc import Mapping

from crawler.frontier import pace
from crawler.frontier.sqlite.database import Database
from crawler.model.robots import RobotsFile

ROBOTS = """
SELECT robots, robots_text, robots_detail, met FROM host
WHERE origin = :origin AND (met > :since OR met > (SELECT started FROM run WHERE number = :run) - :age)
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
            self._db.do("INSERT OR IGNORE INTO host (origin, gap) VALUES (?, ?)", (origin, self._gap))
            number = self._ids[origin] = self._db.count("SELECT id FROM host WHERE origin = ?", (origin,))
        return number

    def store_robots(self, origin: str, file: RobotsFile, gap: float) -> None:
        """See `ports.Hosts.store_robots`."""
        self.id(origin)
        self._db.do(
            """UPDATE host SET robots = ?, robots_text = ?, robots_detail = ?, met = ?, gap = ?, asked = 0,
               next = max(next, ? + ?) WHERE origin = ?""",
            (file.status, file.text, file.detail, file.fetched, gap, self._db.now(), gap, origin),
        )

    def robots(self, origin: str, *, stale: bool) -> RobotsFile | None:
        """See `ports.Hosts.robots`."""
        given = {
            "origin": origin,
            "since": self._db.now() - pace.ROBOTS_DAY,
            "run": self._db.run if stale else None,
            "age": pace.ROBOTS_DAY,
        }
        row = self._db.one_or_none(ROBOTS, given)
        return RobotsFile(row[0], row[1] or b"", row[2] or "", row[3]) if row else None

    def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`."""
        number, now = self.id(origin), self._db.now()
        gap, strain, upcoming = self._db.one("SELECT gap, strain, next FROM host WHERE id = ?", (number,))
        at = float(max(upcoming, now))
        self._db.do("UPDATE host SET next = ? WHERE id = ?", (at + pace.slowed(gap, strain), number))
        return at

    def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        number, now = self.id(origin), self._db.now()
        self._db.do("UPDATE host SET next = max(next, ?) WHERE id = ?", (until, number))
        self._db.do(
            """UPDATE host SET strain = min(strain * 2, :limit), strained = :now
               WHERE id = :id AND NOT strained BETWEEN :now - :pause AND :now""",
            {"limit": pace.STRAIN_LIMIT, "now": now, "id": number, "pause": pace.STRAIN_PAUSE},
        )

    def ease(self, good: Mapping[str, int]) -> None:
        """Reduce the throttling of hosts. `good`: number of good responses, by origin."""
        self._db.many(
            "UPDATE host SET strain = max(1, strain * ?) WHERE origin = ? AND strain > 1",
            [(pace.CALM**count, origin) for origin, count in good.items()],
        )
