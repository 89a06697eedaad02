"""Tunes the garbage collector of the crawler's processes."""

import gc
from typing import Final

# New objects until a collection: reference counting frees nearly all; collecting costs 2 % of a crawl.
GARBAGE: Final = 20_000


def tune_collector() -> None:
    """Makes collections of cycles rarer, and exempts what exists already: mostly modules."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
