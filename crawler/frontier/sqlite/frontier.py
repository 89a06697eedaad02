"""The embedded frontier: one SQLite file in WAL mode, or `:memory:`.

Every verb is one transaction on one connection, run in a worker thread so that the event loop never waits for
the disk. What this file may not do: fetch, judge, or know what a site is. What a verb does is in `ledger`.
"""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from crawler.errors import FrontierError
from crawler.frontier.sqlite import overview, schema
from crawler.frontier.sqlite.ledger import FAR, ROBOTS_DAY, Ledger
from crawler.frontier.sqlite.ownership import check_usable
from crawler.frontier.sqlite.state_file import Lock, failure, open_state
from crawler.model.facts import Entry
from crawler.model.failpoints import failpoint
from crawler.model.lease import Lease
from crawler.model.note import Note
from crawler.model.reasons import Source, Why
from crawler.model.robots import RobotsFile
from crawler.model.run import Run
from crawler.model.seed import Seed, SeedSettlement
from crawler.model.settlement import Settlement
from crawler.model.survey import Alike, Balance, Build, Doubts, Evidence, Survey
from crawler.model.trap import Trap
from crawler.model.url_record import UrlRecord
from crawler.model.visit import Link, Visit
from crawler.parse.url import Url
from crawler.ports import Batch, Round
from crawler.rules.traps import TOLD

P = ParamSpec("P")
T = TypeVar("T")

ANY_DEPTH: Final = 1 << 40
MEMORY: Final = ":memory:"
CHUNK: Final = 5_000  # entries read at a time
ABOVE_ALL: Final = "\x7f"  # in order behind every text that begins as a URL
KEEP_FAILING: Final = 604_800.0  # seconds


class SqliteFrontier:
    """A `Frontier` in one file.

    `gap` is the pace of a host not met yet, in seconds from slot to slot; `keep_failing`, for how many seconds a
    published page that fails stays listed.
    """

    def __init__(
        self,
        path: str,
        *,
        gap: float = 0.0,
        keep_runs: int = 10,
        keep_failing: float = KEEP_FAILING,
        far: float = FAR,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
    ) -> None:
        """Open or create the state at `path`.

        Raises `FrontierError` when it cannot be used and `StateBusy` when another run holds it. A `read_only`
        one needs no lock: it may look while another run works.
        """
        if path != MEMORY:
            path = str(check_usable(path))
        self._path, self._clock = path, clock
        self._lock = None if read_only or path == MEMORY else Lock(Path(path))
        try:
            self._db = open_state(path, read_only=read_only)
        except BaseException:
            if self._lock:
                self._lock.release()
            raise
        self._turn = anyio.CapacityLimiter(1)
        try:
            self._ledger = Ledger(
                self._db, gap=gap, keep_runs=keep_runs, keep_failing=keep_failing, far=far, clock=clock
            )
        except (sqlite3.Error, ValueError) as error:
            self._close()
            raise FrontierError(failure(path, error)) from error

    # -- the verbs ----------------------------------------------------------------------------------------

    async def begin(self, fingerprint: str, reading: str = "") -> Run:
        """See `ports.Runs.begin`."""
        return await self._call(self._ledger.begin, fingerprint, reading)

    async def add(self, visits: Sequence[Visit], seed: Seed | None = None) -> int:
        """See `ports.Queue.add`."""
        return await self._call(self._ledger.add, visits, seed)

    async def name_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        """See `ports.Queue.name_seeds`."""
        return await self._call(self._ledger.name_seeds, seeds, room)

    async def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        return await self._call(self._ledger.next_seed)

    async def unnamed(self) -> Sequence[tuple[Seed, Sequence[Url]]]:
        """See `ports.Queue.unnamed`."""
        return await self._call(self._ledger.unnamed)

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        return await self._call(self._ledger.settle_seed, read, room)

    async def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        return await self._call(self._ledger.sitemaps)

    async def orphans(self) -> Mapping[str, int]:
        """See `ports.Record.orphans`."""
        return dict(await self._call(self._ledger.all, schema.ORPHANS, {"run": self._ledger.run}))

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        """See `ports.Queue.lease`."""
        return await self._call(self._ledger.lease, limit, ANY_DEPTH if depth is None else depth)

    async def settle(self, settlements: Sequence[Settlement]) -> int:
        """See `ports.Queue.settle`."""
        return await self._call(self._ledger.settle, settlements)

    async def set_aside(self, after: str = "") -> Sequence[Visit]:
        """See `ports.Queue.set_aside`."""
        given = {"run": self._ledger.run, "after": after, "limit": CHUNK}
        rows = await self._call(self._ledger.all, schema.SET_ASIDE, given)
        return [Visit(Url(url), depth, Url(via) if via else None, hops) for url, depth, via, hops in rows]

    async def take_up(self, visits: Sequence[Visit]) -> int:
        """See `ports.Queue.take_up`."""
        return await self._call(self._ledger.take_up, visits)

    async def advance(self, depth: int | None = None) -> Round:
        """See `ports.Queue.advance`."""
        return await self._call(self._ledger.rounds.advance, ANY_DEPTH if depth is None else depth)

    async def tell(self, traps: Sequence[Trap]) -> None:
        """See `ports.Queue.tell`."""
        if traps:
            await self._call(self._ledger.rounds.tell, traps)

    async def traps(self) -> Sequence[Trap]:
        """See `ports.Record.traps`."""
        return await self._call(self._ledger.rounds.told, TOLD)

    async def unlist_repeats(self) -> int:
        """See `ports.Record.unlist_repeats`."""
        return await self._call(self._ledger.rounds.unlist_repeats)

    async def links(self, lease: Lease) -> Sequence[Link]:
        """See `ports.Record.links`."""
        rows = await self._call(self._ledger.links, lease)
        return [Link(Url(url), bool(nofollow)) for url, nofollow in rows]

    async def release(self, leases: Sequence[Lease]) -> None:
        """See `ports.Queue.release`."""
        await self._call(self._ledger.release, leases)

    async def meet(self, origin: str, file: RobotsFile, gap: float) -> None:
        """See `ports.Hosts.meet`."""
        await self._call(self._ledger.meet, origin, file, gap)

    async def robots(self, origin: str, *, stale: bool = False) -> RobotsFile | None:
        """See `ports.Hosts.robots`."""
        given = {
            "origin": origin,
            "since": self._clock() - ROBOTS_DAY,
            "run": self._ledger.run if stale else None,
            "age": ROBOTS_DAY,
        }
        row = await self._call(self._ledger.one_or_none, schema.ROBOTS, given)
        return RobotsFile(row[0], row[1] or b"", row[2] or "", row[3]) if row else None

    async def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`."""
        return await self._call(self._ledger.slot, origin)

    async def slow(self, origin: str, until: float) -> None:
        """See `ports.Pacer.slow`."""
        await self._call(self._ledger.slow, origin, until)

    async def remember(self, note: Note[T], value: T) -> None:
        """See `ports.Runs.remember`."""
        await self._call(self._ledger.remember, note, value)

    async def recall(self, note: Note[T], *, published: bool = False) -> T:
        """See `ports.Runs.recall`."""
        return await self._call(self._ledger.recall, note, published=published)

    async def evidence(self) -> Sequence[Evidence]:
        """See `ports.Record.evidence`."""
        rows = await self._call(self._ledger.all, schema.EVIDENCE, {"run": self._ledger.run})
        return [Evidence(name, *map(int, counts)) for name, *counts in rows]

    async def builds(self, window: int, older: int) -> Sequence[Build]:
        """See `ports.Record.builds`."""
        given = {"run": self._ledger.run, "window": window, "older": older}
        rows = await self._call(self._ledger.all, schema.BUILDS, given)
        return [Build(name, *map(int, numbers)) for name, *numbers in rows]

    async def date(self, ladder: Sequence[Source], doubts: Doubts) -> None:
        """See `ports.Record.date`."""
        rungs = {source.value: source in ladder for source in Source}
        given = {
            "run": self._ledger.run,
            **{name: json.dumps(some) for name, some in asdict(doubts).items()},
            **rungs,
        }
        await self._call(self._ledger.do, schema.DATE, given)

    async def alike(self, least: int) -> Sequence[Alike]:
        """See `ports.Record.alike`."""
        rows = await self._call(self._ledger.all, schema.ALIKE, {"run": self._ledger.run, "least": least})
        return [Alike(name, content, count, Url(example)) for name, content, count, example in rows]

    async def withdraw(self, pages: Sequence[Url] | Alike, why: Why, detail: str) -> None:
        """See `ports.Record.withdraw`."""
        given = {"run": self._ledger.run, "why": why.value, "detail": detail}
        if isinstance(pages, Alike):
            alike = given | {"content": pages.content, "origin": pages.origin}
            await self._call(self._ledger.do, schema.WITHDRAW_ALIKE, alike)
        else:
            await self._call(self._ledger.do, schema.WITHDRAW, given | {"urls": json.dumps(pages)})

    async def unlist_duplicates(self) -> None:
        """See `ports.Record.unlist_duplicates`."""
        await self._call(self._ledger.unlist_duplicates)

    async def reopen(self, pages: Sequence[Url]) -> None:
        """See `ports.Queue.reopen`."""
        if pages:
            given = {"run": self._ledger.run, "urls": json.dumps(pages)}
            await self._call(self._ledger.do, schema.REOPEN, given)

    async def answered(self, origin: str) -> Url | None:
        """See `ports.Record.answered`."""
        given = {"run": self._ledger.run, "origin": origin}
        row = await self._call(self._ledger.one_or_none, schema.ANSWERED, given)
        return Url(row[0]) if row else None

    async def finish(self) -> None:
        """See `ports.Runs.finish`."""
        await self._call(
            self._ledger.do, "UPDATE run SET status = 'complete' WHERE number = ?", (self._ledger.run,)
        )

    async def keep(self) -> None:
        """See `ports.Record.keep`."""
        await self._call(self._ledger.keep)

    async def changed(self) -> Mapping[str, int]:
        """See `ports.Record.changed`."""
        return await self._call(self._ledger.changed)

    async def mark_published(self, urls: int) -> None:
        """See `ports.Runs.mark_published`."""
        await self._call(self._ledger.mark_published, urls)

    async def conclude(self, *, refused: bool = False) -> None:
        """See `ports.Runs.conclude`."""
        await self._call(self._ledger.conclude, refused=refused)

    async def entries(self, first: str = "", below: str = ABOVE_ALL) -> AsyncIterator[Sequence[Entry]]:
        """See `ports.Record.entries`."""
        after = first and first[:-1] + chr(ord(first[-1]) - 1) + ABOVE_ALL
        given = {"below": below, "run": self._ledger.run, "limit": CHUNK}
        while rows := await self._call(self._ledger.all, schema.ENTRIES, given | {"after": after}):
            yield [
                Entry(Url(url), None if at is None else datetime.fromtimestamp(at, UTC)) for url, at in rows
            ]
            after = rows[-1][0]

    async def known(self) -> AsyncIterator[Sequence[Url]]:
        """The URLs of the site that this run knows, whatever became of them, in chunks."""
        after = ""
        while rows := await self._call(
            self._ledger.all, schema.KNOWN_HERE, {"after": after, "run": self._ledger.run, "limit": CHUNK}
        ):
            yield [Url(row[0]) for row in rows]
            after = rows[-1][0]

    async def balance(self) -> Balance:
        """See `ports.Record.balance`."""
        return await self._call(self._ledger.balance)

    async def filtered(self) -> int:
        """How many URLs of this run are known and not to be asked for."""
        row = await self._call(
            self._ledger.one, "SELECT count(*) FROM url WHERE run = ? AND host IS NULL", (self._ledger.run,)
        )
        return int(row[0])

    async def examples(self, outcome_code: str, limit: int = 3) -> list[Url]:
        """A few URLs of this run with that outcome, in the order of their text: the same ones whichever was found first."""
        rows = await self._call(
            self._ledger.all,
            "SELECT url FROM url WHERE run = ? AND state = 3 AND outcome = ? ORDER BY url LIMIT ?",
            (self._ledger.run, outcome_code, limit),
        )
        return [Url(row[0]) for row in rows]

    async def dated(self) -> Mapping[str, int]:
        """How many of the listed pages have a lastmod, by its source."""
        rows = await self._call(
            self._ledger.all,
            "SELECT source, count(*) FROM url WHERE run = ? AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') "
            "AND lastmod IS NOT NULL GROUP BY source ORDER BY 2 DESC",
            (self._ledger.run,),
        )
        return dict(rows)

    async def survey(self, site: str) -> Survey:
        """What the newest run knows of the site whose origin is `site`. Looks at all URLs."""
        given = {"run": self._ledger.run, "first": f"{site}/", "below": f"{site}0"}
        rows = await self._call(self._ledger.all, schema.SURVEY, given)
        outcomes, looks = Counter[str](), Counter[str]()
        for outcome, look, is_own, count in rows:
            outcomes[outcome] += count if is_own else 0
            looks[look or ""] += count if look is not None else 0
        named = await self._call(self._ledger.one_or_none, schema.CANONICAL_ORIGINS, given)
        return Survey(+outcomes, +looks, named and (named[0], named[1]))

    async def first(self) -> Url | None:
        """The URL that the newest run began with."""
        row = await self._call(
            self._ledger.one_or_none,
            "SELECT url FROM url WHERE run = ? AND depth = 0 "
            "ORDER BY seed IS NOT (SELECT id FROM seed WHERE kind = 0), id LIMIT 1",
            (self._ledger.run,),
        )
        return Url(row[0]) if row else None

    async def record(self, url: Url) -> UrlRecord | None:
        """See `ports.Record.record`."""
        return await self._call(self._ledger.record, url)

    async def linking(self, url: Url) -> int:
        """See `ports.Record.linking`."""
        row = await self._call(self._ledger.one, schema.LINKING, {"url": url, "run": self._ledger.run})
        return int(row[0])

    async def run(self) -> Run | None:
        """The newest run, whatever became of it."""
        return await self._call(overview.run_of, self._db, self._ledger.run)

    async def close(self) -> None:
        """See `ports.Frontier.close`."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._turn)

    def _close(self) -> None:
        self._db.close()
        if self._lock:
            self._lock.release()

    # -- a transaction ------------------------------------------------------------------------------------

    async def _call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One verb, one transaction, in a worker thread."""
        return await anyio.to_thread.run_sync(
            lambda: self._transact(verb, *args, **kwargs), limiter=self._turn, abandon_on_cancel=False
        )

    def _transact(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._lock:
            self._lock.beat()
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE" if self._lock else "BEGIN")
                answer = verb(*args, **kwargs)
                with failpoint(f"commit of {verb.__name__}"):
                    self._db.execute("COMMIT")
                return answer
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
            # The last three: words in the file that none of us wrote.
            self._ledger.forget()
            raise FrontierError(failure(self._path, error)) from error
