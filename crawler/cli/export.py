"""`export`: writes the sitemap from the state, without network access."""

import time
from dataclasses import replace

from crawler.app.features import writing
from crawler.app.history import doubts_of, in_published_order, published_as
from crawler.cli.output import configure_log
from crawler.cli.run_facts import state_facts
from crawler.cli.saved_state import opened_state, start_of, with_state
from crawler.cli.summary import print_summary, with_defaults
from crawler.errors import Exit, FrontierError
from crawler.ports import reads
from crawler.settings.sections import Settings
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import CrawlToPublish, publish


async def export_sitemap(settings: Settings) -> Exit:
    """Publishes the pages in the state, also of an unfinished crawl."""
    configure_log(settings.log)
    start = start_of(settings)
    settings = with_state(settings, start)
    began = time.monotonic()
    async with opened_state(settings, start) as frontier:
        balance = await frontier.read(reads.RunBalance())
        run = await frontier.read(reads.NewestRun())
        base = await published_as(frontier, settings, start)
        known = start or await frontier.read(reads.FirstStart())
        if run is None or base is None or known is None:
            raise FrontierError("The state contains no URLs yet: crawl first.")
        doubts = await doubts_of(frontier, [known])
        published = await publish(
            in_published_order(frontier, base, settings),
            replace(
                settings,
                output=replace(settings.output, publish_base=base.base),
                guard=replace(settings.guard, allow_partial=True),
            ),
            CrawlToPublish(
                base.site,
                CrawlResult(
                    run.complete,
                    balance.outcomes,
                    await frontier.read(reads.PublishedOutcomes()),
                    doubts.doubt,
                ),
                str(run.number),
                namespaces=[feature.namespace for feature in writing(settings)],
            ),
        )
        facts = await state_facts(frontier, published, settings)
    facts |= {"notes": doubts.notes, "elapsed": round(time.monotonic() - began, 1)}
    print_summary(with_defaults(facts), settings.log)
    return Exit.OK
