"""INT and TERM, from our first line to our last: a signal is noted and wakes whoever listens; the second leaves at once.

A handler that raises does so wherever the program happens to be: within an import, which then fails half done, or within
a finaliser, where Python drops the exception and the signal is lost. So this one never raises. Imports next to nothing, as
it is there before all else; what to do about a signal is for the command line. A library user keeps their own handlers.
"""

import os
import signal

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

NOTED = (signal.SIGINT, signal.SIGTERM)
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Noted:
    """What came."""

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.listener: Callable[[], None] | None = (
            None  # is told of the first, in the middle of whatever runs
        )
        self.leaving: Callable[[], None] | None = None  # the last thing done when a second one comes
        self._before: dict[signal.Signals, object] = {}

    def begin(self) -> bool:
        """Note signals from now on; False if they are already. Must be called in the main thread."""
        if self._before:
            return False
        self.first = None
        for number in NOTED:
            self._before[number] = signal.signal(number, self._arrived)
        return True

    def end(self) -> None:
        """Leave signals to those who handled them before."""
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)  # type: ignore[arg-type]  # what signal() gave us

    @property
    def word(self) -> str:
        """What the first one did to us."""
        return WORDS[self.first] if self.first else ""

    @property
    def exit(self) -> int:
        """The exit code that tells the caller of the first one (as a shell would: 130 or 143); 0 if there is none."""
        return 128 + self.first if self.first else 0

    def _arrived(self, number: int, _frame: "FrameType | None") -> None:
        if self.first is None:
            self.first = signal.Signals(number)
            if self.listener:
                self.listener()
            return
        try:
            if self.leaving:
                self.leaving()
        finally:
            os._exit(self.exit)


noted = Noted()
"""Of this process: it has one handler for each signal."""
