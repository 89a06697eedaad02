"""The documented views: their columns, and the queries of docs/use/state.md over a crawled site."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from crawler.app.state import open_frontier
from crawler.cli.demo import demo_site
from crawler.frontier.postgres.address import parsed
from crawler.settings.sections import Settings, State
from tests.frontier.test_rows import crawled
from tests.postgres import new_state

pytestmark = pytest.mark.anyio

STATUS: Final = "SELECT status FROM runs ORDER BY number"
VIEWS: Final = ("pages", "links", "images", "runs", "external_links")
DOCUMENT = (Path(__file__).parents[2] / "docs/use/state.md").read_text()
QUESTIONS = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)


def documented(view: str) -> set[str]:
    """The columns of a view in its table."""
    _, _, rest = DOCUMENT.partition(f"\n`{view}` has one row")
    table = rest.partition("\n\n|")[2].partition("\n\n")[0]
    return {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1 if row.startswith("|") else 0])
    }


def asked(path: str) -> tuple[dict[str, set[str]], list[list[Any]]]:
    """The columns of the views of a state, and the answers to the questions of the document."""
    if path.startswith("postgresql:"):
        return asked_of_database(path)
    with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as db:
        columns = {view: {row[1] for row in db.execute(f"PRAGMA table_info({view})")} for view in VIEWS}
        return columns, [db.execute(question).fetchall() for question in QUESTIONS]


def status_of_newest(path: str, kill: bool) -> str:
    """The status of the newest run in its view. `kill`: after its heartbeat has been made old."""
    if path.startswith("postgresql:"):
        import psycopg  # noqa: PLC0415 - the driver is an extra

        address = parsed(path)
        with psycopg.connect(address.conninfo, options=f"-c search_path={address.schema}") as db:
            if kill:
                db.execute("UPDATE member SET until = until - 60")
            return str(db.execute(STATUS).fetchall()[-1][0])
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        if kill:
            file.execute("UPDATE member SET until = until - 61")
        return str(file.execute(STATUS).fetchall()[-1][0])


def asked_of_database(state: str) -> tuple[dict[str, set[str]], list[list[Any]]]:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    address = parsed(state)
    with psycopg.connect(address.conninfo, options=f"-c search_path={address.schema}") as db:
        columns = {
            view: {column.name for column in db.execute(f"TABLE {view}".encode()).description or ()}
            for view in VIEWS
        }
        return columns, [db.execute(question.encode()).fetchall() for question in QUESTIONS]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_queries_of_state_document_return_rows(backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "s.db") if backend == "sqlite" else new_state()
    origin = await crawled(demo_site(), path, tmp_path / "out")
    columns, answers = asked(path)
    for view in VIEWS:
        assert columns[view] == documented(view), view
    broken, named, slow, runs = answers
    assert (f"{origin}/guides/missing", "failed:not-found", 404, f"{origin}/guides/cleaning-soot") in broken
    assert {row[0] for row in named} == {f"{origin}/old-sitemap.xml"}
    assert all(took is not None and size and title for took, size, _, title, _ in slow)
    assert [(row[0], row[2], row[4] is not None, row[8]) for row in runs] == [(1, 0, True, 3)]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", str(runs[0][1])), "in UTC, to the second"


@pytest.mark.system
async def test_queries_to_watch_a_shared_crawl_are_valid(tmp_path: Path) -> None:
    state = new_state()
    import psycopg  # noqa: PLC0415 - the driver is an extra

    await crawled(demo_site(), state, tmp_path / "out")
    document = (Path(__file__).parents[2] / "docs/run/machines.md").read_text()
    [block] = re.findall(r"```sql\n(.*?)```", document, re.DOTALL)
    address = parsed(state)
    with psycopg.connect(address.conninfo, options=f"-c search_path={address.schema}") as db:
        answers = [db.execute(query.encode()).fetchall() for query in block.split(";\n") if query.strip()]
    at_work, work, dead, oldest = answers
    assert at_work == [(0, None)]
    assert work[0][0] is None
    assert work[0][1] > 20
    assert [row[0] for row in dead] == ["host", "page", "url", "visit"]
    assert oldest[0][1] is not None


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_view_tells_a_killed_run_from_one_at_work(backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "s.db") if backend == "sqlite" else new_state()
    frontier = open_frontier(Settings(state=State(state=path)), None)
    try:
        await frontier.begin("settings")
        assert status_of_newest(path, kill=False) == "crawling"
        assert status_of_newest(path, kill=True) == "interrupted"
    finally:
        await frontier.close()
