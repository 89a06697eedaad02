"""Large bodies wait for each other; small ones never do."""

import anyio
import pytest

from crawler.engine.visitor import BodyMemory
from tests.waiting import tick

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


async def test_places_are_given_in_order_and_freed_by_visits() -> None:
    memory, given = BodyMemory(10), list[str]()
    ends = {name: anyio.Event() for name in "abcd"}

    async def visit(name: str, size: int) -> None:
        with memory.visit() as place:
            await place.reserve(size)
            await place.reserve(size)  # of a second attempt
            given.append(name)
            await ends[name].wait()

    async with anyio.create_task_group() as tasks:
        for name, size in (("a", 6), ("b", 100), ("c", 1), ("d", 1)):
            tasks.start_soon(visit, name, size)
            await tick()
        assert given == ["a"], "c and d would fit, but b was first"
        ends["a"].set()
        await tick()
        assert given == ["a", "b"], "more than all there is, but alone"
        ends["b"].set()
        await tick()
        assert given == ["a", "b", "c", "d"]
        for name in "cd":
            ends[name].set()
    with memory.visit() as place:
        await place.reserve(10)


async def test_a_visit_that_is_cancelled_while_it_waits_takes_nothing() -> None:
    memory = BodyMemory(10)
    with memory.visit() as first:
        await first.reserve(10)
        with anyio.move_on_after(0), memory.visit() as second:
            await second.reserve(10)
    with memory.visit() as place, anyio.fail_after(600):
        await place.reserve(10)
