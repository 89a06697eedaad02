"""Counts the requests of this process for the metrics: by class of status, with bytes, retries and durations.

Worker processes count their own and send what is new to the main process (`take`, `add`). Nothing is stored
per request.
"""

from bisect import bisect_left
from collections import Counter
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, convert

BOUNDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, float("inf"))
"""Upper bounds of the buckets of durations, in seconds."""
CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx", "error")
"""Classes of status; `error`: no usable response."""

_Count = Annotated[int, Meta(ge=0, lt=2**53)]
_Taken = tuple[
    dict[Literal["1xx", "2xx", "3xx", "4xx", "5xx", "error"], _Count],
    _Count,
    _Count,
    Annotated[float, Meta(ge=0, lt=2**53)],
    Annotated[list[_Count], Meta(min_length=len(BOUNDS), max_length=len(BOUNDS))],
]


class Traffic:
    """The counters. They only grow."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.bytes = 0  # of bodies, decoded
        self.retries = 0
        self.seconds = 0.0  # of all requests together
        self.within = [0] * len(BOUNDS)  # requests by the bucket of their duration

    def answered(self, status: int | None, size: int, seconds: float) -> None:
        """Count a request. `status`: None without a usable response."""
        known = status is not None and 100 <= status <= 599
        self.requests[f"{status // 100}xx" if known and status else "error"] += 1
        self.bytes += size
        self.seconds += seconds
        self.within[bisect_left(BOUNDS, seconds)] += 1

    def retried(self) -> None:
        self.retries += 1

    def take(self) -> list[Any]:
        """Everything that was counted, as plain values; counting starts again at zero."""
        taken = [dict(self.requests), self.bytes, self.retries, self.seconds, self.within]
        self.requests, self.within = Counter(), [0] * len(BOUNDS)
        self.bytes, self.retries, self.seconds = 0, 0, 0.0
        return taken

    def add(self, taken: Any) -> None:
        """Add what another process took. Raises `ValueError` for anything else."""
        requests, size, retries, seconds, within = convert(taken, _Taken)
        self.requests.update(requests)
        self.bytes += size
        self.retries += retries
        self.seconds += seconds
        self.within = [ours + theirs for ours, theirs in zip(self.within, within, strict=True)]
