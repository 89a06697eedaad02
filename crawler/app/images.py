"""The images of pages, from the state: for entries of the sitemap, `explain`, `list`, and findings.

Looks up images a few pages at a time; what becomes of each is decided in `rules.images`.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from crawler.model.facts import Entry, Extras
from crawler.model.protocol import MAX_IMAGES
from crawler.model.rows import PageRow
from crawler.parse.url import Url
from crawler.ports import Rows
from crawler.rules import images as rules
from crawler.rules.images import Shown
from crawler.settings.sections import Settings

PAGES: Final = 25  # at a time: a page has up to two megabytes of images


def writes_images(settings: Settings) -> bool:
    """Whether the sitemap has images: with `--images`, in XML."""
    return settings.dates.images and settings.output.format == "xml"


async def site_wide_images(rows: Rows) -> Collection[int]:
    """The ids of the images on so many listed pages that they are left out. Reads all pages."""
    return await rows.common_images(rules.FEWEST_PAGES, rules.PERCENT)


async def with_images(
    rows: Rows, entries: Sequence[Entry], site_wide: Collection[int]
) -> AsyncIterator[Sequence[Entry]]:
    """The entries with their images, in smaller chunks."""
    for at in range(0, len(entries), PAGES):
        some = entries[at : at + PAGES]
        found = {
            page: shown.written
            async for page, shown in images_of(rows, [entry.url for entry in some], site_wide)
        }
        yield [
            entry._replace(extras=(entry.extras or Extras())._replace(images=images))
            if (images := found.get(entry.url))
            else entry
            for entry in some
        ]


async def images_of(
    rows: Rows, pages: Sequence[Url], site_wide: Collection[int]
) -> AsyncIterator[tuple[Url, Shown]]:
    """Those of these pages that have images, in order, and what becomes of these."""
    for at in range(0, len(pages), PAGES):
        some = pages[at : at + PAGES]
        found = await rows.images_of(some)
        for page in some:
            if page in found:
                yield page, rules.shown(found[page], site_wide)


async def cut_pages(rows: Rows) -> AsyncIterator[tuple[PageRow, str]]:
    """The listed pages with more images than search engines read, and how many these are, sorted by URL."""
    site_wide: Collection[int] | None = None
    async for chunk in rows.many_images_rows(MAX_IMAGES):
        site_wide = await site_wide_images(rows) if site_wide is None else site_wide
        pages = {page.url: page for page in chunk}
        async for url, found in images_of(rows, list(pages), site_wide):
            if found.cut:
                yield pages[url], rules.cut_words(found)


async def images_of_page(rows: Rows, url: Url) -> Shown | None:
    """The images of one page; None if it has none, or is not in the newest run."""
    found = (await rows.images_of([url])).get(url)
    return rules.shown(found, await site_wide_images(rows)) if found else None
