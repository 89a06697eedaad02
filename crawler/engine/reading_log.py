"""Names the pages that are being parsed right now, in a small file beside the state that survives a crash of
the process.

A page that crashes the process while it is parsed would crash every resumed run again. Leases and open
requests do not identify it: a healthy crawl that is killed has a hundred of them. So a page is in this file
only while its markup is parsed and judged, and it is given up after three processes died during that. Not a
record of visits: the slot of a page is reused once it was parsed. A state that is no file counts deaths
itself (`ports.Queue.suspect`).
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.model.settlement import Unvisited, Verdict, VisitResult
from crawler.model.visit import Lease
from crawler.parse.url import Url
from crawler.ports import Visitor

DEATHS: Final = 3  # crashes of the process in a run, after which a page is given up
SLOT: Final = 16_384  # bytes: two for the length, then the URL of at most 8,192 characters
_FREE: Final = bytes(2)


class ReadingLog:
    """The file. Written without fsync: it has to survive a crash of the process, not of the machine."""

    def __init__(self, path: Path | None) -> None:
        """Records nothing if `path` is None or cannot be written."""
        self._path, self._file = path, -1
        self._taken: set[int] = set()
        if path:
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def died(self) -> list[Url]:
        """The pages that were being parsed when a process died. Clears the file."""
        if self._file < 0:
            return []
        with suppress(OSError):
            os.lseek(self._file, 0, os.SEEK_SET)
            data = os.read(self._file, 1_000 * SLOT)
            os.truncate(self._file, 0)
            return [Url(text) for at in range(0, len(data), SLOT) if (text := _read(data[at : at + SLOT]))]
        return []

    @contextmanager
    def reading(self, url: Url) -> Iterator[None]:
        """Records `url` as being parsed, within the `with` block."""
        if self._file < 0:
            yield
            return
        slot = next(number for number in range(len(self._taken) + 1) if number not in self._taken)
        self._taken.add(slot)
        name = url.encode()[: SLOT - len(_FREE)]
        self._write(slot, len(name).to_bytes(2) + name)
        try:
            yield
        finally:
            self._write(slot, _FREE)
            self._taken.discard(slot)

    def _write(self, slot: int, data: bytes) -> None:
        with suppress(OSError):  # such as a full disk: then the page is not recorded
            if hasattr(os, "pwrite"):  # not on Windows; one system call less, twice for each page
                os.pwrite(self._file, data, slot * SLOT)
            else:
                os.lseek(self._file, slot * SLOT, os.SEEK_SET)
                os.write(self._file, data)

    def close(self) -> None:
        """Deletes the file, as the process ends normally."""
        if self._path and self._file >= 0:
            os.close(self._file)
            self._file = -1
            with suppress(OSError):
                self._path.unlink()


def _read(slot: bytes) -> str:
    length = int.from_bytes(slot[:2])
    return slot[2 : 2 + length].decode("ascii", "replace")


def counted(before: Mapping[str, int], died: list[Url]) -> dict[str, int]:
    """The number of crashes by page: those `before`, and one more for each page in `died`."""
    return dict(Counter(before) + Counter(died))


class SkipCrashing:
    """A `ports.Visitor` that does not visit pages that crashed too many processes."""

    def __init__(self, visitor: Visitor, deaths: Mapping[str, int]) -> None:
        self._visitor, self.prefetch = visitor, visitor.prefetch
        self._given_up = {url for url, count in deaths.items() if count >= DEATHS}

    async def visit(self, lease: Lease) -> VisitResult | Unvisited:
        """See `ports.Visitor.visit`."""
        if lease.visit.url in self._given_up or lease.deaths >= DEATHS:
            return VisitResult(
                Verdict(Failed(Cause.CRASHED, f"the process died {DEATHS} times while parsing it"))
            )
        return await self._visitor.visit(lease)
