"""The state file: only files of this program are used, moved or removed; any other is reported and left alone."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import FrontierError
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.ownership import Owner, owner_of
from crawler.frontier.sqlite.state_file import Lock, is_at_work, lock_of, remove_state
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "state.db"


def text(path: Path) -> None:
    path.write_text("my notes")


def long_text(path: Path) -> None:
    path.write_bytes(b"my notes" * 1_000)


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")


def database_with_an_id(path: Path) -> None:
    database(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")


def database_whose_rows_are_in_the_log(path: Path) -> None:
    """A database of another program that was killed."""
    words = f"""
import os, sqlite3
db = sqlite3.connect({str(path)!r}, isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE theirs (x)")
os.kill(os.getpid(), {int(signal.SIGKILL)})
"""
    subprocess.run([sys.executable, "-c", words], check=False)
    assert path.with_name(path.name + "-wal").stat().st_size


def cut_database(path: Path) -> None:
    database(path)
    path.write_bytes(path.read_bytes()[:50])


def a_log_without_its_database(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(b"pages" * 100)


def a_journal_without_its_database(path: Path) -> None:
    path.touch()
    path.with_name(path.name + "-journal").write_bytes(b"pages" * 100)


def a_file_where_the_lock_goes(path: Path) -> None:
    path.with_name(path.name + ".lock").write_text("my lock")


def a_link_to_notes(path: Path) -> None:
    (path.parent / "notes.txt").write_text("my notes")
    path.symlink_to("notes.txt")


OTHERS = (
    text, long_text, database, database_with_an_id, database_whose_rows_are_in_the_log, cut_database, a_link_to_notes,
)  # fmt: skip
BESIDE = (a_log_without_its_database, a_journal_without_its_database, a_file_where_the_lock_goes)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


@pytest.mark.parametrize("make", [*OTHERS, *BESIDE])
async def test_foreign_file_is_never_opened(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    before = contents(path.parent)
    with pytest.raises(FrontierError) as refused:
        SqliteFrontier(str(path))
    assert "--fresh" not in str(refused.value)
    assert {name: data for name, data in contents(path.parent).items() if data or name in before} == before


@pytest.mark.parametrize("make", OTHERS)
async def test_remove_state_never_touches_foreign_file(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    before = contents(path.parent)
    with pytest.raises(FrontierError, match="is not a state file of sitemap-crawler and is left untouched"):
        remove_state(path)
    assert contents(path.parent) == before
    with pytest.raises(FrontierError, match="is not a state file of sitemap-crawler"):
        SqliteFrontier(str(path), read_only=True)


@pytest.mark.parametrize("make", [a_log_without_its_database, a_journal_without_its_database])
async def test_remove_state_keeps_foreign_journal(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    remove_state(path)
    await SqliteFrontier(str(path)).close()
    [kept] = [file for file in path.parent.iterdir() if file.name.endswith(".kept")]
    assert kept.read_bytes() == b"pages" * 100


async def test_empty_file_is_used_as_state(path: Path) -> None:
    path.touch()
    remove_state(path)
    await SqliteFrontier(str(path)).close()
    assert owner_of(path) is Owner.OURS


async def test_symlink_to_state_is_followed(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    holder = SqliteFrontier(str(link))
    assert path.exists()
    with pytest.raises(FrontierError, match="Another run is using the state"):
        SqliteFrontier(str(path))
    await holder.close()
    remove_state(link)
    assert (link.is_symlink(), path.exists()) == (True, False)


async def test_new_state_has_application_id_at_any_moment(path: Path) -> None:
    """Also in a copy of the file alone, while its content is still in the write-ahead log."""
    frontier = SqliteFrontier(str(path))
    await frontier.begin("settings")
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    await frontier.close()
    assert owner_of(copy) is Owner.OURS
    with pytest.raises(
        FrontierError, match=r"empty: no crawl .* or it was copied without its log, copy\.db-wal"
    ):
        SqliteFrontier(str(copy), read_only=True)


async def test_new_state_is_for_its_user_alone(path: Path) -> None:
    """With its log; one whose permissions were changed keeps them."""
    frontier = SqliteFrontier(str(path))
    await frontier.begin("settings")
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.glob("state.db*")}
    await frontier.close()
    assert {modes[name] for name in ("state.db", "state.db-wal")} == {0o600}
    path.chmod(0o640)
    await SqliteFrontier(str(path)).close()
    assert path.stat().st_mode & 0o777 == 0o640


async def test_application_id_in_write_ahead_log_is_recognised(path: Path) -> None:
    """Early versions set the application id after the journal mode, and so wrote it to the log."""
    frontier = SqliteFrontier(str(path))
    await frontier.begin("settings")
    await frontier.add([Visit(Url("http://a.example/"))])
    for suffix in ("", "-wal"):
        shutil.copy(path.with_name(path.name + suffix), path.with_name("old.db" + suffix))
    await frontier.close()
    old = path.with_name("old.db")
    data = bytearray(old.read_bytes())
    data[68:72] = bytes(4)
    old.write_bytes(data)
    assert owner_of(old) is Owner.OURS
    again = SqliteFrontier(str(old))
    assert await again.read(reads.FirstStart()) == "http://a.example/"
    await again.close()


@pytest.mark.parametrize("name", ["", "/", "missing/"])
async def test_folder_is_refused_as_state(tmp_path: Path, name: str) -> None:
    for read_only in (False, True):
        with pytest.raises(FrontierError, match="is a folder: name a file with --state"):
            SqliteFrontier(f"{tmp_path}/{name}" if name else str(tmp_path), read_only=read_only)
    assert list(tmp_path.parent.glob(tmp_path.name + "*")) == [tmp_path]


async def test_special_file_is_refused_as_state(path: Path) -> None:
    os.mkfifo(path)
    for state in (path, Path("/dev/null")):
        with pytest.raises(FrontierError, match="is not a regular file"):
            SqliteFrontier(str(state))


# -- on a read-only file system -----------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
# Drops CAP_DAC_OVERRIDE (capabilities(7)), so that file modes bind root, too.
AS_ANY_USER = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
URL = "http://a.example/"


async def a_state(path: Path) -> SqliteFrontier:
    frontier = SqliteFrontier(str(path))
    await frontier.begin("settings")
    await frontier.add([Visit(Url(URL))])
    return frontier


async def closed(path: Path) -> None:
    await (await a_state(path)).close()


async def with_all_in_the_log(path: Path) -> None:
    """A state as a killed run leaves it."""
    living = path.with_name("living.db")
    frontier = await a_state(living)
    for suffix in ("", "-wal"):
        shutil.copy(living.with_name(living.name + suffix), path.with_name(path.name + suffix))
    await frontier.close()
    living.unlink()
    assert path.with_name(path.name + "-wal").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("make", [closed, with_all_in_the_log])
async def test_state_is_readable_on_read_only_file_system(path: Path, make: Any) -> None:
    await make(path)
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    before = contents(path.parent)

    def asked(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", AS_ANY_USER, "-m", "crawler", *words, "--state", str(path)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    status = asked("status")
    assert status[0] == 0, status
    assert "discovered, all accounted for" in status[1]
    assert asked("explain", URL)[1].splitlines()[1].split() == ["outcome", "queued"]
    code, said = asked("export", "-o", "-")
    assert (code, "No page is listed" in said) == (6, True), said
    assert contents(path.parent) == before


@pytest.mark.anyio
async def test_reading_state_of_killed_crawl_writes_nothing(path: Path, tmp_path: Path) -> None:
    crawl = SqliteFrontier(str(path))
    await crawl.begin("settings")
    await crawl.add([Visit(Url("http://a.example/"))])
    left = tmp_path / "state.db"
    for end in ("", "-wal"):  # the files on disk when the crawl is killed
        shutil.copy(f"{path}{end}", f"{left}{end}")
    before = [Path(f"{left}{end}").read_bytes() for end in ("", "-wal")]
    assert before[1], "the last commits are in the log"
    for state in (left, path):  # a killed and a running crawl
        reader = SqliteFrontier(str(state), read_only=True)
        assert (await reader.read(reads.RunBalance())).open == 1
        await reader.close()
    await crawl.add([Visit(Url("http://a.example/b"))])
    await crawl.close()
    assert [Path(f"{left}{end}").read_bytes() for end in ("", "-wal")] == before


HOLDS = """
import sys
from pathlib import Path
from crawler.frontier.sqlite.state_file import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_killed_run_is_at_work_no_more_at_once(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        beaten = lock_of(path).stat().st_mtime
        assert is_at_work(str(path), beaten + 1)
        assert not is_at_work(str(path), beaten + 61), "it is stopped, or its machine is"
        holder.kill()
        holder.wait()
        assert is_at_work(str(path), beaten + 1) is not (sys.platform == "linux")


@pytest.mark.slow
def test_looking_at_a_lock_does_not_drop_it(path: Path) -> None:
    lock = Lock(path)
    beaten = lock_of(path).stat().st_mtime
    assert is_at_work(str(path), beaten + 1)
    with closing(sqlite3.connect(lock_of(path), timeout=0)) as other, pytest.raises(sqlite3.OperationalError):
        other.execute("BEGIN EXCLUSIVE")
    assert subprocess.run(  # a lock of this process keeps other processes out
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.DEVNULL, capture_output=True, check=False
    ).returncode == 1  # fmt: skip
    lock.release()
    assert is_at_work(str(path), beaten + 1) is not (sys.platform == "linux")


def test_the_lock_of_a_copy_tells_by_its_time(path: Path) -> None:
    lock_of(path).write_text("copy")
    beaten = lock_of(path).stat().st_mtime
    assert is_at_work(str(path), beaten + 1)
    assert not is_at_work(str(path), beaten + 61)
