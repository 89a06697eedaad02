"""What is stored of each run: its end, its counts and its publication, until the run is deleted."""

from pathlib import Path

import pytest

from crawler.app.job import open_job
from crawler.cli.demo import demo_site
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Listed, Outcome
from crawler.model.reasons import Cause
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow, RunRow
from crawler.model.run import SessionEnd
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.settings.sections import Http, Output, Pace, Scope, Settings, State

pytestmark = pytest.mark.anyio

SITE = "http://a.example"
START = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


async def run_of(frontier: SqliteFrontier, pages: dict[str, Outcome]) -> None:
    """A run that finds these pages and is complete."""
    await frontier.begin("settings")
    await frontier.store_robots(SITE, RobotsFile("none", fetched=START), 0.0)
    await frontier.add([Visit(Url(SITE + path)) for path in pages])
    for lease in (await frontier.lease(100)).leases:
        outcome = pages[lease.visit.url.removeprefix(SITE)]
        await frontier.settle([Settlement(lease, Verdict(outcome, Facts(200)))])
    await frontier.finish()


def opened(path: str, **more: bool) -> SqliteFrontier:
    return SqliteFrontier(path, clock=lambda: START, keep_runs=2, **more)


async def rows_in(path: str) -> list[RunRow]:
    frontier = opened(path, read_only=True)
    try:
        return list(await frontier.read(reads.AllRuns()))
    finally:
        await frontier.close()


async def test_run_row_has_end_counts_and_publication(path: str) -> None:
    frontier = opened(path)
    published = PublicationRow(2, 1, 999, base="https://www.example.com", folder="/srv/www")
    try:
        assert await frontier.read(reads.LastPublication()) is None
        await run_of(frontier, {"/": Listed(), "/a": Listed(), "/b": Failed(Cause.NOT_FOUND)})
        await frontier.mark_published(published)
        assert await frontier.read(reads.LastPublication()) == published
        await frontier.conclude()
        await frontier.end_session(SessionEnd(0, 1.5, 3, 1_000))
        await run_of(frontier, {"/": Listed(), "/b": Listed(), "/c": Listed()})
        await frontier.mark_published(published._replace(urls=3))
        await frontier.conclude()
        await frontier.end_session(SessionEnd(8, 2.0, 3, 10))
    finally:
        await frontier.close()
    first, second = await rows_in(path)
    assert first == RunRow(
        1, START, "concluded", 3, START, 0, 1.5, 3, 1_000, {"failed:not-found": 1, "listed": 2}, published
    )
    assert second.exit == 8
    assert second.publication == published._replace(urls=3, added=2, removed=1, changed=0)


async def test_sessions_of_run_are_summed(path: str) -> None:
    for code in (7, 130):
        frontier = opened(path)
        await frontier.begin("settings")
        await frontier.end_session(SessionEnd(code, 1.5, 3, 1_000, "too few" if code == 7 else None))
        await frontier.close()
    [row] = await rows_in(path)
    assert (row.status, row.exit, row.seconds, row.requests, row.bytes) == ("crawling", 130, 3.0, 6, 2_000)
    assert row.refused is None, "what the last session says counts"


async def test_killed_run_is_reported_as_interrupted(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = opened(path)
    await frontier.begin("settings")
    assert [row.status for row in await frontier.read(reads.AllRuns())] == ["crawling"]
    assert [row.status for row in await rows_in(path)] == ["crawling"], "seen by another"
    await frontier.close()  # as if killed: it did not say how it ended
    monkeypatch.setattr("crawler.frontier.sqlite.database.SqliteDatabase.life", -1.0)
    assert [row.status for row in await rows_in(path)] == ["interrupted"]
    frontier = opened(path)
    await frontier.begin("other settings")
    assert [row.status for row in await frontier.read(reads.AllRuns())] == ["interrupted", "crawling"]
    await frontier.begin("yet others")
    assert [row.number for row in await frontier.read(reads.AllRuns())] == [2, 3], (
        "runs are forgotten by --keep-runs"
    )
    await frontier.close()


@pytest.mark.parametrize(("limit", "code"), [(None, 0), (3, 7)], ids=str)
async def test_job_reports_its_ending(limit: int | None, code: int, path: str, tmp_path: Path) -> None:
    with demo_site().serve(port=0) as origin:
        settings = Settings(
            scope=Scope(start=(origin + "/",), max_pages=limit),
            pace=Pace(rate=0),
            http=Http(retries=0),
            output=Output(output=str(tmp_path / "out"), publish_base="https://www.example.com"),
            state=State(state=path),
        )
        async with open_job(settings) as job:
            await job.crawl()
            if limit is None:
                await job.publish()
    [row] = await rows_in(path)
    assert (row.exit, row.requests == limit or limit is None) == (code, True)
    assert row.seconds is not None
    assert row.bytes
    assert row.outcomes
    assert sum(row.outcomes.values()) <= row.discovered
    if limit is None:
        assert row.publication
        assert (row.publication.base, row.publication.folder) == (
            "https://www.example.com",
            str(tmp_path / "out"),
        )
