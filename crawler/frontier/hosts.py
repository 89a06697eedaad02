"""The hosts: robots.txt, crawl delay and throttling of each origin.

The arithmetic is in `pace`; `leases` assigns the slots to visits. A member that books a slot locks the row.
"""

from collections.abc import Mapping
from typing import Final

from crawler.frontier import pace
from crawler.frontier.database import Database
from crawler.model.robots import RobotsFile

ID: Final = "SELECT id FROM host WHERE origin = :origin"
ADD: Final = "INSERT INTO host (origin, delay) VALUES (:origin, :delay) ON CONFLICT DO NOTHING"
ROBOTS: Final = """
SELECT robots, robots_text, robots_detail, robots_read_at FROM host
WHERE origin = :origin AND (robots_read_at > :since
    OR robots_read_at > (SELECT started FROM run WHERE number = CAST(:run AS integer)) - :age)
"""
STORE_ROBOTS: Final = """
UPDATE host SET robots = :robots, robots_text = :body, robots_detail = :detail, robots_read_at = :read_at,
    robots_leased_until = 0, delay = :delay, next = @greatest(next, CAST(:next AS double precision))
WHERE origin = :origin
"""
SLOT: Final = "SELECT delay, backoff, next FROM host WHERE id = :id @lock"
BOOK: Final = "UPDATE host SET next = :next WHERE id = :id"
BACK_OFF: Final = """
UPDATE host SET next = @greatest(next, :until),
    backoff = CASE WHEN backoff_grew_at BETWEEN :since
        AND :now THEN backoff ELSE @least(backoff * 2, :most) END,
    backoff_grew_at = CASE WHEN backoff_grew_at BETWEEN :since AND :now THEN backoff_grew_at ELSE :now END
WHERE id = :id
"""
# Sorted, so that two members that ease the same hosts do not deadlock.
EASE: Final = """
UPDATE host SET backoff = @greatest(1, backoff * e.ease)
FROM (
    SELECT host.id, r.ease
        FROM @rows(origin, ease) JOIN host ON host.origin = r.origin
            WHERE backoff > 1 ORDER BY host.id @lock(host)
) AS e WHERE host.id = e.id
"""


class HostTable:
    """The rows of hosts. `delay`: seconds between the slots of a host whose robots.txt was not read yet."""

    def __init__(self, db: Database, delay: float) -> None:
        self._db, self._delay = db, float(delay)
        self._ids: dict[str, int] = {}
        db.on_forget(self._ids.clear)

    def id(self, origin: str) -> int:
        """The number of a host, which is added if it is new."""
        number = self._ids.get(origin)
        if number is None:
            row = self._db.one_or_none(ID, {"origin": origin})
            number = self._ids[origin] = row[0] if row else self._add(origin)
        return number

    def _add(self, origin: str) -> int:
        self._db.do(ADD, {"origin": origin, "delay": self._delay})
        return self._db.count(ID, {"origin": origin})

    def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        """See `ports.Hosts.store_robots`."""
        self.id(origin)
        learned = {"robots": file.status, "body": file.text, "detail": file.detail, "read_at": file.fetched}
        paced = {"delay": float(delay), "next": self._db.now() + delay, "origin": origin}
        self._db.do(STORE_ROBOTS, learned | paced)

    def robots(self, origin: str, *, stale: bool) -> RobotsFile | None:
        """See `ports.Hosts.robots`."""
        query = {
            "origin": origin,
            "since": self._db.now() - pace.ROBOTS_DAY,
            "run": self._db.run if stale else None,
            "age": pace.ROBOTS_DAY,
        }
        row = self._db.one_or_none(ROBOTS, query)
        return RobotsFile(row[0], bytes(row[1] or b""), row[2] or "", row[3]) if row else None

    def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`."""
        number = self.id(origin)
        delay, backoff, upcoming = self._db.one(SLOT, {"id": number})
        at = float(max(upcoming, self._db.now()))
        self._db.do(BOOK, {"id": number, "next": at + pace.throttled_delay(delay, backoff)})
        return at

    def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        now = self._db.now()
        self._db.do(
            BACK_OFF,
            {
                "id": self.id(origin), "until": float(until), "now": now,
                "since": now - pace.BACKOFF_PAUSE, "most": pace.MAX_BACKOFF,
            },
        )  # fmt: skip

    def ease(self, good: Mapping[str, int]) -> None:
        """Reduce the backoff of hosts. `good`: number of good responses, by origin."""
        if good:
            rows = [(origin, pace.BACKOFF_DECAY**count) for origin, count in good.items()]
            self._db.do_rows(EASE, ("origin", "ease"), rows)
