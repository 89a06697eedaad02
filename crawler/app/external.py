"""Checks the links of a run to other sites: chooses the URLs, has them checked, and keeps the answers.

Nothing of ours is sent there: no credentials, cookies, headers or client certificate, also not to
`--header-for` hosts or to our own after a redirect. A check that was interrupted is continued by the next run
within `RESUMED`, otherwise each run checks every URL once, those that were checked longest ago first.
"""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from crawler.app.settings_urls import product_token
from crawler.fetch.exchange import fetcher_of
from crawler.fetch.request_headers import anonymous
from crawler.model.external import CheckedLink, DueLink, ExternalCheck
from crawler.model.log import log
from crawler.model.note import EXTERNAL
from crawler.parse import url as urls
from crawler.ports import Frontier, reads
from crawler.rules.external import LinkRanks
from crawler.settings.after_run import External
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.engine.external import ExternalLinks


RESUMED: Final = 43_200.0  # seconds for which an interrupted check is continued
TIMEOUT: Final = 10.0  # seconds to connect to a host, or to wait for more data
OFFLINE: Final = "no other site could be reached"


class _Chosen(NamedTuple):
    """The URLs that are to be checked in this run."""

    links: Sequence[DueLink]
    left: int  # further ones
    because: str  # the setting that leaves them out


async def check_links(frontier: Frontier, settings: Settings, run: int, seconds: float) -> ExternalCheck:
    """Asks for each link to another site, until all are done, `seconds` are over or the task is cancelled.

    `run`: the number of the run at work. Raises `FrontierError`.
    """
    chosen = settings.external
    begun = await _begun(frontier, run)
    picked = await _choose(frontier, begun.round, chosen)
    total = min(seconds, chosen.max_external_time)

    async def store(answers: Sequence[CheckedLink]) -> None:
        await frontier.store_answers(answers, begun.round)
        log.info("links to other sites", checked=checking.checked, of=len(picked.links))

    async with asking(settings, store, frontier.clock) as checking:
        log.info("checking links to other sites", urls=len(picked.links))
        with anyio.move_on_after(total) as limit:
            await checking.ask(picked.links if total > 0 else ())
    timed_out = limit.cancelled_caught or total <= 0
    return await _ended(frontier, begun, picked, checking, timed_out=timed_out)


@asynccontextmanager
async def asking(
    settings: Settings, store: Callable[[Sequence[CheckedLink]], Awaitable[None]], now: Callable[[], float]
) -> AsyncIterator["ExternalLinks"]:
    """What asks other sites. `store`: keeps answers; `now`: seconds since the epoch."""
    from crawler.engine.external import DELAY, ExternalLinks  # noqa: PLC0415 - most jobs check no links

    connections, http = settings.pace.concurrency, anonymous(settings.http)
    # Certificates are verified, whatever holds for our own site.
    http = replace(http, insecure=False, timeout=min(http.timeout, TIMEOUT))
    async with fetcher_of(http, (), connections=connections, public=True) as fetcher:
        yield ExternalLinks(
            fetcher,
            product_token(settings.http.user_agent),
            store,
            clock=time.monotonic,
            now=now,
            sleep=anyio.sleep,
            concurrency=connections,
            max_redirects=settings.http.max_redirects,
            delay=DELAY,
            find=fetcher.address,
        )


async def _begun(frontier: Frontier, run: int) -> ExternalCheck:
    """The check that a session of this run or, a while ago, an earlier run began; or a new one."""
    begun = await frontier.recall(EXTERNAL)
    if begun is None:
        before = await frontier.recall(EXTERNAL, "earlier")
        goes_on = before and not before.finished and frontier.clock() - before.began < RESUMED
        begun = before if before and goes_on else ExternalCheck(run, frontier.clock())
    begun = begun._replace(finished=False)
    await frontier.remember(EXTERNAL, begun)
    return begun


async def _choose(frontier: Frontier, round_number: int, chosen: External) -> _Chosen:
    """The URLs to ask for, within the limits on their number and on that of their hosts: of each host and
    domain the first, then the second ones, and so on.
    """
    places, ranked, total = LinkRanks(), list[tuple[int, DueLink]](), 0
    after = None
    while due := await frontier.read(reads.DueLinks(round_number, after)):
        after, total = due[-1], total + len(due)
        ranked += [(places.of(link), link) for link in due]
        ranked = sorted(ranked, key=itemgetter(0))[: chosen.max_external]
    by_host = defaultdict[str, list[DueLink]](list)
    for _, link in ranked:
        by_host[urls.host(link.url)].append(link)
    hosts = list(by_host.values())[: chosen.max_external_hosts]
    links = [link for of_host in hosts for link in of_host]
    because = "max-external" if len(ranked) < total else "max-external-hosts"
    return _Chosen(links, total - len(links), because if len(links) < total else "")


async def _ended(
    frontier: Frontier, begun: ExternalCheck, picked: _Chosen, checking: "ExternalLinks", *, timed_out: bool
) -> ExternalCheck:
    """Notes that the check is finished, and says what was left out."""
    left = picked.left + len(picked.links) - checking.checked
    because = picked.because
    if checking.is_offline:
        because = OFFLINE
        log.warning("no other site could be reached: is this machine offline? no link is called broken")
    elif left > picked.left:
        because = "max-external-time" if timed_out else max(checking.left, key=checking.left.__getitem__)
    if left and not checking.is_offline:
        log.warning("not all links to other sites were checked", left=left, because=because)
    ended = begun._replace(finished=True, left=left, because=because)
    await frontier.remember(EXTERNAL, ended)
    return ended
