"""The shared frontier: a schema of a PostgreSQL database, used by all members of a crawl.

Every method is one transaction (`session`). This module is what a file does not need: heartbeats, and joining
again.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, Unpack, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from crawler.errors import FrontierError
from crawler.frontier.frontier import DatabaseFrontier, FrontierOptions
from crawler.frontier.postgres.address import parsed
from crawler.frontier.postgres.errors import failure
from crawler.frontier.postgres.heartbeat import Heartbeat
from crawler.frontier.postgres.session import Session
from crawler.frontier.queries import Stream
from crawler.model.log import log
from crawler.model.run import Run, Terms
from crawler.model.visit import Lease
from crawler.ports import Batch

if TYPE_CHECKING:
    from psycopg import Connection

P = ParamSpec("P")
T = TypeVar("T")

AWAY: Final = 120.0  # seconds for which the database may be away


class _Look(Struct, eq=False):
    """What is asked, and the answer once it has come."""

    verb: Callable[[], Any]
    answer: Any = None
    is_answered: bool = False


class PostgresFrontier(DatabaseFrontier):
    """A `Frontier` in a schema of a database.

    `clock`: seconds since the epoch; the database's own unless a test has another.
    """

    is_remote = True

    def __init__(
        self,
        state: str,
        *,
        clock: Callable[[], float] | None = None,
        read_only: bool = False,
        away: float = AWAY,
        ticks: Callable[[], float] = time.monotonic,
        **options: Unpack[FrontierOptions],
    ) -> None:
        """Open or create the crawl at `state`. `away`: seconds for which the database may be away.

        `ticks`: seconds of a clock that runs on while this process is frozen. Raises `FrontierError` if it
        cannot be used, `StateAway` if the database does not answer, and `ConfigError` if `state` is not an
        address.
        """
        self._address = parsed(state)
        self._heartbeat: Heartbeat | None = None
        self._ticks, self._leads = ticks, False
        self._has_failed_over = False  # since the last lease
        self._booking, self._asking = anyio.Lock(), Counter[str]()
        self._booked = defaultdict[str, deque[float]](deque)
        self._looking, self._looks = anyio.Lock(), list[_Look]()
        session = self._session = Session(self._address, read_only=read_only, away=away, clock=clock)
        super().__init__(session.db, **options)
        self._database = session.db
        session.on_failover, session.spare = self._fail_over, self._spare
        session.look([session.db.read_newest])

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        member, started = self._db.member, self._ticks()
        batch = await super().lease(limit, depth)
        self._note_rejoined(member, started)
        if has_failed_over := self._has_failed_over:
            self._has_failed_over = False
            log.warning("the database failed over; joined the crawl again")
        return replace(batch, voids_numbers=True) if has_failed_over else batch

    async def slot(self, origin: str) -> float:
        """See `ports.Pacer.slot`. Slots that are asked for while others are booked are booked together."""
        if (free := self._hosts.free_slot(origin)) is not None:
            return free
        self._asking[origin] += 1
        try:
            async with self._booking:
                booked = self._booked[origin]
                if not booked:
                    booked += await self._ask(self._hosts.slots, origin, self._asking[origin])
                return booked.popleft()
        finally:
            self._asking[origin] -= 1
            if not self._asking[origin]:  # a call that was cancelled has left its slot
                self._booked.pop(origin, None)

    def _fail_over(self) -> None:
        started = self._ticks()
        self._members.rejoin()
        self._has_failed_over, self._leads = True, False
        if self._heartbeat:
            self._heartbeat.renew(started)

    def _spare(self) -> "Connection[Any] | None":
        return self._heartbeat.give() if self._heartbeat else None

    def _note_rejoined(self, member: int, started: float) -> None:
        """Note that this process was taken for dead, if it has joined as another member since `started`."""
        if self._heartbeat and member != self._db.member and not self._has_failed_over:
            self._heartbeat.renew(started)
            self._leads = False
            log.warning("this process was silent for too long, and joined the crawl again")

    async def begin(self, fingerprint: str, reading: str = "", terms: Terms = Terms()) -> Run:
        if self._heartbeat:
            self._heartbeat.stop()
        run = await super().begin(fingerprint, reading, terms)
        if run.over is None:
            self._heartbeat = Heartbeat(
                self._address,
                self._database,
                self._session.server_clock.measure,
                self._session.lend,
                self._ticks,
            )
        return run

    async def take_leadership(self) -> bool:
        member, started = self._db.member, self._ticks()
        leads = await super().take_leadership()
        self._note_rejoined(member, started)
        if leads and not self._leads:
            log.info("leads", member=self._members.name, run=self._db.run)
        self._leads = leads
        return leads

    @property
    def is_shared(self) -> bool:  # type: ignore[override]
        return self._heartbeat is not None and self._heartbeat.is_shared

    def is_lease_valid(self, lease: Lease) -> bool:
        return (
            lease.token >> 32 == self._db.member
            and self._heartbeat is not None
            and self._heartbeat.is_alive()
        )

    def _is_at_work(self) -> bool:
        return self._members.others(self._db.newest()) > 0

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._session.thread(self._close)

    def _close(self) -> None:
        if self._heartbeat:
            self._heartbeat.stop()
        self._session.close(self._members.leave)

    async def _call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_heart()
        return await self._session.call(verb, *args, **kwargs)

    async def _ask(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_heart()
        [answer] = await self._session.ask([partial(verb, *args, **kwargs)])
        return cast("T", answer)

    async def _look(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What is asked while another call waits is asked together."""
        self._check_heart()
        mine = _Look(partial(verb, *args, **kwargs))
        self._looks.append(mine)
        async with self._looking:
            if not mine.is_answered:
                looks, self._looks = self._looks, []
                try:
                    answers = await self._session.ask([look.verb for look in looks])
                except BaseException:
                    self._looks += [look for look in looks if look is not mine]  # they ask themselves
                    raise
                for look, answer in zip(looks, answers, strict=True):
                    look.answer, look.is_answered = answer, True
        return cast("T", mine.answer)

    def _check_heart(self) -> None:
        if self._heartbeat and self._heartbeat.error:
            raise FrontierError(failure(self._address, self._heartbeat.error)) from self._heartbeat.error

    async def _stream(
        self, query: Stream, given: Mapping[str, Any], first: str = ""
    ) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        async for rows in self._session.stream(query, given, first):
            yield rows
