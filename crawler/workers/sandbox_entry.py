"""The entry point of the sandbox process: imports `sandbox_child` without `typing_extensions`.

msgspec can do without it, and importing it takes a ninth of the start of this process.
"""

import sys

sys.modules["typing_extensions"] = None  # type: ignore[assignment]

from crawler.workers.sandbox_child import serve as serve  # noqa: E402, PLC0414 - what `child` calls
