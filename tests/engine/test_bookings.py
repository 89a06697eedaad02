"""Results may wait for others only while their host has slots booked for later."""

import pytest

from crawler.engine.pool import AHEAD, Bookings
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url

NOW = 1_000_000.0


def lease(host: str, at: float) -> Lease:
    return Lease(1, 1, Visit(Url(f"https://{host}/")), 1, at)


@pytest.mark.parametrize(
    ("booked", "spare"),
    [
        ([], -AHEAD),  # no slot is booked
        ([NOW], -AHEAD),  # unpaced
        ([NOW + 0.2], 0.2 - AHEAD),  # soon without slots
        ([NOW + 0.2, NOW + 0.4, NOW + 2.0], 2.0 - AHEAD),
    ],
)
def test_result_waits_while_its_host_has_slots_booked(booked: list[float], spare: float) -> None:
    bookings = Bookings()
    bookings.note([lease("a.example", at) for at in booked], NOW)
    assert bookings.spare(lease("a.example", NOW), NOW) == pytest.approx(spare)


def test_slots_of_another_host_do_not_count() -> None:
    bookings = Bookings()
    bookings.note([lease("a.example", NOW + 2.0)], NOW)
    assert bookings.spare(lease("b.example", NOW), NOW) < 0
    assert bookings.spare(lease("a.example", NOW), NOW + 1.5) < 0
