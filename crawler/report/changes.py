"""What changed since the previous run: URLs added, removed (and why), or listed with another date, and which
faults were mended.

Takes every page once; counts are exact, and the first URLs of each kind are kept. Removed URLs are left out
if the run is not complete, as they may still be found.
"""

from collections import defaultdict
from typing import Final

from msgspec import Struct, field

from crawler.model import external
from crawler.model.outcome import says
from crawler.model.rows import PageRow
from crawler.report.catalogue import Code
from crawler.report.formatting import iso
from crawler.report.url_kind import BY_KIND, FAILED, OFF_SITE, UrlKind, is_listed, kind_of

FIRST: Final = 100  # URLs of each kind to keep
_MENDABLE: Final = FAILED | {UrlKind.MOVED}


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
    check: int | None = None  # the round of the check of links to other sites
    added: _Sample = field(default_factory=_Sample)
    removed: _Sample = field(default_factory=_Sample)
    dated: _Sample = field(default_factory=_Sample)
    mended: defaultdict[Code, _Sample] = field(default_factory=lambda: defaultdict(_Sample))

    def add_page(self, page: PageRow) -> None:
        """Compare a page with the previous run."""
        if self.since is None:
            return
        if self.complete:
            self._mend(page)
        if page.run == self.run:
            self._compare(page)
        elif page.run >= self.since and is_listed(page.outcome) and self.complete:
            self.removed.add(page.url, "no longer found: no page links to it")

    def _compare(self, page: PageRow) -> None:
        before, now = is_listed(page.was or ""), is_listed(page.outcome)
        if now and not before:
            self.added.add(page.url, f"before: {says(page.was)}" if page.was else "not found then")
        elif before and not now and page.outcome and self.complete:
            is_told = page.detail in {"", str(page.status)}
            self.removed.add(page.url, says(page.outcome) + ("" if is_told else f": {page.detail}"))
        elif before and now and self.complete and page.lastmod != page.was_lastmod:
            self.dated.add(page.url, f"{_day(page.was_lastmod)} → {_day(page.lastmod)}")

    def _mend(self, page: PageRow) -> None:
        """Count a failure of the previous run that is none now, or to which no link leads any more."""
        if self.since is not None and self.since <= page.run < self.run:
            kind = kind_of(page.outcome, page.status)
            if kind in _MENDABLE:
                self.mended[BY_KIND[kind]].add(page.url, "no longer linked")
        elif page.run == self.run and page.outcome:
            before, now = kind_of(page.was or ""), kind_of(page.outcome)
            if before in _MENDABLE and now not in FAILED and now is not before:
                self.mended[BY_KIND[before]].add(page.url, says(page.outcome))
            elif page.outcome == OFF_SITE and self._answers_again(page):
                self.mended[Code.BROKEN_EXTERNAL].add(page.url, "answers")

    def _answers_again(self, page: PageRow) -> bool:
        answer = page.external
        if answer is None or answer.was is None or answer.round != self.check:
            return False
        kinds = external.kind_of(answer.was), external.kind_of(answer.code)
        return kinds == (external.BROKEN, external.OK)


def _day(at: int | None) -> str:
    return (iso(at) or "")[:10] or "no date"
