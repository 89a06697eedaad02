"""The members of a crawl: which are at work, which one leads, and which are taken for dead.

The id of a member is never used again: a process that was taken for dead and wakes up becomes another member,
and what it held is void. A dead member is marked dead in the transaction that returns its leases and its
leadership.
"""

import os
import socket
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from crawler.frontier.database import Database
from crawler.model.run import Member
from crawler.rules.record import LEASED, QUEUED

FENCE: Final = "another member leads the run"
HEARTBEAT: Final = 5.0  # seconds between two heartbeats
QUIET: Final = 0.75  # of its life that one without a connection has left when it is taken for dead

JOIN: Final = "INSERT INTO member (run, name, until) VALUES (:run, :name, :until) RETURNING id"

BEAT: Final = """
UPDATE member SET until = :until, backend = @backend WHERE id = :id AND NOT gone RETURNING id
"""

# Locked, so that it is not marked dead before the transaction ends.
IS_ALIVE: Final = "SELECT 1 FROM member WHERE id = :id AND NOT gone @lock_shared"

# One whose connection has ended, too, if it had the time to open another: it was killed.
DEAD: Final = """
SELECT id FROM member
WHERE NOT gone AND (until <= :now OR id = :leaver OR (until <= :silent AND @disconnected))
ORDER BY id @skip_locked
"""
BURY: Final = "UPDATE member SET gone = true WHERE id @any(dead)"
HELD: Final = f"""
SELECT id, host, suspect AND token >> 32 <> :leaver FROM visit
WHERE state = {LEASED} AND token >> 32 @any(dead) ORDER BY id @lock
"""
RETURN: Final = f"""
UPDATE visit SET state = {QUEUED}, token = NULL, due = NULL, suspect = false, deaths = visit.deaths + r.deaths
FROM @rows(id, deaths) WHERE visit.id = r.id
"""
# It may have been reading robots.txt, for which the others wait.
UNLEASE_ROBOTS: Final = """
UPDATE host SET robots_leased_until = 0 WHERE id @first
    SELECT id FROM host WHERE id @any(hosts) AND robots_leased_until > 0 ORDER BY id @lock
@end
"""
UNSEAT: Final = "UPDATE run SET leader = NULL WHERE leader @any(dead)"

ALIVE: Final = "SELECT count(*) FROM member WHERE NOT gone AND until > :now AND run = :run AND id <> :me"

CONNECTED: Final = f"{ALIVE} AND NOT (@vanished)"

# The leadership goes to the first member that asks, and stays there.
TAKE_LEADERSHIP: Final = """
UPDATE run SET leader = :me WHERE number = :run AND (leader IS NULL OR leader = :me)
AND status IN ('crawling', 'complete') AND ended IS NULL
AND EXISTS (SELECT 1 FROM member WHERE id = :me AND NOT gone) RETURNING number
"""

# Locked, so that the leadership stays with this member until the transaction ends.
IS_LEADER: Final = "SELECT 1 FROM run WHERE number = :run AND leader = :me @lock_shared"
# An error if it does not lead, which names why: nobody needs to wait for the answer.
LEAD: Final = f"""
SELECT CAST(CASE WHEN EXISTS ({IS_LEADER}) THEN '1' ELSE '{FENCE}' END AS integer)
"""

ALL: Final = """
SELECT m.name, m.id = coalesce(r.leader, 0), NOT m.gone AND m.until > :now, m.gone,
    @greatest(0, :now - m.until + :life), m.settled
FROM member AS m JOIN run AS r ON r.number = m.run
WHERE m.run = :run ORDER BY m.id
"""


class Beat(Struct, frozen=True):
    """What a heartbeat found."""

    is_alive: bool  # False: this member was marked dead
    others: int  # at work on the run


class Members:
    """The rows of members, and which one this process is."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.name = f"{socket.gethostname()}:{os.getpid()}"

    def join(self) -> None:
        """Become a member of the run at work, with a new id."""
        row = {"run": self._db.run, "name": self.name, "until": self._db.now() + self._db.life}
        self._db.member = self._db.count(JOIN, row)

    def ask_alive(self) -> Callable[[], None]:
        """Be a living member until the transaction ends: if this one was marked dead, the result joins as
        another one.
        """
        found = self._db.ask(IS_ALIVE, {"id": self._db.member})
        return lambda: None if found() else self.join()

    def rejoin(self) -> None:
        """Return what this member holds, and its leadership, and join as another one."""
        if self._db.member:
            self.leave()
            self.join()

    def beat(self) -> Beat:
        """Extend the life of this member, and mark those as dead whose life is over."""
        now = self._db.now()
        alive = self._db.ask(BEAT, {"until": now + self._db.life, "id": self._db.member})
        self.mark_dead(now)
        return Beat(bool(alive()), self.others(self._db.run))

    def mark_dead(self, now: float, leaver: int = 0) -> None:
        """Return what dead members held, and their leadership. `leaver`: one that leaves alive."""
        given = {"silent": now + QUIET * self._db.life, "steady": self._db.life / 2}
        dead = [number for (number,) in self._db.all(DEAD, given | {"now": now, "leaver": leaver})]
        if not dead:
            return
        all_of = self._db.dialect.all_of
        them = {"dead": all_of(dead)}
        self._db.do(BURY, them)
        held = self._db.all(HELD, them | {"leaver": leaver})
        if held:
            self._db.do_rows(RETURN, ("id", "deaths"), [(number, int(died)) for number, _, died in held])
            self._db.do(UNLEASE_ROBOTS, {"hosts": all_of({host for _, host, _ in held})})
        self._db.do(UNSEAT, them)

    def leave(self) -> None:
        """Return what this member holds, and its leadership."""
        if self._db.member:
            self.mark_dead(self._db.now() - self._db.life * 1_000, self._db.member)
            self._db.member = 0

    def others(self, run: int) -> int:
        """How many other members work on a run."""
        return self.ask_others(run)()

    def ask_others(self, run: int) -> Callable[[], int]:
        """The same, waited for when the result is called."""
        found = self._db.ask(ALIVE, {"now": self._db.now(), "run": run, "me": self._db.member})
        return lambda: int(found()[0][0])

    def has_connected(self, run: int) -> bool:
        """Whether any of these has a session now: one that has none may have been killed."""
        given = {"now": self._db.now(), "run": run, "me": self._db.member}
        return int(self._db.one(CONNECTED, given)[0]) > 0

    def take_leadership(self) -> bool:
        me, alive, taken = self._db.member, self.ask_alive(), self._ask_to_lead()
        alive()
        return bool((taken if self._db.member == me else self._ask_to_lead())())

    def _ask_to_lead(self) -> Callable[[], list[Any]]:
        return self._db.ask(TAKE_LEADERSHIP, {"me": self._db.member, "run": self._db.run})

    def is_leader(self) -> bool:
        """Whether this member leads; if it does, it does so until the transaction ends."""
        if not self._db.is_shared:
            return True
        return self._db.one_or_none(IS_LEADER, {"run": self._db.run, "me": self._db.member}) is not None

    def check_leadership(self) -> None:
        """Fail the transaction with `LeadershipLost` unless this member leads, and does so until it ends."""
        if self._db.is_shared:
            self._db.do(LEAD, {"run": self._db.run, "me": self._db.member})

    def all(self) -> list[Member]:
        """See `ports.reads.MembersOfRun`."""
        rows = self._db.all(ALL, {"run": self._db.run, "life": self._db.life, "now": self._db.now()})
        return [
            Member(name, bool(leads), bool(is_alive), bool(gone), silent, settled)
            for name, leads, is_alive, gone, silent, settled in rows
        ]
