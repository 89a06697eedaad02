"""The objects of a stored state, in the library's store in memory: a whole state is put, and by one of two jobs."""

import hashlib
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawler.app import stored_state
from crawler.app.stored_state import StoredState
from crawler.errors import StateBusy
from crawler.frontier.sqlite import packed
from crawler.frontier.sqlite.packed import Pack, WrongPack, pack, unpack
from crawler.settings.object_url import ObjectUrl
from crawler.sitemap.publish import object_store
from crawler.sitemap.publish.object_store import Changed, ObjectVersion, Store
from crawler.sitemap.publish.store_errors import StoreError
from tests.s3 import package

obstore = package("obstore.store") and package("obstore")
URL = ObjectUrl("s3", "bucket", "p/site.db")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = obstore.store.MemoryStore()
    monkeypatch.setattr(object_store, "client_of", lambda *_: made)
    return made


def names(client: Any) -> list[str]:
    return sorted(found["path"] for found in obstore.list(client).collect())


def state(folder: Path, value: int) -> Path:
    path = folder / "state.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {value}")
    return path


def value_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def fetched(folder: Path) -> int:
    StoredState(URL, 60).fetch(folder / "fetched.db")
    return value_of(folder / "fetched.db")


def test_what_is_put_is_fetched_and_the_old_one_deleted(client: Any, tmp_path: Path) -> None:
    job = StoredState(URL, 60)
    job.take()
    assert job.fetch(tmp_path / "none.db") is None
    for value in (1, 2, 3):
        job.put_back(state(tmp_path, value), is_open=value < 3)
        assert fetched(tmp_path) == value
        assert len([name for name in names(client) if name.endswith(".gz")]) == 1
    before = names(client)
    job.put_back(tmp_path / "state.db", is_open=False)
    assert names(client) == before, "the same state is not put again"
    job.release()
    assert "site.db.lock" not in names(client)


def test_of_two_jobs_one_puts(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was taken for dead wakes up in the middle: it neither replaces nor deletes what came after it."""
    first, second = StoredState(URL, 60), StoredState(URL, 60)
    first.take()
    first.put_back(state(tmp_path, 1), is_open=False)
    with pytest.raises(StateBusy, match="as soon as you delete s3://bucket/p/"):
        second.take()
    monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
    second.take()
    second.fetch(tmp_path / "state.db")
    second.put_back(state(tmp_path, 2), is_open=False)
    for step in (first.renew, lambda: first.put_back(state(tmp_path, 3), is_open=False)):
        with pytest.raises(StateBusy, match="Another run has taken the state"):
            step()
    first.release()
    assert fetched(tmp_path) == 2
    assert "site.db.lock" in names(client), "it is not ours to delete"


@pytest.mark.parametrize("lost", ["site.db", "site.db.lock"])
def test_an_answer_that_is_lost_is_no_other_job(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    job = StoredState(URL, 60)
    job.take()
    job.put_back(state(tmp_path, 1), is_open=False)
    put = Store.put_if

    def loses(store: Store, name: str, body: bytes, expected: ObjectVersion | None) -> ObjectVersion:
        done = put(store, name, body, expected)
        if name == lost:
            raise StoreError("the store did not answer")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_if", loses)
        with pytest.raises(StoreError):
            job.put_back(state(tmp_path, 2), is_open=False)
    assert fetched(tmp_path) in {1, 2}
    job.put_back(state(tmp_path, 3), is_open=False)
    assert fetched(tmp_path) == 3
    assert len([name for name in names(client) if name.endswith(".gz")]) == 1


@pytest.mark.usefixtures("client")
def test_a_store_in_which_somebody_puts_between_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*_: object) -> ObjectVersion:
        raise Changed

    monkeypatch.setattr(Store, "put_if", changed)
    monkeypatch.setattr(Store, "honours_conditions", lambda *_: True)
    with pytest.raises(StateBusy, match="has just taken the state"):
        StoredState(URL, 60).take()


# -- packing ---------------------------------------------------------------------------------------------------


def test_a_state_is_packed_while_another_connection_writes(tmp_path: Path) -> None:
    path, into = tmp_path / "state.db", tmp_path / "state.gz"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA user_version = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("PRAGMA user_version = 2")
        made = pack(path, into, is_open=True)
        db.execute("COMMIT")
    unpack(into, tmp_path / "copy.db", made)
    assert value_of(tmp_path / "copy.db") == 1
    assert [file.name for file in tmp_path.iterdir() if "state.copy" in file.name] == []
    closed = pack(path, into, is_open=False)
    unpack(into, tmp_path / "copy.db", closed)
    assert (tmp_path / "copy.db").read_bytes() == path.read_bytes(), "with its checksum, byte by byte"


@pytest.mark.parametrize("size", [0, 1, packed.CHUNK, 3 * packed.CHUNK + 1])
def test_sizes(tmp_path: Path, size: int) -> None:
    path, into = tmp_path / "state.db", tmp_path / "state.gz"
    path.write_bytes(bytes(size))
    made = pack(path, into, is_open=False)
    unpack(into, tmp_path / "copy", made)
    assert (made.size, (tmp_path / "copy").read_bytes()) == (size, bytes(size))
    for wrong in (size - 1, size + 1):
        with pytest.raises(WrongPack, match="unpacked, it has"):
            unpack(into, tmp_path / "copy", Pack(made.sha256, made.bytes, wrong))
        assert (tmp_path / "copy").stat().st_size <= max(0, wrong)


def test_what_is_no_gzip(tmp_path: Path) -> None:
    into = tmp_path / "state.gz"
    into.write_bytes(zlib.compress(b"x"))
    digest = hashlib.sha256(into.read_bytes()).hexdigest()
    with pytest.raises(WrongPack, match="not compressed by gzip"):
        unpack(into, tmp_path / "copy", Pack(digest, into.stat().st_size, 1))
