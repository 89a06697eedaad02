"""Validates sitemaps, files or URLs, and the sitemaps of an index.

Single files are validated by `validate.file`, and opened by `sitemap.tree`.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio.to_thread

from crawler.sitemap.tree import Node, Places, Unreadable, is_web, resolve, walk
from crawler.sitemap.validate.file import Check, Returns, Seen
from crawler.sitemap.validate.findings import FaultCode, SitemapFinding, finding

FINDINGS_AT_ONCE: Final = 500  # findings passed from the thread at a time


@dataclass(eq=False, repr=False)
class Totals:
    """Counts over all files."""

    files: int = 0
    sitemaps: int = 0  # entries of indexes
    urls: int = 0
    errors: int = 0
    warnings: int = 0
    infos: int = 0


@dataclass(eq=False, repr=False)
class Validation:
    """Validates places in turn with `check`. `base`: the URL of files on disk, if known."""

    places: Places
    now: datetime
    base: str | None = None
    totals: Totals = field(default_factory=Totals)
    found_web_page: bool = False  # a place was a web page, probably by mistake

    async def check(self, place: str) -> AsyncIterator[SitemapFinding]:
        """All findings in a file, folder or URL and, if it is an index, in its sitemaps."""
        seen, returns = Seen(), Returns()
        try:
            place = resolve(place)
        except Unreadable as error:
            self.totals.files += 1
            yield self._counted(finding(place, 0, FaultCode.UNREADABLE, str(error)))
            return
        for node in walk(place):
            async for found in self._node(node, seen, returns):
                yield found
        for found in returns.left(seen):
            yield self._counted(found)

    async def _node(self, node: Node, seen: Seen, returns: Returns) -> AsyncIterator[SitemapFinding]:
        try:
            where = self.places.locate(node)
        except Unreadable as reason:
            yield self._counted(finding(node.index or node.loc, 0, FaultCode.CHILD_ELSEWHERE, str(reason)))
            return
        check = Check(where, home=self._home(node), now=self.now, seen=seen, returns=returns)
        async for found in self._one(check, where):
            yield found
        if not node.index:
            self.found_web_page |= check.is_web_page
        if check.kind != "index":
            return
        node.children = check.children
        if node.is_last:
            yield self._counted(finding(where, 0, FaultCode.INDEX_NESTED))

    def _home(self, node: Node) -> str | None:
        """The URL of a file, if it is known: an index says it, and a file on disk may be served somewhere."""
        if node.index or is_web(node.loc):
            return node.loc
        return f"{self.base.rstrip('/')}/{Path(node.loc).name}" if self.base else None

    async def _one(self, check: Check, place: str) -> AsyncIterator[SitemapFinding]:
        self.totals.files += 1
        try:
            chunks = await self.places.open(place)
        except Unreadable as error:
            code = FaultCode.TOO_LARGE if error.too_large else FaultCode.UNREADABLE
            yield self._counted(finding(place, 0, code, str(error)))
            return
        run = check.run(chunks)
        while group := await anyio.to_thread.run_sync(_some, run, place):
            for found in group:
                yield self._counted(found)
        if check.kind == "index":
            self.totals.sitemaps += check.entries
        else:
            self.totals.urls += check.entries

    def _counted(self, found: SitemapFinding) -> SitemapFinding:
        if found.severity == "error":
            self.totals.errors += 1
        elif found.severity == "warning":
            self.totals.warnings += 1
        else:
            self.totals.infos += 1
        return found


def _some(run: Iterator[SitemapFinding], place: str) -> list[SitemapFinding]:
    """The next findings; a disk error becomes one as well."""
    found: list[SitemapFinding] = []
    try:
        for item in run:
            found.append(item)
            if len(found) >= FINDINGS_AT_ONCE:
                break
    except OSError as error:
        found.append(finding(place, 0, FaultCode.UNREADABLE, error.strerror or str(error)))
    return found
