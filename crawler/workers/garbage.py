"""Tunes the garbage collector of the crawler's processes."""

import gc
from typing import Final

GARBAGE: Final = 20_000  # new objects until a collection: reference counting frees nearly all; collecting costs 2 % of a crawl


def calm_collector() -> None:
    """Makes collections of cycles rarer."""
    gc.set_threshold(GARBAGE)
