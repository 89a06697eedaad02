"""Writes a file so that a reader sees the old content or the new one, never a part: beside it, then renamed.

For reports, which say what is wrong with a site, and for metrics; `sitemap.publish` has its own way, for many
files at once.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


def write(path: Path, text: str, *, private: bool = False) -> None:
    """Write `text`: see `writing`."""
    with writing(path, private=private) as file:
        file.write(text)


@contextmanager
def writing(path: Path, *, private: bool = False) -> Iterator[TextIO]:
    """A file to write, in UTF-8; lone surrogates are escaped. Raises `OSError`: the old file is as it was.

    `private`: a new file is for this user alone, and another one keeps its permissions. Otherwise they are
    those of the umask.
    """
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="", errors="backslashreplace") as file:
            yield file
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            Path(beside).chmod(0o666 & ~umask)
        elif path.exists():
            Path(beside).chmod(path.stat().st_mode & 0o777)
        Path(beside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise
