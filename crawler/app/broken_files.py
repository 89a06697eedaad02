"""The finding about images that do not answer: one item an image, with the pages that show it.

Which these are is noted by `image_check`; the pages are those of the newest run. Memory grows with the broken
images, not with the pages, but for `pages_with`, whose caller bounds what it asks for.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawler.app.features.feature import readings
from crawler.app.features.images import NAME
from crawler.model.external import Answer, BrokenFile, says
from crawler.ports import Reads, reads
from crawler.report.catalogue import Code
from crawler.report.findings import FEWEST, SITE_WIDE
from crawler.report.inbound_links import FIRST
from crawler.report.report import Finding, Item, Said

WORST: Final = 50  # pages with most broken images
NOT_FOUND: Final[str] = Answer.NOT_FOUND.value


@dataclass(eq=False, slots=True)
class _Uses:
    """The pages that show an image."""

    count: int = 0
    first: list[str] = field(default_factory=list)


async def broken_files(rows: Reads, run: int) -> Sequence[Finding]:
    """The finding, with all items, if there is any. `run`: the number of the newest one."""
    if not (known := await rows.read(reads.BrokenFiles())):
        return []
    uses, worst, every, pages = {url: _Uses() for url in known}, list[tuple[int, str]](), 0, 0
    async for page in readings(rows, NAME):
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
    by_page = [(url, -count) for count, url in worst]
    return [Finding(Code.BROKEN_IMAGE, len(items), new, links, pages, items, by_page)] if items else []


def _item(url: str, file: BrokenFile, uses: _Uses, every: int, *, is_new: bool) -> Item:
    """`every`: how many pages show any image."""
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


async def pages_with(rows: Reads, urls: Collection[str]) -> "Mapping[str, array[int]]":
    """The pages that show each of these images, by id."""
    found = {url: array("I") for url in urls}
    if found:
        async for page in readings(rows, NAME):
            for _, url in page.read:
                if url in found:
                    found[url].append(page.id)
    return found
