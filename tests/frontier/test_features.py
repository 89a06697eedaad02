"""What optional features read of pages, in the frontier, on every backend."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Failed, Later, Listed, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import Frontier, reads
from tests.frontier.test_frontier import ROOT, SITE, Bench, bench  # noqa: F401 - a fixture
from tests.postgres import new_state

pytestmark = pytest.mark.anyio

LISTED = Listed()


Read = tuple[LabelledUrl, ...]
NAME = "images"


def images(*names: str) -> Read:
    return tuple((name, Url(f"https://cdn.example/{name}")) for name in names)


def read(found: Read) -> Mapping[str, Read]:
    """What the verdict on a page says of them."""
    return {NAME: found} if found else {}


async def settle(
    frontier: Frontier, shown: Mapping[str, Read], outcome: Outcome = LISTED, *, unchanged: bool = False
) -> None:
    """Begin a run with these pages, by path, and settle them."""
    await frontier.begin("settings")
    await frontier.take_leadership()
    await frontier.store_robots(SITE, RobotsFile("none", fetched=frontier.clock()), 0.0)
    await frontier.add([Visit(Url(SITE + path)) for path in shown])
    facts = None if isinstance(outcome, Failed) else Facts(200)
    while leases := (await frontier.lease(1_000)).leases:
        await frontier.settle(
            [
                Settlement(
                    lease,
                    Verdict(
                        outcome,
                        facts,
                        unchanged=unchanged,
                        features=read(shown[lease.visit.url.removeprefix(SITE)]),
                    ),
                )
                for lease in leases
            ]
        )


async def conclude(frontier: Frontier) -> None:
    await frontier.finish()
    await frontier.conclude()


async def stored(frontier: Frontier, *paths: str) -> dict[str, Read]:
    found = await frontier.read(reads.FeaturesOf(NAME, [Url(SITE + path) for path in paths]))
    return {page.removeprefix(SITE): row.read for page, row in found.items() if row.read}


async def test_what_was_read_is_returned_in_its_order_with_the_page(bench: Bench) -> None:  # noqa: F811
    shown = {"/1": images("c", "a", "b"), "/2": images("b", "d", "a"), "/3": ()}
    await settle(bench.frontier, shown)
    found = await bench.frontier.read(
        reads.FeaturesOf(NAME, [Url(f"{SITE}/{name}") for name in (*"123", "unknown")])
    )
    assert {url.removeprefix(SITE): row.read for url, row in found.items()} == shown
    assert {(row.url, row.outcome, row.was) for row in found.values()} == {
        (url, "listed", None) for url in found
    }
    other = await bench.frontier.read(reads.FeaturesOf("other", list(found)))
    assert not any(row.read for row in other.values())


async def test_many_images_of_one_group(bench: Bench) -> None:  # noqa: F811
    shown = {f"/{page}": images(*(f"{page * 700 + n}" for n in range(1_000))) for page in range(11)}
    await settle(bench.frontier, shown)
    assert await stored(bench.frontier, *shown) == shown


async def test_images_of_an_open_page_are_not_shown(bench: Bench) -> None:  # noqa: F811
    await settle(bench.frontier, {"/": images("a")})
    await conclude(bench.frontier)
    await bench.frontier.begin("settings")
    await bench.frontier.add([Visit(ROOT)])
    assert await stored(bench.frontier, "/") == {}


async def test_a_304_and_failure_that_may_pass_leave_stored_images(bench: Bench) -> None:  # noqa: F811
    await settle(bench.frontier, {"/": images("b", "a")})
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": ()}, unchanged=True)
    assert await stored(bench.frontier, "/") == {"/": images("b", "a")}
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": ()}, Failed(Cause.TIMEOUT))
    assert await stored(bench.frontier, "/") == {"/": images("b", "a")}


@pytest.mark.parametrize("outcome", [Listed(), Unlisted(Why.NOINDEX), Failed(Cause.NOT_FOUND)])
async def test_another_answer_replaces_them(bench: Bench, outcome: Outcome) -> None:  # noqa: F811
    await settle(bench.frontier, {"/": images("a")})
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": ()}, outcome)
    assert await stored(bench.frontier, "/") == {}
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": images("b", "a")})
    assert await stored(bench.frontier, "/") == {"/": images("b", "a")}


async def test_a_later_visit_and_a_void_lease_store_none(bench: Bench) -> None:  # noqa: F811
    await bench.ready()
    [lease] = await bench.leases()
    until = Later(bench.clock() + 10, Cause.RATE_LIMITED)
    await bench.frontier.settle([Settlement(lease, Verdict(until, features=read(images("a"))))])
    await bench.frontier.settle(
        [Settlement(lease, Verdict(Listed(), Facts(200), features=read(images("b"))))]
    )
    assert await stored(bench.frontier, "/") == {}


@pytest.mark.parametrize(
    ("pages", "marked", "is_common"),
    [(20, 20, True), (19, 19, False), (66, 20, True), (67, 20, False), (70, 21, True), (70, 20, False)],
)
async def test_common_images_are_on_so_many_of_the_listed_pages(
    bench: Bench,  # noqa: F811
    pages: int,
    marked: int,
    is_common: bool,
) -> None:
    shown = {f"/{n}": images(str(n), *(["logo"] if n < marked else [])) for n in range(pages)}
    await settle(bench.frontier, shown)
    found = await bench.frontier.read(reads.CommonUrls(NAME, 20, 30))
    assert found == ({url for _, url in images("logo")} if is_common else set())
    assert not await bench.frontier.read(reads.CommonUrls("other", 1, 0))


async def test_the_urls_of_listed_pages_are_counted_once(bench: Bench) -> None:  # noqa: F811
    await settle(bench.frontier, {f"/{n}": images(str(n), "logo") for n in range(4)} | {"/none": ()})
    assert await bench.frontier.read(reads.CountUrls(NAME)) == 5
    assert await bench.frontier.read(reads.CountUrls("other")) == 0
    await bench.frontier.withdraw([Url(f"{SITE}/1")], Why.DUPLICATE, "")
    assert await bench.frontier.read(reads.CountUrls(NAME)) == 4


async def test_pages_that_are_not_listed_do_not_count(bench: Bench) -> None:  # noqa: F811
    await settle(bench.frontier, {f"/{n}": images("logo") for n in range(30)})
    await bench.frontier.withdraw([Url(f"{SITE}/{n}") for n in range(11)], Why.DUPLICATE, "")
    assert len(await bench.frontier.read(reads.CommonUrls(NAME, 19, 100))) == 1
    assert len(await bench.frontier.read(reads.CommonUrls(NAME, 20, 100))) == 0


async def test_pages_with_many_images_are_listed(bench: Bench) -> None:  # noqa: F811
    many = {f"/{n}": images(*map(str, range(n))) for n in range(6)}
    await settle(bench.frontier, many)
    rows = [row async for chunk in bench.frontier.stream(reads.ReadingPages(NAME, 3)) for row in chunk]
    assert [row.url for row in rows] == [f"{SITE}/4", f"{SITE}/5"]
    assert [(row.outcome, row.was, row.read) for row in rows] == [("listed", None, ())] * 2
    await bench.frontier.withdraw([Url(f"{SITE}/4")], Why.DUPLICATE, "")
    rows = [row async for chunk in bench.frontier.stream(reads.ReadingPages(NAME, 3)) for row in chunk]
    assert [row.url for row in rows] == [f"{SITE}/5"]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_what_was_read_of_pages_that_are_gone_is_deleted(tmp_path: Path, backend: str) -> None:
    frontier: Any
    if backend == "sqlite":
        frontier = SqliteFrontier(str(tmp_path / "s.db"), keep_runs=2)
        count = "SELECT count(*) FROM feature"
    else:
        from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

        frontier = PostgresFrontier(new_state(), keep_runs=2)
        count = f'SELECT count(*) FROM "{frontier._address.schema}".feature'
    for number in range(4):
        await settle(frontier, {"/": images("always", str(number)), f"/{number}": images("gone")})
        await conclude(frontier)
    await settle(frontier, {"/": images("always", "new")})
    assert frontier._db.one(count)[0] <= 3, "five pages had some"
    assert await stored(frontier, "/") == {"/": images("always", "new")}
    await frontier.close()
