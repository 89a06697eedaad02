"""The leases: which due visit is leased next, and in which slot of its host.

Results are handled by `settlements`; a lease that is not settled in time expires, or is returned when its
member is taken for dead (`members`). A member locks the row of a paced host and skips locked ones, so two
members lease from two hosts.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crawler.frontier import pace, queries, waits
from crawler.frontier.database import Database
from crawler.frontier.levels import IN_FLIGHT, Levels
from crawler.frontier.members import Members
from crawler.frontier.publications import run_time
from crawler.frontier.rows import FACT_COLUMNS, of
from crawler.frontier.visits import ANY_DEPTH, move
from crawler.model.run import Interruption, StopReason
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url, origin
from crawler.ports import Batch
from crawler.rules.record import LEASED, LISTED, QUEUED, SETTLED, UNCLEAR_FOR, WAITING, Failing

SOON: Final = 0.05  # seconds until a member without work asks again; doubled each time, up to
PATIENCE: Final = 1.0  # seconds
TIDY: Final = 1.0  # seconds between two looks at what is due again, while there is something to lease
FIRST_FACT: Final = 14  # place of the first fact in a row of `NEXT`

EXPIRE: Final = f"""
UPDATE visit SET state = {QUEUED}, token = NULL, due = NULL WHERE id @first
    SELECT id FROM visit WHERE state IN ({WAITING}, {LEASED}) AND (due <= :now OR due > :far) @skip_locked
@end
"""

# No slot is booked so far ahead: the clock was set back.
UNBOOK: Final = "UPDATE host SET next = :now WHERE next > :far"

# Each query of visits is in the order of its index: PostgreSQL would read the table, with all rows that are
# held or leased.
_DUE: Final = f"""
SELECT id FROM visit
    WHERE state = {QUEUED} AND host = h.id AND depth <= :depth ORDER BY reopened, depth, id LIMIT :limit
"""
HOSTS: Final = f"""
SELECT id, delay, backoff, next, robots_leased_until, robots_read_at, visits
FROM (SELECT h.*, (SELECT count(*) FROM ({_DUE}) AS v) AS visits FROM host AS h) AS d
WHERE visits > 0 ORDER BY next, id
"""

# What is leased is due after most of what waits: a thousand rows tell how much it is.
TERMS: Final = f"""
SELECT leader, max_depth, CASE WHEN follows IS NULL THEN budget END, deadline, interruption,
    status IN ('crawling', 'complete'),
    (SELECT coalesce(sum(settled), 0) FROM member WHERE run = :run),
    (SELECT count(*) FROM (
        SELECT state FROM visit WHERE state IN ({WAITING}, {LEASED}) ORDER BY due DESC LIMIT 1000
    ) AS begun WHERE state = {LEASED}),
    follows IS NOT NULL
FROM run WHERE number = :run
"""

INTERRUPT: Final = """
UPDATE run SET interruption = coalesce(interruption, CAST(:words AS text))
    WHERE number = :run RETURNING interruption
"""

REGAIN: Final = "UPDATE run SET budget = budget + :pages WHERE number = :run AND budget IS NOT NULL"
SPEND: Final = """
UPDATE run SET budget = budget - :pages WHERE number = :run AND budget IS NOT NULL AND follows IS NULL
"""

ANY_LEASED: Final = f"SELECT EXISTS (SELECT 1 FROM visit WHERE state = {LEASED})"
FIRST_DUE: Final = f"SELECT min(due) FROM visit WHERE state IN ({WAITING}, {LEASED})"
ANY_OUT: Final = f"SELECT EXISTS (SELECT 1 FROM visit WHERE state IN ({WAITING}, {LEASED}))"
ANY_OPEN: Final = f"""
SELECT EXISTS (SELECT 1 FROM visit WHERE state BETWEEN {QUEUED} AND {LEASED} AND depth <= :depth)
"""

SUSPECT: Final = "UPDATE visit SET suspect = true WHERE id = :id AND token = :token"

SET_MAX_DEPTH: Final = "UPDATE run SET max_depth = :max_depth WHERE number = :run AND leader = :me"

LOCK: Final = """
SELECT delay, backoff, next, robots_leased_until, robots_read_at FROM host WHERE id = :id @skip_locked
"""

_NEXT_OF: Final = f"""
SELECT * FROM (
    SELECT id, reopened, attempts, deaths
        FROM visit WHERE state = {QUEUED} AND host = :host AND reopened = {{reopened}} AND depth <= :depth
    ORDER BY depth, id LIMIT :share @skip_locked
) AS of_{{reopened}}
"""
# The next visits of a host, with what an earlier run stored of their pages. Those that are reopened come
# last.
NEXT: Final = f"""
SELECT t.reopened, u.depth, u.id, u.url, u.hops, w.url, t.attempts + 1, t.deaths, p.failing, p.failing_run,
    p.facts_run IS NOT NULL AND EXISTS (SELECT 1 FROM published AS b WHERE b.id = t.id),
    p.facts_run, p.outcome, p.detail, {of("p", FACT_COLUMNS)}
FROM (
    {_NEXT_OF.format(reopened=0)} UNION ALL {_NEXT_OF.format(reopened=1)} LIMIT :share
) AS t JOIN url AS u ON u.id = t.id LEFT JOIN page AS p ON p.id = t.id LEFT JOIN url AS w ON w.id = u.via
"""
TAKE: Final = f"""
UPDATE visit SET state = {LEASED}, token = :token, due = :due, attempts = attempts + 1 WHERE id @any(ids)
"""
NOTE: Final = "UPDATE host SET next = :next, robots_leased_until = :until WHERE id = :id"

# If the answer to a commit was lost, it may have leased visits already: they are returned, and leased again.
UNTAKE: Final = f"""
UPDATE visit SET state = {QUEUED}, token = NULL, due = NULL, attempts = attempts - 1
    WHERE token = :token AND state = {LEASED}
"""
RETURN: Final = f"""
UPDATE visit SET state = {QUEUED}, token = NULL, due = NULL, attempts = attempts - 1, suspect = false
FROM @rows(id, token) WHERE visit.id = r.id AND visit.token = r.token AND visit.state = {LEASED}
RETURNING visit.id
"""
UNLEASE_ROBOTS: Final = "UPDATE host SET robots_leased_until = 0 WHERE origin @any(origins, text)"

_SETTLED: Final = f"""
SELECT u.id, u.host, u.depth, u.trap, u.sample, {QUEUED}, NULL, NULL, NULL FROM known AS u
WHERE u.run = :run AND u.@key @any(keys, key) AND u.state = {SETTLED}
"""
FAILED: Final = f"{_SETTLED} AND u.outcome LIKE 'failed:%' AND u.host IS NOT NULL"
# Listed pages; `:once`: those that were requested once, as the others were read again.
LISTED_BEFORE: Final = (
    f"{_SETTLED} AND u.outcome = '{LISTED}' AND (u.attempts = 1 OR NOT CAST(:once AS boolean))"
)
AGAIN: Final = "UPDATE visit SET attempts = 1 WHERE id @any(ids)"


# What was asked for the next visits of hosts.
_Asked: TypeAlias = Mapping[int, Callable[[], list[Any]]]


class _Due(NamedTuple):
    """A URL that is due; the facts of an earlier run follow in its row."""

    reopened: int
    depth: int
    id: int
    url: str
    hops: int
    via: str | None
    attempts: int
    deaths: int
    failing: float | None
    failing_run: int | None
    is_published: bool
    facts_run: int | None
    outcome: str | None
    detail: str | None


class _Booking(Struct, frozen=True):
    """The next slots of a host."""

    host: int
    start: float
    delay: float
    share: int  # visits at most
    robots_first: bool
    is_paced: bool


class LeaseSlot(Struct, frozen=True):
    """When a page may be requested."""

    at: float  # seconds since the epoch
    robots_first: bool


class Leases:
    """Leases visits. `far`: seconds; a slot farther ahead means that the clock was set back."""

    def __init__(self, db: Database, members: Members, levels: Levels, far: float) -> None:
        self._db, self._members, self._levels, self._far = db, members, levels, far
        self._pause = SOON
        self._tidied, self._tidy_at = 0.0, 0.0  # the last time, and the next
        self._depth = 0  # that the last lease went down to, and likely this one, too
        self._only: int | None = None  # the host of the last leases, if there was one and they had no slots

    def lease(self, limit: int, depth: int, token: int) -> Batch:
        """See `ports.Queue.lease`. `token`: random, the same when the call is tried again."""
        same, alive = self._db.check(), self._members.ask_alive()
        terms = self._db.ask(TERMS, {"run": self._db.run})
        others = self._members.ask_others(self._db.run)
        self._tidy()
        hosts = self._db.ask(HOSTS, {"depth": self._depth, "limit": limit})
        ahead = self._ask_ahead(limit)
        same()
        alive()
        [(leader, max_depth, budget, deadline, interruption, is_open, settled, begun, is_partial)] = terms()
        leads = leader == self._db.member
        if not is_open:  # this member was frozen, and the open visits belong to another run
            return Batch(wait=PATIENCE, leads=False)
        token |= self._db.member << 32
        if self._db.is_retry:
            self._return_budget(self._db.changed(UNTAKE, {"token": token}))
        if interruption is None and deadline is not None and self._db.now() >= deadline:
            interruption = self.interrupt(Interruption(StopReason.MAX_TIME))
        if interruption is not None:
            return Batch(leads=leads, interruption=Interruption.read(interruption))
        if leads:
            front = ANY_DEPTH if is_partial else self._levels.watch(settled, begun)
            if front < ANY_DEPTH:  # the site may be poor: fewer at once, and it may have held these
                depth, ahead = min(depth, front), {}
                limit = max(1, min(limit, IN_FLIGHT - begun))
            self._open(depth, max_depth)
        elif leader is not None or max_depth is not None:
            depth = min(depth, max_depth or -1)  # nothing while the leader visits the start URLs
        if self._depth != depth or self._db.is_retry:
            self._depth, ahead = depth, {}
            hosts = self._db.ask(HOSTS, {"depth": depth, "limit": limit})
        lease = self._lease if budget is None or not self._db.is_shared else self._lease_within_budget
        batch = lease(hosts(), limit, token, ahead)
        return self._paced(replace(batch, leads=leads or leader is None), others())

    def _ask_ahead(self, limit: int) -> _Asked:
        """Ask what is next on the host that had the last leases alone, before it is known to be the one."""
        only = self._only
        if only is None or not self._db.is_shared or self._db.is_retry:
            return {}
        return {only: self._ask_next(only, limit)}

    def _ask_next(self, host: int, share: int) -> Callable[[], list[Any]]:
        return self._db.ask(NEXT, {"host": host, "share": share, "depth": self._depth}, packed=True)

    def _tidy(self) -> None:
        """Queue what is due again; not at each lease, unless this member waits for it."""
        now = self._db.now()
        if self._tidied <= now < self._tidy_at:
            return
        self._tidied, self._tidy_at = now, now + TIDY
        given = {"now": now, "far": now + self._far}
        self._db.do(UNBOOK, given)
        self._db.do(EXPIRE, given)

    def _lease_within_budget(
        self, hosts: list[tuple[Any, ...]], limit: int, token: int, ahead: _Asked
    ) -> Batch:
        """All members together request no more pages than --max-pages."""
        run = {"run": self._db.run}
        budget = self._db.count("SELECT budget FROM run WHERE number = :run FOR NO KEY UPDATE", run)
        if budget > 0:
            batch = self._lease(hosts, min(limit, budget), token, ahead)
            if batch.leases:
                self._db.do(SPEND, run | {"pages": len(batch.leases)})
            return batch
        if self._db.one(ANY_LEASED)[0]:
            return Batch(wait=PATIENCE)
        if self._db.one(ANY_OPEN, {"depth": self._depth})[0]:
            return Batch(interruption=Interruption.read(self.interrupt(Interruption(StopReason.MAX_PAGES))))
        return Batch(finished=True, is_idle=True)

    def interrupt(self, interruption: Interruption) -> str:
        """See `ports.Runs.interrupt`. The first one counts; returns it as JSON."""
        words = {"run": self._db.run, "words": interruption.written()}
        return str(self._db.one(INTERRUPT, words)[0])

    def _paced(self, batch: Batch, others: int) -> Batch:
        """How long to wait until this member asks again, if others may settle something meanwhile."""
        is_done = bool(batch.leases) or (batch.finished and batch.leads)
        if is_done or not others:
            self._pause = SOON
            return batch
        self._pause = min(2 * self._pause, PATIENCE)
        # What is due now, and was not leased, belongs to a host that another member has locked.
        return replace(
            batch, wait=self._pause if batch.wait is None else min(max(batch.wait, SOON), self._pause)
        )

    def _open(self, depth: int, max_depth: int | None) -> None:
        if max_depth != depth:
            self._db.do(SET_MAX_DEPTH, {"max_depth": depth, "run": self._db.run, "me": self._db.member})

    def _lease(self, hosts: list[tuple[Any, ...]], limit: int, token: int, ahead: _Asked) -> Batch:
        now = self._db.now()
        leases = self._take(self._book(hosts, limit, now), token, now, ahead)
        if leases:
            return Batch(leases)
        self._tidy_at = now  # at the next lease
        out, due, leased = (self._db.ask(sql) for sql in (ANY_OUT, FIRST_DUE, ANY_LEASED))
        self._db.end()
        if not out()[0][0] and not hosts:
            return Batch(finished=True, is_idle=True)
        wait = self._wait(hosts, due()[0][0], now)
        rests = wait is not None and wait > waits.SOON and not leased()[0][0]
        return Batch(wait=wait, rests=rests, is_idle=not hosts)

    def _book(self, hosts: list[tuple[Any, ...]], limit: int, now: float) -> list[_Booking]:
        """Slots of these hosts. The robots.txt of a host is read only when one of its pages is next."""
        hosts = sorted(hosts, key=lambda host: pace.needs_robots(host[5], now))[:limit]
        locked = [self._lock(host, now) for host in hosts]
        bookings, left = list[_Booking](), limit
        for place, (host, lock) in enumerate(zip(hosts, locked, strict=True)):
            share = min(-(-left // (len(hosts) - place)), host[-1])
            booking = self._book_host(host, lock, share, now) if share > 0 else None
            if booking:
                bookings.append(booking)
                left -= booking.share
        return bookings

    def _lock(self, host: tuple[Any, ...], now: float) -> Callable[[], list[Any]] | None:
        """Ask for the locked row of a host whose pages have slots."""
        number, delay, backoff, upcoming, _, robots_read_at, _ = host
        if delay > 0 or backoff > 1 or upcoming > now or pace.needs_robots(robots_read_at, now):
            return self._db.ask(LOCK, {"id": number})
        return None

    def _book_host(
        self, host: tuple[Any, ...], lock: Callable[[], list[Any]] | None, share: int, now: float
    ) -> _Booking | None:
        number, *row, _ = host
        if lock:
            locked = lock()
            if not locked:
                return None
            [row] = locked
        delay, backoff, upcoming, robots_leased_until, robots_read_at = row
        delay, start = pace.throttled_delay(delay, backoff), max(upcoming, now)
        robots_first = pace.needs_robots(robots_read_at, now)
        slots = pace.slots_ahead(start, now, delay, share)
        if not slots or (robots_first and robots_leased_until > now):
            return None
        return _Booking(number, start, delay, 1 if robots_first else slots, robots_first, lock is not None)

    def _take(self, bookings: list[_Booking], token: int, now: float, ahead: _Asked) -> list[Lease]:
        asked = [(one, ahead.get(one.host) or self._ask_next(one.host, one.share)) for one in bookings]
        self._only = bookings[0].host if len(bookings) == 1 and not bookings[0].is_paced else None
        leases = list[Lease]()
        for one, found in asked:
            rows = sorted(found(), key=itemgetter(0, 1, 2))[: one.share]
            leases += [
                self._lease_of(row, token, LeaseSlot(one.start + place * one.delay, one.robots_first))
                for place, row in enumerate(rows)
            ]
            if one.is_paced and rows:
                self._note(one, one.start + len(rows) * one.delay, now)
        if leases:
            ids = self._db.dialect.all_of(lease.id for lease in leases)
            self._db.do(TAKE, {"token": token, "due": now + pace.LEASE_SECONDS, "ids": ids})
        return leases

    def _note(self, one: _Booking, upcoming: float, now: float) -> None:
        robots_leased_until = now + pace.LEASE_SECONDS if one.robots_first else 0.0
        self._db.do(NOTE, {"next": upcoming, "until": robots_leased_until, "id": one.host})

    def _lease_of(self, row: Sequence[Any], token: int, slot: LeaseSlot) -> Lease:
        due, facts = _Due._make(row[:FIRST_FACT]), row[FIRST_FACT:]
        prior = None
        if due.facts_run is not None and self._db.since <= due.facts_run < self._db.run:
            failing = Failing.read(due.failing, due.failing_run)
            may_stay = bool(due.is_published) and run_time(self._db).lasted(failing) < UNCLEAR_FOR
            prior = queries.prior(due.outcome, due.detail, facts, may_stay=may_stay)
        visit = Visit(Url(due.url), due.depth, Url(due.via) if due.via else None, due.hops)
        return Lease(due.id, token, visit, due.attempts, slot.at, slot.robots_first, due.deaths, prior)

    def _wait(self, hosts: list[tuple[Any, ...]], due: float | None, now: float) -> float | None:
        """Seconds until a waiting visit is due or a host has a slot again."""
        moments = [] if due is None else [due]
        for _, _, _, upcoming, robots_leased_until, robots_read_at, _ in hosts:
            robots_first = pace.needs_robots(robots_read_at, now)
            moments.append(max(pace.next_lease_at(upcoming), robots_leased_until if robots_first else 0.0))
        return max(0.0, min(moments) - now) if moments else None

    def release(self, leases: Sequence[Lease]) -> None:
        pairs = [(lease.id, lease.token) for lease in leases]
        self._return_budget(len(self._db.ask_rows(RETURN, ("id", "token"), pairs)()))
        unknown_origins = sorted({origin(lease.visit.url) for lease in leases if lease.robots_first})
        if unknown_origins:
            self._db.do(UNLEASE_ROBOTS, {"origins": self._db.dialect.all_of(unknown_origins)})

    def _return_budget(self, pages: int) -> None:
        if pages:
            self._db.do(SPEND, {"run": self._db.run, "pages": -pages})

    def settle_unrequested(self, pages: int) -> None:
        """Pages that were settled without a request, such as disallowed ones, do not count."""
        if pages:
            self._db.do(REGAIN, {"run": self._db.run, "pages": pages})

    def suspect(self, lease: Lease) -> None:
        self._db.do(SUSPECT, {"id": lease.id, "token": lease.token})

    def reopen(self, pages: Sequence[Url]) -> None:
        failed = self._db.all(FAILED, {"run": self._db.run, "keys": self._db.dialect.keys(pages)})
        move(self._db, failed, reopened=1)

    def read_again(self, pages: Sequence[Url], once: bool) -> int:
        given = {"run": self._db.run, "keys": self._db.dialect.keys(pages), "once": once}
        rows = self._db.all(LISTED_BEFORE, given)
        move(self._db, rows)
        self._db.do(AGAIN, {"ids": self._db.dialect.all_of(row[0] for row in rows)})
        return len(rows)
