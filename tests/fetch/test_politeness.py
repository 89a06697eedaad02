"""A late request does not bring the next one closer."""

from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.politeness import Politeness


class World:
    """A clock that a busy machine makes late."""

    def __init__(self, lateness: list[float]) -> None:
        self.now = 1_000.0
        self.lateness = iter(lateness)

    async def sleep(self, seconds: float) -> None:
        assert seconds <= 5, "the clock is looked at now and then"
        self.now += seconds + next(self.lateness, 0.0)


@given(st.lists(st.floats(0, 3), max_size=30))
def test_requests_are_as_far_apart_as_their_slots_however_late_they_are(lateness: list[float]) -> None:
    world = World(lateness)
    turns = Politeness(lambda: world.now, world.sleep)
    taken = []

    async def run() -> None:
        for number in range(30):
            await turns("https://a.example", 1_000.0 + number)
            taken.append(world.now)

    anyio.run(run)
    assert all(late >= 1_000.0 + number for number, late in enumerate(taken))
    assert min(b - a for a, b in pairwise(taken)) >= 0.97


@pytest.mark.anyio
async def test_what_was_lost_is_made_up_for() -> None:
    world = World([5.0])
    turns = Politeness(lambda: world.now, world.sleep)
    for number in range(1, 400):
        await turns("https://a.example", 1_000.0 + number)
    assert world.now == pytest.approx(1_399.0)


@pytest.mark.anyio
async def test_other_origins_and_unpaced_ones_do_not_wait() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    await turns("https://a.example", 1_001.0)
    await turns("https://b.example", 1_000.5)
    for _ in range(3):
        await turns("https://b.example", 1_000.5)
        await turns("https://c.example", 1_000.0)
    assert world.now == 1_001.0


@pytest.mark.anyio
async def test_slots_farther_apart_than_the_pace_hold_nobody_up() -> None:
    """An unpaced site: slots are the moments of the leases, and mean nothing."""
    world = World([10.0])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.pace("https://a.example", 0.0)
    for slot in (1_000.5, 1_003.0, 1_009.0, 1_010.0):
        await turns("https://a.example", slot)
    assert world.now == 1_010.5


@pytest.mark.anyio
async def test_a_slot_that_was_booked_long_ago_is_no_reason_to_hurry() -> None:
    """A task that was held up elsewhere comes with an old slot, right after another request."""
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.pace("https://a.example", 1.0)
    await turns("https://a.example", 1_005.0)
    await turns("https://a.example", 1_001.0)
    assert world.now == pytest.approx(1_005.98)


@pytest.mark.anyio
async def test_a_host_that_asks_for_patience_gets_no_request_before() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.slow("https://a.example", 1_012.0)
    assert turns.is_stale("https://a.example", 1_011.0)
    assert not turns.is_stale("https://a.example", 1_012.0)
    assert not turns.is_stale("https://b.example", 0.0)
    await turns("https://b.example", 1_000.0)
    assert world.now == 1_000.0
    await turns("https://a.example", 1_001.0)
    assert world.now == 1_012.0


@pytest.mark.anyio
async def test_patience_ends_when_the_clock_goes_back() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.slow("https://a.example", 1_030.0)
    world.now -= 600
    assert not turns.is_stale("https://a.example", world.now)
    await turns("https://a.example", world.now)
    assert world.now == 400.0


@pytest.mark.anyio
async def test_a_later_answer_does_not_cut_a_pause_short() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.slow("https://a.example", 1_010.0)
    turns.slow("https://a.example", 1_001.0)
    await turns("https://a.example", 1_000.0)
    assert world.now == 1_010.0
