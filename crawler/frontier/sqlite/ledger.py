"""The ledger of the SQLite frontier: every step that a verb takes inside its transaction.

Plain and blocking: threads, the lock and the transaction itself are for `sqlite`. How rows become words is in `serialise`,
the statements are in `schema`.
"""

import json
import secrets
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from crawler.frontier.seen_cache import SeenCache
from crawler.frontier.sqlite import overview, schema
from crawler.frontier.sqlite.rounds import Rounds
from crawler.frontier.sqlite.rows import FACT_COLUMNS, DueRow, FoundRow, settled_row
from crawler.frontier.sqlite.seeds import SeedLedger
from crawler.model.lease import Lease, Prior
from crawler.model.note import Note
from crawler.model.outcome import Failed, Kept, Later
from crawler.model.reasons import SeedKind, Why
from crawler.model.robots import RobotsFile
from crawler.model.run import Run
from crawler.model.seed import Seed
from crawler.model.serialise import facts_of, lastmod_of, moment, outcome_of
from crawler.model.settlement import Settlement
from crawler.model.survey import Balance
from crawler.model.url_record import InPattern, UrlRecord
from crawler.model.visit import Visit
from crawler.parse.url import Url, origin
from crawler.ports import Batch
from crawler.rules import keep_failing as keeping

LEASE_SECONDS: Final = 900.0  # then a visit is offered again: its taker is dead
HORIZON: Final = 2.0  # seconds ahead that slots are booked by leases
FAR: Final = 1_200.0  # seconds; unless told otherwise, no slot and no patience reaches so far
ROBOTS_DAY: Final = 86_400.0  # robots.txt is read again after a day (RFC 9309 2.4)
CALM: Final = 0.93  # what one good answer leaves of the strain on a host
STRAIN_LIMIT: Final = 8.0
STRAIN_PAUSE: Final = (
    1.0  # seconds in which strain doubles once: answers that were in flight together say one thing
)
STRAINED_GAP: Final = 0.1  # seconds: the gap that strain multiplies where the host is not paced
_DUE: Final = len(DueRow._fields)  # where the facts begin in a row of `schema.DUE`

T = TypeVar("T")


class Ledger(SeedLedger):
    """The verbs on an open database, each to be called within a transaction."""

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        gap: float,
        keep_runs: int,
        keep_failing: float,
        far: float,
        clock: Callable[[], float],
    ) -> None:
        """See `SqliteFrontier`."""
        self._db, self._gap, self._keep_runs, self._far, self._clock = db, gap, keep_runs, far, clock
        self._keep_failing = keep_failing
        self._known = SeenCache()
        self._hosts: dict[str, int] = {}
        self.rounds = Rounds(db, clock)
        self.run: int = self.one("SELECT max(number) FROM run")[0] or 0
        self.rounds.run = self.run
        self._since = self.run  # facts learned in this run or later may be asked "changed since?"

    def forget(self) -> None:
        """What a transaction taught us was taken back with it."""
        self._known.clear()
        self._hosts.clear()
        self.rounds.forget()

    def begin(self, fingerprint: str, reading: str) -> Run:
        """See `ports.Runs.begin`."""
        self._known.clear()
        self._db.execute("UPDATE host SET asked = 0, next = min(next, ?)", (self._clock() + 3600,))
        # A failure is remembered while this process works, and tried again by the next.
        self._db.execute("UPDATE host SET met = NULL WHERE robots IN ('down', 'unreachable')")
        last = self.one_or_none(
            "SELECT number, started, status, fingerprint FROM run ORDER BY number DESC LIMIT 1"
        )
        if last and last[3] == fingerprint and last[2] in ("crawling", "complete"):
            # The lock says that nobody else works here: whoever held a lease is dead.
            self._db.execute("UPDATE url SET state = 0, token = NULL, due = NULL WHERE state = 2")
            if last[2] == "crawling":
                self._db.execute(schema.REOPEN_UNASKED, {"run": self.run})
                self.reopen_seeds()
            self._look_back(reading)
            return Run(last[0], last[1], resumed=True, complete=last[2] == "complete")
        if last:
            self._db.execute("UPDATE run SET status = 'abandoned' WHERE status IN ('crawling', 'complete')")
            self._db.execute("UPDATE url SET state = 3, token = NULL, due = NULL WHERE state < 3")
        self.run = (last[0] if last else 0) + 1
        self._prune(self.run - self._keep_runs)
        started = self._clock()
        self._db.execute(
            "INSERT INTO run (number, fingerprint, reading, started, status) VALUES (?, ?, ?, ?, 'crawling')",
            (self.run, fingerprint, reading, started),
        )
        self._look_back(reading)
        return Run(self.run, started)

    def _look_back(self, reading: str) -> None:
        """What the runs before mean to this one."""
        self._since = self._trusted_since(reading)
        self.rounds.begin(self.run)

    def _prune(self, last: int) -> None:
        """Forget runs up to `last`, and the URLs that none found since."""
        for statement in (
            "run WHERE number <= ?",
            "word WHERE run <= ?",
            "trap WHERE run <= ?",
            "url WHERE run <= ?",
            "seed WHERE run <= ?",
        ):
            self._db.execute(f"DELETE FROM {statement}", (last,))

    def _trusted_since(self, reading: str) -> int:
        other = self.one("SELECT max(number) FROM run WHERE reading <> ?", (reading,))[0]
        return (other or 0) + 1

    def add(self, visits: Iterable[Visit], seed: Seed | None = None) -> int:
        """How many visits were new; what is set aside or held is kept, but not counted here."""
        named = _once(visits) if seed else self._news(visits)
        number = self.seed_id(seed) if seed else None
        rows = [self._row(visit) for visit in named]
        due = [row for row in rows if row.state == schema.QUEUED]
        self._insert([row for row in rows if row.state != schema.QUEUED], number)
        new = self._insert(due, number)
        if seed and number:
            new += self.name_known(rows, seed, number)
            self._fewer([(row.url, 0, 0) for row in rows])
        return new

    def _news(self, visits: Iterable[Visit]) -> list[Visit]:
        """Those that are not known already."""
        maybe = _once(self._telling(visits))
        self._remember([visit.url for visit in maybe])
        return self._telling(maybe)

    def _nearer(self, visits: Sequence[Visit]) -> None:
        """URLs that may be known already, but not that they lie so near."""
        if not visits:
            return
        given = {"rows": json.dumps([self._row(visit) for visit in visits]), "run": self.run}
        self._db.execute(schema.NEARER, given)
        self._fewer([(visit.url, visit.hops, 0) for visit in visits])

    def _fewer(self, ways: Sequence[tuple[str, int, int]]) -> None:
        """URLs that may be known already, but not by so few redirects. For `ways` see `schema.FEWER`."""
        if ways:
            self._db.execute(schema.FEWER, {"ways": json.dumps(ways), "run": self.run})

    def _row(self, visit: Visit) -> FoundRow:
        filtered, pattern = visit.filtered, visit.pattern
        state, detail = schema.QUEUED if filtered is None else schema.SETTLED, None
        place = self.rounds.place(visit.url, pattern) if pattern and filtered is None else None
        if place and pattern and visit.via is not None:
            state = schema.HELD
            if place.closed:
                state, filtered, detail = schema.SETTLED, Why.TRAP, pattern.text
        return FoundRow(
            visit.url,
            state,
            self._host(origin(visit.url)) if visit.filtered is None else None,
            visit.depth,
            visit.hops,
            self._id(visit.via),
            None if filtered is None else f"unlisted:{filtered.value}",
            None if filtered is None else self._clock(),
            detail,
            place.trap if place else None,
            place.sample if place else None,
        )

    def take_up(self, visits: Iterable[Visit]) -> int:
        """See `ports.Queue.take_up`."""
        rows = [self._row(visit) for visit in visits if visit.filtered is None]
        given = {"rows": json.dumps(rows), "run": self.run, "round": self.rounds.round}
        self._db.execute(schema.ADMIT, given)
        return sum(row.state == schema.QUEUED for row in rows)

    def _telling(self, visits: Iterable[Visit]) -> list[Visit]:
        """Those that may be news, as far as is remembered."""
        visits = list(visits)
        numbers = self._known.numbers(visit.url for visit in visits)
        return [
            visit
            for visit, number in zip(visits, numbers, strict=True)
            if number == 0 or (number < 0 and visit.filtered is not Why.NOFOLLOW)
        ]

    def _remember(self, urls: list[Url]) -> None:
        """What is known of URLs in this run, but was forgotten: cheaper than to add them once more."""
        if urls:
            given = {"urls": json.dumps(urls), "run": self.run}
            for url, number, filtered in json.loads(self.one(schema.KNOWN, given)[0]):
                self._known.add(Url(url), number, filtered=bool(filtered))

    def _insert(self, rows: list[FoundRow], seed: int | None) -> int:
        if not rows:
            return 0
        given = {"rows": json.dumps(rows), "run": self.run, "seed": seed, "round": self.rounds.round}
        new = self._db.execute(schema.ADD, given).rowcount
        self._db.execute("UPDATE run SET discovered = discovered + ? WHERE number = ?", (new, self.run))
        if new < len(rows):
            self._db.execute(schema.LINKED, given)
            self._fewer([(row.url, row.hops, 0) for row in rows if row.host is not None])
            if self.one(schema.ANY_NOFOLLOW)[0]:
                new += self._db.execute(schema.UPGRADE, given).rowcount
        self._remember([Url(row.url) for row in rows])
        return new

    def _id(self, url: Url | None) -> int | None:
        if url is None:
            return None
        known = abs(self._known.number(url))
        if not known:
            row = self.one_or_none("SELECT id FROM url WHERE url = ?", (url,))
            return row[0] if row else None
        return known

    def _host(self, name: str) -> int:
        number = self._hosts.get(name)
        if number is None:
            self._db.execute("INSERT OR IGNORE INTO host (origin, gap) VALUES (?, ?)", (name, self._gap))
            number = self._hosts[name] = int(self.one("SELECT id FROM host WHERE origin = ?", (name,))[0])
        return number

    def lease(self, limit: int, depth: int) -> Batch:
        """See `ports.Queue.lease`."""
        now = self._clock()
        # Nothing is booked so far ahead: the clock went back.
        self._db.execute("UPDATE host SET next = ? WHERE next > ?", (now, now + self._far))
        self._db.execute(
            "UPDATE url SET state = 0, token = NULL, due = NULL WHERE state IN (1, 2) AND (due <= ? OR due > ?)",
            (now, now + self._far),
        )
        hosts = self.all(schema.HOSTS, {"depth": depth})
        token, leases = secrets.randbits(62), list[Lease]()
        for place, host in enumerate(hosts):
            share = -(-(limit - len(leases)) // (len(hosts) - place))
            leases += self._lease_host(host, share, depth, now, token)
        if leases:
            ids = json.dumps([lease.id for lease in leases])
            self._db.execute(schema.TAKE, {"token": token, "due": now + LEASE_SECONDS, "ids": ids})
            return Batch(leases)
        if not self.one(
            "SELECT EXISTS (SELECT 1 FROM url WHERE state IN (0, 1, 2) AND depth <= ?)", (depth,)
        )[0]:
            return Batch(finished=True, is_idle=True)
        return Batch(wait=self._wait(hosts, now), is_idle=not hosts)

    def _lease_host(
        self, host: tuple[Any, ...], share: int, depth: int, now: float, token: int
    ) -> Iterable[Lease]:
        number, _, gap, strain, upcoming, asked, met = host
        gap = _strained(gap, strain)
        start = max(upcoming, now)
        robots_first = met is None or met <= now - ROBOTS_DAY
        if start > now + HORIZON or (robots_first and asked > now):
            return
        slots = share if gap == 0 else min(share, int((now + HORIZON - start) / gap) + 1)
        query = {"host": number, "depth": depth, "limit": 1 if robots_first else slots}
        rows = json.loads(self.one(schema.DUE, query)[0])
        for place, row in enumerate(rows):
            yield self._lease_of(row, token, start + place * gap, robots_first)
        self._db.execute(
            "UPDATE host SET next = ?, asked = ? WHERE id = ?",
            (start + len(rows) * gap, now + LEASE_SECONDS if robots_first else 0, number),
        )

    def _lease_of(self, row: list[Any], token: int, at: float, robots_first: bool) -> Lease:
        due, facts = DueRow._make(row[:_DUE]), row[_DUE:]
        prior = None
        if due.learned is not None and self._since <= due.learned < self.run:
            known = facts_of(facts)
            ended = outcome_of(due.outcome, due.detail, known.lastmod if known else None)
            # A page that failed has nothing to be asked "changed since?" with.
            prior = Prior(ended, known) if known and ended and not isinstance(ended, Failed | Kept) else None
        visit = Visit(Url(due.url), due.depth, Url(due.via) if due.via else None, due.hops)
        return Lease(due.id, token, visit, due.attempts + 1, at, robots_first, prior)

    def _wait(self, hosts: list[tuple[Any, ...]], now: float) -> float | None:
        """Seconds until a waiting visit is due or a host has a slot again."""
        due = self.one("SELECT min(due) FROM url WHERE state IN (1, 2)")[0]
        moments = [] if due is None else [due]
        for _, _, _, _, upcoming, asked, met in hosts:
            robots_first = met is None or met <= now - ROBOTS_DAY
            moments.append(max(upcoming - HORIZON, asked if robots_first else 0.0))
        return max(0.0, min(moments) - now) if moments else None

    def settle(self, settlements: Sequence[Settlement]) -> int:
        """See `ports.Queue.settle`."""
        valid = self._valid([s.lease for s in settlements])
        live = [s for s in settlements if s.lease.id in valid]
        for s in live:
            visit = s.lease.visit
            self._known.add(visit.url, s.lease.id, filtered=visit.via is None or visit.hops > 0)
        new = self.add(chain.from_iterable(s.found for s in live))
        self._lead_elsewhere(live)
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            rows = json.dumps([settled_row(s, self._link_ids(s), self._patience(s)) for s in done])
            self._db.execute(schema.SETTLE, {"rows": rows, "run": self.run, "now": self._clock()})
            # Fewer redirects may have been found while they were asked for.
            redirected = [s.lease.visit for s in done if s.lease.visit.hops]
            self._fewer([(visit.url, visit.hops, visit.hops) for visit in redirected])
            self.rounds.count([s.lease.id for s in done])
            self._ease(done)
        if late:
            self._db.execute(schema.POSTPONE, {"rows": json.dumps(late)})
        return new

    def _ease(self, done: Sequence[Settlement]) -> None:
        """A host is eased by its own good answers; what was not asked for says nothing of it."""
        good = Counter(
            origin(s.lease.visit.url)
            for s in done
            if s.verdict.facts and not isinstance(s.verdict.outcome, Failed | Kept)
        )
        self._db.executemany(
            "UPDATE host SET strain = max(1, strain * ?) WHERE origin = ? AND strain > 1",
            [(CALM**count, name) for name, count in good.items()],
        )

    def _patience(self, settlement: Settlement) -> float:
        return keeping.patience(settlement.verdict.outcome, self._keep_failing)

    def links(self, lease: Lease) -> list[tuple[str, int]]:
        """URLs that a page linked to when it was read last under these settings, and whether by nofollow."""
        found: list[tuple[str, int]] = json.loads(
            self.one(schema.LINKS, {"id": lease.id, "since": self._since})[0]
        )
        return found

    def keep(self) -> None:
        """See `ports.Record.keep`."""
        last = self.one_or_none(schema.LAST, {"run": self.run})
        if last:
            seconds = [[*codes, seconds] for codes, seconds in keeping.by_code(self._keep_failing).items()]
            given = {"run": self.run, "last": last[0], "now": self._clock(), "patience": json.dumps(seconds)}
            self._db.execute(schema.KEEP, given)

    def remember(self, note: Note[T], value: T) -> None:
        """See `ports.Runs.remember`."""
        self.do("INSERT OR REPLACE INTO word VALUES (?, ?, ?)", (self.run, note.key, note.write(value)))

    def recall(self, note: Note[T], *, published: bool = False) -> T:
        """See `ports.Runs.recall`."""
        statement = schema.RECALL_PUBLISHED if published else schema.RECALL
        row = self.one_or_none(statement, {"run": self.run, "key": note.key})
        return note.read(row[0]) if row else note.absent

    def changed(self) -> dict[str, int]:
        """See `ports.Record.changed`."""
        last = self.one_or_none(schema.LAST, {"run": self.run})
        return dict(self.all(schema.CHANGED, {"run": self.run, "last": last[0]})) if last else {}

    def mark_published(self, urls: int) -> None:
        """See `ports.Runs.mark_published`."""
        number = self._db.execute(
            "INSERT INTO publication (run, fingerprint, at, urls) SELECT number, fingerprint, ?, ? FROM run WHERE number = ?",
            (self._clock(), urls, self.run),
        ).lastrowid
        self._db.execute(schema.MARK_PUBLISHED, {"run": self.run, "number": number})

    def _lead_elsewhere(self, settlements: Sequence[Settlement]) -> None:
        """A redirect may make its target nearer; what a page names instead of itself waits among its like."""
        self._nearer(
            [visit for s in settlements for visit in s.found if visit.hops and visit.filtered is None]
        )
        named = [visit for s in settlements for visit in s.found if visit.pattern and visit.pattern.named]
        if named:
            given = {"rows": json.dumps([self._row(visit) for visit in named]), "run": self.run}
            self._db.execute(schema.NAMED, given)

    def _valid(self, leases: Sequence[Lease]) -> set[int]:
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        return set(json.loads(self.one(schema.VALID, {"leases": pairs})[0]))

    def _link_ids(self, settlement: Settlement) -> list[int] | None:
        """The ids of what a page links to, below zero for nofollow; None leaves the remembered ones."""
        if settlement.verdict.unchanged or not settlement.found or self._patience(settlement):
            return None
        urls = [visit.url for visit in settlement.found]
        numbers = self._known.numbers(urls)
        if 0 in numbers:
            self._remember([url for url, number in zip(urls, numbers, strict=True) if not number])
            numbers = self._known.numbers(urls)
        return [
            -abs(number) if visit.filtered is Why.NOFOLLOW else abs(number)
            for number, visit in zip(numbers, settlement.found, strict=True)
            if number
        ]

    def release(self, leases: Sequence[Lease]) -> None:
        """See `ports.Queue.release`."""
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        self._db.execute(schema.RETURN, {"leases": pairs})
        strangers = {origin(lease.visit.url) for lease in leases if lease.robots_first}
        for name in strangers:
            self._db.execute("UPDATE host SET asked = 0 WHERE origin = ?", (name,))

    def meet(self, name: str, file: RobotsFile, gap: float) -> None:
        """See `ports.Hosts.meet`."""
        self._host(name)
        self._db.execute(
            """UPDATE host SET robots = ?, robots_text = ?, robots_detail = ?, met = ?, gap = ?, asked = 0,
               next = max(next, ? + ?) WHERE origin = ?""",
            (file.status, file.text, file.detail, file.fetched, gap, self._clock(), gap, name),
        )

    def slot(self, name: str) -> float:
        """See `ports.Pacer.slot`."""
        number, now = self._host(name), self._clock()
        gap, strain, upcoming = self.one("SELECT gap, strain, next FROM host WHERE id = ?", (number,))
        at = float(max(upcoming, now))
        self._db.execute("UPDATE host SET next = ? WHERE id = ?", (at + _strained(gap, strain), number))
        return at

    def slow(self, name: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        number, now = self._host(name), self._clock()
        self._db.execute("UPDATE host SET next = max(next, ?) WHERE id = ?", (until, number))
        self._db.execute(
            """UPDATE host SET strain = min(strain * 2, :limit), strained = :now
               WHERE id = :id AND NOT strained BETWEEN :now - :pause AND :now""",
            {"limit": STRAIN_LIMIT, "now": now, "id": number, "pause": STRAIN_PAUSE},
        )

    def conclude(self, *, refused: bool) -> None:
        """See `ports.Runs.conclude`."""
        status = "refused" if refused else "concluded"
        self._db.execute("UPDATE run SET status = ? WHERE number = ?", (status, self.run))

    def unlist_duplicates(self) -> None:
        """See `ports.Record.unlist_duplicates`."""
        for rule in (schema.SORT_ORDERS, schema.TWINS):
            self._db.execute(rule, {"run": self.run})

    def balance(self) -> Balance:
        """See `ports.Record.balance`."""
        return overview.balance_of(self._db, self.run)

    def record(self, url: Url) -> UrlRecord | None:
        """See `ports.Record.record`."""
        story = self.by_name(schema.RECORD, {"url": url})
        if story is None:
            return None
        visit = Visit(url, story["depth"], Url(story["via"]) if story["via"] else None, story["hops"])
        return UrlRecord(
            visit,
            story["run"],
            schema.STATES[story["state"]],
            outcome_of(story["outcome"], story["detail"], lastmod_of(story["lastmod"], story["source"])),
            facts_of([story[fact] for fact in FACT_COLUMNS]),
            story["attempts"],
            story["settled"],
            story["was"],
            moment(story["was_lastmod"]),
            story["failing"],
            None if story["kind"] is None else Seed(SeedKind(story["kind"]), story["name"], story["nested"]),
            None
            if story["pattern"] is None
            else InPattern(story["pattern"], story["asked"], bool(story["closed"])),
        )

    # -- SQLite -------------------------------------------------------------------------------------------

    def do(self, sql: str, args: Any = ()) -> None:
        """A statement without an answer."""
        self._db.execute(sql, args)

    def one(self, sql: str, args: Any = ()) -> tuple[Any, ...]:
        """The one row there is."""
        row: tuple[Any, ...] = self._db.execute(sql, args).fetchone()
        return row

    def one_or_none(self, sql: str, args: Any = ()) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        row: tuple[Any, ...] | None = self._db.execute(sql, args).fetchone()
        return row

    def by_name(self, sql: str, args: Any = ()) -> dict[str, Any] | None:
        """The first row, if there is one, by the names of its columns."""
        cursor = self._db.execute(sql, args)
        row = cursor.fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None

    def all(self, sql: str, args: Any = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._db.execute(sql, args).fetchall()


def _strained(gap: float, strain: float) -> float:
    return gap if strain <= 1 else max(gap, STRAINED_GAP) * strain


def _once(found: Iterable[Visit]) -> list[Visit]:
    """Each URL as it was found first, by the fewest redirects; but a followed link beats one with nofollow."""
    visits: dict[Url, Visit] = {}
    for visit in found:
        known = visits.get(visit.url)
        if known is None or (known.filtered is Why.NOFOLLOW and visit.filtered is not Why.NOFOLLOW):
            visits[visit.url] = visit
        elif visit.hops < known.hops and visit.filtered is not Why.NOFOLLOW:
            visits[visit.url] = known._replace(hops=visit.hops)
    return list(visits.values())
