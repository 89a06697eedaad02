"""The language versions of pages, from the state: for entries of the sitemap, `explain`, and findings.

Looks up the pages that others name, a chunk at a time; what follows from that is decided in `rules.hreflang`.
"""

from collections.abc import AsyncIterator, Iterable, Sequence

from crawler.model.facts import Entry, Extras, Version
from crawler.parse.url import Url
from crawler.ports import Rows
from crawler.report.url_kind import is_listed
from crawler.rules import hreflang
from crawler.rules.hreflang import Cluster
from crawler.rules.page_rules import PageRules


async def with_versions(rows: Rows, entries: Sequence[Entry], rules: PageRules) -> Sequence[Entry]:
    """The entries with their language versions."""
    pages = await rows.versions([entry.url for entry in entries])
    found = {page.url: cluster.links for page, cluster in await clusters(rows, pages.values(), rules)}
    return [
        entry._replace(extras=(entry.extras or Extras())._replace(alternates=links))
        if (links := found.get(entry.url))
        else entry
        for entry in entries
    ]


async def clusters(
    rows: Rows, pages: Iterable[Version], rules: PageRules
) -> Sequence[tuple[Version, Cluster]]:
    """The cluster of each of these pages that names any versions."""
    naming = [page for page in pages if page.alternates]
    named = {url for page in naming for _, url in hreflang.read(page.alternates)}
    others = await rows.versions(sorted(named)) if named else {}

    def listed(version: Version) -> bool:
        return is_listed(version.outcome) and (not rules or rules.lists(version.url))

    return [(page, hreflang.cluster(page, others, listed)) for page in naming]


async def faulty(rows: Rows) -> AsyncIterator[tuple[Version, Sequence[tuple[str, str]]]]:
    """The listed pages whose language versions have a fault, with code and detail of each, sorted by URL."""
    async for chunk in rows.version_rows():
        listed = [page for page in chunk if is_listed(page.outcome)]
        for page, cluster in await clusters(rows, listed, PageRules()):
            if faults := hreflang.faults(cluster):
                yield page, faults


async def cluster_of(rows: Rows, url: Url) -> Cluster | None:
    """The cluster of one page; None if the page names no versions."""
    found = await clusters(rows, (await rows.versions([url])).values(), PageRules())
    return found[0][1] if found else None
