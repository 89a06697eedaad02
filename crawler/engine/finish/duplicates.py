"""Soft 404s and duplicates, which can be recognised only when all pages are known. For dates, see `dating`.

The engine runs it at the end of a complete crawl, before the run is marked as complete. It changes outcomes
in the frontier and fetches a few more pages at most.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

from crawler.model.lease import Lease
from crawler.model.reasons import Why
from crawler.model.reply import Reply
from crawler.model.survey import SameContent
from crawler.model.visit import Visit
from crawler.parse import fingerprint
from crawler.parse.extract import Extract
from crawler.parse.url import Url
from crawler.ports import Record, reads
from crawler.rules.judge import Judge
from crawler.rules.traps import SOFT_404_PAGES, Traps

PROBES: Final = 5  # nonexistent pages requested in one run, at most

log = logging.getLogger("crawler.engine.finish.duplicates")


async def soft_404s(
    pages: Record,
    judge: Judge,
    traps: Traps,
    starts: Sequence[Url],
    ask: Callable[[Url], Awaitable[Reply | None]],
) -> None:
    """Unlists pages with the same content as the site's response for a nonexistent page.

    A nonexistent page is requested only where many pages have the same content. If a start page has it too,
    the site probably needs JavaScript to show any content: then nothing is unlisted.
    """
    if traps.allows("soft-404"):
        return
    home = {
        record.facts.content
        for url in starts
        if (record := await pages.read(reads.RecordOf(url))) and record.facts
    }
    shown: dict[str, frozenset[str]] = {}  # content of a nonexistent page, by its URL
    for group in await pages.read(reads.SameContentGroups(SOFT_404_PAGES)):
        folder = nonexistent_url(group)
        if group.content in home or (folder not in shown and len(shown) >= PROBES):
            continue
        if folder not in shown:
            reply = await ask(folder)
            shown[folder] = _contents(judge, folder, reply) if reply else frozenset()
        if group.content in shown[folder] and home.isdisjoint(shown[folder]):
            traps.report("soft-404", f"{group.count:,} pages of {group.origin}", group.example)
            for content in shown[folder]:
                await pages.withdraw(replace(group, content=content), Why.SOFT_404, folder)


async def duplicates(pages: Record, judge: Judge) -> None:
    """Lists only one of the pages with the same content. Runs after `soft_404s`, so that it is not a soft
    404.
    """
    if judge.applies("duplicate"):
        await pages.unlist_duplicates()


def nonexistent_url(group: SameContent) -> Url:
    """The URL of a nonexistent page in the folder of an existing one; the same in every run."""
    folder = group.example.partition("?")[0].rpartition("/")[0]
    name = blake2b(group.origin.encode(), digest_size=8).hexdigest()
    return Url(f"{folder}/no-such-page-{name}")


def _contents(judge: Judge, url: Url, reply: Reply) -> frozenset[str]:
    """The fingerprint of its text, and the digest of its bytes, which other pages may have instead of a
    fingerprint.

    Empty for markup that may stall the parser, as the page is untrusted and is parsed in this process.
    """
    markup = judge.markup(Lease(0, 0, Visit(url)), reply, datetime.now(UTC))
    if markup is None or markup.is_risky:
        return frozenset()
    own = replace(markup, wanted=markup.wanted - {Extract.DIGEST}).read().content
    return frozenset(filter(None, (own, fingerprint.of_bytes(markup.body))))
