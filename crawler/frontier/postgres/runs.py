"""The runs of the PostgreSQL frontier: how they begin, are joined, resumed and ended, and the notes that are kept with them.

Who begins while others are at work joins them; who begins alone finds what the dead left, and takes it up.
"""

import json
from typing import Any, TypeVar

from crawler.errors import StateBusy
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.members import Members
from crawler.frontier.postgres.overview import balance
from crawler.frontier.postgres.seeds import SeedTable
from crawler.model.note import Note
from crawler.model.run import Run, SessionEnd
from crawler.parse.url import Url

T = TypeVar("T")

REOPEN_UNASKED = """
WITH again AS (
    SELECT u.id, u.host, u.depth, u.trap, u.sample FROM page AS p JOIN known AS u ON u.id = p.id
    WHERE p.outcome IN ('unlisted:robots-down', 'kept:robots-down') AND u.run = :run AND u.state = 3 AND u.host IS NOT NULL
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state) SELECT id, host, depth, trap, sample, 0 FROM again
)
UPDATE page SET outcome = NULL, detail = NULL, settled = NULL, attempts = 0 FROM again WHERE page.id = again.id
"""

END = """
UPDATE run SET ended = :now, exit = :exit, refused = :refused::text, outcomes = :outcomes, succeeded = :succeeded::double precision,
    seconds = coalesce(seconds, 0) + :seconds::double precision, requests = coalesce(requests, 0) + :requests::bigint,
    bytes = coalesce(bytes, 0) + :bytes::bigint
WHERE number = :run
"""

RECALL = "SELECT value FROM word WHERE run = :run AND key = :key"

RECALL_PUBLISHED = """
SELECT value FROM word WHERE key = :key
AND run = (SELECT max(number) FROM run WHERE status = 'concluded' AND number < :run)
"""

REMEMBER = """
INSERT INTO word (run, key, value) VALUES (:run, :key, :value) ON CONFLICT (run, key) DO UPDATE SET value = excluded.value
"""

BEGIN = """
INSERT INTO run (number, fingerprint, reading, started, status, succeeded)
VALUES (:number, :fingerprint, :reading, :started, 'crawling', :succeeded::double precision)
"""

FIRST = """
SELECT url FROM url WHERE run = :run AND depth = 0
ORDER BY seed IS DISTINCT FROM (SELECT id FROM seed WHERE kind = 0), id LIMIT 1
"""

PRUNE = (
    "visit USING url WHERE url.id = visit.id AND url.run <= :last",
    "page USING url WHERE url.id = page.id AND url.run <= :last",
    "url WHERE run <= :last",
    "run WHERE number <= :last",
    "member WHERE run <= :last",
    "word WHERE run <= :last",
    "trap WHERE run <= :last",
    "seed WHERE run <= :last",
)


class RunTable:
    """The rows of runs. `keep_runs`: how many are remembered."""

    def __init__(self, db: Database, members: Members, seeds: SeedTable, keep_runs: int) -> None:
        self._db, self._members, self._seeds, self._keep_runs = db, members, seeds, keep_runs

    def begin(self, fingerprint: str, reading: str) -> Run:
        """See `ports.Runs.begin`. Raises `StateBusy` where members with other settings are at work."""
        self._db.forget()
        self._db.do("LOCK TABLE run IN SHARE ROW EXCLUSIVE MODE")  # two that begin at once begin one run
        self._members.leave()
        self._members.bury()
        others = self._members.alive()
        last = self._db.one_or_none(
            "SELECT number, started, status, fingerprint, reading, succeeded FROM run ORDER BY number DESC LIMIT 1"
        )
        if last and last[2] in ("crawling", "complete"):
            if last[3:5] == (fingerprint, reading) or (last[3] == fingerprint and not others):
                return self._resume(last, reading, is_alone=not others)
            if others:
                raise StateBusy(
                    "A crawl with other settings is at work on this state: wait for it, or use another --state."
                )
        number, succeeded = (last[0] + 1, last[5]) if last else (1, None)
        return self._open(number, fingerprint, reading, succeeded)

    def _resume(self, last: tuple[Any, ...], reading: str, *, is_alone: bool) -> Run:
        number, started, status, *_, succeeded = last
        self._db.run = number
        if is_alone:
            self._wake()
            self._db.do("UPDATE run SET leader = NULL, reach = NULL WHERE number = :run", {"run": number})
            self._db.do("UPDATE visit SET state = 0, token = NULL, due = NULL WHERE state = 2")
            if status == "crawling":
                self._db.do(REOPEN_UNASKED, {"run": number})
                self._seeds.reopen()
        self._db.do(
            "UPDATE run SET ended = NULL, exit = NULL, refused = NULL WHERE number = :run", {"run": number}
        )
        self._db.since = self._trusted_since(reading)
        self._members.join()
        return Run(number, started, resumed=True, complete=status == "complete", succeeded=succeeded)

    def _open(self, number: int, fingerprint: str, reading: str, succeeded: float | None) -> Run:
        self._wake()
        self._db.do("UPDATE run SET status = 'abandoned' WHERE status IN ('crawling', 'complete')")
        self._db.do("DELETE FROM visit")
        self._db.run, started = number, self._db.now()
        self._prune(number - self._keep_runs)
        row = {"number": number, "fingerprint": fingerprint, "reading": reading, "started": started}
        self._db.do(BEGIN, row | {"succeeded": succeeded})
        self._db.since = self._trusted_since(reading)
        self._members.join()
        return Run(number, started, succeeded=succeeded)

    def _wake(self) -> None:
        """Nobody else is at work: what hosts are waiting for is over."""
        self._db.do(
            "UPDATE host SET asked = 0, next = least(next, :latest)", {"latest": self._db.now() + 3600.0}
        )
        # A failure is remembered while these members work, and tried again by the next.
        self._db.do("UPDATE host SET met = NULL WHERE robots IN ('down', 'unreachable')")

    def _prune(self, last: int) -> None:
        """Forget runs up to `last`, and the URLs that none found since."""
        for statement in PRUNE if last > 0 else ():
            self._db.do(f"DELETE FROM {statement}", {"last": last})

    def conclude(self, *, refused: bool) -> None:
        """See `ports.Runs.conclude`."""
        self._end("refused" if refused else "concluded")

    def is_over(self) -> bool:
        """See `ports.Runs.is_over`."""
        query = "SELECT status NOT IN ('crawling', 'complete') FROM run WHERE number = :run"
        return bool(self._db.one(query, {"run": self._db.run})[0])

    def finish(self) -> None:
        """See `ports.Runs.finish`."""
        self._end("complete")

    def _end(self, status: str) -> None:
        self._db.do(
            "UPDATE run SET status = :status WHERE number = :run", {"status": status, "run": self._db.run}
        )

    def end_session(self, end: SessionEnd) -> None:
        """See `ports.Runs.end_session`."""
        outcomes = json.dumps(balance(self._db).outcomes)
        known = end._asdict() | {"exit": int(end.exit), "seconds": float(end.seconds)}
        self._db.do(END, known | {"run": self._db.run, "now": self._db.now(), "outcomes": outcomes})

    def remember(self, note: Note[T], value: T) -> None:
        """See `ports.Runs.remember`."""
        self._db.do(REMEMBER, {"run": self._db.run, "key": note.key, "value": note.write(value)})

    def recall(self, note: Note[T], *, published: bool = False) -> T:
        """See `ports.Runs.recall`."""
        statement = RECALL_PUBLISHED if published else RECALL
        row = self._db.one_or_none(statement, {"run": self._db.run, "key": note.key})
        return note.read(row[0]) if row else note.absent

    def _trusted_since(self, reading: str) -> int:
        """The first run after the last one that read pages in another way."""
        other = self._db.one("SELECT max(number) FROM run WHERE reading <> :reading", {"reading": reading})[0]
        return (other or 0) + 1

    def first(self) -> Url | None:
        """See `ports.Record.first`."""
        row = self._db.one_or_none(FIRST, {"run": self._db.run})
        return Url(row[0]) if row else None
