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
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from mmap import mmap
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
MAPPED: Final = 2  # slots in shared memory: seldom are more pages parsed at a time
_FREE: Final = bytes(2)


class ReadingLog:
    """The file. Written without fsync: it has to survive a crash of the process, not of the machine.

    The first slots are shared memory, since two system calls a page are 3 % of a crawl. They are written once
    before that: a full disk shows then, and not as SIGBUS later.
    """

    def __init__(self, path: Path | None) -> None:
        """Records nothing if `path` is None or cannot be written."""
        self._path, self._file = path, -1
        self._taken: set[int] = set()
        self._mapped: mmap | None = None
        if path:
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def died(self) -> list[Url]:
        """The pages that were being parsed when a process died. Clears the file."""
        data = b""
        with suppress(OSError):
            os.lseek(self._file, 0, os.SEEK_SET)
            data = os.read(self._file, 1_000 * SLOT)
        with suppress(OSError, ValueError):  # ValueError: the file is too short, as the disk is full
            self._write(0, bytes(max(len(data), MAPPED * SLOT)))
            self._mapped = mmap(self._file, MAPPED * SLOT) if self._file >= 0 else None
        return [Url(text) for at in range(0, len(data), SLOT) if (text := _read(data[at : at + SLOT]))]

    def reading(self, url: Url) -> AbstractContextManager[None]:
        """Records `url` as being parsed, within the `with` block."""
        return nullcontext() if self._file < 0 else _Slot(self, url)

    def take(self, url: Url) -> int:
        """Records a URL. Returns its slot."""
        slot = 0
        while slot in self._taken:
            slot += 1
        self._taken.add(slot)
        name = url.encode()[: SLOT - len(_FREE)]
        self._write(slot * SLOT, len(name).to_bytes(2) + name)
        return slot

    def free(self, slot: int) -> None:
        """The page was parsed."""
        self._write(slot * SLOT, _FREE)
        self._taken.discard(slot)

    def _write(self, at: int, data: bytes) -> None:
        if self._mapped is not None and at + len(data) <= len(self._mapped):
            self._mapped[at : at + len(data)] = data
            return
        with suppress(OSError):  # such as a full disk: then the page is not recorded
            os.lseek(self._file, at, os.SEEK_SET)
            os.write(self._file, data)

    def close(self) -> None:
        """Deletes the file, as the process ends normally."""
        if self._path and self._file >= 0:
            if self._mapped is not None:
                self._mapped.close()
                self._mapped = None
            os.close(self._file)
            self._file = -1
            with suppress(OSError):
                self._path.unlink()


class _Slot(AbstractContextManager[None]):
    """The place of one page in the log, taken within the `with` block."""

    __slots__ = ("_log", "_number", "_url")

    def __init__(self, log: ReadingLog, url: Url) -> None:
        self._log, self._url = log, url

    def __enter__(self) -> None:
        self._number = self._log.take(self._url)

    def __exit__(self, *_: object) -> None:
        self._log.free(self._number)


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
        if lease.visit.url in self._given_up or lease.deaths >= DEATHS:
            return VisitResult(
                Verdict(Failed(Cause.CRASHED, f"the process died {DEATHS} times while parsing it"))
            )
        return await self._visitor.visit(lease)
