"""The hosts: robots.txt, crawl delay and throttling of each origin.

The arithmetic is in `pace`; `leases` assigns the slots to visits. A member that books a slot locks the row.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier import pace
from crawler.frontier.database import Database
from crawler.model.reply import RobotsFile

ID: Final = "SELECT id FROM host WHERE origin = :origin"
COUNT: Final = "SELECT count(*) FROM host"
ADD: Final = "INSERT INTO host (origin, delay) VALUES (:origin, :delay) ON CONFLICT DO NOTHING"
ROBOTS: Final = """
SELECT robots, robots_text, robots_detail, robots_read_at FROM host
WHERE origin = :origin AND robots_asked_as = coalesce(CAST(:asked_as AS text), robots_asked_as)
AND (robots_read_at > :since
    OR robots_read_at > (SELECT started FROM run WHERE number = CAST(:run AS integer)) - :age)
"""
STORE_ROBOTS: Final = """
UPDATE host SET robots = :robots, robots_text = :body, robots_detail = :detail, robots_read_at = :read_at,
    robots_asked_as = :asked_as, robots_leased_until = 0, delay = :delay,
    next = @greatest(next, CAST(:next AS double precision))
WHERE origin = :origin
"""
# Sorted, as in `EASE`.
FORGET_ROBOTS: Final = """
UPDATE host SET robots_read_at = NULL WHERE id @first
    SELECT id FROM host WHERE robots_asked_as <> :asked_as ORDER BY id @lock
@end
"""
# The next slot is as far from the last one as the new pace says.
PACE: Final = """
UPDATE host SET next = next - delay + :delay, delay = :delay WHERE origin = :origin AND delay <> :delay
"""
SLOW_DOWN: Final = "UPDATE host SET next = next - delay + :delay, delay = :delay WHERE delay < :delay"
SLOT: Final = f"""
UPDATE host SET next = @greatest(next, :now) + :count
    * CASE WHEN backoff <= 1 THEN delay ELSE @greatest(delay, {pace.MIN_THROTTLED_DELAY}) * backoff END
WHERE id = :id RETURNING next, delay, backoff
"""
BACK_OFF: Final = """
UPDATE host SET next = @greatest(next, :until),
    backoff = CASE WHEN backoff_grew_at BETWEEN :since
        AND :now THEN backoff ELSE @least(backoff * 2, :most) END,
    backoff_grew_at = CASE WHEN backoff_grew_at BETWEEN :since AND :now THEN backoff_grew_at ELSE :now END
WHERE id = :id
"""
BACK_OFF_ONCE: Final = f"""{BACK_OFF}
    AND backoff_grew_at NOT BETWEEN (SELECT started FROM run WHERE number = :run) AND :now
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


FREE: Final = 1.0  # seconds for which a host that has no pace is asked for no slot
MOST_REMEMBERED: Final = 10_000  # hosts beyond the limit


class HostTable:
    """The rows of hosts. `delay`: seconds between the slots of a host whose robots.txt was not read yet.

    `most`: how many hosts may have pages.
    """

    def __init__(self, db: Database, delay: float, most: int) -> None:
        self._db, self._delay, self._most = db, float(delay), most
        self._ids: dict[str, int] = {}
        self._asked_as: str | None = None  # None: anybody
        self._others: set[str] = set()  # some of those beyond `most`
        self._free: dict[str, float] = {}  # hosts without a pace, and when that was seen
        db.on_forget(self._free.clear)
        db.on_forget(self._ids.clear)
        db.on_forget(self._others.clear)

    def admitted(self, origin: str) -> int | None:
        """The number of a host that pages are on, which is added if it is new; None if there are too many."""
        if origin in self._ids:
            return self._ids[origin]
        if origin in self._others:
            return None
        known, count = self._db.ask(ID, {"origin": origin}), self._db.ask(COUNT)
        if rows := known():
            self._ids[origin] = rows[0][0]
            return self._ids[origin]
        if count()[0][0] >= self._most:
            if len(self._others) > MOST_REMEMBERED:
                self._others.clear()
            self._others.add(origin)
            return None
        self._ids[origin] = self._add(origin)
        return self._ids[origin]

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

    def ask_as(self, digest: str) -> None:
        """From now on, what somebody else was told by robots.txt is not known."""
        self._asked_as = digest
        self._db.do(FORGET_ROBOTS, {"asked_as": digest})

    def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        self._free.pop(origin, None)
        self.id(origin)
        learned = {"robots": file.status, "body": file.text, "detail": file.detail, "read_at": file.fetched}
        learned["asked_as"] = self._asked_as or ""
        paced = {"delay": float(delay), "next": self._db.now() + delay, "origin": origin}
        self._db.do(STORE_ROBOTS, learned | paced)

    def pace(self, origin: str, delay: float) -> None:
        self._free.pop(origin, None)
        self._db.do(PACE, {"origin": origin, "delay": float(delay)})

    def slow_down(self) -> None:
        """No host is paced faster than this member may ask; `pace` makes those faster that may be."""
        self._db.do(SLOW_DOWN, {"delay": self._delay})

    def robots(self, origin: str, *, stale: bool) -> RobotsFile | None:
        query = {
            "origin": origin,
            "since": self._db.now() - pace.ROBOTS_DAY,
            "run": self._db.run if stale else None,
            "age": pace.ROBOTS_DAY,
            "asked_as": self._asked_as,
        }
        row = self._db.one_or_none(ROBOTS, query)
        return RobotsFile(row[0], bytes(row[1] or b""), row[2] or "", row[3]) if row else None

    def slots(self, origin: str, count: int) -> Sequence[float]:
        """So many slots, one after the other; see `ports.Pacer.slot`."""
        now = self._db.now()
        upcoming, delay, backoff = self._db.one(SLOT, {"id": self.id(origin), "now": now, "count": count})
        apart = pace.throttled_delay(delay, backoff)
        if not apart and upcoming <= now:
            self._free[origin] = now
        return [float(upcoming - left * apart) for left in range(count, 0, -1)]

    def free_slot(self, origin: str) -> float | None:
        """A slot that need not be booked: a moment ago, the host had no pace, and nobody waited for it.

        Another member may have slowed it down since, as it may after pages of it were leased.
        """
        seen, now = self._free.get(origin), self._db.now()
        return now if seen is not None and 0 <= now - seen < FREE else None

    def slow(self, origin: str, until: float, *, once: bool) -> bool:
        self._free.pop(origin, None)
        now = self._db.now()
        given = {
            "id": self.id(origin), "until": float(until), "now": now,
            "since": now - pace.BACKOFF_PAUSE, "most": pace.MAX_BACKOFF,
        }  # fmt: skip
        changed = (
            self._db.changed(BACK_OFF_ONCE, given | {"run": self._db.run})
            if once
            else self._db.changed(BACK_OFF, given)
        )
        return changed > 0

    def ease(self, good: Mapping[str, int]) -> None:
        """Reduce the backoff of hosts. `good`: number of good responses, by origin."""
        if good:
            rows = [(origin, pace.BACKOFF_DECAY**count) for origin, count in good.items()]
            self._db.do_rows(EASE, ("origin", "ease"), rows)
