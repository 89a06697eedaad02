"""The arithmetic of slots and strain: how far apart the requests to a host are, and how far ahead they are booked.

Pure, and the same for every backend: rows and locks are theirs.
"""

from typing import Final

LEASE_SECONDS: Final = 900.0  # then a visit is offered again: its taker is dead
HORIZON: Final = 2.0  # seconds ahead that slots are booked by leases
FAR: Final = 1_200.0  # seconds; unless told otherwise, no slot and no patience reaches so far
ROBOTS_DAY: Final = 86_400.0  # robots.txt is read again after a day (RFC 9309 2.4)
CALM: Final = 0.93  # what one good answer leaves of the strain on a host
STRAIN_LIMIT: Final = 8.0
STRAIN_PAUSE: Final = (
    1.0  # seconds in which strain doubles once: answers that were in flight together say one thing
)
STRAINED_GAP: Final = 0.1  # seconds: the gap that strain multiplies where the host is not paced


def slowed(gap: float, strain: float) -> float:
    """Seconds from slot to slot of a host that is `strain` times slower than its `gap`."""
    return gap if strain <= 1 else max(gap, STRAINED_GAP) * strain


def slots_ahead(start: float, now: float, gap: float, most: int) -> int:
    """How many slots from `start` on may be booked now: up to `most`, and no farther than the horizon."""
    if start > now + HORIZON:
        return 0
    return most if gap == 0 else min(most, int((now + HORIZON - start) / gap) + 1)


def is_unmet(met: float | None, now: float) -> bool:
    """Whether the robots.txt of a host, which was read at `met`, is to be read before anything else."""
    return met is None or met <= now - ROBOTS_DAY
