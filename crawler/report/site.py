"""The findings about a site as a whole, not about a page."""

from collections.abc import Iterator

from crawler.model.trap import SAYS
from crawler.parse.url import origin
from crawler.report.catalogue import Code
from crawler.report.report import Finding, Item, Known


def site_findings(known: Known) -> Iterator[Finding]:
    """Findings about the site as a whole, not about a page."""
    if known.traps:
        items = [
            Item(trap.example, detail=f"{SAYS.get(trap.kind, trap.kind)}: {trap.pattern}")
            for trap in known.traps
        ]
        yield Finding(Code.TRAP, len(items), items=items)
    if known.unreliable and known.run.complete:
        items = [Item(f"{site}/", detail=why) for site, why in known.unreliable.items()]
        yield Finding(Code.LASTMOD_LIES, len(items), items=items)
    if known.robots_line and known.robots_names is False:
        _, _, sitemap = known.robots_line.partition(" ")
        detail = f"{known.robots_line} is missing"
        if known.robots_others:
            detail += f"; it names {known.robots_others[0]}, which is not written here"
        item = Item(f"{origin(sitemap)}/robots.txt", detail=detail)
        yield Finding(Code.ROBOTS_LINE, 1, items=[item])
