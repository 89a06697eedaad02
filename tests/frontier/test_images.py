"""Images in the frontier, on every backend: each URL once, with each page the ids of its images."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Later, Listed, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.robots import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import Frontier
from tests.frontier.test_frontier import ROOT, SITE, Bench, bench  # noqa: F401 - a fixture
from tests.postgres import new_state

pytestmark = pytest.mark.anyio

LISTED = Listed()


def images(*names: str) -> tuple[Url, ...]:
    return tuple(Url(f"https://cdn.example/{name}") for name in names)


async def settle(
    frontier: Frontier,
    shown: Mapping[str, tuple[Url, ...]],
    outcome: Outcome = LISTED,
    *,
    unchanged: bool = False,
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
                        images=shown[lease.visit.url.removeprefix(SITE)],
                    ),
                )
                for lease in leases
            ]
        )


async def conclude(frontier: Frontier) -> None:
    await frontier.finish()
    await frontier.conclude()


async def stored(frontier: Frontier, *paths: str) -> dict[str, list[str]]:
    found = await frontier.images_of([Url(SITE + path) for path in paths])
    return {page.removeprefix(SITE): [image.url for image in some] for page, some in found.items()}


async def names_of(frontier: Frontier, ids: Collection[int], *paths: str) -> set[str]:
    """The last segment of the URL of each image."""
    found = await frontier.images_of([Url(SITE + path) for path in paths])
    urls = {image.id: image.url.rpartition("/")[2] for some in found.values() for image in some}
    return {urls[number] for number in ids}


async def test_images_are_stored_once_and_returned_in_order_of_page(bench: Bench) -> None:  # noqa: F811
    shown = {"/1": images("c", "a", "b"), "/2": images("b", "d", "a"), "/3": ()}
    await settle(bench.frontier, shown)
    assert await stored(bench.frontier, "/1", "/2", "/3", "/unknown") == {
        "/1": list(shown["/1"]),
        "/2": list(shown["/2"]),
    }
    found = await bench.frontier.images_of([Url(SITE + "/1"), Url(SITE + "/2")])
    ids = {(image.url, image.id) for some in found.values() for image in some}
    assert len(ids) == len(dict(ids)) == 4


async def test_many_images_of_one_group(bench: Bench) -> None:  # noqa: F811
    shown = {f"/{page}": images(*(f"{page * 700 + n}" for n in range(1_000))) for page in range(11)}
    await settle(bench.frontier, shown)
    assert await stored(bench.frontier, *shown) == {page: list(some) for page, some in shown.items()}


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
    assert await stored(bench.frontier, "/") == {"/": list(images("b", "a"))}
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": ()}, Failed(Cause.TIMEOUT))
    assert await stored(bench.frontier, "/") == {"/": list(images("b", "a"))}


@pytest.mark.parametrize("outcome", [Listed(), Unlisted(Why.NOINDEX), Failed(Cause.NOT_FOUND)])
async def test_another_answer_replaces_them(bench: Bench, outcome: Outcome) -> None:  # noqa: F811
    await settle(bench.frontier, {"/": images("a")})
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": ()}, outcome)
    assert await stored(bench.frontier, "/") == {}
    await conclude(bench.frontier)
    await settle(bench.frontier, {"/": images("b", "a")})
    assert await stored(bench.frontier, "/") == {"/": list(images("b", "a"))}


async def test_a_later_visit_and_a_void_lease_store_none(bench: Bench) -> None:  # noqa: F811
    await bench.ready()
    [lease] = await bench.leases()
    until = Later(bench.clock() + 10, Cause.RATE_LIMITED)
    await bench.frontier.settle([Settlement(lease, Verdict(until, images=images("a")))])
    await bench.frontier.settle([Settlement(lease, Verdict(Listed(), Facts(200), images=images("b")))])
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
    found = await bench.frontier.common_images(20, 30)
    assert await names_of(bench.frontier, found, *shown) == ({"logo"} if is_common else set())


async def test_pages_that_are_not_listed_do_not_count(bench: Bench) -> None:  # noqa: F811
    await settle(bench.frontier, {f"/{n}": images("logo") for n in range(30)})
    await bench.frontier.withdraw([Url(f"{SITE}/{n}") for n in range(11)], Why.DUPLICATE, "")
    assert len(await bench.frontier.common_images(19, 100)) == 1
    assert len(await bench.frontier.common_images(20, 100)) == 0


async def test_pages_with_many_images_are_listed(bench: Bench) -> None:  # noqa: F811
    many = {f"/{n}": images(*map(str, range(n))) for n in range(6)}
    await settle(bench.frontier, many)
    rows = [row async for chunk in bench.frontier.many_images_rows(3) for row in chunk]
    assert [row.url for row in rows] == [f"{SITE}/4", f"{SITE}/5"]
    assert [(row.run, row.outcome, row.was) for row in rows] == [(1, "listed", None)] * 2
    await bench.frontier.withdraw([Url(f"{SITE}/4")], Why.DUPLICATE, "")
    rows = [row async for chunk in bench.frontier.many_images_rows(3) for row in chunk]
    assert [row.url for row in rows] == [f"{SITE}/5"]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_images_that_no_page_has_are_forgotten(tmp_path: Path, backend: str) -> None:
    frontier: Any
    if backend == "sqlite":
        frontier = SqliteFrontier(str(tmp_path / "s.db"), keep_runs=2)
        count = "SELECT count(*) FROM image"
    else:
        from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

        frontier = PostgresFrontier(new_state(), keep_runs=2)
        count = f'SELECT count(*) FROM "{frontier._address.schema}".image'
    for number in range(4):
        await settle(frontier, {"/": images("always", str(number)), f"/{number}": images("gone")})
        await conclude(frontier)
    await settle(frontier, {"/": images("always", "new")})
    assert frontier._db.one(count)[0] <= 5, "seven were found"
    assert await stored(frontier, "/") == {"/": list(images("always", "new"))}
    await frontier.close()


@pytest.mark.system
async def test_members_that_find_the_same_images_share_them() -> None:
    pytest.importorskip("psycopg")
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    state = new_state()
    one, two = PostgresFrontier(state), PostgresFrontier(state)
    for frontier in (one, two):
        await frontier.begin("settings")
    await one.store_robots(SITE, RobotsFile("none", fetched=one.clock()), 0.0)
    await one.add([Visit(Url(f"{SITE}/{n}")) for n in range(2)])
    for frontier, names in ((one, "ab"), (two, "bc")):
        [lease] = (await frontier.lease(1)).leases
        await frontier.settle([Settlement(lease, Verdict(Listed(), Facts(200), images=images(*names)))])
    found = await one.images_of([Url(f"{SITE}/{n}") for n in range(2)])
    assert len({image.id for some in found.values() for image in some}) == 3
    await one.close()
    await two.close()
