"""Tunes the garbage collector of the crawler's processes."""

import gc
from typing import Final

GARBAGE: Final = 20_000  # new objects until a collection: reference counting frees nearly all; collecting costs 2 % of a crawl


def tune_collector() -> None:
    """Makes collections of cycles rarer, and exempts what exists already: mostly modules, which stay until the end."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
