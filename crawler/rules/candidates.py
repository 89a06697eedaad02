"""Turns discovered URLs into visits, or filters them, by scope and crawler traps.

Decides by the text of a URL alone; links to URLs that are known need no decision. Pages are judged by `judge`. Pure, apart
from the cache of known URLs.
"""

from array import array
from collections.abc import Iterable, Sequence

from crawler.model.lease import Lease
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Link, Visit
from crawler.parse.url import Url
from crawler.rules.known_urls import KnownUrls
from crawler.rules.scope import Scope
from crawler.rules.traps import Traps


class Candidates:
    """`scope` may be widened during a crawl, when a start URL redirects to another host."""

    def __init__(self, scope: Scope, traps: Traps) -> None:
        self.scope, self.traps = scope, traps
        self.known = KnownUrls()

    def settlement(self, lease: Lease, verdict: Verdict, links: Sequence[Link]) -> Settlement:
        """The settlement of a lease, with the visits that its page leads to."""
        visit, outcome = lease.visit, verdict.outcome
        if self.scope.mapped:
            links = self._ours(visit.url, outcome, links)
        named = _named(outcome)
        leading = {*verdict.named, named}
        found, numbers = list[Visit](), array("q")
        known = self.known.numbers(link.url for link in links)
        for (url, nofollow), number in zip(links, known, strict=True):
            if (number > 0 or (number and nofollow)) and url not in leading:
                numbers.append(-abs(number) if nofollow else number)
                continue
            numbers.append(0)
            if url == named and isinstance(outcome, Moved):
                found.append(self.visit(url, visit.depth, visit.url, visit.hops + 1, named=True))
            else:
                found.append(
                    self.visit(url, visit.depth + 1, visit.url, nofollow=nofollow, named=url == named)
                )
        judged = Verdict(
            self.listable(visit.url, outcome), verdict.facts, (), verdict.unchanged, named=verdict.named
        )
        listable = self.scope.unlisted(visit.url) is None
        return Settlement(lease, judged, tuple(found), listable, numbers)

    def learn(self, visits: Iterable[Visit], numbers: Iterable[int]) -> None:
        """Remembers the record numbers of visits that were found and are settled."""
        for visit, number in zip(visits, numbers, strict=True):
            if number:
                self.known.add(visit.url, number)

    def _ours(self, page: Url, outcome: Outcome, links: Sequence[Link]) -> list[Link]:
        """Links to aliases of the site as links to it. What a page names in its own place is meant as it is."""
        named = _named(outcome)
        ours: dict[Url, bool] = {}
        for url, nofollow in links:
            to = url if url == named else self.scope.ours(url)
            ours[to] = ours.get(to, True) and nofollow
        ours.pop(page, None)
        return [Link(url, nofollow) for url, nofollow in ours.items()]

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
        return outcome if why is None else Unlisted(why)


def _named(outcome: Outcome) -> Url | None:
    """The URL that a page names in its own place: its canonical, or where it redirects to."""
    if isinstance(outcome, Moved):
        return outcome.to
    return Url(outcome.detail) if isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL else None
