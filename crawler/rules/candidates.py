"""Turns discovered URLs into visits, or filters them, by scope and crawler traps.

Decides by the text of a URL alone, not by what was seen before; pages are judged by `judge`. Pure, apart from a cache.
"""

from collections.abc import Sequence
from typing import Final

from crawler.model.lease import Lease
from crawler.model.outcome import Listed, Moved, Outcome, Pattern, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Link, Visit
from crawler.parse.url import SHORT, Url
from crawler.rules.scope import Scope
from crawler.rules.traps import Traps

CACHED: Final = 50_000  # cached URLs


class Candidates:
    """`scope` may be widened during a crawl, when a start URL redirects to another host."""

    def __init__(self, scope: Scope, traps: Traps) -> None:
        self.scope, self.traps = scope, traps
        self._cached: dict[Url, Pattern | None] = {}  # URLs that are not filtered
        self._patterns: dict[Pattern, Pattern] = {}  # one instance of each, shared by the cached URLs

    def settlement(self, lease: Lease, verdict: Verdict, links: Sequence[Link]) -> Settlement:
        """The settlement of a lease, with the visits that its page leads to."""
        visit, outcome = lease.visit, verdict.outcome
        if self.scope.mapped:
            links = self._ours(visit.url, outcome, links)
        if isinstance(outcome, Moved):
            found = tuple(
                self.visit(link.url, visit.depth, visit.url, visit.hops + 1, named=True)
                if link.url == outcome.to
                else self.visit(link.url, visit.depth + 1, visit.url)
                for link in links
            )
        elif isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL:
            found = tuple(
                self.visit(url, visit.depth + 1, visit.url, nofollow=nofollow, named=url == outcome.detail)
                for url, nofollow in links
            )
        else:
            deeper, via, cached = visit.depth + 1, visit.url, self._cached
            found = tuple(
                Visit(url, deeper, via, 0, None, cached[url])
                if url in cached and not nofollow
                else self.visit(url, deeper, via, nofollow=nofollow)
                for url, nofollow in links
            )
        judged = Verdict(
            self.listable(visit.url, outcome), verdict.facts, (), verdict.unchanged, named=verdict.named
        )
        return Settlement(lease, judged, found, listable=self.scope.unlisted(visit.url) is None)

    def _ours(self, page: Url, outcome: Outcome, links: Sequence[Link]) -> list[Link]:
        """Links to aliases of the site as links to it. What a page names in its own place is meant as it is."""
        named = outcome.to if isinstance(outcome, Moved) else None
        if isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL:
            named = Url(outcome.detail)
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
        pattern = self.traps.pattern(url, named=named)
        if self.scope.max_depth is None and not named and len(url) <= SHORT:
            # For such a URL the result does not depend on where it was found.
            if len(self._cached) >= CACHED:
                self._cached.clear()
                self._patterns.clear()
            self._cached[url] = pattern and self._patterns.setdefault(pattern, pattern)
        return Visit(url, depth, via, hops, None, pattern)

    def listable(self, url: Url, outcome: Outcome) -> Outcome:
        """The outcome, or `Unlisted` if the scope excludes the URL from the sitemap."""
        why = self.scope.unlisted(url) if isinstance(outcome, Listed) else None
        return outcome if why is None else Unlisted(why)
