"""HTTP requests: connections, limits, retries, politeness, and the check of addresses before connecting."""

import sys

if "httpx" not in sys.modules:
    # Without its command line, which would load rich and Pygments: 6 % of a start.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    import httpx as httpx

    del sys.modules["httpx._main"]
