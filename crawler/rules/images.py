"""The images of pages: which of them are stored, and which of these go into the sitemap.

Google reads at most 1,000 images of a page. An image on a large share of the pages, such as a logo, tells
nothing about any of them: it is site-wide, and left out. Images are not requested. Pure.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from crawler.model.facts import Image
from crawler.model.protocol import MAX_IMAGES, MAX_LOC
from crawler.parse.images import MOST_IMAGES
from crawler.parse.url import Url

LONGEST_IMAGE_URL: Final = MAX_LOC  # characters of one URL
LONGEST_ALL: Final = (
    MAX_IMAGES * LONGEST_IMAGE_URL
)  # characters of all images of a page: the first 1,000 are always stored
FEWEST_PAGES: Final = 20  # pages,
PERCENT: Final = 30  # and share of the listed pages, from which an image is site-wide


def stored(images: Iterable[Url | None], page: Url) -> tuple[Url, ...]:
    """The images of a page that are stored: each once, in order."""
    kept: dict[Url, None] = {}
    left = LONGEST_ALL
    for image in images:
        if image is None or len(image) > LONGEST_IMAGE_URL or image == page or image in kept:
            continue
        left -= len(image)
        if left < 0 or len(kept) >= MOST_IMAGES:
            break
        kept[image] = None
    return tuple(kept)


class Shown(NamedTuple):
    """The images of a page, by what becomes of them. Each in the order of the page."""

    written: tuple[Url, ...]
    site_wide: tuple[Url, ...] = ()
    cut: tuple[Url, ...] = ()  # more than search engines read


def shown(images: Sequence[Image], site_wide: Collection[int]) -> Shown:
    """What becomes of the stored images of a page. `site_wide`: by id."""
    own = tuple(image.url for image in images if image.id not in site_wide)
    left_out = tuple(image.url for image in images if image.id in site_wide)
    return Shown(own[:MAX_IMAGES], left_out, own[MAX_IMAGES:])


def cut_words(found: Shown) -> str:
    """The detail of a page with more images than search engines read."""
    count = len(found.written) + len(found.cut)
    # Of 2,000 or of two million characters, further images are not stored.
    more = (
        "at least "
        if count + len(found.site_wide) >= MOST_IMAGES or _size(found) > LONGEST_ALL - LONGEST_IMAGE_URL
        else ""
    )
    return f"{more}{count:,} images"


def _size(found: Shown) -> int:
    return sum(len(url) for urls in found for url in urls)
