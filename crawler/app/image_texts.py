"""Finds out what stands for broken images, and where on their page they are: it reads the first page of each.

As `link_texts` does for links, within what that leaves of `--link-pages`; one page tells of an image, as its
text is the same on most. Nothing here changes what is listed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import anyio

from crawler.app.features.images import GROUP, NAME
from crawler.app.link_texts import SILENT, Read, rendering_of
from crawler.model.note import IMAGE_TEXTS
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
        broken = await self.frontier.read(reads.BrokenImages())
        if not broken:
            return 0
        texts = {image: (one.text, one.place) for image, one in broken.items() if one.text is not None}
        unknown = {image for image, one in broken.items() if one.text is None}
        read, silent = 0, 0
        with anyio.move_on_after(self.seconds):
            for number, images in await self._due(unknown) if unknown else ():
                found = await self._read(number, images)
                texts |= found
                read, silent = (read + 1, 0) if found else (read, silent + 1)
                if silent >= SILENT:
                    break
        await self.frontier.remember(IMAGE_TEXTS, texts)
        return read

    async def _due(self, unknown: set[str]) -> Sequence[tuple[int, list[Url]]]:
        """The pages to read by their number, and the broken images of each."""
        due = list[tuple[int, list[Url]]]()
        async for chunk in self.frontier.stream(reads.ReadingPages(NAME)):
            for at in range(0, len(chunk), GROUP):
                pages = [page.url for page in chunk[at : at + GROUP]]
                found = await self.frontier.read(reads.FeaturesOf(NAME, pages))
                for page in (found[url] for url in pages if url in found):
                    if len(due) >= self.most or not unknown:
                        return due
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
