"""The mechanism of migration, by steps from a version that is made up, and states of versions that no step begins from."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from crawler.errors import FrontierError
from crawler.frontier import schema
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.postgres import new_state

pytestmark = pytest.mark.anyio

URL: Final = Url("http://a.example/")
NEXT: Final = schema.VERSION + 1
STEP: Final = "ALTER TABLE host ADD COLUMN colour text"
COLOURS: Final = "SELECT colour FROM host"
VIEW: Final = "CREATE VIEW mine AS SELECT url FROM pages WHERE outcome = 'open'"


@pytest.fixture
async def state(tmp_path: Path) -> str:
    """The state of a crawl that has found one URL, with a view that a user made."""
    path = str(tmp_path / "state.db")
    frontier = SqliteFrontier(path)
    await frontier.begin("settings")
    await frontier.add([Visit(URL)])
    frontier._db.do(VIEW)
    await frontier.close()
    return path


@pytest.fixture
def step(state: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - made before
    monkeypatch.setattr(schema, "VERSION", NEXT)
    monkeypatch.setattr(schema, "STEPS", {NEXT - 1: STEP})


def rows(path: str, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


@pytest.mark.usefixtures("step")
async def test_step_is_made_when_a_state_is_opened(state: str) -> None:
    frontier = SqliteFrontier(state)
    assert (await frontier.read(reads.RunBalance())).open == 1
    await frontier.close()
    assert rows(state, COLOURS) == [(None,)]
    assert rows(state, "PRAGMA user_version") == [(NEXT,)]
    assert rows(state, "SELECT * FROM mine") == [(URL,)]


@pytest.mark.usefixtures("step")
async def test_earlier_state_is_read_without_being_changed(state: str) -> None:
    before = Path(state).read_bytes()
    frontier = SqliteFrontier(state, read_only=True)
    try:
        assert (await frontier.read(reads.RunBalance())).open == 1
        assert frontier._db.all(COLOURS) == [(None,)]
    finally:
        await frontier.close()
    assert Path(state).read_bytes() == before


@pytest.mark.parametrize("version", [schema.VERSION + 1, schema.VERSION + 22])
async def test_state_of_another_version_is_refused(state: str, version: int) -> None:
    frontier = SqliteFrontier(state)
    frontier._db.do(f"PRAGMA user_version = {version}")
    await frontier.close()
    for read_only in (False, True):
        with pytest.raises(FrontierError, match=rf"is of version {version}, .*--fresh, or keep it"):
            SqliteFrontier(state, read_only=read_only)


@pytest.mark.system
async def test_step_and_refusal_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    address = new_state()
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    one = PostgresFrontier(address)
    await one.begin("settings")
    await one.add([Visit(URL)])
    await one.close()
    monkeypatch.setattr(schema, "VERSION", NEXT)
    with pytest.raises(FrontierError, match=r"is of version 1, .*--fresh, or keep it"):
        PostgresFrontier(address)
    monkeypatch.setattr(schema, "STEPS", {NEXT - 1: STEP})
    again = PostgresFrontier(address)
    assert (await again.read(reads.RunBalance())).open == 1
    assert await again._call(lambda: again._db.all(COLOURS)) == [(None,)]
    await again.close()
    monkeypatch.undo()
    with pytest.raises(FrontierError, match=rf"is of version {NEXT}"):
        PostgresFrontier(address)
    from crawler.frontier.postgres.connection import remove  # noqa: PLC0415 - the driver is an extra

    remove(again._address)  # other tests upgrade all crawls of this server
