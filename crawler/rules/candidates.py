"""Turns discovered URLs into visits, or filters them, by scope and crawler traps.

Decides by the text of a URL alone; links to URLs that are known need no decision. Pages are judged by
`judge`. Pure, apart from the cache of known URLs.
"""

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence

from crawler.model.facts import Facts
from crawler.model.lease import Lease
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Links, Visit
from crawler.parse.url import Url
from crawler.rules import hreflang
from crawler.rules.known_urls import KnownUrls
from crawler.rules.scope import SiteScope
from crawler.rules.traps import Traps


class Candidates:
    """Checks URLs against the scope, which grows when a start URL redirects to another host."""

    def __init__(self, scope: SiteScope, traps: Traps) -> None:
        self._scope, self.traps = scope, traps
        self.known = KnownUrls()

    @property
    def scope(self) -> SiteScope:
        """Which URLs belong to the site. Replaced as a whole, as threads may read it."""
        return self._scope

    def admit(self, start: Url, to: Url) -> None:
        """Adds the target of a redirect of `start`, a start URL or the target of its redirect, to the scope."""
        self._scope = self._scope.admitting(start, to)

    def map_aliases(self, aliases: Mapping[str, str]) -> None:
        """Sets the aliases of the site in the scope: see `SiteScope.with_aliases`."""
        self._scope = self._scope.with_aliases(aliases)

    def settlement(self, lease: Lease, verdict: Verdict, links: Links) -> Settlement:
        """The settlement of a lease, with the visits that its page leads to."""
        visit, outcome = lease.visit, verdict.outcome
        if self.scope.mapped:
            links = self._ours(visit.url, outcome, links)
        named = _named(outcome)
        leading = {*verdict.named, named}
        if self.scope.rules and not self.scope.rules.follows(visit.url):
            links = Links(
                tuple(url for url in links.followed if url == named),
                (*(url for url in links.followed if url != named), *links.avoided),
            )
        numbers = array("q", self.known.numbers(links.followed))
        found = list[Visit]()
        for place in _places(links.followed, numbers, leading):
            url, numbers[place] = links.followed[place], 0
            if url == named and isinstance(outcome, Moved):
                found.append(self.visit(url, visit.depth, visit.url, visit.hops + 1, named=True))
            else:
                found.append(self.visit(url, visit.depth + 1, visit.url, named=url == named))
        for url, number in zip(links.avoided, self.known.numbers(links.avoided), strict=True):
            numbers.append(-abs(number))
            if not number:
                found.append(self.visit(url, visit.depth + 1, visit.url, nofollow=True))
        judged = Verdict(
            self.listable(visit.url, outcome),
            self._with_ours(verdict.facts),
            unchanged=verdict.unchanged,
            named=verdict.named,
            images=verdict.images,
        )
        listable = self.scope.unlisted(visit.url) is None
        return Settlement(lease, judged, tuple(found), listable, numbers)

    def forget(self) -> None:
        """Forgets all record numbers."""
        self.known = KnownUrls()

    def learn(self, visits: Iterable[Visit], numbers: Iterable[int]) -> None:
        """Remembers the record numbers of visits that were found and are settled."""
        for visit, number in zip(visits, numbers, strict=True):
            if number:
                self.known.add(visit.url, number)

    def _ours(self, page: Url, outcome: Outcome, links: Links) -> Links:
        """Links to aliases of the site as links to it. A canonical and a redirect target stay as they are."""
        named = _named(outcome)
        ours = [
            dict.fromkeys(url if url == named else self.scope.ours(url) for url in side) for side in links
        ]
        followed, avoided = (tuple(url for url in side if url != page) for side in ours)
        return Links(followed, tuple(url for url in avoided if url not in ours[0]))

    def _with_ours(self, facts: Facts | None) -> Facts | None:
        """The facts, with language versions on aliases of the site as versions on the site."""
        if not self.scope.mapped or facts is None or facts.alternates is None:
            return facts
        stated = hreflang.read(facts.alternates)
        return facts._replace(
            alternates=hreflang.written((code, self.scope.ours(url)) for code, url in stated)
        )

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
        why = self.scope.unlisted(url) if isinstance(outcome, Listed) else None
        return outcome if why is None else Unlisted(why, self._rule_of(url, why))

    def _rule_of(self, url: Url, why: Why) -> str:
        """The rule that unlists a page, as the detail of its outcome."""
        rule = self.scope.rules.of(url) if why is Why.NO_LIST else None
        return "" if rule is None or rule.list else f"[[rule]] {rule}"


def _places(urls: Sequence[Url], numbers: Sequence[int], leading: Container[Url | None]) -> Sequence[int]:
    """The positions of links that need a visit: without a positive number, or in `leading`."""
    if leading == {None}:
        return [place for place, number in enumerate(numbers) if number <= 0]
    return [place for place, number in enumerate(numbers) if number <= 0 or urls[place] in leading]


def _named(outcome: Outcome) -> Url | None:
    """The canonical or the redirect target of a page, if it has one."""
    if isinstance(outcome, Moved):
        return outcome.to
    return Url(outcome.detail) if isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL else None
