"""Checks sitemaps where they lie, files and URLs, and follows an index to what it names. Each file by itself is `sitemap.check`.

An index on disk names URLs: the files are looked for beside it, by name. An index on the web is followed on its own
host only.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from crawler.model import MAX_BYTES, Broken
from crawler.ports import Fetcher, Request
from crawler.sitemap.check import Check, Seen
from crawler.sitemap.findings import Code, Finding, finding
from crawler.urls import Normaliser, Url, join, origin, target

CHUNK: Final = 65_536  # bytes
REDIRECTS: Final = 5
GROUP: Final = 500  # findings that are handed over at a time


@dataclass
class Totals:
    """What was looked at."""

    files: int = 0
    entries: int = 0
    errors: int = 0
    warnings: int = 0


@dataclass
class Validation:
    """`check` one target after the other; `totals` adds up. `base`: where files on disk are served, if known."""

    fetcher: Fetcher
    now: datetime
    turn: Callable[[], Awaitable[None]]  # waits until the next request may go
    base: str | None = None
    totals: Totals = field(default_factory=Totals)

    async def check(self, place: str) -> AsyncIterator[Finding]:
        """All findings on a file or URL and, if it is an index, on what it names."""
        seen = Seen()
        home = place if _is_web(place) else self._served(Path(place).name)
        check = Check(place, home=home, now=self.now, seen=seen)
        async for found in self._one(check, place):
            yield found
        if check.kind != "index":
            return
        for child in check.children:
            where = self._child(place, child)
            if isinstance(where, Finding):
                yield self._counted(where)
                continue
            inner = Check(where, home=child, now=self.now, seen=seen)
            async for found in self._one(inner, where):
                yield found
            if inner.kind == "index":
                yield self._counted(finding(where, 0, Code.INDEX_NESTED))

    def _served(self, name: str) -> str | None:
        return f"{self.base.rstrip('/')}/{name}" if self.base else None

    def _child(self, index: str, loc: str) -> str | Finding:
        """Where to find what an index names."""
        url = join(None, loc)
        if url is None or not _is_web(url):
            return finding(index, 0, Code.CHILD_ELSEWHERE, loc)
        if _is_web(index):
            if origin(url) == origin(index):
                return url
            return finding(index, 0, Code.CHILD_ELSEWHERE, f"{loc} is on another host")
        name = target(Url(url)).partition("?")[0].rpartition("/")[2]
        path = Path(index).parent / (name or "-")
        return (
            str(path)
            if path.is_file()
            else finding(index, 0, Code.CHILD_ELSEWHERE, f"no file {name} lies beside it")
        )

    async def _one(self, check: Check, place: str) -> AsyncIterator[Finding]:
        self.totals.files += 1
        chunks: Iterator[bytes]
        try:
            chunks = _slices(await self._body(Url(place))) if _is_web(place) else _read(Path(place))
        except _Unreadable as error:
            yield self._counted(finding(place, 0, error.code, *error.args))
            return
        run = check.run(chunks)
        while group := await anyio.to_thread.run_sync(_some, run, place):
            for found in group:
                yield self._counted(found)
        self.totals.entries += check.entries

    def _counted(self, found: Finding) -> Finding:
        if found.severity == "error":
            self.totals.errors += 1
        else:
            self.totals.warnings += 1
        return found

    async def _body(self, url: Url) -> bytes:
        for _ in range(REDIRECTS + 1):
            await self.turn()
            # As it comes: a gzip file is gzip to us, and counts after compression is undone.
            reply = await self.fetcher.fetch(Request(url, limit=MAX_BYTES + 1))
            if isinstance(reply, Broken):
                code = Code.TOO_LARGE if reply.cause.value == "too-large" else Code.UNREADABLE
                raise _Unreadable(code, f"{reply.cause.says}: {reply.detail}".removesuffix(": "))
            if reply.status == 200:
                return reply.body
            location = reply.headers.get("location") if 300 < reply.status < 309 else None
            to = Normaliser(strip=())(location, url) if location else None
            if to is None:
                raise _Unreadable(Code.UNREADABLE, f"the server answered {reply.status}")
            url = to
        raise _Unreadable(Code.UNREADABLE, "it redirects too often")


class _Unreadable(Exception):  # noqa: N818 - it becomes a finding
    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def _is_web(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _slices(body: bytes) -> Iterator[bytes]:
    return (body[at : at + CHUNK] for at in range(0, len(body), CHUNK))


def _read(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _some(run: Iterator[Finding], place: str) -> list[Finding]:
    """The next findings; what the disk says is one, too."""
    found: list[Finding] = []
    try:
        for item in run:
            found.append(item)
            if len(found) >= GROUP:
                break
    except OSError as error:
        found.append(finding(place, 0, Code.UNREADABLE, error.strerror or str(error)))
    return found
