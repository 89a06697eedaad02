"""What changed since the previous run: URLs added, removed (and why), or listed with another date.

Takes every page once; counts are exact, and the first URLs of each kind are kept. Removed URLs are left out
if the run is not complete, as they may still be found.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crawler.model.outcome import says
from crawler.model.rows import PageRow
from crawler.report.formatting import iso
from crawler.report.url_kind import is_listed

FIRST: Final = 100  # URLs of each kind to keep


class UrlChange(NamedTuple):
    """A URL, with details of the change."""

    url: str
    why: str = ""


@dataclass
class _Sample:
    """A count, and the first URLs counted."""

    count: int = 0
    items: list[UrlChange] = field(default_factory=list)

    def add(self, url: str, why: str = "") -> None:
        self.count += 1
        if len(self.items) < FIRST:
            self.items.append(UrlChange(url, why))


@dataclass
class Changes:
    """The changes from run `since` to run `run`. Without a previous run there are none."""

    run: int
    since: int | None
    complete: bool
    added: _Sample = field(default_factory=_Sample)
    removed: _Sample = field(default_factory=_Sample)
    dated: _Sample = field(default_factory=_Sample)

    def add_page(self, page: PageRow) -> None:
        """Compare a page with the previous run."""
        if self.since is None:
            return
        if page.run == self.run:
            self._compare(page)
        elif page.run == self.since and is_listed(page.outcome) and self.complete:
            self.removed.add(page.url, "no longer found: no page links to it")

    def _compare(self, page: PageRow) -> None:
        before, now = is_listed(page.was or ""), is_listed(page.outcome)
        if now and not before:
            self.added.add(page.url, f"before: {says(page.was)}" if page.was else "found for the first time")
        elif before and not now and page.outcome and self.complete:
            self.removed.add(
                page.url, f"{says(page.outcome)}: {page.detail}" if page.detail else says(page.outcome)
            )
        elif before and now and self.complete and page.lastmod != page.was_lastmod:
            self.dated.add(page.url, f"{_day(page.was_lastmod)} → {_day(page.lastmod)}")


def _day(at: int | None) -> str:
    return (iso(at) or "")[:10] or "no date"
