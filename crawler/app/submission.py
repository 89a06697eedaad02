"""Submits the changed pages of the last publication to search engines; the ledger has what they were told.

The first time it only records the listed pages. Later it fetches the key file of each host, then sends the
due URLs of one host after another; the ledger is written after each accepted batch, so that a killed
submission repeats at most one of them.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from msgspec.structs import replace

from crawler.app.state import MEMORY
from crawler.errors import ConfigError
from crawler.fetch.exchange import fetcher_of
from crawler.fetch.indexnow import ENDPOINT, LARGEST_BATCH, Engine, Key, check_key
from crawler.fetch.request_headers import anonymous
from crawler.fetch.retry import Retrying
from crawler.model.ledger import LedgerHead, LedgerRow, Mark
from crawler.model.log import log
from crawler.parse import url as urls
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, reads
from crawler.report.log import log_repeated
from crawler.rules.submission import Change, change
from crawler.settings.sections import Settings
from crawler.sitemap.write.writer import refusal

CONCLUDED: Final = "concluded"  # status of a run that was published


@dataclass(eq=False, repr=False, slots=True)
class Submitted:
    """What was due, and what became of it."""

    changes: Counter[Change] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)  # URLs that are due, by host
    sites: dict[str, None] = field(default_factory=dict)  # their origins, in order
    outside: Url | None = None  # one for which the key file is not valid
    noted: int | None = None  # URLs in a ledger that began now; None: it existed
    unsure: int = 0  # pages of which only the bytes are known to differ: recorded, not due
    sent: int = 0
    pending: bool = False  # the engine is still to check the key

    def results(self) -> Mapping[str, int]:
        """Numbers of URLs by result, for metrics."""
        return {"accepted": self.sent, "left": self.due - self.sent, "noted": self.noted or 0}

    @property
    def due(self) -> int:
        """Number of URLs that are due."""
        return self.changes.total()


def check(settings: Settings) -> None:
    """Raises `ConfigError` if the settings do not suffice. Called before the first request."""
    if settings.submit.indexnow_key is None:
        raise ConfigError(
            "To submit, set --indexnow-key: `sitemap-crawler submit --new-key` makes a key and shows where "
            "it must be served."
        )
    if settings.state.state == MEMORY:
        raise ConfigError("What was submitted is remembered in the state, so --state cannot be :memory:.")


async def is_published(frontier: Frontier) -> str:
    """Why nothing can be submitted: the newest run is not a complete and published one. Empty if it is."""
    runs = await frontier.read(reads.AllRuns())
    if not runs:
        return "there is no run yet: crawl first"
    if runs[-1].status == CONCLUDED:
        return ""
    if runs[-1].refused:
        return f"the publish guard refused run {runs[-1].number}"
    return f"run {runs[-1].number} is not complete and published"


async def submit(
    frontier: Frontier,
    settings: Settings,
    base: PublishBase,
    *,
    everything: bool = False,
    dry: Callable[[Change, Url], None] | None = None,
    on_counted: Callable[[Submitted], None] = lambda _: None,
) -> Submitted:
    """Submits what is due. The newest run must be a published one.

    `everything`: all listed pages, also unchanged ones. `dry`: only counts, and writes nothing; it is called
    with each URL that is due, as published. `on_counted` is called with the counts before the first request.
    Raises `ConfigError`, `NotSubmitted`, `FrontierError`.
    """
    head = await frontier.read(reads.LedgerState())
    is_new = head is None or head.base != base.base
    if is_new and not everything:
        return await _begun(frontier, base, dry=dry is not None)
    if is_new and not dry:
        await frontier.open_ledger(base.base, noted=False)
    key = _key(settings)
    ledger = _Ledger(frontier, base, head, everything=everything, is_new=is_new)
    submitted = await ledger.counted_due(key, dry)
    on_counted(submitted)
    if submitted.due and not dry:
        check(settings)
        _check_covered(key, submitted.outside)
        async with _fetching(settings, submitted.sites) as fetcher:
            for site in submitted.sites:
                await check_key(fetcher, key, site)
            await _send(ledger, _engine(settings, key, fetcher), submitted)
    return submitted


async def _begun(frontier: Frontier, base: PublishBase, *, dry: bool) -> Submitted:
    """A ledger of all listed pages, as if they had been submitted."""
    if not dry:
        return Submitted(noted=await frontier.open_ledger(base.base, noted=True))
    counted = [len(chunk) async for chunk in frontier.stream(reads.ListedEntries())]
    return Submitted(noted=sum(counted))


class _Ledger:
    """The rows of the ledger, judged."""

    def __init__(
        self,
        frontier: Frontier,
        base: PublishBase,
        head: LedgerHead | None,
        *,
        everything: bool,
        is_new: bool,
    ) -> None:
        self._frontier, self._base = frontier, base
        self._everything, self._is_new = everything, is_new
        self._head = head or LedgerHead(base.base)

    async def counted_due(self, key: Key, dry: Callable[[Change, Url], None] | None) -> Submitted:
        """Counts what is due. Marks that changed without being due are stored, for later ones."""
        submitted = Submitted()
        async for rows in self._frontier.stream(reads.LedgerRows(unchanged=self._everything)):
            moved = []
            for row, url, why in map(self._judged, rows):
                if why is not None:
                    _count(submitted, url, why)
                    if dry:
                        dry(why, url)
                    submitted.outside = submitted.outside or (None if key.covers(url) else url)
                elif row.submitted and row.now and row.submitted != row.now:
                    submitted.unsure += Mark.of(row.submitted).content != Mark.of(row.now).content
                    moved.append(row)
                elif row.submitted and not (row.now or row.outcome or self._head.same_scope):
                    moved.append(row)
            if moved and not dry:
                await self._frontier.enter(moved)
        if not (dry or (self._head.comparable and self._head.same_scope)):
            await self._frontier.enter([], 0)
        return submitted

    async def batches(self) -> AsyncIterator[Sequence[tuple[LedgerRow, Url]]]:
        """What is due, in order of the URL: up to `LARGEST_BATCH` URLs of one origin at a time."""
        batch: list[tuple[LedgerRow, Url]] = []
        async for rows in self._frontier.stream(reads.LedgerRows(unchanged=self._everything)):
            for row, url, why in map(self._judged, rows):
                if why is None:
                    continue
                if batch and (len(batch) == LARGEST_BATCH or urls.origin(batch[0][1]) != urls.origin(url)):
                    yield batch
                    batch = []
                batch.append((row, url))
        if batch:
            yield batch

    async def enter(self, batch: Sequence[tuple[LedgerRow, Url]]) -> None:
        """Notes that an engine accepted a batch."""
        await self._frontier.enter([row for row, _ in batch], len(batch))

    def _judged(self, row: LedgerRow) -> tuple[LedgerRow, Url, Change | None]:
        row = replace(row, submitted=None) if self._is_new else row
        url = self._base.published(row.url)
        if refusal(url):
            return row, url, None
        head, everything = self._head, self._everything
        why = change(row, comparable=head.comparable, same_scope=head.same_scope, everything=everything)
        return row, url, why


def _count(submitted: Submitted, url: Url, why: Change) -> None:
    submitted.changes[why] += 1
    submitted.hosts[urls.netloc(url)] += 1
    submitted.sites[urls.origin(url)] = None


async def _send(ledger: _Ledger, engine: Engine, submitted: Submitted) -> None:
    async for batch in ledger.batches():
        submitted.pending |= await engine.submit([url for _, url in batch])
        await ledger.enter(batch)
        submitted.sent += len(batch)
        if submitted.due > LARGEST_BATCH:
            log.info("submitted", urls=submitted.sent, due=submitted.due)


def _key(settings: Settings) -> Key:
    chosen = settings.submit
    location = chosen.indexnow_key_location
    return Key(chosen.indexnow_key or "", Url(location) if location else None)


def _check_covered(key: Key, outside: Url | None) -> None:
    if outside:
        raise ConfigError(
            f"A key file at {key.place(urls.origin(outside))} is valid only for URLs below its folder, and "
            f"{outside} is not: put it at the root of the host. Nothing was submitted."
        )


def _engine(settings: Settings, key: Key, fetcher: Fetcher) -> Engine:
    return Engine(
        Url(settings.submit.indexnow_endpoint),
        key,
        fetcher,
        retries=settings.http.retries,
        max_wait=settings.pace.max_wait,
        now=time.time,
        sleep=anyio.sleep,
        waiting=lambda wait: log.warning("the search engine asks to wait", seconds=wait),
        repeated=log_repeated,
    )


@asynccontextmanager
async def _fetching(settings: Settings, sites: Iterable[str]) -> AsyncIterator[Fetcher]:
    """A fetcher without credentials: an engine reads the key file without any, and is sent none."""
    http = anonymous(settings.http)
    endpoint = settings.submit.indexnow_endpoint
    named = [f"{site}/" for site in sites] + ([endpoint] if endpoint != ENDPOINT else [])
    async with fetcher_of(http, named) as plain:
        yield Retrying(
            fetcher=plain,
            pacer=_Unpaced(),
            retries=http.retries,
            total=http.total_timeout,
            clock=time.time,
            sleep=anyio.sleep,
            turn=_Unpaced.turn,
            repeated=log_repeated,
        )


class _Unpaced:
    """A `ports.Pacer` for the few requests of a submission, one after another."""

    async def slot(self, origin: str) -> float:
        del origin
        return 0.0

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        del origin, until, once
        return False

    @staticmethod
    async def turn(origin: str, at: float) -> None:
        """No wait."""
