"""Decides which pages of crawler traps are listed: a rule over the set of all pages, run once when all are
settled.

During the crawl, traps only decide which URLs are fetched (`frontier.rounds`). Here, pages of closed
patterns stay listed if they have content of their own. Runs after the soft 404 rule, so that of several pages
with the same content no error page is kept.
"""

import logging

from crawler.ports import Record

log = logging.getLogger("crawler.engine.finish.trap_listing")


async def unlist_repeats(pages: Record) -> None:
    """Of pages in closed patterns with the same content, lists only the first by URL.

    These take precedence over it: the path without a query, pages of patterns that are not closed, pages in a
    sitemap or in the last publication, and canonical targets of other pages.
    """
    if count := await pages.unlist_repeats():
        log.info("duplicate pages of crawler traps are not listed", extra={"fields": {"unlisted": count}})
