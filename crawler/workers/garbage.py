"""How the garbage collector is tuned in our processes."""

import gc
from typing import Final

GARBAGE: Final = 20_000  # objects made and kept until the collector looks: nearly all go without it, and it costs 2 % of a crawl


def calm_collector() -> None:
    """Look for cycles seldom."""
    gc.set_threshold(GARBAGE)
