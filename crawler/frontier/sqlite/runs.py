"""The runs of the SQLite frontier: how they begin, resume and end, and their notes."""

import json
import time
from collections.abc import Callable
from typing import TypeVar

from crawler.frontier.sqlite import images
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.overview import balance
from crawler.frontier.sqlite.seeds import SeedTable
from crawler.model.note import Note
from crawler.model.run import Run, SessionEnd
from crawler.parse.url import Url

T = TypeVar("T")

REOPEN_ROBOTS_DOWN = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL, due = NULL, token = NULL, attempts = 0
WHERE run = :run AND outcome IN ('unlisted:robots-down', 'kept:robots-down') AND host IS NOT NULL
"""

END = """
UPDATE run SET ended = coalesce(ended, :now), exit = :exit, refused = :refused, outcomes = :outcomes, succeeded = :succeeded,
    seconds = coalesce(seconds, 0) + :seconds, requests = coalesce(requests, 0) + :requests, bytes = coalesce(bytes, 0) + :bytes
WHERE number = :run
"""

RECALL = "SELECT value FROM note WHERE run = :run AND key = :key"

RECALL_PUBLISHED = """
SELECT value FROM note WHERE key = :key
AND run = (SELECT max(number) FROM run WHERE status = 'concluded' AND number < :run)
"""


class RunTable:
    """The rows of runs. `keep_runs`: how many runs to keep."""

    def __init__(self, db: Database, seeds: SeedTable, keep_runs: int) -> None:
        self._db, self._seeds, self._keep_runs = db, seeds, keep_runs

    def begin(self, fingerprint: str, reading: str) -> Run:
        """See `ports.Runs.begin`."""
        run = self._begin(fingerprint, reading)
        self.beat()
        return run

    def beat(self) -> None:
        """Record that a session is at work on the newest run."""
        self._db.do("UPDATE run SET beat = ? WHERE number = ?", (time.time(), self._db.run))

    def _begin(self, fingerprint: str, reading: str) -> Run:
        self._db.forget()
        self._db.do("UPDATE host SET robots_leased_until = 0, next = min(next, ?)", (self._db.now() + 3600,))
        # A failed robots.txt is not read again by the same process, but by the next one.
        self._db.do("UPDATE host SET robots_read_at = NULL WHERE robots IN ('down', 'unreachable')")
        last = self._db.one_or_none(
            "SELECT number, started, status, fingerprint, succeeded FROM run ORDER BY number DESC LIMIT 1"
        )
        if last and last[3] == fingerprint and last[2] in ("crawling", "complete"):
            # We hold the lock, so no other process is working: the holders of old leases are dead.
            self._db.do("UPDATE url SET state = 0, token = NULL, due = NULL WHERE state = 2")
            if last[2] == "crawling":
                self._db.do(REOPEN_ROBOTS_DOWN, {"run": self._db.run})
                self._seeds.reopen()
            self._db.do(
                "UPDATE run SET ended = NULL, exit = NULL, refused = NULL WHERE number = ?", (last[0],)
            )
            self._db.since = self._trusted_since(reading)
            return Run(last[0], last[1], resumed=True, complete=last[2] == "complete", succeeded=last[4])
        if last:
            self._db.do("UPDATE run SET status = 'abandoned' WHERE status IN ('crawling', 'complete')")
            self._db.do("UPDATE url SET state = 3, token = NULL, due = NULL WHERE state < 3")
        self._db.run, succeeded = (last[0] + 1, last[4]) if last else (1, None)
        self._prune(self._db.run - self._keep_runs)
        started = self._db.now()
        self._db.do(
            "INSERT INTO run (number, fingerprint, reading, started, status, succeeded) VALUES (?, ?, ?, ?, 'crawling', ?)",
            (self._db.run, fingerprint, reading, started, succeeded),
        )
        self._db.since = self._trusted_since(reading)
        return Run(self._db.run, started, succeeded=succeeded)

    def _prune(self, last: int) -> None:
        """Delete runs up to `last`, and URLs that no later run found."""
        for statement in (
            "run WHERE number <= ?",
            "note WHERE run <= ?",
            "trap WHERE run <= ?",
            "url WHERE run <= ?",
            "seed WHERE run <= ?",
        ):
            self._db.do(f"DELETE FROM {statement}", (last,))
        if self._db.run % self._keep_runs == 0:  # reads all pages
            images.prune(self._db)
        self._db.do("DELETE FROM external WHERE id NOT IN (SELECT id FROM url)")

    def conclude(self, *, refused: bool) -> None:
        """See `ports.Runs.conclude`."""
        status = "refused" if refused else "concluded"
        self._db.do("UPDATE run SET status = ? WHERE number = ?", (status, self._db.run))

    def end_session(self, end: SessionEnd) -> None:
        """See `ports.Runs.end_session`."""
        outcomes = json.dumps(balance(self._db).outcomes)
        self._db.do(END, end._asdict() | {"run": self._db.run, "now": self._db.now(), "outcomes": outcomes})

    def remember(self, note: Note[T], value: T) -> None:
        """See `ports.Runs.remember`."""
        self._db.do(
            "INSERT OR REPLACE INTO note VALUES (?, ?, ?)", (self._db.run, note.key, note.write(value))
        )

    def recall(self, note: Note[T], *, published: bool = False) -> T:
        """See `ports.Runs.recall`."""
        statement = RECALL_PUBLISHED if published else RECALL
        row = self._db.one_or_none(statement, {"run": self._db.run, "key": note.key})
        return note.read(row[0]) if row else note.absent

    def amend(self, note: Note[T], change: Callable[[T], T]) -> T:
        """See `ports.Runs.amend`."""
        value = change(self.recall(note))
        self.remember(note, value)
        return value

    def _trusted_since(self, reading: str) -> int:
        """The first run since which pages are read with the same parsing settings."""
        other = self._db.one("SELECT max(number) FROM run WHERE reading <> ?", (reading,))[0]
        return (other or 0) + 1

    def first_start(self) -> Url | None:
        """See `ports.Record.first_start`."""
        row = self._db.one_or_none(
            "SELECT url FROM url WHERE run = ? AND depth = 0 "
            "ORDER BY seed IS NOT (SELECT id FROM seed WHERE kind = 0), id LIMIT 1",
            (self._db.run,),
        )
        return Url(row[0]) if row else None

    def finish(self) -> None:
        """See `ports.Runs.finish`."""
        self._db.do("UPDATE run SET status = 'complete' WHERE number = ?", (self._db.run,))
