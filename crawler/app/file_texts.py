"""Finds the text of broken files, such as the description of an image, and where on a page they stand.

As `link_texts` does for links, with the pages that it leaves of `--link-pages`. The first page that loads a
file is enough, as the text is the same on most. Nothing here changes what is listed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import anyio

from crawler.app.features.feature import readings
from crawler.app.link_texts import MOST_UNANSWERED, Read, rendering_of
from crawler.model.external import BrokenFile
from crawler.model.note import BROKEN_FILES
from crawler.parse.extract import Extract
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Frontier, reads


class FileTexts(NamedTuple):
    """Reads at most `most` pages, in their order, within `seconds`. `normalise`: as files are stored."""

    frontier: Frontier
    read: Read
    normalise: Normaliser
    most: int
    seconds: float

    async def __call__(self) -> int:
        """How many pages were read. Raises `FrontierError`."""
        broken = {kind: dict(files) for kind, files in (await self.frontier.recall(BROKEN_FILES)).items()}
        read, silent = 0, 0
        with anyio.move_on_after(self.seconds):
            for number, urls in (await self._due(broken)).items():
                found = await self._read(number, urls)
                for files in broken.values():
                    for url in found.keys() & files.keys():
                        files[url] = files[url]._replace(text=found[url][0], place=found[url][1])
                read, silent = (read + 1, 0) if found else (read, silent + 1)
                if silent >= MOST_UNANSWERED:
                    break
        if read:
            await self.frontier.remember(BROKEN_FILES, broken)
        return read

    async def _due(self, broken: Mapping[str, Mapping[str, BrokenFile]]) -> Mapping[int, Sequence[Url]]:
        """The pages to read by their number, and the broken files of each."""
        due = defaultdict[int, list[Url]](list)
        for kind, files in broken.items():
            unknown = {url for url, one in files.items() if one.text is None and not one.line}
            if not unknown:
                continue
            async for page in readings(self.frontier, kind):
                if not unknown or (len(due) >= self.most and page.id not in due):
                    break
                if urls := [url for _, url in page.read if url in unknown]:
                    unknown.difference_update(urls)
                    due[page.id] += urls
        return due

    async def _read(self, number: int, urls: Sequence[Url]) -> dict[str, tuple[str, str]]:
        """Text and place of these files of a page; nothing if it did not answer."""
        page = (await self.frontier.read(reads.PagesOf([number]))).get(number)
        parsed = page and await self.read(page.url, {Extract.PICTURES}, rendering_of(page))
        if not parsed:
            return {}
        found: dict[str, tuple[str, str]] = dict.fromkeys(urls, ("", ""))
        for one in parsed.anchors:
            if (url := self.normalise.canonical(one.href, parsed.base)) in found:
                found[url] = (one.text, one.place)
        return found
