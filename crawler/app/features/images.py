"""`--images`: which images of a page are stored, and which of these go into the sitemap.

Google reads at most 1,000 images of a page. An image on a large share of the pages, such as a logo, tells
nothing about any of them: it is site-wide, and left out. So is one that does not exist or may not be fetched,
as `file_check` or the crawl itself found: what is to be indexed must not be disallowed by robots.txt (Google
Search Central, image sitemaps: `image:loc`; developers.google.com/search/docs/crawling-indexing/sitemaps).
`parse.images` finds them in the markup.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawler.app.features.feature import GROUP, Counts, Feature, Lines, PageFault, in_groups, readings
from crawler.model.external import Answer, BrokenFile
from crawler.model.facts import Element, Entry, Extras, LabelledUrl
from crawler.model.outcome import Failed, Unlisted, code
from crawler.model.protocol import MAX_IMAGES, MAX_LOC
from crawler.model.reasons import Cause, Why
from crawler.model.rows import FeatureRow
from crawler.parse.extract import Extract
from crawler.parse.images import MOST_IMAGES
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import LONGEST_URL, Url
from crawler.ports import Frontier, Reads, reads
from crawler.ports.features import PageFeature, SeenPage
from crawler.report.catalogue import Code
from crawler.report.formatting import counted
from crawler.report.url_kind import is_listed
from crawler.settings.sections import Settings

NAME: Final = "images"
# Characters of the images of a page: the first 1,000 are always stored.
LONGEST_ALL: Final = MAX_IMAGES * MAX_LOC
FEWEST: Final = 20  # pages,
PERCENT: Final = 30  # and share of the listed pages, from which an image is site-wide
_MISSING: Final = frozenset({Answer.NOT_FOUND.value, Answer.PAGE.value})
_GONE: Final = code(Failed(Cause.NOT_FOUND))
_FORBIDDEN: Final = code(Unlisted(Why.ROBOTS))
EXPLAINED: Final = 10  # images with the same fate that `explain` shows


def stored(images: Iterable[Url | None], page: Url) -> tuple[LabelledUrl, ...]:
    """The images of a page that are stored: each once, in order."""
    kept: dict[LabelledUrl, None] = {}
    left = LONGEST_ALL
    for image in images:
        if image is None or len(image) > MAX_LOC or image == page or ("", image) in kept:
            continue
        left -= len(image)
        if left < 0 or len(kept) >= MOST_IMAGES:
            break
        kept["", image] = None
    return tuple(kept)


class Shown(NamedTuple):
    """The images of a page, by what becomes of them. Each in the order of the page."""

    written: tuple[Url, ...]
    site_wide: tuple[Url, ...] = ()
    cut: tuple[Url, ...] = ()  # more than search engines read
    missing: tuple[Url, ...] = ()  # that do not exist
    forbidden: tuple[Url, ...] = ()  # that robots.txt disallows


# By field of `Shown`: the place in `list images`, and the words of `explain`.
PLACES: Final = (
    ("sitemap", "in the sitemap with --images"),
    ("site-wide", f"left out, being on {PERCENT}% of the listed pages or more"),
    ("cut", f"left out, being beyond the first {MAX_IMAGES:,}"),
    ("missing", "left out, as it does not exist"),
    ("forbidden", "left out, as robots.txt disallows it"),
)


class LeftOut(Struct, frozen=True):
    """Images that are left out of entries."""

    site_wide: Collection[Url]
    # By the code of the answer: only those that do not exist or that robots.txt disallows are left out.
    broken: Mapping[str, BrokenFile]
    gone: Collection[Url] = ()  # that pages link to as well, and that the crawl did not find
    forbidden: Collection[Url] = ()  # the same, and that it was not allowed to fetch

    def is_missing(self, image: Url) -> bool:
        """Whether it does not exist. Others may be back before the sitemap is read."""
        return image in self.gone or (image in self.broken and self.broken[image].code in _MISSING)

    def is_forbidden(self, image: Url) -> bool:
        """Whether robots.txt disallows it."""
        return image in self.forbidden or (image in self.broken and self.broken[image].line != "")


def shown(images: Sequence[LabelledUrl], left_out: LeftOut) -> Shown:
    """What becomes of the stored images of a page."""
    own, site_wide, missing, forbidden = list[Url](), list[Url](), list[Url](), list[Url]()
    for _, url in images:
        if url in left_out.site_wide:
            site_wide.append(url)
        elif left_out.is_missing(url):
            missing.append(url)
        elif left_out.is_forbidden(url):
            forbidden.append(url)
        else:
            own.append(url)
    return Shown(
        tuple(own[:MAX_IMAGES]), tuple(site_wide), tuple(own[MAX_IMAGES:]), tuple(missing), tuple(forbidden)
    )


def cut_words(found: Shown) -> str:
    """The detail of a page with more images than search engines read."""
    count = len(found.written) + len(found.cut)
    # Of 2,000 or of two million characters, further images are not stored.
    size = sum(len(url) for urls in found for url in urls)
    more = "at least " if count + len(found.site_wide) >= MOST_IMAGES or size > LONGEST_ALL - MAX_LOC else ""
    return f"{more}{count:,} images"


class _ImageReader(PageFeature):
    """Reads the images of a page that may be listed and lets them be indexed."""

    name = NAME
    extract = frozenset({Extract.IMAGES})

    def __init__(self, normalise: Normaliser, *, obeys: bool) -> None:
        self._normalise, self._obeys = normalise, obeys

    def read(self, seen: SeenPage) -> tuple[LabelledUrl, ...]:
        page, is_hidden = seen.page, self._obeys and seen.directives.noimageindex
        if not page.images or is_hidden or not seen.may_be_listed:
            return ()
        base = page.base if len(page.base) <= LONGEST_URL else seen.url
        return stored((self._normalise.canonical(image, base) for image in page.images), seen.url)


class Images(Feature):
    """See `Feature`."""

    name: ClassVar[str] = NAME
    namespace = "image", "http://www.google.com/schemas/sitemap-image/1.1"
    columns = ("page", "image", "place")
    shown_columns = ("place", "page", "image")
    has_counts = True

    def reader(self, settings: Settings, normalise: Normaliser, base: PublishBase | None) -> PageFeature:  # noqa: ARG002
        """See `Feature.reader`. Parameters of images are no tracking: they choose the picture."""
        obeys = "noindex" not in settings.verdicts.no_rule
        return _ImageReader(Normaliser(strip=(), sessions=None, base=base), obeys=obeys)

    async def extended(
        self,
        rows: Reads,
        settings: Settings,  # noqa: ARG002
        entries: AsyncIterator[Sequence[Entry]],
    ) -> AsyncIterator[Sequence[Entry]]:
        """See `Feature.extended`: in smaller chunks."""
        left_out = await _left_out(rows)
        async for chunk in entries:
            for some in in_groups(chunk, GROUP):
                pages = [entry.url for entry in some]
                found = {page: shown.written async for page, shown in _of(rows, pages, left_out)}
                yield [
                    replace(entry, extras=(entry.extras or Extras()).with_elements(map(_element, images)))
                    if (images := found.get(entry.url))
                    else entry
                    for entry in some
                ]

    async def faults(self, rows: Reads) -> AsyncIterator[tuple[FeatureRow, Sequence[PageFault]]]:
        """See `Feature.faults`: pages with more images than search engines read."""
        left_out = None
        async for page in readings(rows, NAME, MAX_IMAGES):
            left_out = left_out or await _left_out(rows)
            async for _, found in _of(rows, [page.url], left_out):
                if found.cut:
                    yield page, [(Code.IMAGES_CUT, cut_words(found))]

    async def about(self, rows: Reads, url: Url) -> tuple[object, Lines] | None:
        """See `Feature.about`: the first images with the same fate, and how many more there are."""
        found = next(iter([found async for _, found in _of(rows, [url], await _left_out(rows))]), None)
        if found is None:
            return None
        lines = list[tuple[str, str]]()
        for images, (_, words) in zip(found, PLACES, strict=True):
            lines += [("image", f"{image}: {words}") for image in images[:EXPLAINED]]
            if len(images) > EXPLAINED:
                lines.append(("image", f"and {len(images) - EXPLAINED:,} more {words}"))
        return found._asdict(), lines

    async def counts(self, rows: Reads, written: int) -> Counts:
        return {"written": written, "left_out": len(await _site_wide(rows))}

    def summary(self, counts: Counts) -> str:
        words, left_out = f"{counted(counts['written'], 'image')} in the sitemap", counts["left_out"]
        if not left_out:
            return words
        verb = "is" if left_out == 1 else "are"
        return f"{words}; {left_out:,} left out that {verb} on {PERCENT}% of the pages or more"

    async def rows(self, frontier: Frontier) -> AsyncIterator[tuple[str, ...]]:
        """See `Feature.rows`: the images of the listed pages, and where each goes."""
        left_out = await _left_out(frontier)
        async for chunk in frontier.stream(reads.ListedEntries()):
            async for page, found in _of(frontier, [entry.url for entry in chunk], left_out):
                for images, (place, _) in zip(found, PLACES, strict=True):
                    for image in images:
                        yield page, image, place


async def _site_wide(rows: Reads) -> Collection[Url]:
    """The images on so many listed pages that they are left out. Reads all pages."""
    return await rows.read(reads.CommonUrls(NAME, FEWEST, PERCENT))


async def _left_out(rows: Reads) -> LeftOut:
    broken = await rows.read(reads.BrokenFiles())
    return LeftOut(await _site_wide(rows), broken.get(NAME, {}))


async def _of(rows: Reads, pages: Sequence[Url], left_out: LeftOut) -> AsyncIterator[tuple[Url, Shown]]:
    """Those of these pages that are listed and have images, in order, and what becomes of these."""
    for some in in_groups(pages, GROUP):
        found = await rows.read(reads.FeaturesOf(NAME, some))
        images = sorted({image for page in found.values() for _, image in page.read})
        linked = (await rows.read(reads.FeaturesOf(NAME, images))).values() if images else ()
        gone, forbidden = (
            {image.url for image in linked if image.outcome == outcome} for outcome in (_GONE, _FORBIDDEN)
        )
        known = replace(left_out, gone=gone, forbidden=forbidden)
        for page in some:
            if page in found and found[page].read and is_listed(found[page].outcome):
                yield page, shown(found[page].read, known)


def _element(image: Url) -> Element:
    return Element("<image:image><image:loc>", image, "</image:loc></image:image>", is_optional=True)
