"""The documented views: their columns, and the queries of docs/state.md over a crawled site."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawler.cli.demo import demo_site
from tests.frontier.test_rows import crawled

pytestmark = pytest.mark.anyio

DOCUMENT = (Path(__file__).parents[2] / "docs" / "state.md").read_text()
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


async def test_queries_of_state_document_return_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    origin = await crawled(demo_site(), str(path), tmp_path / "out")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        for view in ("pages", "links", "runs"):
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({view})")}
            assert columns == documented(view), view
        broken, named, chains, slow, runs = [db.execute(question).fetchall() for question in QUESTIONS]
    assert (f"{origin}/guides/missing", "failed:not-found", 404, f"{origin}/guides/cleaning-soot") in broken
    assert {row[0] for row in named} == {f"{origin}/old-sitemap.xml"}
    assert chains == [(f"{origin}/shop", f"{origin}/store", f"{origin}/lanterns/")]
    assert all(took is not None and size and title for took, size, _, title, _ in slow)
    assert [(row[0], row[2], row[4] is not None, row[8]) for row in runs] == [(1, 0, True, 3)]
