"""Stored links that are requested at the same time are read together."""

from collections.abc import Sequence

import anyio
import pytest

from crawler.engine.visit import StoredLinks
from crawler.model.visit import Lease, Link, Visit
from crawler.parse.url import Url
from crawler.ports import reads

pytestmark = pytest.mark.anyio


class Rows:
    """A `Reads` whose answers the test releases."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.goes_on = anyio.Event()

    async def read(self, query: reads.LinksToFollow) -> Sequence[Sequence[Link]]:
        self.calls.append([lease.id for lease in query.leases])
        await self.goes_on.wait()
        return [[Link(lease.visit.url)] for lease in query.leases]


def lease(number: int) -> Lease:
    return Lease(number, 1, Visit(Url(f"http://x/{number}")))


async def test_pages_that_wait_are_read_in_one_call() -> None:
    rows, found = Rows(), dict[int, Sequence[Link]]()
    stored = StoredLinks(rows)  # type: ignore[arg-type]

    async def read(number: int) -> None:
        found[number] = await stored(lease(number))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, 0)
        await anyio.wait_all_tasks_blocked()
        for number in range(1, 5):
            tasks.start_soon(read, number)
        await anyio.wait_all_tasks_blocked()
        rows.goes_on.set()
    assert [len(call) for call in rows.calls] == [1, 4]
    assert found == {number: [Link(Url(f"http://x/{number}"))] for number in range(5)}


async def test_cancelled_reader_leaves_its_group_to_the_next() -> None:
    rows = Rows()
    stored = StoredLinks(rows)  # type: ignore[arg-type]
    with anyio.move_on_after(0):
        await stored(lease(1))
    rows.goes_on.set()
    assert await stored(lease(2)) == [Link(Url("http://x/2"))]
