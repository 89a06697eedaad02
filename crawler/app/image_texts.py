"""Finds out what stands for broken images, and where on their page they are: it reads the first page of each.

As `link_texts` does for links, within what that leaves of `--link-pages`; one page tells of an image, as its
text is the same on most. Nothing here changes what is listed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import anyio

from crawler.app.features.feature import readings
from crawler.app.features.images import NAME
from crawler.app.link_texts import SILENT, Read, rendering_of
from crawler.model.note import BROKEN_FILES
from crawler.parse.extract import Extract
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Frontier, reads


class ImageTexts(NamedTuple):
    """Reads at most `most` pages, in their order, within `seconds`. `normalise`: as images are stored."""

    frontier: Frontier
    read: Read
    normalise: Normaliser
    most: int
    seconds: float

    async def __call__(self) -> int:
        """How many pages were read. Raises `FrontierError`."""
        noted = await self.frontier.recall(BROKEN_FILES)
        broken = dict(noted or {})
        unknown = {image for image, one in broken.items() if one.text is None}
        read, silent = 0, 0
        with anyio.move_on_after(self.seconds):
            for number, images in await self._due(unknown) if unknown else ():
                found = await self._read(number, images)
                for image, (text, place) in found.items():
                    broken[image] = broken[image]._replace(text=text, place=place)
                read, silent = (read + 1, 0) if found else (read, silent + 1)
                if silent >= SILENT:
                    break
        if read:
            await self.frontier.remember(BROKEN_FILES, broken)
        return read

    async def _due(self, unknown: set[str]) -> Sequence[tuple[int, list[Url]]]:
        """The pages to read by their number, and the broken images of each."""
        due = list[tuple[int, list[Url]]]()
        async for page in readings(self.frontier, NAME):
            if len(due) >= self.most or not unknown:
                break
            if images := [image for _, image in page.read if image in unknown]:
                unknown.difference_update(images)
                due.append((page.id, images))
        return due

    async def _read(self, number: int, images: Sequence[Url]) -> dict[str, tuple[str, str]]:
        """Text and place of these images of a page; nothing if it did not answer."""
        page = (await self.frontier.read(reads.PagesOf([number]))).get(number)
        parsed = page and await self.read(page.url, {Extract.PICTURES}, rendering_of(page))
        if not parsed:
            return {}
        found: dict[str, tuple[str, str]] = dict.fromkeys(images, ("", ""))
        for one in parsed.anchors:
            if (image := self.normalise.canonical(one.href, parsed.base)) in found:
                found[image] = (one.text, one.place)
        return found
