"""`export`: writes the sitemap from the state, without network access."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from crawler.app.features import writing
from crawler.app.own_folder import with_own_folder
from crawler.app.publication import doubts_of, in_published_order, published_as, result_of, with_examples
from crawler.cli.read_settings import check_needs
from crawler.cli.run_facts import state_facts
from crawler.cli.saved_state import opened_state, start_of, with_state
from crawler.cli.summary import print_summary, with_defaults
from crawler.errors import Exit, FrontierError, PublishRefused
from crawler.model.note import SETTINGS
from crawler.ports import reads
from crawler.settings.load import Origin, completed
from crawler.settings.sections import Settings
from crawler.sitemap.publish.publish import CrawlToPublish, publish

OF_THE_RUN: Final = frozenset({
    "changefreq", "priority", "hreflang", "images", "rule", "section", "format", "gzip", "stylesheet",
    "file-mode", "max-urls", "max-bytes", "min-urls", "max-shrink", "max-removed", "max-failed",
    "max-verdict-change",
})  # fmt: skip
"""Settings of the newest run that apply unless others are given: what is written, and when not."""


async def export_sitemap(settings: Settings, origins: Sequence[Origin] = ()) -> Exit:
    """Publishes the pages in the state, also of an unfinished crawl.

    `origins`: where the settings come from. Those of the run replace defaults.
    """
    start = start_of(settings)
    settings = with_state(settings, start)
    began = time.monotonic()
    async with opened_state(settings, start) as frontier:
        noted = {name: value for name, value in await frontier.recall(SETTINGS) if name in OF_THE_RUN}
        settings = completed(settings, origins, noted)
        typed = {item.key.field: item.value for item in origins if item.place.startswith("--")}
        check_needs(typed, {"format"}, [settings])
        balance = await frontier.read(reads.RunBalance())
        run = await frontier.read(reads.NewestRun())
        base = await published_as(frontier, settings, start)
        known = start or await frontier.read(reads.FirstStart())
        if run is None or base is None or known is None:
            raise FrontierError("The state contains no URLs yet: crawl first.")
        settings = with_own_folder(settings, base.base)
        doubts = await doubts_of(frontier, [known])
        result = await result_of(frontier, base, balance, doubts, complete=run.complete)
        try:
            namespaces = [one.namespace for one in writing(settings) if one.namespace]
            published = await publish(
                in_published_order(frontier, base, settings),
                _of_any_crawl(settings, base.base),
                CrawlToPublish(base.site, result, str(run.number), namespaces=namespaces),
            )
        except PublishRefused as refusal:
            raise await with_examples(frontier, refusal) from None
        facts = await state_facts(frontier, published, settings)
    facts |= {
        "site": settings.state.site[-1] if settings.state.site else base.site,
        "notes": doubts.notes,
        "elapsed": round(time.monotonic() - began, 1),
    }
    print_summary(with_defaults(facts), settings.log)
    return Exit.OK


def _of_any_crawl(settings: Settings, base: str) -> Settings:
    """Settings under which an unfinished crawl is published, with the URLs of its own publication."""
    output = replace(settings.output, publish_base=base)
    return replace(settings, output=output, guard=replace(settings.guard, allow_partial=True))
