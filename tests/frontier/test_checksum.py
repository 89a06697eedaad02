"""The checksum of a state file: a bit changed anywhere is recognised, the work of other sessions and readers is not mistaken for it."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from crawler.errors import FrontierError
from crawler.frontier.sqlite.checksum import has_wrong_checksum
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.state_file import remove_state
from crawler.model.visit import Visit
from crawler.parse.url import Url

pytestmark = pytest.mark.anyio


async def session(path: Path, count: int = 0) -> None:
    frontier = SqliteFrontier(str(path))
    try:
        await frontier.begin("settings")
        await frontier.add([Visit(Url(f"http://a.example/{number}")) for number in range(count)])
    finally:
        await frontier.close()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    await session(path, 2_000)
    return path


def checksums(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM checksum").fetchone()[0])


@pytest.mark.slow
async def test_bit_changed_anywhere_is_recognised(path: Path) -> None:
    state = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        page, size = (
            db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'checksum'").fetchone()[0],
            db.execute("PRAGMA page_size").fetchone()[0],
        )
    own = range((page - 1) * size, page * size)
    chance = random.Random(5)
    places = [place for place in chance.sample(range(len(state)), 300) if place not in own and place >= 100]
    for place in (*places, len(state) - 1):
        broken = bytearray(state)
        broken[place] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        with suppress(sqlite3.DatabaseError):  # so damaged that the checksum cannot be read
            assert has_wrong_checksum(path), place
    path.write_bytes(state)
    assert not has_wrong_checksum(path)


async def test_changed_value_is_refused_and_kept_by_fresh(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE url SET depth = depth + 1 WHERE id = 7")
        db.commit()
    with pytest.raises(FrontierError, match=r"is damaged \(its bytes .*--fresh"):
        SqliteFrontier(str(path))
    kept = remove_state(path)
    assert kept
    assert kept.exists()
    assert not path.exists()


async def test_each_session_stores_a_new_one(path: Path) -> None:
    for count in (0, 3_000, 0):
        await session(path, count)
        assert checksums(path) == 1
        assert not has_wrong_checksum(path)


async def test_killed_session_leaves_none(path: Path) -> None:
    words = f"""
import os
from crawler.frontier.sqlite.frontier import SqliteFrontier
SqliteFrontier({str(path)!r})
os.kill(os.getpid(), {int(signal.SIGKILL)})
"""
    subprocess.run([sys.executable, "-c", words], check=False, env=dict(os.environ))
    assert checksums(path) == 0
    await session(path)
    assert checksums(path) == 1


async def test_reader_at_the_end_does_not_make_it_wrong(path: Path) -> None:
    reader = SqliteFrontier(str(path), read_only=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM url").fetchone()
        await session(path, 3_000)
    await reader.close()
    await session(path)
    assert not has_wrong_checksum(path)
