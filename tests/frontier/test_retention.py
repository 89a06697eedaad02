"""What a shared state forgets once a run is concluded, and how much at a time."""

from typing import TYPE_CHECKING, Any

import pytest

from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = [pytest.mark.anyio, pytest.mark.system]


def opened(state: str, clock: Clock) -> "PostgresFrontier":
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    return PostgresFrontier(state, clock=clock, keep_runs=2)


async def crawl(frontier: "PostgresFrontier", *paths: str, refused: bool = False) -> None:
    """A run that finds these pages."""
    await frontier.begin("settings")
    await frontier.take_leadership()
    await frontier.store_robots(SITE, RobotsFile("none", fetched=frontier.clock()), 0.0)
    await frontier.add([Visit(ROOT), *(Visit(Url(SITE + path), 1, ROOT) for path in paths)])
    while leases := (await frontier.lease(100)).leases:
        await frontier.settle([Settlement(lease, Verdict(Listed())) for lease in leases])
    await frontier.finish()
    await frontier.conclude(refused=refused)


def rows(frontier: "PostgresFrontier", table: str) -> int:
    found: Any = frontier._database.connection.execute(
        f'SELECT count(*) FROM "{frontier._address.schema}".{table}'.encode()
    ).fetchone()
    return int(found[0])


@pytest.mark.parametrize("refused", [False, True])
async def test_urls_that_no_kept_run_found_are_forgotten_in_portions(
    refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    from crawler.frontier import retention  # noqa: PLC0415 - with the driver

    monkeypatch.setattr(retention, "PORTION", 3)
    frontier = opened(new_state(), Clock())
    old = [f"/old/{number}" for number in range(8)]
    await crawl(frontier, "/stays", *old)
    await crawl(frontier, "/stays")
    assert (rows(frontier, "url"), rows(frontier, "page")) == (10, 10), "run 1 is still kept"
    await crawl(frontier, "/stays", "/new", refused=refused)
    assert (rows(frontier, "url"), rows(frontier, "page")) == (3, 3)
    assert (rows(frontier, "run"), rows(frontier, "member")) == (2, 2)
    assert await frontier.read(reads.RecordOf(Url(SITE + "/old/1"))) is None
    assert await frontier.read(reads.RecordOf(Url(SITE + "/stays")))
    await frontier.close()


async def test_nothing_is_forgotten_once_another_run_has_begun() -> None:
    state, clock = new_state(), Clock()
    frontier, other = opened(state, clock), opened(state, clock)
    for paths in (["/old"], [], []):
        await crawl(frontier, "/stays", *paths)
    frontier._db.do(
        f'INSERT INTO "{frontier._address.schema}".url (id, fp, run, depth, hops, url)'
        " VALUES (99, gen_random_uuid(), 1, 1, 0, 'https://example.com/late')"
    )
    await other.begin("settings")
    assert await frontier._call(frontier._retention.prune, 0) is None
    assert rows(frontier, "url") == 3
    await other.close()
    await frontier.close()
