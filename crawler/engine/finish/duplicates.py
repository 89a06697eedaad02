"""Soft 404s and duplicates, which can be recognised only when all pages are known. For dates, see `dating`.

The engine runs it at the end of a complete crawl, before the run is marked as complete. It changes outcomes
in the frontier and fetches a few more pages at most.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from crawler.model.facts import Facts, Obstacle
from crawler.model.reasons import Why
from crawler.model.reply import Reply
from crawler.model.survey import WithContent
from crawler.model.visit import Lease, Visit
from crawler.parse import fingerprint
from crawler.parse.extract import Extract
from crawler.parse.url import Url
from crawler.ports import Record, reads
from crawler.rules import soft_404
from crawler.rules.judge import Judge
from crawler.rules.traps import SOFT_404_PAGES, Traps

MOST_BELOW: Final = 5  # pages of a site that are asked for a nonexistent page below them
PROBES: Final = 200  # nonexistent pages requested in one run, at most


async def soft_404s(
    pages: Record,
    judge: Judge,
    traps: Traps,
    starts: Sequence[Url],
    ask: Callable[[Url], Awaitable[Reply | None]],
) -> None:
    """Unlists pages with the same content as the site's response for a nonexistent page.

    A nonexistent page is requested only where several pages have the same content: of the origin, of the
    folder of each, or of its query. The page that the site shows in place of what is missing stays: a
    start page, that of the folder, that without a query. If a start page needs scripts to show anything,
    others may, too: then nothing like it is unlisted.
    """
    if traps.allows("soft-404"):
        return
    home = [
        record.facts for url in starts if (record := await pages.read(reads.RecordOf(url))) and record.facts
    ]
    shells = {version for it in home if it.obstacle is Obstacle.SHELL for version in _versions(it)}
    answers = _Answers(judge, ask, shells)
    for group in await pages.read(reads.SameContentGroups(SOFT_404_PAGES)):
        if group.content in shells:
            continue
        done = list[str]()
        for example, place in soft_404.places_of(await pages.read(reads.PagesWithContent(group))):
            same = frozenset() if example.startswith(tuple(done)) else await answers.at(place)
            if group.content not in same:
                continue
            done.append(place.prefix)
            why, detail = Why.SOFT_404, place.asked[0]
            spared = [*starts, *soft_404.shown_instead(place.prefix)]
            if place.bare and same & await answers.to(place.bare):
                # The page of the path, which ignores the query: once.
                why, detail = Why.DUPLICATE, example
                spared.append(example)
            elif await answers.lead_on(place, starts):
                # The last page of a list, shown for any higher number: once.
                why, detail = Why.DUPLICATE, example
                spared.append(example)
            else:
                traps.report("soft-404", f"{group.count:,} pages of {group.origin}", example)
            for content in same:
                found = WithContent(group.origin, content, place.prefix, tuple(spared))
                await pages.withdraw(found, why, detail)


class _Answers:
    """The contents of nonexistent pages, each asked once. What needs scripts shows nothing."""

    def __init__(
        self, judge: Judge, ask: Callable[[Url], Awaitable[Reply | None]], shells: Collection[str | None]
    ) -> None:
        self._judge, self._ask, self._shells = judge, ask, frozenset(shells)
        self._known: dict[Url, frozenset[str]] = {}
        self._links: dict[Url, frozenset[Url]] = {}

    async def to(self, url: Url) -> frozenset[str]:
        """What is shown at a URL."""
        if url not in self._known:
            reply = await self._ask(url) if len(self._known) < PROBES else None
            found = _contents(self._judge, url, reply) if reply else frozenset()
            self._known[url] = found if self._shells.isdisjoint(found) else frozenset()
            self._links[url] = _links(self._judge, url, reply) if found and reply else frozenset()
        return self._known[url]

    async def at(self, place: soft_404.Place) -> frozenset[str]:
        """What both nonexistent pages of a place show."""
        one, other = place.asked
        shown = await self.to(one)
        return shown & await self.to(other) if shown else shown

    async def lead_on(self, place: soft_404.Place, starts: Sequence[Url]) -> bool:
        """Whether both nonexistent pages of a place lead to pages elsewhere that no start page leads to."""
        beyond = frozenset.intersection(*(self._links[url] for url in place.asked)).difference(starts)
        beyond = frozenset(url for url in beyond if not url.startswith(place.prefix) and url != place.bare)
        for start in starts if beyond else ():
            await self.to(start)
            beyond -= self._links[start]
        return bool(beyond)


def _versions(facts: Facts) -> Iterator[str | None]:
    """What is compared of a page: its content, and its bytes."""
    yield from (facts.content, f"{fingerprint.BYTES}{facts.digest}")


async def duplicates(pages: Record, judge: Judge, ask: Callable[[Url], Awaitable[Reply | None]]) -> None:
    """Lists only one of the pages that are the same at several spellings of an address.

    Where pages below others are the same as these, some of these others are asked for a nonexistent page
    below them. If all answer with themselves, the site ignores what follows a path.
    """
    if not judge.applies("duplicate"):
        return
    ignoring = list[str]()
    for site, examples in (await pages.read(reads.CopiesBelow(MOST_BELOW))).items():
        if all([await _ignores_rest(pages, judge, ask, url) for url in examples]):
            ignoring.append(site)
    await pages.unlist_duplicates(ignoring)


async def _ignores_rest(
    pages: Record, judge: Judge, ask: Callable[[Url], Awaitable[Reply | None]], url: Url
) -> bool:
    """Whether a page is also shown for what does not exist below it."""
    record, asked = await pages.read(reads.RecordOf(url)), soft_404.below(url)
    reply = await ask(asked) if record and record.facts else None
    if record is None or record.facts is None or reply is None:
        return False
    return not _contents(judge, asked, reply).isdisjoint(_versions(record.facts))


def _links(judge: Judge, url: Url, reply: Reply) -> frozenset[Url]:
    return frozenset(judge(Lease(0, 0, Visit(url)), reply, datetime.now(UTC)).links.followed)


def _contents(judge: Judge, url: Url, reply: Reply) -> frozenset[str]:
    """The fingerprints of its text, with what repeats the URL or without, and the digest of its bytes.

    Empty for markup that may stall the parser, as the page is untrusted and is parsed in this process.
    """
    markup = judge.markup(Lease(0, 0, Visit(url)), reply, datetime.now(UTC))
    if markup is None or markup.is_risky or markup.is_long:
        return frozenset()
    plain = markup.wanted - {Extract.SPARING, Extract.ECHOLESS, Extract.CALENDAR}
    ways = (plain, plain | {Extract.ECHOLESS}, plain | {Extract.ECHOLESS, Extract.CALENDAR})
    own = {replace(markup, wanted=wanted).read().content for wanted in ways}
    return frozenset(filter(None, (*own, fingerprint.BYTES + fingerprint.digest(markup.body))))
