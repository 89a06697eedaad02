"""Pages with something random, such as links to others, whose addresses have a part that means nothing.

No two of them have the same content, so the site is asked: what it shows for nonsense in place of the part
(`rules.ignored_parts`). At the end of a crawl one of them is listed. A site that gives each visit an address
of its own for all pages has no end: there, they are found during the crawl as well, or each would count as a
content for which more may be requested.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from msgspec import Struct, field

from crawler.model.reasons import Why
from crawler.model.survey import RepeatedPage
from crawler.parse.url import Url
from crawler.ports import Record, reads
from crawler.rules import ignored_parts
from crawler.rules.ignored_parts import EXAMPLES, Pair, PartKind
from crawler.rules.soft_404 import ShownPage

MOST_READ = 200  # pages in a run
ALIKE = 3  # answers, after which no other is expected
MOST_KINDS = 10  # kinds of parts that are asked at a time


class RandomPages(Struct, eq=False):
    """Those of one crawl."""

    pages: Record
    read: Callable[[Url], Awaitable[ShownPage | None]]
    _asked: set[PartKind] = field(default_factory=set)  # during the crawl
    # Of addresses that are given to each visit anew.
    _by_visit: set[PartKind] = field(default_factory=set)
    _read: int = 0

    async def unlist_visits(self, starts: Sequence[Url]) -> None:
        """Lists once each page that has another address for each visit, of those that were read so far."""
        found = await self.pages.read(reads.RepeatedPages())
        if not self._by_visit and 2 * len({page.title for page in found}) > len(found):
            return
        kinds = {kind: some for kind, some in _kinds(found) if len(some) >= EXAMPLES}
        for kind in [kind for kind in kinds if kind not in self._asked][:MOST_KINDS]:
            if await self._may_be_visits(kinds[kind]):
                self._asked.add(kind)
                await self._ways(kind, kinds[kind])
        same = (pair for kind in self._by_visit for pair in kinds.get(kind, ()))
        await list_once(self.pages, same, starts)

    @property
    def have_no_end(self) -> bool:
        """Whether there are pages with an address for each visit."""
        return bool(self._by_visit)

    async def same(self, pages: Sequence[RepeatedPage]) -> AsyncIterator[Pair]:
        """The pairs that are one page but for what is random on it: of kinds of which all examples are."""
        by_url = {page.url: page for page in pages}
        for kind, some in _kinds(pages)[:MOST_KINDS]:
            by_visit, in_words = await self._ways(kind, some)
            for pair in some if by_visit or in_words else ():
                if by_visit or ignored_parts.say_the_same(by_url[pair.url], by_url[pair.base]):
                    yield pair

    async def _may_be_visits(self, pairs: Sequence[Pair]) -> bool:
        """By the links that were read, so that on other sites what is asked depends on no timing."""
        urls = [pair.url for pair in ignored_parts.examples(pairs)]
        ids = [(url, await self.pages.read(reads.NumberOf(url))) for url in urls]
        rows = await self.pages.read(reads.LinksOf([number for _, number in ids]))
        linked = {number for row in rows.values() for number in row.links if number > 0}
        to = await self.pages.read(reads.TargetsOf(sorted(linked)))
        links = (
            (url, [to[it].url for it in rows[number].links if it in to])
            for url, number in ids
            if number in rows
        )
        return ignored_parts.have_own_addresses(*(ShownPage(url, (), None, some) for url, some in links))

    async def _ways(self, kind: PartKind, pairs: Sequence[Pair]) -> tuple[bool, bool]:
        """Whether the examples show that addresses are given to visits, and that only links are random."""
        if kind in self._by_visit:
            return True, False
        by_visit = in_words = True
        for pair in ignored_parts.examples(pairs):
            shown = await self._beside_nonsense(pair)
            in_words = in_words and ignored_parts.say_the_same(*shown)
            by_visit = by_visit and ignored_parts.have_own_addresses(*shown)
            if not (in_words or by_visit):
                break
        if by_visit:
            self._by_visit.add(kind)
        return by_visit, in_words

    async def _beside_nonsense(self, pair: Pair) -> Sequence[ShownPage]:
        """A page and some with nonsense in its address, if all show the same but for what is random."""
        for addresses in pair.nonsense:
            nonsense = list[ShownPage]()
            for url in addresses:
                self._read += 1
                shown = await self.read(url) if self._read < MOST_READ else None
                if shown is None:
                    break
                nonsense.append(shown)
                if len(nonsense) == ALIKE and len({seen.content for seen in nonsense}) == 1:
                    break  # nothing is random
            else:
                page = await self.read(pair.url)
                if page and ignored_parts.show_the_same(page, nonsense):
                    return page, *nonsense
        return ()


async def list_once(pages: Record, same: Iterable[Pair], starts: Sequence[Url]) -> None:
    """Lists one page in place of all that are the same."""
    copies = defaultdict[Url, list[Url]](list)
    for url, base in ignored_parts.listed_instead(same, starts).items():
        copies[base].append(url)
    for base, urls in sorted(copies.items()):
        await pages.withdraw(urls, Why.DUPLICATE, base)


def _kinds(pages: Iterable[RepeatedPage]) -> Sequence[tuple[PartKind, Sequence[Pair]]]:
    """The kinds of parts in which addresses of pages with one title differ; the most frequent first."""
    alike = defaultdict[tuple[str, str | None, str], list[Url]](list)
    for page in pages:
        for shape in ignored_parts.with_one_part_open(page.url):
            alike[page.origin, page.title, shape].append(page.url)
    firsts = ((min(urls, key=lambda url: (len(url), url)), urls) for urls in alike.values() if len(urls) > 1)
    pairs = (pair for first, urls in firsts for url in urls for pair in ignored_parts.pairs(url, first))
    return sorted(ignored_parts.by_kind(pairs).items(), key=lambda kind: -len(kind[1]))
