"""The arithmetic of slots and throttling: the interval between requests to a host, and how far ahead slots are booked.

Pure, and the same for every backend, which stores the values and locks them.
"""

from typing import Final

LEASE_SECONDS: Final = 900.0  # after this, a lease expires: its task is taken for dead
HORIZON: Final = 2.0  # seconds ahead that leases book slots
FAR: Final = 1_200.0  # seconds; by default, no slot or pause is farther ahead
ROBOTS_DAY: Final = 86_400.0  # robots.txt is read again after a day (RFC 9309 2.4)
CALM: Final = 0.93  # factor by which one good response reduces the throttling (`strain`) of a host
STRAIN_LIMIT: Final = 8.0  # the gap of a throttled host is multiplied by this at most
STRAIN_PAUSE: Final = (
    1.0  # seconds in which throttling doubles at most once: responses in flight together are one signal
)
STRAINED_GAP: Final = 0.1  # seconds: the gap to multiply if a throttled host has no crawl delay


def slowed(gap: float, strain: float) -> float:
    """Seconds between the slots of a host whose `gap` is multiplied by `strain`."""
    return gap if strain <= 1 else max(gap, STRAINED_GAP) * strain


def slots_ahead(start: float, now: float, gap: float, most: int) -> int:
    """How many slots from `start` on may be booked now: up to `most`, and none beyond the horizon."""
    if start > now + HORIZON:
        return 0
    return most if gap == 0 else min(most, int((now + HORIZON - start) / gap) + 1)


def next_look(upcoming: float) -> float:
    """When to lease from a host whose next free slot is `upcoming`: once half the horizon is free, for several at once."""
    return upcoming - HORIZON / 2


def is_unmet(met: float | None, now: float) -> bool:
    """Whether the robots.txt of a host, last read at `met`, must be read before any other request."""
    return met is None or met <= now - ROBOTS_DAY
