"""The interface through which the engine reports its progress. `report.stats` implements it."""

from typing import Protocol


class Counters(Protocol):
    """Receives the progress of the engine (`report.stats`)."""

    phase: str
    stopping: str | None
    exchanges: int  # begun

    def found(self, new: int) -> None:
        """Counts newly discovered URLs."""
        ...

    def request_started(self) -> None:
        """Counts the start of an exchange."""
        ...

    def request_ended(self) -> None:
        """Counts the end of an exchange."""
        ...

    def pace(self, delay: float) -> None:
        """Sets the interval between requests to the slowest host."""
        ...
