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
from crawler.report.history import EarlierFindings
from crawler.report.url_kind import FAILED, FAILING, LINKED_CODES, OFF_SITE, is_listed, kind_of

FIRST: Final = 100  # URLs of each kind to keep
MOST_GROUPS: Final = 10_000  # whose URLs are kept


class UrlChange(Struct, frozen=True):
    """A URL, with details of the change."""

    url: str
    why: str = ""


class _Sample(Struct, eq=False):
    """A count, and the first URLs counted."""

    count: int = 0
    items: list[UrlChange] = field(default_factory=list)

    def add(self, url: str, why: str = "", *, is_kept: bool = True) -> None:
        self.count += 1
        if is_kept and len(self.items) < FIRST:
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
    _groups: defaultdict[tuple[Code, int], _Sample] = field(default_factory=lambda: defaultdict(_Sample))
    _open: set[tuple[Code, int]] = field(default_factory=set)  # groups of which it is not known

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

    def add_mended(
        self, page: PageRow, before: EarlierFindings, sought: Collection[Code], now: Collection[Code]
    ) -> None:
        """Compare the findings of a page with those that it had: if it fails otherwise now, or nobody knows
        whether it still does, none of them is mended, and no group in which it was.
        """
        had = before.of(page.id) if self.complete else ()
        if not had:
            return
        is_open = not FAILING.isdisjoint(now) or self._is_unknown(page)
        fails = is_open or (page.run == self.run and kind_of(page.outcome, page.status) in FAILED)
        for code in had:
            if (group := before.group(code, page.id)) is not None and fails:
                self._open.add((code, group))
            elif code in sought and code not in now and not is_open:
                some = self.mended[code] if group is None else self._groups[code, group]
                some.add(page.url, self._why(page, code), is_kept=len(self._groups) <= MOST_GROUPS)

    def add_mended_files(self, code: Code, urls: Iterable[str]) -> None:
        """Files that had the finding, and have none now."""
        for url in urls if self.complete else ():
            self.mended[code].add(url)

    def close(self) -> None:
        """Add the pages of groups, which are mended if none of these fails now."""
        for (code, group), some in self._groups.items():
            if (code, group) not in self._open:
                of_code = self.mended[code]
                of_code.count += some.count
                of_code.items = sorted([*of_code.items, *some.items], key=lambda one: one.url)[:FIRST]

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
            is_said = page.detail in {"", str(page.status)}
            self.removed.add(page.url, says(page.outcome) + ("" if is_said else f": {page.detail}"))
        elif before and now and self.complete and page.lastmod != page.was_lastmod:
            self.dated.add(page.url, f"{_day(page.was_lastmod)} → {_day(page.lastmod)}")


def _day(at: int | None) -> str:
    return (iso(at) or "")[:10] or "no date"
