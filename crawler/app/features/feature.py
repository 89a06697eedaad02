"""What an optional feature adds, at each place where the program asks: one class and one file for each.

A feature is no plug-in: the tuple `FEATURES` of this package names all of them, in the order of what they
add to an entry. What a feature reads of a page is stored by its name, as URLs with a label, so a new one
changes no table. Its settings stand with all others in `settings.sections`, its findings in
`report.catalogue`.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias, TypeVar

from crawler.model.facts import Entry
from crawler.model.rows import FeatureRow
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Frontier, Reads, reads
from crawler.ports.features import PageFeature
from crawler.report.catalogue import Code
from crawler.settings.sections import Settings

T = TypeVar("T")

GROUP: Final = 25  # pages that are looked up at a time: a page has up to two megabytes of images

PageFault: TypeAlias = tuple[Code, str]
"""A finding about a page, and its detail."""
Lines: TypeAlias = Sequence[tuple[str, str]]
"""Lines of text, each with its label."""
Counts: TypeAlias = Mapping[str, int]
"""What a publication has of a feature, by what became of it."""


class Feature(ABC):
    """An optional feature."""

    name: ClassVar[str]
    """Of its setting in `[dates]`, of what it stores, and of its key in JSON."""
    namespace: ClassVar[tuple[str, str] | None] = None
    """The prefix of its elements in the sitemap, and its URI; None: it adds none."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Of `list NAME`, which calls `rows`; empty: it has no list."""
    shown_columns: ClassVar[tuple[str, ...]] = ()
    """Those of the text form of this list, in their order."""
    has_counts: ClassVar[bool] = False
    """Whether the summary of a publication shows `counts`."""

    def is_on(self, settings: Settings) -> bool:
        return bool(getattr(settings.dates, self.name))

    @abstractmethod
    def reader(self, settings: Settings, normalise: Normaliser, base: PublishBase | None) -> PageFeature:
        """What reads a page while it is judged. `normalise`: how the URLs of pages are spelled."""

    def extended(
        self, rows: Reads, settings: Settings, entries: AsyncIterator[Sequence[Entry]]
    ) -> AsyncIterator[Sequence[Entry]]:
        """The entries of the sitemap with what the feature adds."""
        raise NotImplementedError

    async def faults(self, rows: Reads) -> AsyncIterator[tuple[FeatureRow, Sequence[PageFault]]]:  # noqa: ARG002
        """The listed pages that it has findings about, sorted by URL."""
        nothing: Sequence[tuple[FeatureRow, Sequence[PageFault]]] = ()
        for one in nothing:
            yield one

    async def about(self, rows: Reads, url: Url) -> tuple[object, Lines] | None:  # noqa: ARG002
        """What `explain` says of a page: a value for JSON, and lines. None: nothing."""
        return None

    async def counts(self, rows: Reads, written: int) -> Counts:
        """What the summary says, if `written` of its optional elements are in the sitemap."""
        raise NotImplementedError

    def summary(self, counts: Counts) -> str:
        raise NotImplementedError

    def rows(self, frontier: Frontier) -> AsyncIterator[tuple[str, ...]]:
        raise NotImplementedError


async def readings(rows: Reads, name: str, more_than: int = 0) -> AsyncIterator[FeatureRow]:
    """The listed pages of which a feature read more than that many URLs, by URL, with what it read."""
    async for chunk in rows.stream(reads.ReadingPages(name, more_than)):
        for some in in_groups([page.url for page in chunk], GROUP):
            found = await rows.read(reads.FeaturesOf(name, some))
            for url in some:
                if url in found:
                    yield found[url]


def in_groups(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in groups of at most that size."""
    return (items[at : at + size] for at in range(0, len(items), size))
