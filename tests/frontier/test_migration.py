"""A state that an earlier version wrote is opened and migrated, and keeps its data.

`data/state/version-N.sql` is the dump of a state that was made by the program of that version (two crawls of the demo site).
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawler.frontier.sqlite import schema
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.migrations import MIGRATIONS
from crawler.frontier.sqlite.state_file import open_state

DUMP = Path(__file__).parents[1] / "data" / "state" / "version-4.sql"
EARLIER = {
    4: "",
    3: "ALTER TABLE host DROP COLUMN strained; PRAGMA user_version = 3;",
    2: "ALTER TABLE host DROP COLUMN strained; ALTER TABLE run DROP COLUMN reading; PRAGMA user_version = 2;",
}
LAST = MIGRATIONS[schema.VERSION - 1]
ENTRIES = "SELECT url, lastmod FROM url WHERE run = 2 AND outcome = 'listed' ORDER BY url"


@pytest.fixture(params=EARLIER)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(DUMP.read_text() + EARLIER[request.param])
        db.execute("PRAGMA journal_mode = WAL")
    return str(path)


def entries_in(state: str) -> list[tuple[str, int | None]]:
    with closing(sqlite3.connect(state)) as db:
        return db.execute(ENTRIES).fetchall()


def form_of(db: sqlite3.Connection) -> dict[str, object]:
    """The columns of each table, the SQL of each index."""
    named = db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    return {
        f"{kind} {name}": {row[1] for row in db.execute(f"PRAGMA table_info({name})")}
        if kind == "table"
        else sql
        for kind, name, sql in named
    }


async def entries_of(frontier: SqliteFrontier) -> list[tuple[str, int | None]]:
    chunks = [chunk async for chunk in frontier.entries()]
    return [
        (entry.url, int(entry.lastmod.timestamp()) if entry.lastmod else None)
        for chunk in chunks
        for entry in chunk
    ]


async def test_migrated_state_keeps_urls_and_dates(state: str) -> None:
    before = entries_in(state)
    assert len(before) == 28
    assert any(at for _, at in before)
    frontier = SqliteFrontier(state)
    try:
        assert await entries_of(frontier) == before
    finally:
        await frontier.close()
    assert entries_in(state) == before


async def test_earlier_state_is_read_without_being_changed(state: str) -> None:
    before = Path(state).read_bytes()
    frontier = SqliteFrontier(state, read_only=True)
    try:
        assert await entries_of(frontier) == entries_in(state)
    finally:
        await frontier.close()
    assert Path(state).read_bytes() == before


def test_migrated_schema_equals_new_schema(state: str) -> None:
    with closing(open_state(state, read_only=False)) as migrated, closing(sqlite3.connect(":memory:")) as new:
        new.executescript(schema.TABLES)
        assert form_of(migrated) == form_of(new)
        assert migrated.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION


def test_migration_separates_redirects_and_canonicals_from_links(state: str) -> None:
    with closing(sqlite3.connect(state)) as db:
        ends = "SELECT url, detail FROM url WHERE run = 2 AND outcome = ? ORDER BY url"
        ended = {kind: db.execute(ends, (kind,)).fetchall() for kind in ("moved", "unlisted:canonical")}
        edges = db.execute("SELECT count(*) FROM url, json_each(links) WHERE run = 2").fetchone()[0]
    with closing(open_state(state, read_only=False)) as db:
        led = "SELECT source, target FROM links WHERE kind = ? ORDER BY source"
        assert db.execute(led, ("redirect",)).fetchall() == ended["moved"] != []
        assert db.execute(led, ("canonical",)).fetchall() == ended["unlisted:canonical"] != []
        linked = db.execute(led, ("link",)).fetchall()
        assert linked
        assert set(linked).isdisjoint(ended["moved"] + ended["unlisted:canonical"])
        assert db.execute("SELECT count(*) FROM links").fetchone()[0] == edges


def test_renamed_columns_keep_their_values(state: str) -> None:
    with closing(sqlite3.connect(state)) as db, db:
        db.execute("UPDATE host SET gap = 0.25, strain = 4, asked = 5, met = 6")
        if any(row[1] == "strained" for row in db.execute("PRAGMA table_info(host)")):
            db.execute("UPDATE host SET strained = 7")
    with closing(open_state(state, read_only=False)) as db:
        host = db.execute("SELECT delay, backoff, robots_leased_until, robots_read_at FROM host").fetchone()
        assert host == (0.25, 4, 5, 6)


def test_views_of_users_survive_a_migration(tmp_path: Path) -> None:
    """In a state of the version before, with a view over one of ours."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(DUMP.read_text())
    with closing(open_state(str(path), read_only=False)) as db:
        back = "; ".join(
            f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}"
            if old
            else f"ALTER TABLE {new} RENAME TO {table}"
            for table, old, new in reversed(
                re.findall(r"ALTER TABLE (\w+) RENAME (?:COLUMN (\w+) )?TO (\w+)", LAST)
            )
        )
        db.executescript(f"{back}; CREATE VIEW mine AS SELECT url, was FROM pages WHERE outcome = 'listed'")
        db.execute(f"PRAGMA user_version = {schema.VERSION - 1}")
        before = db.execute("SELECT * FROM mine ORDER BY url").fetchall()
    with closing(open_state(str(path), read_only=False)) as db, closing(sqlite3.connect(":memory:")) as new:
        assert db.execute("SELECT * FROM mine ORDER BY url").fetchall() == before != []
        db.execute("DROP VIEW mine")
        new.executescript(schema.TABLES)
        assert form_of(db) == form_of(new)


def test_migrations_are_consecutive() -> None:
    assert list(MIGRATIONS) == list(range(min(MIGRATIONS), schema.VERSION))
