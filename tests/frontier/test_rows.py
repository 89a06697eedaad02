"""The rows of a state are complete and ordered by URL, whatever the chunk size."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from crawler.app import report as reports
from crawler.app.job import open_job
from crawler.app.state import open_frontier
from crawler.cli.demo import demo_site
from crawler.cli.demo.site import Site
from crawler.frontier.sqlite import frontier as sqlite_frontier
from crawler.frontier.sqlite.database import SqliteDatabase
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.reasons import SeedKind
from crawler.model.rows import EdgeRow, PageRow, TargetRow
from crawler.ports import Frontier, Reads, reads
from crawler.report.findings import Findings, PageFinding
from crawler.report.report import Finding, Known
from crawler.settings.sections import Guard, Http, Output, Pace, Scope, Settings, State
from tests.postgres import new_state

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 600])
def test_upserted_rows_are_those_given_whatever_their_number(count: int) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE few (id INTEGER PRIMARY KEY, number, text)")
        db = SqliteDatabase(connection, time.time)
        rows = [(number, -number, f"page {number}") for number in range(1, count + 1)]
        db.upsert("few", ("id", "number", "text"), rows)
        changed = [(number, f"again {number}") for number in range(1, count + 3)]
        db.upsert("few", ("id", "text"), changed)
        found = db.all("SELECT * FROM few ORDER BY id")
    assert found == [(number, -number if number <= count else None, text) for number, text in changed]


async def crawled(site: Site, path: str, folder: Path, max_pages: int | None = None) -> str:
    """The origin of a site that was crawled and published."""
    with site.serve(port=0) as origin:
        settings = Settings(
            scope=Scope(start=(origin + "/",), max_pages=max_pages),
            pace=Pace(rate=0),
            http=Http(retries=0),
            output=Output(output=str(folder)),
            state=State(state=path),
        )
        async with open_job(settings) as job:
            await job.crawl()
            if max_pages is None:
                await job.publish()
        return origin


async def pages(rows: Reads) -> list[PageRow]:
    return [page async for chunk in rows.stream(reads.Pages()) for page in chunk]


async def edges(rows: Reads) -> list[EdgeRow]:
    return [edge async for chunk in rows.stream(reads.Edges()) for edge in chunk]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


@pytest.mark.parametrize("size", [1, 2, 7, 2_000])
async def test_rows_are_complete_and_ordered(
    size: int, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_frontier, "CHUNK", size)
    origin = await crawled(demo_site(), path, tmp_path / "out")
    frontier = SqliteFrontier(path, read_only=True)
    try:
        every, leading, balance = (
            await pages(frontier),
            await edges(frontier),
            await frontier.read(reads.RunBalance()),
        )
        [run] = await frontier.read(reads.AllRuns())
        some = await frontier.read(reads.PagesOf([every[3].id, every[5].id, 99_999]))
        targets = await frontier.read(reads.TargetsOf([page.id for page in every]))
    finally:
        await frontier.close()
    assert len(every) == balance.discovered
    assert [page.url for page in every] == sorted(page.url for page in every)
    assert [edge.url for edge in leading] == sorted(edge.url for edge in leading)
    assert some == {page.id: page for page in (every[3], every[5])}
    assert any(target.redirect for target in targets.values())
    assert targets == {
        page.id: TargetRow(page.url, page.outcome, page.status, None, page.redirect) for page in every
    }
    assert (run.number, run.status, run.discovered) == (1, "concluded", len(every))
    assert run.publication
    assert run.publication.urls == balance.listed
    by_path = {page.url.removeprefix(origin): page for page in every}
    names = {page.id: page.url.removeprefix(origin) for page in every}
    assert by_path["/guides/missing"].outcome == "failed:not-found"
    broken, shop = by_path["/guides/missing"], by_path["/lanterns/"]
    assert (broken.title, broken.type, broken.bytes, broken.took) == (None, None, None, None)
    assert shop.title
    assert (shop.type, shop.bytes and shop.bytes > 500, shop.took is not None) == ("text/html", True, True)
    tin = by_path["/lanterns/tin"]
    assert tin.seed
    assert (tin.seed.kind, tin.seed.name) == (SeedKind.SITEMAP, f"{origin}/old-sitemap.xml")
    led = {edge.url.removeprefix(origin): edge for edge in leading}
    assert (names[led["/shop"].redirect], list(led["/shop"].links)) == ("/store", [])
    assert names[led["/lanterns/?view=grid"].canonical] == "/lanterns/"
    assert {names[abs(link)] for link in led["/guides/cleaning-soot"].links} == {
        "/guides/",
        "/guides/missing",
        "/login",
    }
    assert [names[-link] for link in led["/guides/cleaning-soot"].links if link < 0] == ["/login"]


async def test_open_page_has_no_outcome_and_shows_previous_one(path: str, tmp_path: Path) -> None:
    await crawled(demo_site(), path, tmp_path / "out", max_pages=3)
    frontier = SqliteFrontier(path, read_only=True)
    try:
        every, balance = await pages(frontier), await frontier.read(reads.RunBalance())
    finally:
        await frontier.close()
    assert sum(not page.outcome for page in every) == balance.open > 0
    assert all(page.was is None for page in every)


# -- counts, without looking at every row ------------------------------------------------------------------------


def counted(findings: Sequence[Finding]) -> list[tuple[str, int, int, int, int]]:
    return [(one.code.value, one.count, one.new, one.links, one.pages) for one in findings]


async def made_of_all_pages(frontier: Frontier, known: Known) -> list[PageFinding]:
    """The findings, without a choice of the pages that may have one."""
    findings, every = Findings.of(known), await pages(frontier)
    for page in every:
        findings.add_page(page)
    findings.close()
    async for chunk in frontier.stream(reads.Edges()):
        for edges in chunk:
            findings.link(edges)
    return [found for page in every for found in findings.found(page)]


@pytest.mark.parametrize(
    ("backend", "max_pages"),
    [
        pytest.param("sqlite", None, marks=pytest.mark.slow),
        ("sqlite", 9),
        pytest.param("postgres", None, marks=pytest.mark.slow),
    ],
)
async def test_the_tally_is_that_of_the_report(
    backend: str, path: str, tmp_path: Path, max_pages: int | None
) -> None:
    path = new_state() if backend == "postgres" else path
    site = demo_site()
    with site.serve(port=0) as origin:
        for night in range(2):
            settings = Settings(
                scope=Scope(start=(origin + "/",), max_pages=max_pages),
                pace=Pace(rate=0),
                guard=Guard(force=True),
                output=Output(output=str(tmp_path / "out")),
                state=State(state=path),
            )
            async with open_job(settings) as job:
                await job.crawl()
                if max_pages is None:
                    await job.publish()
            frontier = open_frontier(settings, None, read_only=True)
            try:
                known = await reports.read_known(frontier, settings)
                whole = await reports.build_report(frontier, known)
                told = counted(await reports.count_findings(frontier, known))
                suspects = [page async for chunk in frontier.stream(reads.Suspects()) for page in chunk]
                every = {page.id: page for page in await pages(frontier)}
                few = await reports.findings_of(frontier, known)
                of_few = [one async for page in reports.pages_of(frontier, few) for one in few.found(page)]
                of_all = await made_of_all_pages(frontier, known)
            finally:
                await frontier.close()
            assert told == counted(whole.findings)
            assert of_few == of_all
            assert told or max_pages
            for page in suspects:
                full = every[page.id]
                assert (page.run, page.outcome, page.was) == (full.run, full.outcome, full.was)
                assert (page.seed and page.seed.kind) == (full.seed and full.seed.kind)
                assert page.outcome != "listed" or page.seed
            assert len(suspects) < len(every)
            if night == 0:  # the next night, some things are new
                site.page("/guides/", title="The same", links=["/guides/missing", "/new-loss", "/shop"])
                site.page("/", title="The same", links=["/guides/", "/lanterns/", "/new-loss"])


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_texts_that_differ_in_their_address_are_two(backend: str, path: str, tmp_path: Path) -> None:
    """As those of classes that nothing uses: what is compared in search of traps is no duplicate."""
    path, site = new_state() if backend == "postgres" else path, Site()
    uses = [f"/api/{name}/class-use/{name.title()}.html" for name in ("timer", "beans", "sasl")]
    site.page("/", links=[*uses, "/one?a=1", "/two?a=1"])
    for use in uses:
        name = use.split("/")[2].title()
        site.page(use, title=f"Uses of {name}", text=f"No usage of {name}.")
    for twin in ("/one?a=1", "/two?a=1"):
        site.page(twin, title="Twin", text="One text, whatever the address.")
    origin = await crawled(site, path, tmp_path / "out")
    settings = Settings(scope=Scope(start=(origin + "/",)), state=State(state=path))
    frontier = open_frontier(settings, None, read_only=True)
    try:
        known = await reports.read_known(frontier, settings)
        whole = await reports.build_report(frontier, known)
        told = counted(await reports.count_findings(frontier, known))
        by_path = {page.url.removeprefix(origin): page for page in await pages(frontier)}
    finally:
        await frontier.close()
    assert {by_path[use].outcome for use in uses} == {"listed"}
    assert told == counted(whole.findings)
    assert ("duplicate-content", 1, 0, 0, 2) in told


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_pages_with_the_same_bytes_are_one_group(backend: str, path: str, tmp_path: Path) -> None:
    """Though only some are fingerprinted: those without a date, with a query, and one of eight."""
    path, site = new_state() if backend == "postgres" else path, Site()
    dated = "Sat, 01 Mar 2025 10:00:00 GMT"
    twins, namesakes = (
        [f"/twins/{number}" for number in range(3)],
        [f"/named/{number}" for number in range(9)],
    )
    site.page("/", links=[*twins, *namesakes, "/alone", "/twins/3?a=1"], title="Twins")
    for path_of in (*twins, "/twins/3?a=1"):
        site.page(path_of, title="Twin", text="One text for all.", lastmod=dated)
    for number, path_of in enumerate(namesakes):
        site.page(path_of, title="Name", text=f"The text of {number // 3}.", lastmod=dated)
    site.page("/alone", title="Twin", text="Another text.", lastmod=dated)
    origin = await crawled(site, path, tmp_path / "out")
    settings = Settings(scope=Scope(start=(origin + "/",)), state=State(state=path))
    frontier = open_frontier(settings, None, read_only=True)
    try:
        known = await reports.read_known(frontier, settings)
        whole = await reports.build_report(frontier, known)
        told = counted(await reports.count_findings(frontier, known))
        texts = {page.content[:1] for page in await pages(frontier) if page.content}
    finally:
        await frontier.close()
    assert len(texts) > 1, "fingerprints, and digests of bytes"
    assert told == counted(whole.findings)
    assert {one[:2] + one[4:] for one in told} >= {("duplicate-content", 4, 13), ("duplicate-title", 2, 14)}
