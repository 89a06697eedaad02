"""What a page leads to: each URL that was found is a visit, or known and set aside. Scope and traps together say which.

What a page says of itself is the judge's; here is what the text of a URL tells, and nothing that depends on what was
seen before. Pure, but for a memory that saves work.
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

PLACED: Final = 50_000  # URLs that were found, and are not looked at again when they are found again


class Candidates:
    """`scope` may grow on the way: a start URL moves house."""

    def __init__(self, scope: Scope, traps: Traps) -> None:
        self.scope, self.traps = scope, traps
        self._placed: dict[Url, Pattern | None] = {}  # found before, and not set aside
        self._patterns: dict[Pattern, Pattern] = {}  # one of each, for all the URLs that are remembered

    def settlement(self, lease: Lease, verdict: Verdict, links: Sequence[Link]) -> Settlement:
        """The lease closed, and where its page leads."""
        visit, outcome = lease.visit, verdict.outcome
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
            deeper, via, placed = visit.depth + 1, visit.url, self._placed
            found = tuple(
                Visit(url, deeper, via, 0, None, placed[url])
                if url in placed and not nofollow
                else self.visit(url, deeper, via, nofollow=nofollow)
                for url, nofollow in links
            )
        judged = Verdict(self.listable(visit.url, outcome), verdict.facts, (), verdict.unchanged)
        return Settlement(lease, judged, found, listable=self.scope.unlisted(visit.url) is None)

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
        """A URL that was found: a visit, or known and set aside.

        `named`: the page that led here is a copy of it, or redirects to it.
        """
        filtered = Why.NOFOLLOW if nofollow else self.scope.filtered(url, depth)
        if filtered is None and self.traps.bars(url, depth):
            filtered = Why.TRAP
        if filtered is not None:
            return Visit(url, depth, via, hops, filtered)
        pattern = self.traps.pattern(url, named=named)
        if self.scope.max_depth is None and not named and len(url) <= SHORT:
            # Where it was found makes no difference to such a URL, and it is known from now on.
            if len(self._placed) >= PLACED:
                self._placed.clear()
                self._patterns.clear()
            self._placed[url] = pattern and self._patterns.setdefault(pattern, pattern)
        return Visit(url, depth, via, hops, None, pattern)

    def listable(self, url: Url, outcome: Outcome) -> Outcome:
        """The outcome, unless the scope lists no such page."""
        why = self.scope.unlisted(url) if isinstance(outcome, Listed) else None
        return outcome if why is None else Unlisted(why)
