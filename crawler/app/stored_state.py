"""The objects of a state in an object store: its lock, the packed state, and the record that names it.

`site.db` is the record, a little JSON; it names the packed state, `site.db.TOKEN.1.gz`, with its size and
checksum. Each is put as a whole, the record last and on the condition that nobody has put another since: a
reader never gets half a state, and only one of two jobs succeeds. `site.db.lock` keeps a second job out. Its
owner puts it again every minute; whether it still does is told by the clock of the store, never by ours.

Blocking: it is called from threads, by `stored_frontier`.
"""

import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from crawler.errors import FrontierError, NoState, StateBusy
from crawler.frontier.sqlite.packed import Pack, WrongPack, pack, unpack
from crawler.model.failpoints import failpoint
from crawler.report.formatting import second
from crawler.report.printable import printable
from crawler.settings.object_url import ObjectUrl
from crawler.sitemap.publish.object_store import Changed, Object, ObjectVersion, Store, connect
from crawler.sitemap.publish.staging import reason

EXPIRY: Final = 300.0  # seconds after the last put of a lock, by the clock of the store, when it is void
FORMAT: Final = 1
SMALL: Final = 10_000  # bytes of a record, or of a lock
LEFT_BY_THE_DEAD: Final = 8  # packed states that a job may have put before it died
HEADROOM: Final = 64 << 20  # bytes of the disk that are left free when a state is unpacked
NOT_KEPT: Final = "what is there is as it was put there last"

T = TypeVar("T")
Token = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
PackName = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\.[0-9]{1,9}$")]


class PackedState(Struct, frozen=True):
    """Which packed state is the one. `before`: the one that it replaced, and that is to be deleted."""

    sitemap_crawler_state: int
    pack: PackName
    before: PackName | None
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Meta(ge=0)]
    size: Annotated[int, Meta(ge=0)]


class LockOwner(Struct, frozen=True):
    """Who has the lock, and how many packed states it began to put."""

    token: Token
    host: Annotated[str, Meta(max_length=255)] = ""
    puts: Annotated[int, Meta(ge=0)] = 0


class StoredState:
    """The objects of one state, and our part in them. Methods raise `StoreError`, and what they say."""

    def __init__(self, url: ObjectUrl, seconds: float) -> None:
        """`seconds`: for all requests of one step. Raises `ConfigError`."""
        folder, _, self._key = url.prefix.rpartition("/")
        self.url, self._seconds = url, seconds
        self._store = connect(ObjectUrl(url.scheme, url.bucket, folder), seconds, flag="--state")
        self._owner = LockOwner(token_hex(8), socket.gethostname()[:255])
        self._renewing = Lock()
        self._lock: ObjectVersion | None = None  # ours
        self._stale = set[str]()  # packed states that we have put or replaced, and that are to be deleted
        self._record: PackedState | None = None
        self._version: ObjectVersion | None = None  # of the record
        self._put_at: datetime | None = None  # when that was, by the clock of the store

    @property
    def lock_name(self) -> str:
        """The object that is the lock, as a name below the folder of the state."""
        return f"{self._key}.lock"

    # -- the lock -------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Takes the lock, and deletes what a job has left that was killed.

        Raises `StateBusy` if another job has it, `FrontierError` if the state is of another program.
        """
        store = self._begin()
        there = store.get(self.lock_name, SMALL)
        if there:
            self._check_void(store, there)
        if not store.honours_conditions(self.lock_name, there):
            raise FrontierError(
                f"The state {self.url} cannot be locked: the store ignores the condition of a put "
                "(If-Match), so that two jobs could mix their states; keep it in a file or in PostgreSQL."
            )
        try:
            with failpoint("put of lock"):
                self._lock = store.put_if(self.lock_name, self._said, there.version if there else None)
        except Changed:
            raise StateBusy(
                f"Another run has just taken the state {self.url}: run again when it is done."
            ) from None
        self._read_record(store)
        owner = _decoded(there, LockOwner) if there else None
        puts = range(owner.puts, max(0, owner.puts - LEFT_BY_THE_DEAD), -1) if owner else ()
        self._stale = {f"{owner.token}.{number}" for number in puts} if owner else set()
        if self._record and self._record.before:
            self._stale.add(self._record.before)
        self._delete_stale(store)

    def renew(self) -> None:
        """Says that we still have the lock. Raises `StateBusy` if we have not."""
        with self._renewing:
            self._lock = self._put_ours(self._begin(), self.lock_name, self._said, self._lock)

    def release(self) -> None:
        """Gives the lock back, if we have it."""
        with self._renewing:
            store, held, self._lock = self._begin(), self._lock, None
            if held:
                there = store.get(self.lock_name, SMALL)
                if there and there.version == held:
                    store.delete(self.lock_name)

    def heard_of(self, now: datetime) -> float | None:
        """When a job was last heard of, for show: `now` if one is at work, by our clock; None if none is."""
        lock = self._begin().get(self.lock_name, SMALL)
        is_alive = lock and (now - lock.modified).total_seconds() < EXPIRY
        return now.timestamp() if is_alive else None

    @property
    def _said(self) -> bytes:
        return msgspec.json.encode(self._owner)

    def _check_void(self, store: Store, lock: Object) -> None:
        """Raises `StateBusy` unless the lock is old by the clock of the store, which dates an object."""
        name = f"{self._key}.{self._owner.token}.now"
        store.put_if(name, b"", None)
        seen = store.get(name, SMALL)
        store.delete(name)
        until = lock.modified + timedelta(seconds=EXPIRY)
        if seen and seen.modified > until:
            return
        owner = _decoded(lock, LockOwner)
        host = f" on {printable(owner.host, 100)}" if owner and owner.host else ""
        raise StateBusy(
            f"Another run{host} is using the state {self.url}, and was last heard of at "
            f"{_time(lock.modified)}: run again when it is done. If it was killed, its lock is void after "
            f"{_time(until)}, by the clock of the store, or as soon as you delete {self.url}.lock."
        )

    # -- the state ------------------------------------------------------------------------------------------

    def fetch(self, to: Path) -> datetime | None:
        """Writes the state to a file; when it was put there, and None if there is none yet.

        Raises `FrontierError` for an object that is no state, or damaged.
        """
        for _ in range(3):  # without the lock, a job may put another one in between
            store = self._begin()
            self._read_record(store)
            if (record := self._record) is None:
                return None
            packed = to.with_suffix(".gz")
            if store.download(self._name(record.pack), packed, record.bytes):
                self._unpack(packed, to, record)
                return self._put_at
        raise self._damaged("there is a record of it, but not the state itself")

    def fetch_known(self, to: Path) -> datetime:
        """The same of a state that must be there. Raises `NoState`."""
        if put_at := self.fetch(to):
            return put_at
        raise NoState(f"There is no state at {self.url}: crawl first, or name it with --state.")

    def put_back(self, state: Path, *, is_open: bool) -> None:
        """Puts the state that is in a file. Raises `StateBusy` if another job has put one since."""
        packed, before = state.with_suffix(".gz"), self._record
        with self._packing():
            made = pack(state, packed, is_open=is_open)
        if before and (made.sha256, made.bytes) == (before.sha256, before.bytes):
            return
        self._owner = replace(self._owner, puts=self._owner.puts + 1)
        self.renew()  # says what is to be deleted if we are killed
        name, store = f"{self._owner.token}.{self._owner.puts}", self._begin()
        self._stale.add(name)
        with failpoint("put of state"):
            store.put(self._name(name), packed)
        record = PackedState(
            FORMAT, name, before.pack if before else None, made.sha256, made.bytes, made.size
        )
        with failpoint("put of record"):
            self._version = self._put_ours(store, self._key, msgspec.json.encode(record), self._version)
        self._record = record
        if before:
            self._stale.add(before.pack)
        with failpoint("delete of state"):
            self._delete_stale(store)

    def _put_ours(
        self, store: Store, name: str, body: bytes, expected: ObjectVersion | None
    ) -> ObjectVersion:
        """Puts the lock or the record if it is ours still, also if the answer to our last put was lost.

        Raises `StateBusy` if it is another job's.
        """
        try:
            return store.put_if(name, body, expected)
        except Changed:
            there = store.get(name, SMALL)
            if there is None or self._owner.token.encode() not in there.body:
                raise self._taken() from None
            try:
                return store.put_if(name, body, there.version)
            except Changed:
                raise self._taken() from None

    def _delete_stale(self, store: Store) -> None:
        """Deletes packed states that are not the one, and cannot become it any more.

        Only after a record was put, or long after the death of a job: one that nobody answered to may be done
        late.
        """
        if self._record:
            self._stale.discard(self._record.pack)
        for name in sorted(self._stale):
            store.delete(self._name(name))
            self._stale.discard(name)

    def _read_record(self, store: Store) -> None:
        there = store.get(self._key)
        self._record = self._version = self._put_at = None
        if there is None:
            return
        record = _decoded(there, PackedState)
        if record is None or record.sitemap_crawler_state != FORMAT:
            raise FrontierError(
                f"{self.url} is not a state of sitemap-crawler and is left untouched: name another object "
                "with --state."
            )
        self._record, self._version, self._put_at = record, there.version, there.modified

    def _unpack(self, packed: Path, to: Path, record: PackedState) -> None:
        if record.size > shutil.disk_usage(to.parent).free - HEADROOM:
            raise FrontierError(
                f"The state {self.url} cannot be fetched: unpacked, it has {record.size:,} bytes, and the "
                "disk of temporary files has not that much left. Set TMPDIR to a folder with enough space."
            )
        try:
            unpack(packed, to, Pack(record.sha256, record.bytes, record.size))
        except WrongPack as error:
            raise self._damaged(str(error)) from None
        packed.unlink()

    def _damaged(self, words: str) -> FrontierError:
        return FrontierError(f"The state {self.url} is damaged ({words}): start over with --fresh.")

    def _name(self, pack: str) -> str:
        return f"{self._key}.{pack}.gz"

    def _begin(self) -> Store:
        """The store, with the whole time for the requests of one step."""
        return self._store.for_seconds(self._seconds)

    def _taken(self) -> StateBusy:
        return StateBusy(
            f"Another run has taken the state {self.url}, because this one was silent for too long, or "
            "its lock was deleted: this one ends."
        )

    @contextmanager
    def _packing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise FrontierError(f"The state {self.url} cannot be packed: {error}; {NOT_KEPT}.") from error

    @contextmanager
    def translated(self, done: str) -> Iterator[None]:
        """Turns an error of the disk or of the store into a `FrontierError`. `done`: what cannot be done."""
        try:
            yield
        except OSError as error:
            raise FrontierError(
                f"The state {self.url} cannot be {done}: {reason(error)}; {NOT_KEPT}."
            ) from error


def _decoded(there: Object, kind: type[T]) -> T | None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(there.body, type=kind)
    return None


def _time(at: datetime) -> str:
    return second(at.timestamp())
