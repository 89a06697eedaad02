"""What the site answers to questions at the end of a crawl, each asked once: the contents of single pages."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from crawler.model.facts import Facts
from crawler.model.reply import Reply
from crawler.model.visit import Lease, Visit
from crawler.parse import fingerprint
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.parse.url import Url
from crawler.rules import content_digest, nonexistent_pages, soft_404
from crawler.rules.judge import Judge

PROBES: Final = 200  # nonexistent pages requested for each of the rules, at most
RENDERED: Final = 40  # the same in the browser, which takes a second for each

NOT_PLAIN: Final = frozenset({Extract.SPARING, Extract.ECHOLESS, Extract.CALENDAR})

Ask = Callable[[Url], Awaitable[Reply | None]]


class SiteAnswers:
    """The contents of pages that are asked for. What needs scripts shows nothing, unless they are run."""

    def __init__(
        self,
        judge: Judge,
        ask: Ask,
        shells: Collection[str | None],
        most: int = PROBES,
        render: Ask | None = None,
    ) -> None:
        """`most`: pages that are asked for by `to`. `shells`: contents of pages that need scripts.

        `render`: asks in the browser.
        """
        self._judge, self._ask, self._shells, self._most = judge, ask, frozenset(shells), most
        self._render = render
        # What is asked where pages were rendered.
        self._in_browser = SiteAnswers(judge, render, shells, min(most, RENDERED)) if render else self
        self._known: dict[Url, frozenset[str]] = {}
        self._links: dict[Url, frozenset[Url]] = {}
        self._without_values: dict[Url, str | None] = {}

    async def to(self, url: Url) -> frozenset[str]:
        """What is shown at a URL that may not exist."""
        if url not in self._known:
            reply = await self._ask(url) if len(self._known) < self._most else None
            found = self._known[url] = self._shown(reply, [url])
            self._links[url] = _links(self._judge, url, reply) if found and reply else frozenset()
            self._without_values[url] = _without_values(self._judge, url, reply) if found else None
        return self._known[url]

    def without_values(self, url: Url) -> str | None:
        """The content of what was shown `to` a URL, without what names a value of its query."""
        return self._without_values[url]

    async def shows_without_values(self, page: Url, url: Url) -> bool:
        """Whether another page shows that, without what names a value of the query of the URL."""
        content = _without_values(self._judge, url, await self._ask(page))
        return content is not None and content == self._without_values[url]

    def like(self, facts: Facts | None) -> "SiteAnswers":
        """The answers to be compared with a page: in the browser if it was rendered.

        Not if requests of its scripts were refused: where these had the content, all pages look like nothing.
        """
        seen = facts.rendering if facts else None
        return self._in_browser if seen and seen.after and not seen.refused else self

    async def at(self, place: nonexistent_pages.Place) -> frozenset[str]:
        """What both nonexistent pages of a place show."""
        one, other = place.asked
        shown = await self.to(one)
        return shown & await self.to(other) if shown else shown

    def fresh(self, most: int = PROBES) -> "SiteAnswers":
        """The same for another rule, which may ask `most`."""
        return SiteAnswers(self._judge, self._ask, self._shells, most, self._render)

    async def read(self, page: Url, as_if_at: Sequence[Url]) -> Sequence[frozenset[str]]:
        """What a page shows, as if it were at each of some URLs: without what repeats that."""
        reply = await self._ask(page)
        return [self._shown(reply, [page, url]) for url in as_if_at]

    def front_pages(self, place: nonexistent_pages.Place) -> Sequence[Url]:
        """See `soft_404.front_pages`, by what both nonexistent pages of a place, which was asked, lead to."""
        return soft_404.front_pages(self._common_links(place))

    async def lead_on(self, place: nonexistent_pages.Place, starts: Sequence[Url]) -> bool:
        """Whether both nonexistent pages of a place lead to pages elsewhere that no start page leads to."""
        beyond = self._common_links(place).difference(starts)
        beyond = frozenset(url for url in beyond if not url.startswith(place.prefix) and url != place.bare)
        for start in starts if beyond else ():
            await self.to(start)
            beyond -= self._links[start]
        return bool(beyond)

    def _common_links(self, place: nonexistent_pages.Place) -> frozenset[Url]:
        return frozenset.intersection(*(self._links[url] for url in place.asked))

    def _shown(self, reply: Reply | None, urls: Sequence[Url]) -> frozenset[str]:
        """The fingerprints of a page, with what repeats one of the URLs or without, and of its bytes."""
        found = frozenset(text for url in urls for text in _contents(self._judge, url, reply))
        return found if self._shells.isdisjoint(found) else frozenset()


def _links(judge: Judge, url: Url, reply: Reply) -> frozenset[Url]:
    return frozenset(judge(Lease(0, 0, Visit(url)), reply, datetime.now(UTC)).links.followed)


def plain_markup(judge: Judge, url: Url, reply: Reply | None) -> PageSource | None:
    """What can be read in this process; None for a page that may stall the parser, as it is untrusted."""
    markup = judge.markup(Lease(0, 0, Visit(url)), reply, datetime.now(UTC)) if reply else None
    return None if markup is None or markup.is_risky or markup.is_long else markup


def _contents(judge: Judge, url: Url, reply: Reply | None) -> frozenset[str]:
    if (markup := plain_markup(judge, url, reply)) is None:
        return frozenset()
    plain = markup.wanted - NOT_PLAIN
    ways = (plain, plain | {Extract.ECHOLESS}, plain | {Extract.ECHOLESS, Extract.CALENDAR})
    part = nonexistent_pages.nonsense_in(url)
    read = [replace(markup, wanted=wanted, part=part).read() for wanted in ways]
    own = (text for page in read for text in (page.content, page.echoing))
    return frozenset(filter(None, (*own, fingerprint.BYTES + content_digest.of_bytes(markup.body))))


def _without_values(judge: Judge, url: Url, reply: Reply | None) -> str | None:
    """The content without what names a value of the query."""
    if "?" not in url or (markup := plain_markup(judge, url, reply)) is None:
        return None
    return replace(markup, wanted=markup.wanted - NOT_PLAIN | {Extract.VALUELESS}).read().content
