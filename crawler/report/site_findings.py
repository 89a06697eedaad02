"""The findings about the site as a whole, not about a page."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from crawler.model.outcome import says
from crawler.model.survey import VanishedPage, VanishedPages
from crawler.model.trap import SAYS
from crawler.parse.url import origin
from crawler.report.catalogue import Code
from crawler.report.formatting import iso
from crawler.report.report import Finding, Item, Known

FEWEST_DATED: Final = 10  # pages that may have one date by chance


def site_findings(known: Known) -> Iterator[Finding]:
    """In the order of the catalogue."""
    if known.traps:
        items = [
            Item(trap.example, detail=f"{SAYS.get(trap.kind, trap.kind)}: {trap.pattern}")
            for trap in known.traps
        ]
        yield Finding(Code.TRAP, len(items), items=items)
    if known.unreliable and known.run.complete:
        items = [Item(site, detail=why) for site, why in known.unreliable.items()]
        yield Finding(Code.LASTMOD_LIES, len(items), items=items)
    date, listed = known.balance.date, known.balance.outcomes.get("listed", 0)
    if date and listed >= FEWEST_DATED and known.run.complete:
        yield Finding(Code.LASTMOD_UNIFORM, 1, items=[Item(known.site, detail=iso(date) or "")])
    if known.vanished.count and known.run.complete:
        yield _vanished(known.vanished, is_new=known.run.number > 1)
    if known.shell:
        detail = f"{known.shell.pages:,} addresses answer with the same bytes, which run scripts"
        items = [Item(known.shell.first, detail=detail)]
        yield Finding(Code.NEEDS_SCRIPTS, known.shell.pages, items=items)
    if known.robots_line and known.robots_names is False:
        _, _, sitemap = known.robots_line.partition(" ")
        detail = f"{known.robots_line} is missing"
        if known.robots_others:
            detail += f"; it names {known.robots_others[0]}, which is not written here"
        item = Item(f"{origin(sitemap)}/robots.txt", detail=detail)
        yield Finding(Code.ROBOTS_LINE, 1, items=[item])


def _vanished(pages: VanishedPages, *, is_new: bool) -> Finding:
    items = [Item(page.url, detail=_vanished_detail(page), new=is_new) for page in pages.asked]
    items += [Item(url, detail="not asked", new=is_new) for url in pages.others]
    if items and (more := pages.count - len(items)) > 0:
        words = f"{items[-1].detail}; {more:,} more {'is' if more == 1 else 'are'} not shown"
        items[-1] = replace(items[-1], detail=words)
    return Finding(Code.VANISHED, pages.count, pages.count if is_new else 0, items=items)


def _vanished_detail(page: VanishedPage) -> str:
    """What a page answers to which no link leads any more."""
    if page.is_alive:
        return "still answers, and may be indexed"
    words = says(page.outcome) if page.outcome else "still answers"
    return f"{words}: {page.target}" if page.target else words
