"""The environment in which the driver of the browser starts: where its files are, and how it uses memory."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

# The driver passes on messages, nearly all of which is garbage at once: with a nursery of a megabyte and not
# 16 it takes 88 MB and not 110, in the same time.
LITTLE_GARBAGE: Final = "--max-semi-space-size=1"
STARTS: Final = 10.0  # seconds, at most


@contextmanager
def environment_of_driver(place: Path) -> Iterator[None]:
    """Processes that are started meanwhile keep their temporary files there, and Node.js little garbage.

    This process has chosen its own place before (`tempfile` remembers it).
    """
    options = os.environ.get("NODE_OPTIONS", "")
    new = {"TMPDIR": str(place), "NODE_OPTIONS": f"{LITTLE_GARBAGE} {options}".strip()}
    if (node := os.environ.get("PLAYWRIGHT_NODEJS_PATH")) and not _takes(node, new["NODE_OPTIONS"]):
        new["NODE_OPTIONS"] = options
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _takes(node: str, options: str) -> bool:
    """Whether a Node.js starts with these options: an old one refuses those that it does not know."""
    with suppress(OSError, subprocess.SubprocessError):
        given = os.environ | {"NODE_OPTIONS": options}
        subprocess.run([node, "-e", ""], env=given, capture_output=True, timeout=STARTS, check=True)  # noqa: S603 - the user's own program
        return True
    return False
