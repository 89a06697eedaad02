"""HTTP requests: connections, limits, retries, politeness, and the check of addresses before connecting.

If it can, httpx imports its own command line, with rich and Pygments. That takes four times as long as the rest of httpx
(0.1 s and 6 MB in each process) and is not needed here, so the import is blocked.
"""

import sys

# None makes the import fail, which httpx tolerates (see "The module cache" in the Python reference).
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
