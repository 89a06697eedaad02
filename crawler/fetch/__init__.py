"""One exchange over HTTP: connections, limits, retries, politeness, and which addresses may be asked.

httpx imports its own command line if it can, with rich and Pygments: four times what all else of it takes to load
(0.1 s and 6 MB in each process). Nobody here needs that, so here it cannot.
"""

import sys

# None makes an import fail; httpx then goes on without (see "The module cache" in the Python reference).
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
