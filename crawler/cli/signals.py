"""Handlers for INT and TERM: the first signal is recorded and wakes a listener, a second one exits at once.

A handler that raises may do so anywhere: within an import, which then fails half-way, or within a finaliser,
where Python drops the exception and the signal is lost. So these never raise. This module is imported first
and imports almost nothing; the command line decides how to react. A library user keeps their own handlers.
"""

import os
import signal
import time

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDING = 9.5  # seconds in which a first signal ends the program
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Received:
    """The signals received by this process."""

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.at = 0.0  # when that was, in seconds of the monotonic clock
        self.listener: Callable[[], None] | None = None  # called on the first signal, from within the handler
        self.leaving: Callable[[], None] | None = None  # called on the second signal, before exiting
        self._before: dict[signal.Signals, object] = {}

    def begin(self) -> bool:
        """Installs the handlers; False if they already are. Must be called in the main thread."""
        if self._before:
            return False
        self.first = None
        for number in HANDLED_SIGNALS:
            self._before[number] = signal.signal(number, self._receive)
        return True

    def end(self) -> None:
        """Restores the previous handlers."""
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)  # type: ignore[arg-type]  # the return value of signal()

    @property
    def word(self) -> str:
        """The first signal as a word: "interrupted" or "terminated"."""
        return WORDS[self.first] if self.first else ""

    @property
    def exit(self) -> int:
        """The exit code for the first signal, as in a shell (130 or 143); 0 if there was none."""
        return 128 + self.first if self.first else 0

    def left(self) -> float:
        """Seconds until the program must have ended; infinite before the first signal."""
        return self.at + ENDING - time.monotonic() if self.first else float("inf")

    def _receive(self, number: int, _frame: "FrameType | None") -> None:
        if self.first is None:
            self.first, self.at = signal.Signals(number), time.monotonic()
            if self.listener:
                self.listener()
            return
        try:
            if self.leaving:
                self.leaving()
        finally:
            os._exit(self.exit)


received = Received()
"""The only instance, as a process has one handler for each signal."""
