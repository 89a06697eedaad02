"""The entry point of the sandbox process, which it has for itself: `sandbox_child`, imported faster.

msgspec does without `typing_extensions`, which takes a ninth of the start of this process.
"""

import sys

sys.modules["typing_extensions"] = None  # type: ignore[assignment]

from crawler.workers.sandbox_child import serve as serve  # noqa: E402, PLC0414 - what `child` calls
