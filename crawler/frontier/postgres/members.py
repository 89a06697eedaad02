"""The members of a crawl on PostgreSQL: who is at work, who is dead, and whose leases go back.

A member's number is never used again: a process that was taken for dead and comes back is another member. Burying is one
transaction with the return of what the dead held.
"""

import os
import socket
from typing import Final

from crawler.frontier.postgres.database import Database

LIFE: Final = 30.0  # seconds without a beat after which a member counts as dead
HEARTBEAT: Final = 5.0  # seconds between two beats

JOIN = "INSERT INTO member (run, name, until) VALUES (:run, :name, :until) RETURNING id"

BEAT = "UPDATE member SET until = :until WHERE id = :id AND NOT gone"

BURY = """
WITH dead AS (
    UPDATE member SET gone = true WHERE id = ANY (ARRAY(
        SELECT id FROM member WHERE NOT gone AND (until <= :now OR id = :leaver) ORDER BY id FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
given_back AS (
    UPDATE visit SET state = 0, token = NULL, due = NULL WHERE id = ANY (ARRAY(
        SELECT v.id FROM visit AS v JOIN dead ON v.token >> 32 = dead.id WHERE v.state = 2 ORDER BY v.id FOR UPDATE OF v
    ))
)
UPDATE run SET leader = NULL FROM dead WHERE run.leader = dead.id
"""

ALIVE = "SELECT id, name, until, settled FROM member WHERE run = :run AND NOT gone ORDER BY id"

# The lead goes to whoever asks first, and stays there.
LEAD = """
UPDATE run SET leader = :me WHERE number = :run AND (leader = :me OR leader IS NULL)
"""


class Members:
    """The rows of members, and which one this process is."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.name = f"{socket.gethostname()}:{os.getpid()}"

    def join(self) -> None:
        """Become a member of the run at work, with a new number."""
        row = {"run": self._db.run, "name": self.name, "until": self._db.now() + LIFE}
        self._db.member = self._db.count(JOIN, row)

    def beat(self) -> bool:
        """Live, and bury the dead. False: this member was buried itself."""
        now = self._db.now()
        is_alive = self._db.do(BEAT, {"until": now + LIFE, "id": self._db.member}) > 0
        self.bury()
        return is_alive

    def bury(self) -> None:
        """What the dead hold goes back, and the lead falls."""
        self._db.do(BURY, {"now": self._db.now(), "leaver": 0})

    def leave(self) -> None:
        """What this member holds goes back at once."""
        if self._db.member:
            self._db.do(BURY, {"now": self._db.now() - LIFE * 1_000, "leaver": self._db.member})
            self._db.member = 0

    def alive(self) -> list[str]:
        """The names of all who are at work, in the order in which they came, this one too."""
        last = self._db.one("SELECT max(number) FROM run")[0]
        return [row[1] for row in self._db.all(ALIVE, {"run": last})] if last else []

    def lead(self) -> bool:
        """Take the lead of the run, or keep it."""
        return self._db.do(LEAD, {"me": self._db.member, "run": self._db.run}) > 0
