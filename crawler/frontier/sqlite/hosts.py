"""The hosts of the SQLite frontier: robots.txt, crawl delay and throttling of each origin.

The arithmetic is in `frontier.pace`; `leases` assigns the slots to visits.
"""

from collections.abc import Mapping

from crawler.frontier import pace
from crawler.frontier.sqlite.database import Database
from crawler.model.robots import RobotsFile

ROBOTS = """
SELECT robots, robots_text, robots_detail, robots_read_at FROM host
WHERE origin = :origin
AND (robots_read_at > :since OR robots_read_at > (SELECT started FROM run WHERE number = :run) - :age)
"""


class HostTable:
    """The rows of hosts. `delay`: seconds between the slots of a host whose robots.txt was not read yet."""

    def __init__(self, db: Database, delay: float) -> None:
        self._db, self._delay = db, delay
        self._ids: dict[str, int] = {}
        db.on_forget(self._ids.clear)

    def id(self, origin: str) -> int:
        """The number of a host, which is added if it is new."""
        number = self._ids.get(origin)
        if number is None:
            self._db.do("INSERT OR IGNORE INTO host (origin, delay) VALUES (?, ?)", (origin, self._delay))
            number = self._ids[origin] = self._db.count("SELECT id FROM host WHERE origin = ?", (origin,))
        return number

    def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        """See `ports.Hosts.store_robots`."""
        self.id(origin)
        self._db.do(
            """UPDATE host SET robots = ?, robots_text = ?, robots_detail = ?, robots_read_at = ?, robots_leased_until = 0,
               delay = ?, next = max(next, ? + ?) WHERE origin = ?""",
            (file.status, file.text, file.detail, file.fetched, delay, self._db.now(), delay, origin),
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
        delay, backoff, upcoming = self._db.one(
            "SELECT delay, backoff, next FROM host WHERE id = ?", (number,)
        )
        at = float(max(upcoming, now))
        self._db.do(
            "UPDATE host SET next = ? WHERE id = ?", (at + pace.throttled_delay(delay, backoff), number)
        )
        return at

    def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        number, now = self.id(origin), self._db.now()
        self._db.do("UPDATE host SET next = max(next, ?) WHERE id = ?", (until, number))
        self._db.do(
            """UPDATE host SET backoff = min(backoff * 2, :limit), backoff_grew_at = :now
               WHERE id = :id AND NOT backoff_grew_at BETWEEN :now - :pause AND :now""",
            {"limit": pace.MAX_BACKOFF, "now": now, "id": number, "pause": pace.BACKOFF_PAUSE},
        )

    def ease(self, good: Mapping[str, int]) -> None:
        """Reduce the throttling of hosts. `good`: number of good responses, by origin."""
        self._db.many(
            "UPDATE host SET backoff = max(1, backoff * ?) WHERE origin = ? AND backoff > 1",
            [(pace.BACKOFF_DECAY**count, origin) for origin, count in good.items()],
        )
