"""The arithmetic of slots and throttling: intervals between requests, and how far ahead slots are booked.

Pure, and the same for every backend, which stores the values and locks them.
"""

from typing import Final

from crawler.model.visit import LONGEST_VISIT

LEASE_SECONDS: Final = LONGEST_VISIT + 60.0  # after this, a lease expires: its task is taken for dead
HORIZON: Final = 2.0  # seconds ahead that leases book slots
FAR: Final = 1_200.0  # seconds; by default, no slot or pause is farther ahead
ROBOTS_DAY: Final = 86_400.0  # robots.txt is read again after a day (RFC 9309 2.4)
BACKOFF_DECAY: Final = 0.93  # one good response multiplies the back-off factor of a host by this
MAX_BACKOFF: Final = 8.0  # the delay of a throttled host is multiplied by this factor at most
# Seconds in which that factor doubles at most once: responses in flight are one signal.
BACKOFF_PAUSE: Final = 1.0
MIN_THROTTLED_DELAY: Final = 0.1  # seconds: the delay to multiply if a throttled host has no crawl delay


def throttled_delay(delay: float, backoff: float) -> float:
    """Seconds between the slots of a host, with its back-off factor."""
    return delay if backoff <= 1 else max(delay, MIN_THROTTLED_DELAY) * backoff


def slots_ahead(start: float, now: float, delay: float, most: int) -> int:
    """How many slots from `start` on may be booked now: up to `most`, and none beyond the horizon."""
    if start > now + HORIZON:
        return 0
    return most if delay == 0 else min(most, int((now + HORIZON - start) / delay) + 1)


def next_lease_at(upcoming: float) -> float:
    """When to lease from a host with the next free slot `upcoming`: once half the horizon is free."""
    return upcoming - HORIZON / 2


def needs_robots(read_at: float | None, now: float) -> bool:
    """Whether the robots.txt of a host, last read at `read_at`, must be read before any other request."""
    return read_at is None or read_at <= now - ROBOTS_DAY
