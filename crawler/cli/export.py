"""`export`: writes the sitemap from the state, without network access."""

import time
from dataclasses import replace

from crawler.app.history import doubts_of, in_published_order, published_as
from crawler.app.images import site_wide_images, writes_images
from crawler.app.starts import normaliser, start_url
from crawler.app.state import open_frontier
from crawler.cli.crawl import configure_log, print_summary, summary_of
from crawler.cli.states import with_state
from crawler.errors import Exit, FrontierError
from crawler.settings.sections import Settings
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import publish


async def export_sitemap(settings: Settings) -> Exit:
    """Publishes the pages in the state, also of an unfinished crawl."""
    configure_log(settings.log)
    start = start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None
    settings = with_state(settings, start)
    frontier = open_frontier(settings, start, read_only=True)
    try:
        began = time.monotonic()
        balance = await frontier.balance()
        run = await frontier.run()
        base = await published_as(frontier, settings, start)
        known = start or await frontier.first_start()
        if run is None or base is None or known is None:
            raise FrontierError("The state contains no URLs yet: crawl first.")
        doubts = await doubts_of(frontier, [known])
        site_wide = await site_wide_images(frontier) if writes_images(settings) else ()
        published = await publish(
            in_published_order(frontier, base, settings, site_wide),
            replace(settings.output, publish_base=base.base),
            settings.dates,
            replace(settings.guard, allow_partial=True),
            base.site,
            crawled=CrawlResult(
                run.complete, balance.outcomes, await frontier.published_outcomes(), doubts.doubt
            ),
            run_id=str(run.number),
        )
        published = replace(published, site_wide=len(site_wide))
        summary = await summary_of(frontier, published, settings)
        summary = replace(summary, notes=doubts.notes, elapsed=time.monotonic() - began)
        print_summary(summary, settings.log)
    finally:
        await frontier.close()
    return Exit.OK
