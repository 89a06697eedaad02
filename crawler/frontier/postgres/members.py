"""The members of a crawl on PostgreSQL: which are at work, which one leads, and which are taken for dead.

The id of a member is never used again: a process that was taken for dead and wakes up becomes another member, and what it
held is void. A dead member is marked dead in the transaction that returns its leases and its leadership.
"""

import os
import socket
from typing import Final

from crawler.errors import LeadershipLost
from crawler.frontier.postgres.database import Database

LIFE: Final = 30.0  # seconds without a heartbeat after which a member is taken for dead
HEARTBEAT: Final = 5.0  # seconds between two heartbeats

JOIN = "INSERT INTO member (run, name, until) VALUES (:run, :name, :until) RETURNING id"

BEAT = "UPDATE member SET until = :until WHERE id = :id AND NOT gone"

# Locked, so that it is not marked dead before the transaction ends.
IS_ALIVE = "SELECT 1 FROM member WHERE id = :id AND NOT gone FOR SHARE"

MARK_DEAD = """
WITH dead AS (
    UPDATE member SET gone = true WHERE id = ANY (ARRAY(
        SELECT id FROM member WHERE NOT gone AND (until <= :now OR id = :leaver) ORDER BY id FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
returned AS (
    UPDATE visit SET state = 0, token = NULL, due = NULL, suspect = false,
        deaths = deaths + (suspect AND visit.token >> 32 <> :leaver)::integer
    WHERE id = ANY (ARRAY(
        SELECT v.id FROM visit AS v JOIN dead ON v.token >> 32 = dead.id WHERE v.state = 2 ORDER BY v.id FOR UPDATE OF v
    )) RETURNING host
),
-- It may have been reading robots.txt, for which the others wait.
released AS (
    UPDATE host SET robots_leased_until = 0 WHERE id = ANY (ARRAY(
        SELECT id FROM host WHERE id IN (SELECT host FROM returned) AND robots_leased_until > 0 ORDER BY id FOR NO KEY UPDATE
    ))
)
UPDATE run SET leader = NULL FROM dead WHERE run.leader = dead.id
"""

ALIVE = "SELECT count(*) FROM member WHERE NOT gone AND until > :now AND run = :run AND id <> :me"

LEADER = "SELECT m.name FROM run AS r JOIN member AS m ON m.id = r.leader WHERE r.number = :run"

# The leadership goes to the first member that asks, and stays there.
TAKE_LEADERSHIP = """
UPDATE run SET leader = :me WHERE number = :run AND (leader IS NULL OR leader = :me)
AND status IN ('crawling', 'complete') AND ended IS NULL
"""

# Locked, so that the leadership stays with this member until the transaction ends.
IS_LEADER = "SELECT 1 FROM run WHERE number = :run AND leader = :me FOR SHARE"


class Members:
    """The rows of members, and which one this process is."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.name = f"{socket.gethostname()}:{os.getpid()}"

    def join(self) -> None:
        """Become a member of the run at work, with a new id."""
        row = {"run": self._db.run, "name": self.name, "until": self._db.now() + LIFE}
        self._db.member = self._db.count(JOIN, row)

    def stay(self) -> None:
        """Be a living member until the transaction ends: if this one was marked dead, another one."""
        if self._db.one_or_none(IS_ALIVE, {"id": self._db.member}) is None:
            self.join()

    def rejoin(self) -> None:
        """Return what this member holds, and its leadership, and join as another one."""
        if self._db.member:
            self.leave()
            self.join()

    def beat(self) -> bool:
        """Extend the life of this member, and mark those as dead whose life is over. False if it was marked dead itself."""
        now = self._db.now()
        is_alive = self._db.do(BEAT, {"until": now + LIFE, "id": self._db.member}) > 0
        self.mark_dead(now)
        return is_alive

    def mark_dead(self, now: float) -> None:
        """Return what dead members held, and their leadership."""
        self._db.do(MARK_DEAD, {"now": now, "leaver": 0})

    def leave(self) -> None:
        """Return what this member holds, and its leadership."""
        if self._db.member:
            self._db.do(MARK_DEAD, {"now": self._db.now() - LIFE * 1_000, "leaver": self._db.member})
            self._db.member = 0

    def others(self, run: int) -> int:
        """How many other members work on a run."""
        return self._db.count(ALIVE, {"now": self._db.now(), "run": run, "me": self._db.member})

    def leader(self) -> str | None:
        """The name of the member that leads."""
        row = self._db.one_or_none(LEADER, {"run": self._db.run})
        return row[0] if row else None

    def take_leadership(self) -> bool:
        """See `ports.Runs.take_leadership`."""
        self.stay()
        return self._db.do(TAKE_LEADERSHIP, {"me": self._db.member, "run": self._db.run}) > 0

    def is_leader(self) -> bool:
        """Whether this member leads; if it does, it does so until the transaction ends."""
        return self._db.one_or_none(IS_LEADER, {"run": self._db.run, "me": self._db.member}) is not None

    def check_leadership(self) -> None:
        """Raises `LeadershipLost` if this member does not lead; if it does, it does so until the transaction ends."""
        if not self.is_leader():
            raise LeadershipLost("another member leads the run")
