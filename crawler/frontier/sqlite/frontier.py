"""The embedded frontier: one SQLite file in WAL mode, or `:memory:`.

Every method is one transaction on one connection, run in a worker thread so that the event loop never waits
for the disk. One process works on a file, which holds its lock: it is the only member, and leads.
"""

import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, Unpack

import anyio
import anyio.to_thread
from msgspec.structs import replace

from crawler.errors import FrontierError
from crawler.frontier.frontier import DatabaseFrontier, FrontierOptions
from crawler.frontier.queries import Stream
from crawler.frontier.sqlite.database import SqliteDatabase
from crawler.frontier.sqlite.ownership import check_usable
from crawler.frontier.sqlite.state_file import (
    MEMORY,
    Lock,
    close_state,
    failure,
    is_at_work,
    open_state,
)
from crawler.model.failpoints import failpoint
from crawler.model.run import Run, Terms
from crawler.model.visit import Lease

P = ParamSpec("P")
T = TypeVar("T")

CHUNK: Final = 2_000  # rows to read at a time


class SqliteFrontier(DatabaseFrontier):
    """A `Frontier` in one file."""

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
        **options: Unpack[FrontierOptions],
    ) -> None:
        """Open or create the state at `path`.

        Raises `FrontierError` if it cannot be used and `StateBusy` if another run holds the lock. A
        `read_only` frontier needs no lock: it can read while another run writes.
        """
        if path != MEMORY:
            path = str(check_usable(path))
        self._path = path
        self._lock = None if read_only or path == MEMORY else Lock(Path(path))
        try:
            self._connection = open_state(path, read_only=read_only)
        except BaseException:
            if self._lock:
                self._lock.release()
            raise
        self._turn = anyio.CapacityLimiter(1)
        db = SqliteDatabase(self._connection, clock)
        try:
            db.read_newest()
        except (sqlite3.Error, ValueError) as error:
            self._close()
            raise FrontierError(failure(path, error)) from error
        super().__init__(db, **options)

    async def begin(self, fingerprint: str, reading: str = "", terms: Terms = Terms()) -> Run:
        """See `ports.Runs.begin`: what members must agree on, the only one keeps itself."""
        run = await super().begin(fingerprint, reading, replace(terms, key="", settings={}))
        if not run.resumed:
            await self._prune()  # an unfinished run, too, makes the oldest one superfluous
        return run

    async def suspect(self, lease: Lease) -> None:
        """See `ports.Queue.suspect`: `engine.reading_log` notes it in a file."""

    def _is_at_work(self) -> bool:
        return bool(self._lock) or self._path == MEMORY or is_at_work(self._path, time.time())

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._turn)

    def _close(self) -> None:
        if self._lock:
            close_state(self._connection, Path(self._path))
            self._lock.release()
        else:
            self._connection.close()

    async def _call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await anyio.to_thread.run_sync(
            lambda: self._transact(verb, *args, **kwargs), limiter=self._turn, abandon_on_cancel=False
        )

    def _transact(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        beats = self._lock is not None and self._lock.beat()
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE" if self._lock else "BEGIN")
                if beats:
                    self._members.beat()
                answer = verb(*args, **kwargs)
                with failpoint(f"commit of {verb.__name__}"):
                    self._connection.execute("COMMIT")
                return answer
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError, LookupError) as error:
            # All but the first: values or names in the file that this program never writes.
            self._db.forget()
            raise FrontierError(failure(self._path, error)) from error

    async def _stream(
        self, query: Stream, given: Mapping[str, Any], first: str = ""
    ) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """See `DatabaseFrontier`.

        A chunk is one statement on the index, which starts after the last row of the one before.
        """
        after, comparison = query.start(first), ">="
        while chunk := await self._call(
            self._db.all, f"{query.rest(comparison)} LIMIT {CHUNK}", {**given, "after": after}
        ):
            yield chunk
            after, comparison = chunk[-1][query.place], ">"
