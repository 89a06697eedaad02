"""What open work waits for: hosts that are paused or paced, and pages that are tried again later.

Reads only; `hosts` and `settlements` decide how long.
"""

from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.runs import first_start
from crawler.model.run import Outlook, Wait
from crawler.rules.record import QUEUED, WAITING

SOON: Final = 5.0  # seconds; what is due by then is not waited for

PAUSED: Final = f"""
SELECT h.origin, h.next, (SELECT count(*) FROM visit AS v WHERE v.state = {QUEUED} AND v.host = h.id)
FROM host AS h WHERE h.next > :soon
"""
LATER: Final = f"""
SELECT h.origin, min(v.due), count(*) FROM visit AS v JOIN host AS h ON h.id = v.host
WHERE v.state = {WAITING} AND v.due > :soon GROUP BY h.origin
"""


LEFT: Final = """
SELECT h.delay * h.backoff, h.next, count(*) FROM visit AS v JOIN host AS h ON h.id = v.host
GROUP BY h.id, h.delay, h.backoff, h.next
"""


def outlook(db: Database, *, is_alive: bool) -> Outlook:
    """How the newest run goes on. `is_alive`: a process that works on it has sent a heartbeat."""
    ended = db.one_or_none("SELECT ended FROM run WHERE number = :run", {"run": db.run})
    now = db.now()
    left = [(max(0.0, after - now) + pages * delay, delay) for delay, after, pages in db.all(LEFT)]
    seconds, delay = max(left, default=(0.0, 0.0))
    return Outlook(first_start(db) or "", is_alive and ended == (None,), delay, seconds)


def waits(db: Database) -> list[Wait]:
    """See `ports.reads.Waits`."""
    soon = {"soon": db.now() + SOON}
    found = {origin: Wait(origin, at, pages) for origin, at, pages in db.all(PAUSED, soon) if pages}
    for origin, due, pages in db.all(LATER, soon):
        paused = found.get(origin)
        at, queued = (paused.until, paused.pages) if paused else (due, 0)
        found[origin] = Wait(origin, at, queued + pages)
    return sorted(found.values(), key=lambda wait: (wait.until, wait.origin))
