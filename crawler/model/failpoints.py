"""Fail points: named moments at which a test kills the process, before and after every commit, fsync and
rename.

Off unless a test sets `hook`, which is called with the name of each. Nothing else may depend on it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

hook: Callable[[str], None] | None = None


@contextmanager
def failpoint(what: str) -> Iterator[None]:
    """Calls `hook` before and after the block."""
    if hook is not None:
        hook(f"before {what}")
    yield
    if hook is not None:
        hook(f"after {what}")
