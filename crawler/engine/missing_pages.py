"""What the site answers for a page that cannot exist, asked before it is crawled, and of doubtful folders.

Most sites answer 404, and that was all. Where the answer is a page, pages that equal it but for what they
repeat of their URL, numbers and suggestions (`rules.soft_404`) are not listed, and their links not followed.
A folder is doubtful once its pages have led to many others with one title: what was
read there before it was asked is read again.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.engine.finish.answers import plain_markup
from crawler.engine.together import together
from crawler.model.note import ASKED_PLACES, MISSING, REDIRECTED
from crawler.model.reply import Reply
from crawler.model.survey import DoubtfulPlace
from crawler.model.visit import Lease, MissingPage, Visit
from crawler.parse.extract import Extract
from crawler.parse.fingerprint import MOST_BLOCKS
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, reads
from crawler.rules import nonexistent_pages, soft_404
from crawler.rules.judge import Judge
from crawler.rules.nonexistent_pages import NAME
from crawler.rules.redirects import target_of
from crawler.rules.soft_404 import ShownPage
from crawler.rules.traps import QUESTIONS

SAMPLES = 6  # pages to which the start page links, that are compared
MOST_PLACES = 50  # folders and paths that are asked in vain in one run, and as many shapes of addresses
MOST_ASKED = 500  # of all of these
MOST_TRIED = 3  # folders with few pages of one title that are asked at a time, unless one answers anything
NOTHING = MissingPage((), 0)  # matches no page
MOST_LINKS = 200  # of a page that a folder shows for all that is missing


class MissingPages(Struct, eq=False):
    """What the site shows for nonexistent pages, by origin, folder, path with "?", or shape of addresses.

    Asked by the leader, recalled by all.
    """

    frontier: Frontier
    judge: Judge
    fetch: Callable[[Url], Awaitable[Reply | None]]
    _known: dict[str, MissingPage] | None = None
    _asked: int = 0  # requests, in this run
    _true: dict[str, tuple[frozenset[int], Sequence[ShownPage]] | None] = field(default_factory=dict)
    _homes: dict[str, ShownPage | None] = field(default_factory=dict)
    _moved: dict[Url, Url] = field(default_factory=dict)  # what was asked, and where it is redirected to

    def prepared(self, lease: Lease, starts: Sequence[Url]) -> Lease:
        """The lease with what is shown there for a nonexistent page. Start pages always exist."""
        url = lease.visit.url
        if not self._known or url in starts:
            return lease
        shapes = [place for place in self._known if NAME in place and nonexistent_pages.has_shape(url, place)]
        shapes.sort(key=lambda shape: (-len(shape), shape))
        places = (*soft_404.doubtful_places(url), *shapes, origin(url))
        missing = next((page for place in places if (page := self._known.get(place))), None)
        return replace(lease, missing=missing) if missing and url not in missing.instead else lease

    async def has_places(self) -> bool:
        """Whether a folder answers anything: links were followed there before it was asked."""
        return any((await self.frontier.recall(ASKED_PLACES))[0].values())

    async def recall(self, *, anew: bool = False) -> None:
        """Restores what this run was answered."""
        if self._known is None or anew:
            known = await self.frontier.recall(MISSING)
            self._known = None if known is None else dict(known)
            _, self._asked = await self.frontier.recall(ASKED_PLACES)

    async def recall_published(self) -> None:
        """Goes by what the last published run was answered: a partial run visits too few pages to ask."""
        await self.recall()
        if self._known is None:
            before = await self.frontier.recall(MISSING, "published")
            self._known = dict(before or {})
            await self.frontier.remember(MISSING, self._known)
            await self.frontier.remember(REDIRECTED, await self.frontier.recall(REDIRECTED, "published"))

    async def ask(self, starts: Sequence[Url]) -> None:
        """Asks each origin, once a run.

        Pages of folders that answered anything before are read in the same way again, or else their contents
        would seem to have changed.
        """
        await self.recall()
        if self._known is None:
            self._asked = 0
            before = await self.frontier.recall(MISSING, "published") or {}
            found = {site: await self._of_origin(site, starts) for site in sorted(set(map(origin, starts)))}
            self._known = {site: page for site, page in found.items() if page}
            places = [place for place, page in before.items() if page.place]
            self._known |= {
                place: self._known.get(origin(Url(place)), NOTHING)._replace(place=place) for place in places
            }
            to = {
                site: await self._redirected_to(site, starts) for site in sorted(found.keys() - self._known)
            }
            await self.frontier.remember(REDIRECTED, {site: url for site, url in to.items() if url})
            await self.frontier.remember(ASKED_PLACES, ({}, self._asked))
            await self.frontier.remember(MISSING, self._known)

    async def ask_places(self, starts: Sequence[Url]) -> int:
        """Asks doubtful folders, paths and shapes, once a run each. How many pages there are read again."""
        if self._known is None:
            return 0
        known, _ = await self.frontier.recall(ASKED_PLACES)
        asked = dict(known)
        again, news = list[Url](), False
        contents = {place: page.content for place, page in self._known.items() if page.place}
        refused = frozenset(place for place, found in known.items() if not found)
        alike = sum(NAME in place for place in known) < MOST_PLACES
        places = await self.frontier.read(reads.DoubtfulPlaces(contents, refused, alike))
        left = await self.frontier.read(reads.QuestionsLeft())
        most = self._asked + left - QUESTIONS if left is not None else sys.maxsize
        tried = 0  # folders with few pages that had no page for nothing
        for place, one in sorted(places.items(), key=lambda found: _turn(*found)):
            pages = one.pages
            is_due = not one.is_small or self._may_ask_small(place, asked, tried)
            if is_due and self._asked < most and self._may_ask(place, pages, asked):
                found = await self._of_place(place, pages, starts)
                if found and soft_404.has_beside(place, places) and await self._shows_own_page(place, found):
                    found = None
                asked[place], news = found is not None, True
                tried += one.is_small and not found
                if found:
                    self._known[place] = found._replace(place=place)
            again += pages if asked.get(place) else ()
        if news:
            await together(
                self.frontier.remember(MISSING, self._known),
                self.frontier.remember(ASKED_PLACES, (asked, self._asked)),
            )
        return await self.frontier.read_again(sorted(again)[: max(0, most - self._asked)])

    async def _of_origin(self, site: str, starts: Sequence[Url]) -> MissingPage | None:
        """What an origin shows; if that is an error, what it shows at addresses like those of its pages."""
        found = await self._answer(nonexistent_pages.at_origin(site), starts)
        own = [url for url in starts if origin(url) == site][:SAMPLES]
        linked = [url for url in await self._linked(own) if origin(url) == site] if not found else ()
        for form in nonexistent_pages.like_linked(site, linked):
            found = found or await self._answer(form, starts)
        return found

    async def _redirected_to(self, site: str, starts: Sequence[Url]) -> Url | None:
        """Where nonexistent pages of an origin are redirected to, if that is one page but for its query."""
        first, second = nonexistent_pages.at_origin(site)[:2]
        to = self._moved.get(first)
        if to is None or to in starts or origin(to) != site or await self.read(to) is None:
            return None
        await self.read(second)
        other = self._moved.get(second, first)
        return to if to.partition("?")[0] == other.partition("?")[0] else None

    async def _linked(self, starts: Sequence[Url]) -> Sequence[Url]:
        """The links of the start pages, as they were read."""
        ids = await together(*(self.frontier.read(reads.NumberOf(url)) for url in starts))
        rows = await self.frontier.read(reads.LinksOf(tuple(ids)))
        linked = sorted({number for row in rows.values() for number in row.links if number > 0})
        return sorted(to.url for to in (await self.frontier.read(reads.TargetsOf(linked))).values())

    async def _of_place(self, place: str, pages: Sequence[Url], starts: Sequence[Url]) -> MissingPage | None:
        """What a folder shows for pages that do not exist.

        What is asked in the form of its own pages may be one of them, unless two of them lead to one answer;
        so may what is asked above folders.
        """
        is_deep = place.endswith(f"/{NAME}")
        found: MissingPage | None = None
        for number, form in enumerate(nonexistent_pages.at_place(place, pages)):
            shown = None if found else await self._answer(form, starts, place=True)
            found = shown if shown and (shown.is_exact or not (number or is_deep)) else found
        return found

    async def _shows_own_page(self, place: str, found: MissingPage) -> bool:
        """Whether a folder itself shows that: what follows its address means nothing."""
        return bool(await self._showing(found, soft_404.shown_instead(place)[:2]))

    def _may_ask(self, place: str, pages: Sequence[Url], asked: Mapping[str, bool]) -> bool:
        """The days of a calendar are asked for by `finish.soft_404s`."""
        if not pages or place in asked or soft_404.is_calendar(place):
            return False
        refused = sum((NAME in other) == (NAME in place) for other, found in asked.items() if not found)
        is_origin_known = origin(pages[0]) in (self._known or ())
        return refused < MOST_PLACES and len(asked) < MOST_ASKED and not is_origin_known

    def _may_ask_small(self, place: str, asked: Mapping[str, bool], tried: int) -> bool:
        """A folder with few pages, unless others were refused, or it is in one that answers anything."""
        answering = tuple(other for other, found in asked.items() if found)
        return not place.startswith(answering) if answering else tried < MOST_TRIED

    async def _answer(
        self, urls: Sequence[Url], starts: Sequence[Url], *, place: bool = False
    ) -> MissingPage | None:
        """What pages have in common that do not exist; None if they do not, or answer with an error."""
        asked = list[ShownPage]()
        for url in urls:
            if (page := await self.read(url)) is None:
                return None
            asked.append(page)
            # How much the answers of an origin differ is measured with all of them.
            if soft_404.is_settled([page.blocks for page in asked]) and (place or soft_404.exactly(asked)):
                break
        path, mark, _ = urls[0].partition("?")
        if mark and len({page.content for page in asked}) == 1:
            return None  # a query that shows one page for anything ends by the samples of its pattern
        asks_query = bool(mark) and not place
        true = await self._true_pages(f"{path}?" if asks_query else origin(urls[0]), starts)
        found = soft_404.missing_page(asked, *true) if true else None
        if true is None or found is None:
            return None
        common = soft_404.shared([page.blocks for page in asked])
        if asks_query and any(common <= page.all_blocks for page in true[1]):
            return None  # the query shows one of its pages for anything
        if place:
            is_one = found.is_exact and len({page.content for page in asked}) == 1
            # A folder is asked if its pages are much alike already.
            return _one_page(found, asked) if is_one else found._replace(most=2 * found.most)
        return await self._with_links(found, asked, true[1], starts)

    async def _with_links(
        self, found: MissingPage, asked: Sequence[ShownPage], true: Sequence[ShownPage], starts: Sequence[Url]
    ) -> MissingPage:
        """What an origin shows, with where it leads, and the true pages that show the same."""
        home, links = self._homes.get(origin(asked[0].url)), _common_links(asked)
        on_start = [url for url in home.links if url not in starts] if home else []
        fronts = [url for url in soft_404.front_pages(links) if url not in starts]
        instead = await self._showing(found, fronts)
        if links.isdisjoint(instead):  # a folder without a page shows the same as all that is missing
            true = [page for page in true if not soft_404.is_missing(found, page.said)]
            linked = await self._showing(found, soft_404.linked_fronts(links, on_start, true))
            instead = linked if len(linked) == 1 else instead  # several may all be links to errors
        beyond = sorted(links.difference(home.links if home else (), instead))
        return found._replace(links=tuple(beyond[:MOST_LINKS]), instead=tuple(instead))

    async def _showing(self, found: MissingPage, urls: Sequence[Url]) -> Sequence[Url]:
        """Those of some addresses that show what the origin shows for nonexistent pages."""
        pages = [page for url in urls if (page := await self.read(url))]
        return [page.url for page in pages if soft_404.is_missing(found, page.said)]

    async def _true_pages(
        self, within: str, starts: Sequence[Url]
    ) -> tuple[frozenset[int], Sequence[ShownPage]] | None:
        """The blocks of the start page, and of pages to which it links, of an origin, or of a path with "?".

        What the path shows without a query may be shown for values that do not exist, and is a true page.
        """
        if within not in self._true:
            start = next((url for url in reversed(starts) if origin(url) == origin(Url(within))), None)
            home = await self.read(start) if start else None
            self._homes[origin(Url(within))] = home
            self._true[within] = await self._pages_beside(home, within, starts) if home else None
        return self._true[within]

    async def _pages_beside(
        self, home: ShownPage, within: str, starts: Sequence[Url]
    ) -> tuple[frozenset[int], Sequence[ShownPage]]:
        path, mark, _ = within.partition("?")
        linked = [url for url in home.links if url not in starts and url.startswith(within)]
        others = [page for url in _samples(linked, mark) if (page := await self.read(url))]
        bare = await self.read(Url(path)) if mark else None
        return home.all_blocks | (bare.all_blocks if bare else frozenset()), others

    async def read(self, url: Url) -> ShownPage | None:
        """A page; None if it is none, or may stall the parser: it is parsed in this process.

        Some sites add a slash or a query to all addresses, also to those of pages that do not exist.
        """
        self._asked += 1
        reply = await self.fetch(url)
        to = target_of(url, reply) if reply else None
        if to and to.startswith((f"{url}?", f"{url}/")):
            url, reply = to, await self.fetch(to)
        elif to:
            self._moved[url] = to
        markup = plain_markup(self.judge, url, reply)
        if reply is None or markup is None:
            return None
        wanted = markup.wanted - {Extract.SPARING} | {Extract.BLOCKS, Extract.ECHOLESS}
        part = nonexistent_pages.nonsense_in(url)
        page = replace(markup, wanted=wanted, part=part, most_blocks=MOST_BLOCKS).read()
        links = self.judge(Lease(0, 0, Visit(url)), reply, datetime.now(UTC), page).links.followed
        return ShownPage(url, page.said, page.content, links)


def _samples(linked: Sequence[Url], mark: str) -> Sequence[Url]:
    """Some of the pages to which the start page links, from all over its links.

    Of an origin, most have no query, and some have one: anybody may have posted all of one of the two.
    """
    plain = [url for url in linked if mark or "?" not in url]
    others = [url for url in linked if not mark and "?" in url]
    few = min(len(others), max(SAMPLES // 3, SAMPLES - len(plain)))
    return [*_spread(plain, SAMPLES - few), *_spread(others, few)]


def _spread(urls: Sequence[Url], most: int) -> Sequence[Url]:
    return urls[:: -(-len(urls) // most)] if urls and most else ()


def _turn(place: str, found: DoubtfulPlace) -> tuple[bool, bool, int, str]:
    """In which order places are asked: last, those with few pages."""
    return found.is_small, NAME in place, -len(found.pages) if found.is_small else 0, place


def _one_page(found: MissingPage, asked: Sequence[ShownPage]) -> MissingPage:
    """What a folder shows that has one page for all that is missing."""
    links = tuple(sorted(_common_links(asked))[:MOST_LINKS])
    return found._replace(blocks=(), content=asked[0].content, links=links)


def _common_links(asked: Iterable[ShownPage]) -> frozenset[Url]:
    return frozenset.intersection(*(frozenset(page.links) for page in asked))
