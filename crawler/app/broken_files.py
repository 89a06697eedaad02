"""The findings about files that do not answer or are disallowed: one item for each, with pages that load it.

`file_check` notes which files these are; the pages are those of the newest run. Memory grows with the files,
and by one byte per page.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from crawler.app.features.feature import readings
from crawler.model.external import Answer, BrokenFile, says
from crawler.ports import Reads, reads
from crawler.report.catalogue import BROKEN_FILES, FILES, Code
from crawler.report.findings import FEWEST, SITE_WIDE
from crawler.report.inbound_links import FIRST_SOURCES
from crawler.report.report import Finding, Item, Said

MOST_NOTED: Final = 10_000  # broken files of a kind
WORST: Final = 50  # pages with most broken files
NOT_FOUND: Final[str] = Answer.NOT_FOUND.value


class _Uses(Struct, eq=False):
    """The pages that load a file."""

    count: int = 0
    first: list[str] = field(default_factory=list)


class _Found(Struct, eq=False):
    """What makes one finding."""

    items: list[Item] = field(default_factory=list)
    pages: bytearray = field(default_factory=bytearray)  # 1 for each page that loads one of them, by its id
    worst: list[tuple[int, str]] = field(default_factory=list)  # how many a page loads, negative

    def add(self, number: int, url: str, count: int) -> None:
        """Add a page that loads that many of them."""
        self.pages.extend(bytes(max(0, number + 1 - len(self.pages))))
        self.pages[number] = 1
        if count > 1:
            self.worst = sorted([*self.worst, (-count, url)])[:WORST]

    def finding(self, code: Code) -> Finding:
        """The finding, its items with most uses first."""
        items = sorted(self.items, key=lambda item: (-item.links, item.url))
        links, new = sum(item.links for item in items), sum(item.new for item in items)
        worst = [(url, -count) for count, url in self.worst]
        return Finding(code, len(items), new, links, sum(self.pages), items, worst)


def file_code(kind: str, file: BrokenFile) -> Code:
    """The code of the finding about a file."""
    return Code.BLOCKED_FILE if file.line else BROKEN_FILES[kind]


async def broken_files(rows: Reads, run: int) -> Sequence[Finding]:
    """The findings, with all items. `run`: the number of the newest one."""
    known, found = await rows.read(reads.BrokenFiles()), {code: _Found() for code in FILES}
    for kind in BROKEN_FILES:
        await _add(rows, kind, known.get(kind, {}), run, found)
    return [found[code].finding(code) for code in Code if code in found and found[code].items]


async def _add(
    rows: Reads, kind: str, files: Mapping[str, BrokenFile], run: int, found: Mapping[Code, _Found]
) -> None:
    """Add the files of a kind, and the pages that load them."""
    uses, every = {url: _Uses() for url in files}, 0
    if not files:
        return
    async for page in readings(rows, kind):
        every += 1
        here = [url for _, url in page.read if url in uses]
        for url in here:
            uses[url].count += 1
            if len(uses[url].first) < FIRST_SOURCES:
                uses[url].first.append(page.url)
        for code, count in Counter(file_code(kind, files[url]) for url in here).items():
            found[code].add(page.id, page.url, count)
    for name, one in uses.items():
        if one.count:
            item = _item(name, files[name], one, every, is_new=files[name].since == run)
            found[file_code(kind, files[name])].items.append(item)


def _item(url: str, file: BrokenFile, uses: _Uses, every: int, *, is_new: bool) -> Item:
    """`every`: how many pages load any file of its kind."""
    said = Said(file.text or "", file.place)
    return Item(
        url,
        file.status,
        file.line or ("" if file.code == NOT_FOUND else says(file.code)),
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
    for kind, broken in BROKEN_FILES.items():
        if not found or code not in {broken, Code.BLOCKED_FILE}:
            continue
        async for page in readings(rows, kind):
            for _, url in page.read:
                if url in found:
                    found[url].append(page.id)
    return found


async def all_pages_with(rows: Reads, codes: Collection[Code]) -> bytearray:
    """Whether a page loads a file of one of these codes, by its id; shorter if the last do not."""
    found = _Found()
    for kind, files in (await rows.read(reads.BrokenFiles())).items():
        if not (chosen := {url for url, file in files.items() if file_code(kind, file) in codes}):
            continue
        async for page in readings(rows, kind):
            if any(url in chosen for _, url in page.read):
                found.add(page.id, page.url, 1)
    return found.pages
