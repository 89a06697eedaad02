"""Named moments at which a process may die: before and after every commit, fsync and rename.

Off unless a test sets `hook`, which is then called with the name of each. Nothing else may depend on it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

hook: Callable[[str], None] | None = None


@contextmanager
def failpoint(what: str) -> Iterator[None]:
    """The moments before and after what is done in the block."""
    if hook is not None:
        hook(f"before {what}")
    yield
    if hook is not None:
        hook(f"after {what}")
