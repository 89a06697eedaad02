"""Writes a file so that a reader sees the old content or the new one, never a part: beside it, then renamed.

Permissions are those of the umask. For reports and metrics; `sitemap.publish` has its own way, for many files
at once.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write `text` as UTF-8; lone surrogates are escaped. Raises `OSError`: the old file is as it was."""
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="", errors="backslashreplace") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(0o666 & ~umask)
        Path(beside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise
