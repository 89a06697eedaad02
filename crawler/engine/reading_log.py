"""Which pages are being read at this moment, in a small file beside the state that outlives the process.

A page whose bytes kill the process that reads them would kill each one that comes after it. What was in hand, or asked
for, says nothing: whoever kills a healthy crawl has a hundred such pages. So each page is written down only while its
markup is read and judged, and given up when three processes died in that moment. Not a record of visits: a slot is free
again once the page was read.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from crawler.model.lease import Lease
from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.model.settlement import Seen, Unvisited, Verdict
from crawler.parse.url import Url
from crawler.ports import Visitor

DEATHS: Final = 3  # of the process, that one page may cause in a run
SLOT: Final = 16_384  # bytes: two for the length, and a URL, which has 8,192 characters at most
_FREE: Final = bytes(2)


class ReadingLog:
    """Written without waiting for the disk: it is to survive the process, not the machine."""

    def __init__(self, path: Path | None) -> None:
        """Without a path, or where none can be written, nothing is kept."""
        self._path, self._file = path, -1
        self._taken: set[int] = set()
        if path:
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def died(self) -> list[Url]:
        """What was being read when a process died; from now on that is forgotten."""
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
        """The page is read within this."""
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
        with suppress(OSError):  # a full disk: then it is not known
            os.lseek(self._file, slot * SLOT, os.SEEK_SET)
            os.write(self._file, data)

    def close(self) -> None:
        """The process ends by itself."""
        if self._path and self._file >= 0:
            os.close(self._file)
            self._file = -1
            with suppress(OSError):
                self._path.unlink()


def _read(slot: bytes) -> str:
    length = int.from_bytes(slot[:2])
    return slot[2 : 2 + length].decode("ascii", "replace")


def counted(before: Mapping[str, int], died: list[Url]) -> dict[str, int]:
    """How many processes died on each page, with those that were being read now."""
    return dict(Counter(before) + Counter(died))


class Sparing:
    """A `ports.Visitor` that does not visit what too many processes died on."""

    def __init__(self, visitor: Visitor, deaths: Mapping[str, int]) -> None:
        self._visitor, self.prefetch = visitor, visitor.prefetch
        self._given_up = {url for url, count in deaths.items() if count >= DEATHS}

    async def visit(self, lease: Lease) -> Seen | Unvisited:
        """See `ports.Visitor.visit`."""
        if lease.visit.url in self._given_up:
            return Seen(Verdict(Failed(Cause.CRASHED, f"the process died {DEATHS} times while parsing it")))
        return await self._visitor.visit(lease)
