"""How long the result of a visit may wait for others, so that a paced crawl writes to the frontier in groups.

A host whose slots are booked for seconds ahead gets no request earlier because a result was settled or a URL leased at
once. A host without further slots does: its results never wait. Pure; the main loop of `crawl` waits.
"""

from collections.abc import Iterable
from typing import Final

from crawler.model.lease import Lease
from crawler.parse.url import origin

AHEAD: Final = 1.0  # seconds of booked slots that a host must have left when the next ones are leased


class Bookings:
    """The last booked slot of each host."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def note(self, leases: Iterable[Lease], now: float) -> None:
        """Records the slots of new leases, in the order of their slots. `now`: seconds since the epoch."""
        for lease in leases:
            if lease.at > now:
                self._last[origin(lease.visit.url)] = lease.at

    def spare(self, lease: Lease, now: float) -> float:
        """Seconds that the result of a lease may wait, not above 0 if it may not."""
        return self._last.get(origin(lease.visit.url), now) - AHEAD - now
