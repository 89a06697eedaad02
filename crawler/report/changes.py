"""What changed since the previous run: URLs added, removed (and why), or listed with another date, and which
faults were mended.

Takes every page once; counts are exact, and the first URLs of each kind are kept. Removed URLs are left out
if the run is not complete, as they may still be found.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, field

from crawler.model import external
from crawler.model.outcome import says
from crawler.model.rows import PageRow
from crawler.report.catalogue import Code
from crawler.report.formatting import iso
from crawler.report.url_kind import FAILING, LINKED_CODES, OFF_SITE, is_listed

FIRST: Final = 100  # URLs of each kind to keep


class UrlChange(Struct, frozen=True):
    """A URL, with details of the change."""

    url: str
    why: str = ""


class _Sample(Struct, eq=False):
    """A count, and the first URLs counted."""

    count: int = 0
    items: list[UrlChange] = field(default_factory=list)

    def add(self, url: str, why: str = "") -> None:
        self.count += 1
        if len(self.items) < FIRST:
            self.items.append(UrlChange(url, why))


class Changes(Struct, eq=False):
    """The changes from run `since`, the last that was published, to run `run`. Without it, there are none."""

    run: int
    since: int | None
    complete: bool
    added: _Sample = field(default_factory=_Sample)
    removed: _Sample = field(default_factory=_Sample)
    dated: _Sample = field(default_factory=_Sample)
    mended: defaultdict[Code, _Sample] = field(default_factory=lambda: defaultdict(_Sample))

    def add_page(self, page: PageRow) -> None:
        """Compare a page with the previous run."""
        if self.since is None:
            return
        if page.run == self.run:
            self._compare(page)
        elif self.complete and page.run >= self.since:
            before = page.outcome if page.run == self.since else page.was
            if is_listed(before or ""):
                self.removed.add(page.url, "no longer found: no page links to it")

    def add_mended(self, page: PageRow, before: Iterable[Code], now: Collection[Code]) -> None:
        """Compare the findings of a page with those that it had: if it fails otherwise now, or nobody knows
        whether it still does, none of them is mended.
        """
        if self.complete and FAILING.isdisjoint(now) and not self._is_unknown(page):
            for code in before:
                if code not in now:
                    self.mended[code].add(page.url, self._why(page, code))

    def _is_unknown(self, page: PageRow) -> bool:
        answer = page.external if page.run == self.run else None
        return answer is not None and external.kind_of(answer.code) == external.UNKNOWN

    def _why(self, page: PageRow, code: Code) -> str:
        if page.run == self.run and page.outcome == OFF_SITE:
            return "answers"
        if page.run == self.run and page.outcome != page.was:
            return says(page.outcome)
        return "no longer linked" if code in LINKED_CODES else ""

    def _compare(self, page: PageRow) -> None:
        before, now = is_listed(page.was or ""), is_listed(page.outcome)
        if now and not before:
            self.added.add(page.url, f"before: {says(page.was)}" if page.was else "not found then")
        elif before and not now and page.outcome and self.complete:
            is_told = page.detail in {"", str(page.status)}
            self.removed.add(page.url, says(page.outcome) + ("" if is_told else f": {page.detail}"))
        elif before and now and self.complete and page.lastmod != page.was_lastmod:
            self.dated.add(page.url, f"{_day(page.was_lastmod)} → {_day(page.lastmod)}")


def _day(at: int | None) -> str:
    return (iso(at) or "")[:10] or "no date"
