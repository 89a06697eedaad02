"""Which pages of crawler traps are listed: a rule over the set of all pages, run once when all is settled.

While the crawl goes on, traps decide only what is asked for (`frontier.sqlite.rounds`). Here nothing is asked for any more: of the
pages of a closed pattern those are listed that show something of their own. It comes after soft 404, so that an error
page is no page's first.
"""

import logging

from crawler.ports import Record

log = logging.getLogger("crawler.engine.finish.trap_listing")


async def unlist_repeats(pages: Record) -> None:
    """Of pages in closed patterns that show the same, list the first in the order of the URL only.

    Before it come the path without a query, pages of patterns that were not closed, what a sitemap or the last publication
    names, and what other pages name as canonical.
    """
    if count := await pages.unlist_repeats():
        log.info("duplicate pages of crawler traps are not listed", extra={"fields": {"unlisted": count}})
