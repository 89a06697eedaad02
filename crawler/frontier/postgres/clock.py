"""The clock of the database, read over the network, so that all members agree on the time.

It is off by at most half the shortest of the last round trips.
"""

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

SAMPLES: Final = 12  # round trips that count: a minute of heartbeats
ASK: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"


class ServerClock:
    """Seconds since the epoch, by the clock of the database. Call `measure` first."""

    def __init__(self) -> None:
        self._trips: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def measure(self, connection: "psycopg.Connection[Any]") -> None:
        """Ask the database for its time. The shortest of the last round trips counts."""
        sent = time.monotonic()
        row = connection.execute(ASK).fetchone()
        took = time.monotonic() - sent
        if row:
            self._trips.append((took, row[0] - sent - took / 2))
            self._ahead = min(self._trips)[1]
