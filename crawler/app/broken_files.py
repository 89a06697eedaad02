"""The findings about files that do not answer: one item a file, with the pages that load it.

Which these are is noted by `file_check`; the pages are those of the newest run. Memory grows with the broken
files, not with the pages, but for `pages_with`, whose caller bounds what it asks for, and `all_pages_with`.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawler.app.features.feature import readings
from crawler.model.external import Answer, BrokenFile, says
from crawler.ports import Reads, reads
from crawler.report.catalogue import FILES, Code
from crawler.report.findings import FEWEST, SITE_WIDE
from crawler.report.inbound_links import FIRST
from crawler.report.report import Finding, Item, Said

WORST: Final = 50  # pages with most broken files
NOT_FOUND: Final[str] = Answer.NOT_FOUND.value


@dataclass(eq=False, slots=True)
class _Uses:
    """The pages that load a file."""

    count: int = 0
    first: list[str] = field(default_factory=list)


async def broken_files(rows: Reads, run: int) -> Sequence[Finding]:
    """The findings, with all items. `run`: the number of the newest one."""
    known = await rows.read(reads.BrokenFiles())
    found = [await _finding(rows, code, known.get(kind, {}), run) for code, kind in FILES.items()]
    return [one for one in found if one.count]


async def _finding(rows: Reads, code: Code, known: Mapping[str, BrokenFile], run: int) -> Finding:
    uses, worst, every, pages = {url: _Uses() for url in known}, list[tuple[int, str]](), 0, 0
    if not known:
        return Finding(code, 0)
    async for page in readings(rows, FILES[code]):
        broken = [url for _, url in page.read if url in uses]
        every, pages = every + 1, pages + bool(broken)
        for url in broken:
            uses[url].count += 1
            if len(uses[url].first) < FIRST:
                uses[url].first.append(page.url)
        if len(broken) > 1:
            worst = sorted([*worst, (-len(broken), page.url)])[:WORST]
    found = sorted((-one.count, url) for url, one in uses.items() if one.count)
    items = [_item(url, known[url], uses[url], every, is_new=known[url].since == run) for _, url in found]
    links, new = sum(item.links for item in items), sum(item.new for item in items)
    return Finding(code, len(items), new, links, pages, items, [(url, -count) for count, url in worst])


def _item(url: str, file: BrokenFile, uses: _Uses, every: int, *, is_new: bool) -> Item:
    """`every`: how many pages load any file of its kind."""
    said = Said(file.text or "", file.place)
    return Item(
        url,
        file.status,
        "" if file.code == NOT_FOUND else says(file.code),
        uses.count,
        uses.first,
        is_new,
        every >= FEWEST and uses.count >= SITE_WIDE * every,
        place=said.place,
        text=said.text,
        said={uses.first[0]: said} if any(said) else {},
    )


async def pages_with(rows: Reads, code: Code, urls: Collection[str]) -> "Mapping[str, array[int]]":
    """The pages that load each of these files, by id."""
    found = {url: array("I") for url in urls}
    if found:
        async for page in readings(rows, FILES[code]):
            for _, url in page.read:
                if url in found:
                    found[url].append(page.id)
    return found


async def all_pages_with(rows: Reads, codes: Collection[Code]) -> bytearray:
    """Whether a page loads a broken file of one of these codes, by its id; shorter if the last do not."""
    loading, known = bytearray(), await rows.read(reads.BrokenFiles())
    for code in FILES.keys() & codes:
        if not (broken := known.get(FILES[code], {})):
            continue
        async for page in readings(rows, FILES[code]):
            if any(url in broken for _, url in page.read):
                loading.extend(bytes(max(0, page.id + 1 - len(loading))))
                loading[page.id] = 1
    return loading
