"""Turns discovered URLs into visits, or filters them, by scope and crawler traps.

Decides by the text of a URL alone; links to URLs that are known need no decision. Pages are judged by
`judge`. Pure, apart from the cache of known URLs.
"""

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.protocol import MAX_LOC
from crawler.model.reasons import Why
from crawler.model.settlement import KnownUrl, LinkNumbers, Settlement, Verdict
from crawler.model.visit import Lease, Links, Visit
from crawler.parse.url import Url
from crawler.rules.scope import SiteScope
from crawler.rules.traps import Traps

# Characters of URLs in a generation: more than the links of one page can have.
GENERATION_CHARACTERS: Final = 16_000_000

# Characters of new URLs in one session that are too long for a sitemap. They are crawled for links, and a
# hostile site has any number of them.
MOST_LONG: Final = 64_000_000


class KnownUrls:
    """A bounded cache of URLs known in this run, with their record numbers: links to them need no `Visit`.

    Two generations of a plain dict: an entry that is used moves to the newer one, others are dropped with the
    older one. Dropping an entry is always safe, since the frontier has every URL. Only numbers of a committed
    transaction are added.
    """

    def __init__(self, size: int = 50_000) -> None:
        self._size, self._weight = size, 0
        self._young: dict[Url, int] = {}
        self._old: dict[Url, int] = {}

    def add(self, url: Url, number: int) -> None:
        if len(self._young) >= self._size or self._weight >= GENERATION_CHARACTERS:
            self._old, self._young, self._weight = self._young, {}, 0
        self._weight += len(url)
        self._young[url] = number

    def number(self, url: Url) -> int:
        """Its record number; zero if it is not cached."""
        number = self._young.get(url)
        if number is None:
            number = self._old.get(url, 0)
            if number:
                self.add(url, number)
        return number

    def numbers(self, urls: Sequence[Url]) -> Sequence[int]:
        """`number` of each URL."""
        numbers = list(map(self._young.get, urls))
        if None not in numbers:
            return numbers  # type: ignore[return-value]
        return [number or self.number(url) for url, number in zip(urls, numbers, strict=True)]


class Candidates:
    """Checks URLs against the scope, which grows when a start URL redirects to another host."""

    def __init__(self, scope: SiteScope, traps: Traps, most_long: int = MOST_LONG) -> None:
        self._scope, self.traps, self._long_left = scope, traps, most_long
        self.forget()

    @property
    def scope(self) -> SiteScope:
        """Which URLs belong to the site. Replaced as a whole, as threads may read it."""
        return self._scope

    def admit(self, start: Url, to: Url) -> None:
        """Adds to the scope where `start` redirects, a start URL or the target of its redirect."""
        self._scope = self._scope.admitting(start, to)

    def map_aliases(self, aliases: Mapping[str, str]) -> None:
        """Sets the aliases of the site in the scope: see `SiteScope.with_aliases`."""
        self._scope = self._scope.with_aliases(aliases)

    def settlement(self, lease: Lease, verdict: Verdict, links: Links) -> Settlement:
        """The settlement of a lease, with the visits that its page leads to."""
        visit, outcome, named = lease.visit, verdict.outcome, _named(verdict.outcome)
        facts, given = verdict.facts, verdict.named
        if self.scope.mapped:
            facts, given, links = self._mapped(visit.url, verdict, links, named)
        leading = {*given, named}
        if self.scope.rules and not self.scope.rules.follows(visit.url):
            links = Links(
                tuple(url for url in links.followed if url == named),
                tuple(dict.fromkeys(url for url in links.urls if url != named)),
            )
        if self._long_left < 0:
            links = self._short(links, leading)
        followed = array("q", self._settled.numbers(links.followed))
        found = list[Visit]()
        for place in _places(links.followed, followed, leading):
            url, followed[place] = links.followed[place], 0
            if url == named and isinstance(outcome, Moved):
                found.append(self.visit(url, visit.depth, visit.url, visit.hops + 1, named=True))
            else:
                found.append(self.visit(url, visit.depth + 1, visit.url, named=url == named))
        avoided = array("q", [0 if url in leading else self._number(url) for url in links.avoided])
        for url, number in zip(links.avoided, avoided, strict=True):
            if not number:
                found.append(self.visit(url, visit.depth + 1, visit.url, nofollow=True))
        self._long_left -= sum(length for one in found if (length := len(one.url)) > MAX_LOC)
        why = self.scope.unlisted(visit.url)
        judged = Verdict(
            self._listable(visit.url, outcome, why),
            facts,
            unchanged=verdict.unchanged,
            named=given,
            features=self._with_ours(verdict.features),
        )
        return Settlement(lease, judged, tuple(found), why is None, LinkNumbers(followed, avoided))

    def _number(self, url: Url) -> int:
        return self._settled.number(url) or self._unsettled.number(url)

    def _mapped(
        self, page: Url, verdict: Verdict, links: Links, named: Url | None
    ) -> tuple[Facts | None, tuple[Url, ...], Links]:
        """The facts, what the page names and its links, with URLs on aliases as URLs on the site."""
        ours, facts, given = self.scope.ours, verdict.facts, verdict.named
        if facts and facts.canonical and facts.canonical != named:
            facts = facts._replace(canonical=ours(facts.canonical))
        is_read = not verdict.unchanged  # links that are stored were mapped then
        also = named if named and is_read and named not in given else None
        given = tuple(url if url == named else ours(url) for url in given)
        if also and ours(also) != also:
            given = (*given, also)
        return facts, given, self._ours(page, links, named, also, given)

    def _short(self, links: Links, leading: Container[Url | None]) -> Links:
        """The links without long ones, of which there were enough; a canonical or redirect target stays."""
        kept = Links(*(tuple(url for url in side if len(url) <= MAX_LOC or url in leading) for side in links))
        if kept != links:
            example = next(url for side in links for url in side if len(url) > MAX_LOC and url not in leading)
            self.traps.report("links", f"URLs above {MAX_LOC:,} characters, {MOST_LONG:,} in all", example)
        return kept

    def forget(self) -> None:
        """Forgets all record numbers."""
        self._settled, self._unsettled = KnownUrls(), KnownUrls()

    def learn(self, visits: Iterable[Visit], known: Iterable[KnownUrl | None]) -> None:
        """Remembers the record numbers of visits that were found and are settled."""
        for visit, record in zip(visits, known, strict=True):
            if record is not None:
                (self._settled if record.settled else self._unsettled).add(visit.url, record.number)

    def _ours(
        self, page: Url, links: Links, named: Url | None, also: Url | None, given: Sequence[Url]
    ) -> Links:
        """Links to aliases of the site as links to it. A canonical and a redirect target stay as they are.

        `also`: that is what is `named`, and a link as well.
        """
        ours = self.scope.ours
        followed = dict.fromkeys(
            to
            for url in links.followed
            for to in ((url, ours(url)) if url == also else (url if url == named else ours(url),))
        )
        avoided = dict.fromkeys(map(ours, links.avoided))
        return Links(
            tuple(url for url in followed if url != page),
            tuple(url for url in avoided if url != page and (url not in followed or url in given)),
        )

    def _with_ours(
        self, read: Mapping[str, tuple[LabelledUrl, ...]]
    ) -> Mapping[str, tuple[LabelledUrl, ...]]:
        """What features read; URLs on aliases as URLs on the site. Those without a label are no pages."""
        if not self.scope.mapped or not read:
            return read
        return {
            name: tuple(
                dict.fromkeys((label, self.scope.ours(url) if label else url) for label, url in found)
            )
            for name, found in read.items()
        }

    def visit(
        self,
        url: Url,
        depth: int,
        via: Url | None,
        hops: int = 0,
        *,
        nofollow: bool = False,
        named: bool = False,
    ) -> Visit:
        """A visit of a discovered URL, with a reason in `filtered` if it is not to be fetched.

        `named`: the linking page names it as canonical or redirects to it.
        """
        filtered = Why.NOFOLLOW if nofollow else self.scope.filtered(url, depth)
        if filtered is None and self.traps.bars(url, depth):
            filtered = Why.TRAP
        if filtered is not None:
            return Visit(url, depth, via, hops, filtered)
        return Visit(url, depth, via, hops, None, self.traps.pattern(url, named=named))

    def listable(self, url: Url, outcome: Outcome) -> Outcome:
        """The outcome, or `Unlisted` if the scope excludes the URL from the sitemap."""
        return self._listable(url, outcome, self.scope.unlisted(url))

    def _listable(self, url: Url, outcome: Outcome, why: Why | None) -> Outcome:
        if why is None or not isinstance(outcome, Listed):
            return outcome
        return Unlisted(why, self._rule_of(url, why))

    def _rule_of(self, url: Url, why: Why) -> str:
        """The rule that unlists a page, as the detail of its outcome."""
        rule = self.scope.rules.of(url) if why is Why.NO_LIST else None
        return "" if rule is None or rule.list else f"[[rule]] {rule}"


def _places(urls: Sequence[Url], numbers: Sequence[int], leading: Container[Url | None]) -> Sequence[int]:
    """The positions of links that need a visit: those to URLs without a number, or in `leading`."""
    if leading == {None}:
        return [place for place, number in enumerate(numbers) if not number]
    return [place for place, number in enumerate(numbers) if not number or urls[place] in leading]


def _named(outcome: Outcome) -> Url | None:
    """The canonical or the redirect target of a page, if it has one."""
    if isinstance(outcome, Moved):
        return outcome.to
    return Url(outcome.detail) if isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL else None
