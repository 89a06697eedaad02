"""The time limit of one page, which stands still while a request of the page waits for its slot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

LONGEST_WAIT: Final = 600.0  # seconds that a page may wait for slots in all


class Deadline:
    """`seconds` in `scope`, beside the waits."""

    def __init__(self, scope: anyio.CancelScope, seconds: float) -> None:
        self._scope, self._waits, self._since, self._waited = scope, 0, 0.0, 0.0
        self._left = seconds
        scope.deadline = anyio.current_time() + seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While this is open, the time does not count."""
        now = anyio.current_time()
        if self._waits == 0:
            self._since, self._left = now, self._scope.deadline - now
            self._scope.deadline = now + self._left + max(0.0, LONGEST_WAIT - self._waited)
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                now = anyio.current_time()
                self._waited += now - self._since
                self._scope.deadline = now + self._left
