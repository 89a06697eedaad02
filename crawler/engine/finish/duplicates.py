"""What only shows once every page is in: one error page under many names, one page under several. Dates are for `dating`.

Run by the engine at the end of a complete crawl, before it is declared so. It amends what the frontier knows and
asks at most a few pages more; it decides nothing while the crawl goes on.
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
from crawler.model.survey import Alike
from crawler.model.visit import Visit
from crawler.parse import fingerprint
from crawler.parse.url import Url
from crawler.ports import Record
from crawler.rules.judge import Judge
from crawler.rules.traps import ALIKE, Traps

PROBES: Final = 5  # pages that cannot be, asked for in one run

log = logging.getLogger("crawler.engine.finish.duplicates")


async def soft_404s(
    pages: Record,
    judge: Judge,
    traps: Traps,
    starts: Sequence[Url],
    ask: Callable[[Url], Awaitable[Reply | None]],
) -> None:
    """Withdraw the pages that say what the site says of a page that cannot be.

    Only where many pages say the same is the site asked for one that cannot be. A start page that says it, too,
    speaks for a site that shows nothing without scripts: then nothing is withdrawn.
    """
    if traps.allows("soft-404"):
        return
    home = {record.facts.content for url in starts if (record := await pages.record(url)) and record.facts}
    shown: dict[str, frozenset[str]] = {}  # by folder: the content of a page that cannot be
    for group in await pages.alike(ALIKE):
        folder = nowhere(group)
        if group.content in home or (folder not in shown and len(shown) >= PROBES):
            continue
        if folder not in shown:
            reply = await ask(folder)
            shown[folder] = _contents(judge, folder, reply) if reply else frozenset()
        if group.content in shown[folder] and home.isdisjoint(shown[folder]):
            traps.tell("soft-404", f"{group.count:,} pages of {group.origin}", group.example)
            for content in shown[folder]:
                await pages.withdraw(replace(group, content=content), Why.SOFT_404, folder)


async def duplicates(pages: Record, judge: Judge) -> None:
    """List a page under one of its names only. After `soft_404s`: what is listed then must not be one."""
    if judge.applies("duplicate"):
        await pages.unlist_duplicates()


def nowhere(group: Alike) -> Url:
    """A page that cannot be, beside one that is: the same at every run."""
    folder = group.example.partition("?")[0].rpartition("/")[0]
    name = blake2b(group.origin.encode(), digest_size=8).hexdigest()
    return Url(f"{folder}/no-such-page-{name}")


def _contents(judge: Judge, url: Url, reply: Reply) -> frozenset[str]:
    """What stands for its content: its fingerprint, and the digest of its bytes that others may have in its place.

    Read with care: it is the page of a site that is not to be trusted.
    """
    markup = judge.markup(Lease(0, 0, Visit(url)), reply, datetime.now(UTC))
    if markup is None or markup.is_risky:
        return frozenset()
    own = replace(markup, sparing=False).read().content
    return frozenset(filter(None, (own, fingerprint.of_bytes(markup.body))))
