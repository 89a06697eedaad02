"""The runs: how they begin, are joined, resumed and ended, and their notes.

A process that begins while members are at work joins them; one that begins alone resumes an unfinished run,
if it can.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from crawler.errors import ConfigError, Exit, StateBusy
from crawler.frontier import dates, queries
from crawler.frontier.database import Database
from crawler.frontier.hosts import HostTable
from crawler.frontier.members import Members
from crawler.frontier.revisits import Revisits
from crawler.frontier.rows import of
from crawler.frontier.seeds import SeedTable
from crawler.frontier.visits import move
from crawler.model.note import LIMITS, Note, RunWithNote
from crawler.model.rows import PublicationRow, RunRow
from crawler.model.run import Run, SessionEnd, Terms
from crawler.parse.url import Url
from crawler.rules.record import LEASED, QUEUED, SETTLED, averted

T = TypeVar("T")

UNFINISHED: Final = ("crawling", "complete")

_AGAIN: Final = f"""
SELECT u.id, u.host, u.depth, u.trap, u.sample, {QUEUED}, NULL, NULL, NULL
    FROM page AS p JOIN known AS u ON u.id = p.id
WHERE u.run = :run AND u.state = {SETTLED} AND u.host IS NOT NULL AND p.outcome"""
ROBOTS_DOWN: Final = f"{_AGAIN} IN ('unlisted:robots-down', 'kept:robots-down')"
BY_LIMIT: Final = f"{_AGAIN} @any(codes, text)"

WORKED: Final = """
UPDATE member SET seconds = @greatest(seconds, :seconds), requests = @greatest(requests, :requests),
    bytes = @greatest(bytes, :bytes)
WHERE id = :me
"""

# The sum over all sessions: each had a member of its own.
COUNT_WORK: Final = """
UPDATE run SET seconds = m.seconds, requests = m.requests, bytes = m.bytes
FROM (SELECT sum(seconds) AS seconds, sum(requests) AS requests, sum(bytes) AS bytes
    FROM member WHERE run = :run) AS m
WHERE number = :run
"""

END: Final = """
UPDATE run SET ended = coalesce(ended, CAST(:now AS double precision)), exit = :exit,
    refused = CAST(:refused AS text), outcomes = :outcomes, succeeded = CAST(:succeeded AS double precision)
WHERE number = :run
"""

# The run ends for all members once its last leader has left.
_CODE: Final = "coalesce(exit, CASE status WHEN 'concluded' THEN 0 WHEN 'refused' THEN 6 ELSE 7 END)"
OVER: Final = f"""
SELECT {_CODE} FROM run WHERE number = :run AND leader IS NULL
AND (ended IS NOT NULL OR status NOT IN ('crawling', 'complete'))
"""

LAST: Final = """
SELECT number, started, status, fingerprint, reading, terms, succeeded, ended IS NOT NULL
    FROM run ORDER BY number DESC LIMIT 1
"""

# An interrupted one is over for those who name it; without its name, or with another one, it is resumed.
BY_KEY: Final = f"""
SELECT number, started, {_CODE} FROM run WHERE number IN (SELECT run FROM run_key WHERE key = :key)
AND (status NOT IN ('crawling', 'complete') OR (ended IS NOT NULL AND interruption IS NOT NULL))
"""

RETURN: Final = f"UPDATE visit SET state = {QUEUED}, token = NULL, due = NULL WHERE state = {LEASED}"

SITTING: Final = """
UPDATE run SET leader = NULL, max_depth = NULL, interruption = NULL, terms = :terms,
    budget = CAST(:budget AS bigint), max_age = :max_age,
    deadline = CAST(:deadline AS double precision), ended = NULL, exit = NULL, refused = NULL
WHERE number = :run
"""

ADD_KEY: Final = "INSERT INTO run_key (run, key) VALUES (:run, :key) ON CONFLICT DO NOTHING"

RECALL: Final[dict[RunWithNote, str]] = {
    "this": "SELECT value FROM note WHERE run = :run AND key = :key",
    "published": """
SELECT value FROM note WHERE key = :key
AND run = (SELECT max(number) FROM run WHERE status = 'concluded' AND number < :run)
""",
    "earlier": "SELECT value FROM note WHERE key = :key AND run < :run ORDER BY run DESC LIMIT 1",
}

REMEMBER: Final = """
INSERT INTO note (run, key, value) VALUES (:run, :key, :value) ON CONFLICT (run, key) DO UPDATE
    SET value = excluded.value
"""

ADD_NOTE: Final = "INSERT INTO note (run, key, value) VALUES (:run, :key, :value) ON CONFLICT DO NOTHING"

BEGIN: Final = """
INSERT INTO run (number, fingerprint, reading, started, status, succeeded)
VALUES (:number, :fingerprint, :reading, :started, 'crawling', CAST(:succeeded AS double precision))
"""

FIRST: Final = """
SELECT url FROM url WHERE run = :run AND depth = 0
ORDER BY seed IS DISTINCT FROM (SELECT id FROM seed WHERE kind = 0), id LIMIT 1
"""
_STARTS: Final = """
SELECT u.id FROM url AS u JOIN seed AS s ON s.id = u.seed WHERE u.run = :run AND s.kind = 0
"""
_RUNS: Final = f"""
SELECT r.number, r.started, r.status, (SELECT CAST(coalesce(sum(m.discovered), 0) AS bigint)
    FROM member AS m WHERE m.run = r.number),
    coalesce(r.ended, CASE WHEN r.status = 'concluded' THEN p.at END), r.exit,
    r.seconds, r.requests, r.bytes, r.outcomes, r.refused, r.succeeded,
    {of("p", PublicationRow._fields)}
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number)
    FROM publication WHERE run = r.number)
ORDER BY r.number
"""


class _Last(Struct, frozen=True):
    """The newest run."""

    number: int
    started: float
    status: str
    fingerprint: str
    reading: str
    terms: str | None
    succeeded: float | None
    has_ended: bool


class RunTable:
    """The rows of runs."""

    def __init__(
        self, db: Database, members: Members, seeds: SeedTable, hosts: HostTable, revisits: Revisits
    ) -> None:
        self._db, self._members, self._seeds, self._hosts = db, members, seeds, hosts
        self._revisits = revisits

    def begin(self, fingerprint: str, reading: str, terms: Terms) -> Run | None:
        """See `ports.Runs.begin`.

        None while members whose run has just ended are leaving, and while it is open whether those with
        other settings were killed: to be tried again.
        """
        self._db.forget()
        self._db.lock_runs()  # two members that begin at once begin one run
        self._members.leave()
        self._members.mark_dead(self._db.now() if self._db.is_shared else math.inf)
        if terms.key and (over := self._over(terms.key)):
            return over
        row = self._db.one_or_none(LAST)
        if row is None:
            return self._open(1, fingerprint, reading, terms, None)
        last = _Last(*row)
        others = self._members.others(last.number) if last.status in UNFINISHED else 0
        if others:
            return self._join(last, fingerprint, reading, terms)
        if last.status in UNFINISHED and last.fingerprint == fingerprint:
            return self._resume(last, reading, terms)
        return self._open(last.number + 1, fingerprint, reading, terms, last.succeeded)

    def _over(self, key: str) -> Run | None:
        """The run with that key, if it is over."""
        row = self._db.one_or_none(BY_KEY, {"key": key})
        if row is None:
            return None
        self._db.run = row[0]
        return Run(row[0], row[1], complete=True, over=row[2])

    def _join(self, last: "_Last", fingerprint: str, reading: str, terms: Terms) -> Run | None:
        is_other = (last.fingerprint, last.reading) != (fingerprint, reading)
        differing = _differing(last.terms, terms)
        if (is_other or differing) and not self._members.has_connected(last.number):
            return None  # they were killed, or connect again
        if is_other:
            raise StateBusy(
                "A crawl with other settings is at work on this state"
                f"{_named(differing)}: wait for it, or use another --state."
            )
        if differing:
            raise ConfigError(
                f"The members at work on this state have other settings{_named(differing)}: "
                "start all of them with the same. One that was killed counts for half a minute."
            )
        if last.has_ended:
            return None
        self._db.run = last.number
        return self._as_member(last, reading, terms)

    def _resume(self, last: "_Last", reading: str, terms: Terms) -> Run:
        self._db.run = last.number
        self._wake()
        if last.status == "crawling":
            move(self._db, self._db.all(ROBOTS_DOWN, {"run": last.number}))
            self._seeds.reopen()
        if self._reopen(terms) and last.status == "complete":
            last = replace(last, status="crawling")
            self._db.do("UPDATE run SET status = 'crawling' WHERE number = :run", {"run": last.number})
        self._sit(terms)
        self._db.do(RETURN)
        run = self._as_member(last, reading, terms)
        self._members.take_leadership()
        return run

    def _reopen(self, terms: Terms) -> int:
        """Opens what failed by a limit that is larger now; how many pages and seeds."""
        codes = averted(self.recall(LIMITS), terms.limits)
        if not codes:
            return 0
        given = {"run": self._db.run, "codes": self._db.dialect.all_of(sorted(codes))}
        return move(self._db, self._db.all(BY_LIMIT, given)) + self._seeds.reopen(failed=True)

    def _as_member(self, last: "_Last", reading: str, terms: Terms) -> Run:
        self._settle_in(reading, terms)
        is_complete = last.status == "complete"
        (follows,) = self._db.one("SELECT follows FROM run WHERE number = :run", {"run": last.number})
        return Run(
            last.number, last.started, resumed=True, complete=is_complete, succeeded=last.succeeded,
            follows=follows,
        )  # fmt: skip

    def _open(
        self, number: int, fingerprint: str, reading: str, terms: Terms, succeeded: float | None
    ) -> Run:
        self._wake()
        self._db.do("UPDATE run SET status = 'abandoned' WHERE status IN ('crawling', 'complete')")
        self._db.do("DELETE FROM visit")
        self._db.run, started = number, self._db.now()
        row = {"number": number, "fingerprint": fingerprint, "reading": reading, "started": started}
        self._db.do(BEGIN, row | {"succeeded": succeeded})
        self._sit(terms)
        self._settle_in(reading, terms)
        self._members.take_leadership()
        follows = self._revisits.begin() if terms.is_limited else None
        return Run(number, started, succeeded=succeeded, follows=follows)

    def _settle_in(self, reading: str, terms: Terms) -> None:
        if terms.key:
            self._db.do(ADD_KEY, {"run": self._db.run, "key": terms.key})
        self._hosts.ask_as(terms.asked_as)
        self._db.since = self._trusted_since(reading)
        self._members.join()

    def _sit(self, terms: Terms) -> None:
        """Begin a sitting: the limits count until no member is at work."""
        deadline = None if terms.max_time is None else self._db.now() + terms.max_time
        limits = {"budget": terms.max_pages, "deadline": deadline, "max_age": float(terms.max_age)}
        sitting = {"terms": json.dumps(dict(terms.settings)), "run": self._db.run}
        self._db.do(SITTING, sitting | limits)
        self.remember(LIMITS, terms.limits)

    def _wake(self) -> None:
        """Clear what hosts were waiting for: no other member is at work."""
        self._db.do(
            "UPDATE host SET robots_leased_until = 0, next = @least(next, :latest)",
            {"latest": self._db.now() + 3600.0},
        )
        self._hosts.slow_down()
        # A failure is kept while these members work; the next ones try again.
        self._db.do(
            "UPDATE host SET robots_read_at = NULL "
            "WHERE robots IN ('down', 'unreachable') OR robots_read_at > :now",
            {"now": self._db.now()},
        )
        dates.forget_future(self._db)

    def conclude(self, *, refused: bool, abandoned: bool) -> None:
        self._end("abandoned" if abandoned else "refused" if refused else "concluded")

    def finish(self) -> None:
        self._end("complete")

    def _end(self, status: str) -> None:
        self._members.check_leadership()
        self._db.do(
            "UPDATE run SET status = :status WHERE number = :run", {"status": status, "run": self._db.run}
        )

    def end_session(self, end: SessionEnd) -> None:
        """See `ports.Runs.end_session`. A member that only leaves ends the run if no other is at work."""
        if not self._db.member:
            return
        work = {"seconds": float(end.seconds), "requests": end.requests, "bytes": end.bytes}
        self._db.do(WORKED, work | {"me": self._db.member})
        self._db.do(COUNT_WORK, {"run": self._db.run})
        goes_on = end.goes_on or not self._members.is_leader()
        if goes_on and self._members.others(self._db.run):
            return
        outcomes = json.dumps(queries.balance(self._db).outcomes)
        known = {
            "exit": int(end.exit),
            "refused": end.refused,
            "succeeded": end.succeeded,
            "now": self._db.now(),
            "outcomes": outcomes,
        }
        self._db.do(END, known | {"run": self._db.run})

    def remember(self, note: Note[T], value: T) -> None:
        self._db.do(REMEMBER, {"run": self._db.run, "key": note.key, "value": note.write(value)})

    def amend(self, note: Note[T], change: Callable[[T], T]) -> T:
        row = {"run": self._db.run, "key": note.key}
        self._db.do(ADD_NOTE, row | {"value": note.write(note.absent)})
        value = change(note.read(self._db.one(RECALL["this"] + " @lock", row)[0]))
        self.remember(note, value)
        return value

    def recall(self, note: Note[T], of: RunWithNote = "this") -> T:
        row = self._db.one_or_none(RECALL[of], {"run": self._db.run, "key": note.key})
        return note.read(row[0]) if row else note.absent

    def _trusted_since(self, reading: str) -> int:
        """The first run after the last one with another `reading`."""
        other = self._db.one("SELECT max(number) FROM run WHERE reading <> :reading", {"reading": reading})[0]
        return (other or 0) + 1


def run_rows(db: Database, is_at_work: bool) -> Sequence[RunRow]:
    """See `ports.reads.AllRuns`. `is_at_work`: a session is working on the newest run."""
    rows = db.all(_RUNS)
    return [_run(row, is_at_work=is_at_work and row[0] == db.run) for row in rows]


def _run(row: tuple[Any, ...], *, is_at_work: bool) -> RunRow:
    number, started, status, discovered, ended, code, seconds, requests, size, outcomes, *ending = row[:12]
    publication = PublicationRow(*row[12:])
    if ended is None and not is_at_work and status in {"crawling", "abandoned"}:
        status = "interrupted"
    counts = json.loads(outcomes) if outcomes else None
    known = None if publication.urls is None else publication
    return RunRow(
        number, started, status, discovered, ended, code, seconds, requests, size, counts, known, *ending
    )


def exit_of_run(db: Database) -> Exit | None:
    """See `ports.reads.ExitOfRun`."""
    row = db.one_or_none(OVER, {"run": db.run})
    return Exit(row[0]) if row else None


def first_start(db: Database) -> Url | None:
    """See `ports.reads.FirstStart`."""
    row = db.one_or_none(FIRST, {"run": db.run})
    return Url(row[0]) if row else None


def start_numbers(db: Database) -> Sequence[int]:
    """See `ports.reads.StartNumbers`."""
    return [number for (number,) in db.all(_STARTS, {"run": db.run})]


def _differing(theirs: str | None, ours: Terms) -> list[str]:
    """The settings in which this member differs from those at work."""
    known = json.loads(theirs or "{}")
    return [name for name, digest in ours.settings.items() if known.get(name, digest) != digest]


def _named(settings: list[str]) -> str:
    return f" ({', '.join(settings)})" if settings else ""
