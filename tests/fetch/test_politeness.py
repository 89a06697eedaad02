"""Requests to an origin keep their interval, even when some are late."""

from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.politeness import AddressPace, Politeness
from crawler.parse.url import Url


class World:
    """A clock whose sleeps end late, as on a busy machine."""

    def __init__(self, lateness: list[float]) -> None:
        self.now = 1_000.0
        self.lateness = iter(lateness)

    async def sleep(self, seconds: float) -> None:
        assert seconds <= 5, "the clock is read again every few seconds"
        self.now += seconds + next(self.lateness, 0.0)


@given(st.lists(st.floats(0, 3), max_size=30))
def test_late_requests_keep_the_interval_of_their_slots(lateness: list[float]) -> None:
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
async def test_lost_time_is_caught_up() -> None:
    world = World([5.0])
    turns = Politeness(lambda: world.now, world.sleep)
    for number in range(1, 400):
        await turns("https://a.example", 1_000.0 + number)
    assert world.now == pytest.approx(1_399.0)


@pytest.mark.anyio
async def test_other_and_unpaced_origins_do_not_wait() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    await turns("https://a.example", 1_001.0)
    await turns("https://b.example", 1_000.5)
    for _ in range(3):
        await turns("https://b.example", 1_000.5)
        await turns("https://c.example", 1_000.0)
    assert world.now == 1_001.0


@pytest.mark.anyio
async def test_slots_of_unpaced_origin_add_no_delay() -> None:
    """On an unpaced site, slots are merely the times of the leases."""
    world = World([10.0])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.pace("https://a.example", 0.0)
    for slot in (1_000.5, 1_003.0, 1_009.0, 1_010.0):
        await turns("https://a.example", slot)
    assert world.now == 1_010.5


@pytest.mark.anyio
async def test_old_slot_keeps_interval_to_last_request() -> None:
    """A task that was delayed elsewhere arrives with an old slot, right after another request."""
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.pace("https://a.example", 1.0)
    await turns("https://a.example", 1_005.0)
    await turns("https://a.example", 1_001.0)
    assert world.now == pytest.approx(1_005.98)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("late", "others", "sent"),
    [
        (0.4, [1_010.0], 1_005.4),  # less than half the delay: it is used
        (0.6, [1_010.0], 1_010.0),
        (0.6, [None, None, None], 1_005.6),  # no other member is at work
        (0.6, [1_004.0, 1_004.5, 1_009.0], 1_009.0),  # a slot that is missed by the time it is booked
        (0.6, [1_004.0, 1_004.1, 1_004.2, 1_009.0], 1_005.6),  # a machine that is always late gets on
    ],
)
async def test_missed_slot_is_given_up_if_other_members_have_the_next(
    late: float, others: list[float | None], sent: float
) -> None:
    world = World([])
    booked = iter(others)

    async def rebook(_: str) -> float | None:
        return next(booked)

    turns = Politeness(lambda: world.now, world.sleep, rebook=rebook)
    turns.pace("https://a.example", 1.0)
    world.now = 1_005.0 + late
    await turns("https://a.example", 1_005.0)
    assert world.now == pytest.approx(sent)


@pytest.mark.anyio
async def test_paused_host_gets_no_request() -> None:
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
async def test_pause_ends_when_clock_goes_back() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.slow("https://a.example", 1_030.0)
    world.now -= 600
    assert not turns.is_stale("https://a.example", world.now)
    await turns("https://a.example", world.now)
    assert world.now == 400.0


@pytest.mark.anyio
async def test_later_response_does_not_shorten_pause() -> None:
    world = World([])
    turns = Politeness(lambda: world.now, world.sleep)
    turns.slow("https://a.example", 1_010.0)
    turns.slow("https://a.example", 1_001.0)
    await turns("https://a.example", 1_000.0)
    assert world.now == 1_010.0


class Names:
    """A clock, and names of two addresses."""

    def __init__(self) -> None:
        self.now, self.pauses = 1_000.0, list[float]()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def find(self, url: Url) -> str | None:
        name = url.partition("://")[2].partition("/")[0]
        return {"unknown": None, "other": "2"}.get(name, "1")

    def pace(self, delay: float) -> AddressPace:
        return AddressPace(delay, lambda: self.now, self.sleep, self.find)


async def test_names_of_one_address_share_its_pace() -> None:
    world = Names()
    pace = world.pace(1.0)
    for number in range(100):
        await pace(Url(f"http://n{number}.example/"))
        await pace(Url(f"http://unknown/{number}"))
    assert 98 <= world.now - 1_000.0 <= 100
    await pace(Url("http://other/"))
    assert world.now <= 1_100.0


async def test_a_site_on_one_name_is_not_delayed() -> None:
    world = Names()
    pace, free = world.pace(1.0), world.pace(0.0)
    for number in range(50):
        await pace(Url(f"http://a.example/{number}"))
        await free(Url(f"http://n{number}.example/"))
    assert not world.pauses
