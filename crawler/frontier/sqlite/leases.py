"""The leases of the SQLite frontier: which due visit is leased next, and in which slot of its host.

Results are handled by `settlements`; a lease that is not settled in time expires, and its visit is leased again.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final

from crawler.frontier import pace, records
from crawler.frontier.rows import FACT_COLUMNS, of
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.rows import DueRow
from crawler.model.lease import Lease
from crawler.model.visit import Visit
from crawler.parse.url import Url, origin
from crawler.ports import Batch

_DUE: Final = len(DueRow._fields)  # index of the first fact in a row of `DUE`

HOSTS = """
SELECT id, origin, delay, backoff, next, robots_leased_until, robots_read_at FROM host
WHERE EXISTS (SELECT 1 FROM url WHERE state = 0 AND host = host.id AND reopened IN (0, 1) AND depth <= :depth) ORDER BY next, id
"""

DUE = f"""
SELECT json_group_array(json_array({of("u", DueRow._fields, via="v.url")}, {of("u", FACT_COLUMNS)}))
FROM (
    SELECT * FROM (
        SELECT * FROM url WHERE state = 0 AND host = :host AND reopened = 0 AND depth <= :depth ORDER BY depth, id LIMIT :limit
    )
    UNION ALL SELECT * FROM (
        SELECT * FROM url WHERE state = 0 AND host = :host AND reopened = 1 AND depth <= :depth ORDER BY depth, id LIMIT :limit
    )
    LIMIT :limit
) AS u
LEFT JOIN url AS v ON v.id = u.via
"""

TAKE = """
UPDATE url SET state = 2, token = :token, due = :due, attempts = attempts + 1
WHERE id IN (SELECT value FROM json_each(:ids))
"""

RETURN = """
UPDATE url SET state = 0, token = NULL, due = NULL, attempts = attempts - 1
FROM (SELECT value AS v FROM json_each(:leases)) AS s
WHERE url.id = s.v ->> 0 AND url.token = s.v ->> 1 AND url.state = 2
"""

REOPEN = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL, due = NULL, token = NULL, attempts = 0, reopened = 1
WHERE run = :run AND outcome LIKE 'failed:%' AND host IS NOT NULL AND url IN (SELECT value FROM json_each(:urls))
"""


class Leases:
    """Leases visits. `far`: seconds; a slot farther ahead means that the clock was set back."""

    def __init__(self, db: Database, far: float) -> None:
        self._db, self._far = db, far

    def lease(self, limit: int, depth: int) -> Batch:
        """See `ports.Queue.lease`."""
        now = self._db.now()
        # No slot is booked so far ahead: the clock was set back.
        self._db.do("UPDATE host SET next = ? WHERE next > ?", (now, now + self._far))
        self._db.do(
            "UPDATE url SET state = 0, token = NULL, due = NULL WHERE state IN (1, 2) AND (due <= ? OR due > ?)",
            (now, now + self._far),
        )
        hosts = self._db.all(HOSTS, {"depth": depth})
        token, leases = secrets.randbits(62), list[Lease]()
        for place, host in enumerate(hosts):
            share = -(-(limit - len(leases)) // (len(hosts) - place))
            leases += self._lease_host(host, share, depth, now, token)
        if leases:
            ids = json.dumps([lease.id for lease in leases])
            self._db.do(TAKE, {"token": token, "due": now + pace.LEASE_SECONDS, "ids": ids})
            return Batch(leases)
        if not self._db.one(
            "SELECT EXISTS (SELECT 1 FROM url WHERE state IN (0, 1, 2) AND depth <= ?)", (depth,)
        )[0]:
            return Batch(finished=True, is_idle=True)
        return Batch(wait=self._wait(hosts, now), is_idle=not hosts)

    def _lease_host(
        self, host: tuple[Any, ...], share: int, depth: int, now: float, token: int
    ) -> Iterable[Lease]:
        number, _, delay, backoff, upcoming, robots_leased_until, robots_read_at = host
        delay = pace.throttled_delay(delay, backoff)
        start = max(upcoming, now)
        robots_first = pace.needs_robots(robots_read_at, now)
        slots = pace.slots_ahead(start, now, delay, share)
        if not slots or (robots_first and robots_leased_until > now):
            return
        query = {"host": number, "depth": depth, "limit": 1 if robots_first else slots}
        rows = json.loads(self._db.one(DUE, query)[0])
        for place, row in enumerate(rows):
            yield self._lease_of(row, token, start + place * delay, robots_first)
        self._db.do(
            "UPDATE host SET next = ?, robots_leased_until = ? WHERE id = ?",
            (start + len(rows) * delay, now + pace.LEASE_SECONDS if robots_first else 0, number),
        )

    def _lease_of(self, row: list[Any], token: int, at: float, robots_first: bool) -> Lease:
        due, facts = DueRow._make(row[:_DUE]), row[_DUE:]
        prior = None
        if due.facts_run is not None and self._db.since <= due.facts_run < self._db.run:
            prior = records.prior(due.outcome, due.detail, facts)
        visit = Visit(Url(due.url), due.depth, Url(due.via) if due.via else None, due.hops)
        return Lease(due.id, token, visit, due.attempts + 1, at, robots_first, prior=prior)

    def _wait(self, hosts: list[tuple[Any, ...]], now: float) -> float | None:
        """Seconds until a waiting visit is due or a host has a free slot."""
        due = self._db.one("SELECT min(due) FROM url WHERE state IN (1, 2)")[0]
        moments = [] if due is None else [due]
        for _, _, _, _, upcoming, robots_leased_until, robots_read_at in hosts:
            robots_first = pace.needs_robots(robots_read_at, now)
            moments.append(max(pace.next_lease_at(upcoming), robots_leased_until if robots_first else 0.0))
        return max(0.0, min(moments) - now) if moments else None

    def release(self, leases: Sequence[Lease]) -> None:
        """See `ports.Queue.release`."""
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        self._db.do(RETURN, {"leases": pairs})
        unknown_origins = {origin(lease.visit.url) for lease in leases if lease.robots_first}
        for name in unknown_origins:
            self._db.do("UPDATE host SET robots_leased_until = 0 WHERE origin = ?", (name,))

    def reopen(self, pages: Sequence[Url]) -> None:
        """See `ports.Queue.reopen`."""
        self._db.do(REOPEN, {"run": self._db.run, "urls": json.dumps(pages)})
