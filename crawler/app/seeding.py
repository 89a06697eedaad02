"""Reads URLs from seeds: `--input` files and sitemaps. Not a validator: it uses whatever can be read.

Seeds are read one after the other while pages are visited, and settled in the state once per run. The URLs of
a seed are added in groups before it is settled: after a crash, one seed is read again and no URL is lost.
robots.txt, politeness and scope apply to sitemaps as to pages; a broken sitemap is logged and does not affect
the others.
"""

import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct, structs

from crawler.app.input_files import URLS_AT_ONCE, InputFile
from crawler.app.settings_urls import normaliser, sitemap_of
from crawler.engine.robots import Access
from crawler.engine.seed_reader import Turn
from crawler.engine.site import CrawledSite
from crawler.model.facts import Validators
from crawler.model.log import log
from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.model.reasons import SeedKind, SeedOutcome, Source, Why
from crawler.model.reply import Broken, Permit, Reply, Response
from crawler.model.seed import Seed, SeedCopy, SeedSettlement, SeedUrls
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Queue, Request, reads
from crawler.rules import lastmod
from crawler.rules.judge import validators_of
from crawler.rules.redirects import Redirects
from crawler.settings.sections import Settings
from crawler.sitemap.publish.manifest import read_manifest
from crawler.sitemap.tree import CHUNK, NESTED, ROOM_BY_LEVEL, is_web, read_file, sibling, slices

# Where sitemaps usually are, for an origin whose robots.txt names none.
USUAL: Final = ("/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml")
LARGEST_COPY: Final = 4_194_304  # bytes of a compressed sitemap that is kept
NO_COPY: Final = SeedCopy(Validators(), b"")


class DatesRead(Enum):
    """The sitemaps whose dates are read. What was published by us says nothing new: it would prove itself."""

    NONE = "none"
    OF_OTHERS = "those that look as if another program had written them"
    ALL = "all"


class Entries:
    """The entries of a sitemap: `take` returns pages, the settlement contains nested sitemaps."""

    def __init__(
        self,
        chunks: Iterable[bytes],
        read: Callable[[str], Url | None],
        *,
        place: str,
        dates: DatesRead = DatesRead.NONE,
        copy: SeedCopy | None = NO_COPY,
    ) -> None:
        """`read` converts the text of a `loc` to a URL; `place` is the URL or path of the sitemap; `copy`:
        what is kept of it, if it can be read; None: what was kept before.
        """
        from crawler.sitemap.read import read as reading  # noqa: PLC0415 - lxml is slow to import

        self._found, self._read, self._place, self._dates = reading(chunks), read, place, dates
        self._items, self._copy = iter(self._found), copy
        self._below: dict[str, None] = {}
        self._entries, self._fault = 0, ""
        self._room = MAX_BYTES  # for the resolved URLs: short entries may be relative to a long base

    def take(self) -> SeedUrls | None:
        if self._room < 0:
            self._fault = f"names more than {MAX_BYTES:,} bytes of URLs"
            return None
        try:
            items = list(islice(self._items, min(URLS_AT_ONCE, MAX_ENTRIES - self._entries)))
            if not items and self._entries == MAX_ENTRIES and next(self._items, None):
                self._fault = f"names more than {MAX_ENTRIES:,} URLs"
        except OSError as error:
            items, self._fault = [], str(error.strerror)
        self._entries += len(items)
        pages: dict[Url, datetime | None] = {}
        now = datetime.now(UTC)
        for item in items:
            if url := self._read(item.loc):
                self._room -= len(url)
                if item.kind == "page":
                    pages[url] = lastmod.from_sitemap(item.lastmod, now) if self._is_dated else None
                else:
                    self._below[self._child(url)] = None
        return pages if items else None

    @property
    def _is_dated(self) -> bool:
        is_foreign = self._dates is DatesRead.OF_OTHERS and not self._found.is_like_ours
        return self._dates is DatesRead.ALL or is_foreign

    def _child(self, url: Url) -> str:
        """The files of an index on disk are expected beside it. An index on the web never leads to a file."""
        beside = None if is_web(self._place) else sibling(self._place, url)
        return str(beside) if beside else url

    def settlement(self, seed: Seed) -> SeedSettlement:
        fault = self._fault or self._found.malformed or ""
        below = tuple(Seed(SeedKind.SITEMAP, name, seed.depth + 1) for name in self._below)
        bad = SeedOutcome.PARTLY if self._entries else SeedOutcome.FAILED
        outcome = bad if fault else SeedOutcome.READ
        return SeedSettlement(
            seed,
            outcome,
            fault,
            self._entries,
            below,
            is_no_sitemap=not self._found.is_sitemap,
            copy=self._copy if outcome is SeedOutcome.READ else NO_COPY,
        )


@dataclass(eq=False, repr=False)
class Seeds:
    """Reads the seeds of a run that are not settled yet. `on_site`: those URLs that are on the site."""

    queue: Queue
    access: Access
    on_site: Callable[[Sequence[Url]], Awaitable[Sequence[Url]]]
    normalise: Normaliser
    # For relative URLs in a file on disk.
    base: Url
    # Entered for each request: it waits until pages had their share.
    turn: Turn
    inputs: Sequence[InputFile] = ()
    # Usual addresses of sitemaps, which nobody has named: nothing is wrong if there is none.
    usual: Sequence[Url] = ()
    # Of sitemaps on the web.
    dates: DatesRead = DatesRead.NONE
    _files: dict[str, InputFile] = field(init=False)

    def __post_init__(self) -> None:
        """Indexes the files by their names in the state."""
        self._files = {file.name: file for file in self.inputs}

    async def read(self, sitemaps: Sequence[str]) -> AsyncGenerator[tuple[Seed, SeedUrls], None]:
        """The URLs of the seeds, in groups. `sitemaps`: URLs and paths of the top-level sitemaps."""
        await self.queue.add_seeds([Seed(SeedKind.INPUT, name) for name in self._files], len(self._files))
        passed = await self.queue.add_seeds(
            [Seed(SeedKind.SITEMAP, name) for name in (*sitemaps, *self.usual)], ROOM_BY_LEVEL[0]
        )
        while seed := await self.queue.read(reads.NextSeed()):
            reading = await self._open(seed)
            if not isinstance(reading, SeedSettlement):
                while (
                    urls := await anyio.to_thread.run_sync(reading.take, abandon_on_cancel=True)
                ) is not None:
                    yield seed, urls
                reading = reading.settlement(seed)
            if seed.name in self.usual and (reading.is_no_sitemap or reading.outcome is SeedOutcome.ROBOTS):
                reading = SeedSettlement(seed, SeedOutcome.ABSENT, reading.detail, gone=True)
            passed += await self._settle(reading)
        # Published pages that were found only in a temporarily failing sitemap are visited as well.
        for seed, published in await self.queue.read(reads.PagesOfFailingSeeds()):
            yield seed, dict.fromkeys(published)
        if passed:
            log.warning("limit on the number of sitemaps reached", passed_over=passed, nested=NESTED)

    async def _settle(self, read: SeedSettlement) -> int:
        seed = read.seed
        below = await self._named(read.below)
        room = ROOM_BY_LEVEL[seed.depth + 1] if seed.depth + 1 < len(ROOM_BY_LEVEL) else 0
        passed = await self.queue.settle_seed(structs.replace(read, below=tuple(below)), room)
        if seed.kind is SeedKind.INPUT:
            return passed
        if read.outcome in {SeedOutcome.READ, SeedOutcome.PARTLY}:
            named = len(read.below)
            log.info("sitemap read", url=seed.name, pages=read.entries - named, sitemaps=named)
        if read.outcome is SeedOutcome.PARTLY:
            log.warning("sitemap could not be read in full", url=seed.name, fault=read.detail)
        elif read.outcome not in {SeedOutcome.READ, SeedOutcome.ABSENT}:
            log.warning("sitemap skipped", url=seed.name, reason=read.detail or read.outcome.says)
        return passed

    async def _named(self, below: Sequence[Seed]) -> list[Seed]:
        """Those that may be read: files, and URLs on the site."""
        web = [Url(seed.name) for seed in below if is_web(seed.name)]
        near = set(await self.on_site(web))
        return [seed for seed in below if not is_web(seed.name) or seed.name in near]

    async def _open(self, seed: Seed) -> InputFile | Entries | SeedSettlement:
        """The opened seed, or a settlement that says why it cannot be read."""
        if seed.kind is SeedKind.INPUT:
            file = self._files.get(seed.name)
            if file is None:
                return SeedSettlement(seed, SeedOutcome.FAILED, "no longer given")
            await file.spool()
            return file
        if is_web(seed.name):
            return await self._fetch(seed)
        return Entries(read_file(seed.name), partial(self._join, self.base), place=seed.name)

    def _join(self, base: Url, loc: str) -> Url | None:
        return self.normalise(loc, base)

    async def _fetch(self, seed: Seed) -> InputFile | Entries | SeedSettlement:
        """What is the same as in the last run, as the server says, is not sent again for a week."""
        redirects = Redirects(Url(seed.name), self.normalise)
        if not await self.on_site([redirects.url]):
            return SeedSettlement(seed, SeedOutcome.OFFSITE, "is not on the site")
        copy = await self.queue.read(reads.CopyOfSeed(seed)) or NO_COPY
        reply = await self._ask(redirects.url, copy.validators)
        while not isinstance(reply, Permit) and (to := redirects.follow(reply)) and await self.on_site([to]):
            reply = await self._ask(to)
        if isinstance(reply, Response) and reply.status == 304 and copy.is_old:
            reply, copy = await self._checked(redirects.url, reply, copy)
        return await self._answered(seed, redirects, reply, copy)

    async def _checked(self, url: Url, reply: Response, copy: SeedCopy) -> tuple[Response, SeedCopy]:
        """The sitemap in full, if it can be had; where it differs from what is said to be the same, its
        validators are not used again.
        """
        whole = await self._ask(url)
        if not isinstance(whole, Response) or whole.status != 200:
            return reply, copy
        if not await anyio.to_thread.run_sync(_is_same, copy.body, whole.body):
            log.warning("sitemap changed despite a 304", url=url)
            copy = structs.replace(copy, validators=Validators())
        return whole, copy

    async def _answered(
        self, seed: Seed, redirects: Redirects, reply: Reply | Permit, copy: SeedCopy
    ) -> InputFile | Entries | SeedSettlement:
        if isinstance(reply, Permit):
            down = reply.why is Why.ROBOTS_DOWN
            return SeedSettlement(seed, SeedOutcome.ROBOTS_DOWN if down else SeedOutcome.ROBOTS)
        if isinstance(reply, Broken):
            return SeedSettlement(seed, SeedOutcome.FAILED, f"{reply.cause.says} {reply.detail}".strip())
        if reply.status in {200, 304} and (reply.status == 200 or copy.body):
            chunks, kept = _inflated(copy.body), None
            if reply.status == 200:
                is_trusted = not copy.body or any(copy.validators)
                chunks, kept = slices(reply.body), await anyio.to_thread.run_sync(_copied, reply, is_trusted)
            read = partial(self._join, redirects.url)
            return Entries(chunks, read, place=redirects.url, dates=self.dates, copy=kept)
        if redirects.stopped:
            return SeedSettlement(
                seed, SeedOutcome.FAILED, redirects.stopped.value, gone=True, is_no_sitemap=True
            )
        gone = reply.status < 500 and reply.status not in {401, 403, 429}
        return SeedSettlement(
            seed, SeedOutcome.FAILED, f"answered {reply.status}", gone=gone, is_no_sitemap=gone
        )

    async def _ask(self, url: Url, validators: Validators = Validators()) -> Reply | Permit:  # noqa: B008 - frozen
        """The reply, or the permit if it forbids the request."""
        permit = await self.access.permit(url)
        if not permit.allowed:
            return permit
        async with self.turn():
            return await self.access.fetch(Request(url, validators, limit=MAX_BYTES))


def _copied(reply: Response, is_trusted: bool = True) -> SeedCopy:
    """What is kept of a sitemap. `is_trusted`: the server never said falsely that it is the same."""
    validators = validators_of(reply.headers) if is_trusted else Validators()
    body = zlib.compress(reply.body) if any(validators) or not is_trusted else b""
    return SeedCopy(validators, body) if 0 < len(body) <= LARGEST_COPY else NO_COPY


def _is_same(copy: bytes, body: bytes) -> bool:
    """Whether a copy is of this body."""
    place = 0
    for part in _inflated(copy):
        if not body.startswith(part, place):
            return False
        place += len(part)
    return place == len(body)


def _inflated(copy: bytes) -> Iterator[bytes]:
    """The body of a copy, in parts."""
    inflating, left = zlib.decompressobj(), copy
    while left:
        yield inflating.decompress(left, CHUNK)
        left = inflating.unconsumed_tail


class Seeding(Struct, frozen=True):
    """Reads the seeds in the settings: `--input` files first, then sitemaps."""

    settings: Settings
    queue: Queue
    site: CrawledSite
    inputs: Sequence[InputFile]

    async def __call__(self, turn: Turn) -> AsyncGenerator[tuple[Seed, SeedUrls], None]:
        site, normalise = self.site, normaliser(self.settings, base=self.site.base)
        start = site.starts.urls[0]
        named, usual = await self._sitemaps()
        dates = await self._dates()
        seeds = Seeds(
            self.queue, site.access, site.on_site, normalise, start, turn, self.inputs, usual, dates
        )
        async with aclosing(seeds.read(named)) as groups:
            async for found in groups:
                yield found

    async def _dates(self) -> DatesRead:
        if Source.SITEMAP not in lastmod.DATE_SOURCES[self.settings.dates.lastmod]:
            return DatesRead.NONE
        folder = self.settings.output.output
        is_published = await self.queue.read(reads.LastPublication()) or read_manifest(Path(folder))
        return DatesRead.OF_OTHERS if is_published else DatesRead.ALL

    async def _sitemaps(self) -> tuple[Sequence[str], Sequence[Url]]:
        """The sitemaps that were named, and the usual addresses to be tried beside them."""
        chosen, base = sitemap_of(self.settings), self.site.base
        if chosen == "off":
            return [], []
        if chosen != "auto" and not is_web(chosen):
            return [chosen], []
        named, usual = ([Url(chosen)], []) if chosen != "auto" else await self._named_by_robots()
        return [base.crawled(url) for url in named] if base else named, usual

    async def _named_by_robots(self) -> tuple[list[Url], list[Url]]:
        """The sitemaps in robots.txt; and the usual addresses on origins whose robots.txt has none."""
        named: list[Url] = []
        usual: list[Url] = []
        access = self.site.access
        for site in dict.fromkeys(urls.origin(url) for url in self.site.starts.urls):
            permit = await access.permit(Url(site + "/"))  # loads its robots.txt
            found = access.permits.sitemaps(site)
            named += found
            if not found and permit.why is not Why.ROBOTS_DOWN:
                usual += [Url(site + path) for path in USUAL]
        return named, usual
