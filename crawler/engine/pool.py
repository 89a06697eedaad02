"""The pool: tasks that visit leased pages at the same time, and the results that come back in groups.

It knows which leases are in flight, and how long a result may wait for others, so that few transactions are
needed: a host that has slots booked for seconds ahead gets no request earlier because a result was settled or
a URL leased at once; a host without them does. What is leased, and when the crawl ends, is decided by the
main loop in `crawl`.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from crawler.model.settlement import Settlement, Unvisited
from crawler.model.visit import Lease
from crawler.parse.url import origin

GROUP: Final = 128  # settlements in one transaction
HEAVY: Final = 4_000_000  # bytes of URLs in a group, after which no more settlements are added
SLOW: Final = 0.02  # seconds that a lease takes where the state is far away
LARGER: Final = 8  # times as many leases in hand, and settlements in one transaction, at most there
NEXT: Final = 6  # leases in hand for each request in flight, in addition to those being visited
TURNS: Final = 2  # taken by others than visits; one that was given up may still wait in the queue
LINGER: Final = 0.02  # seconds that a group may grow, as long as all tasks have work
AHEAD: Final = 1.0  # seconds of booked slots that a host must have left when the next ones are leased

Returned: TypeAlias = Settlement | Unvisited


class _Turn:
    """A turn for a request that is no visit. It begins when so many tasks make no visit."""

    def __init__(self, tasks: int) -> None:
        self._left = tasks
        self.begun, self.ended = anyio.Event(), anyio.Event()

    async def join(self) -> None:
        """A task makes no visit until the turn has ended."""
        self._left -= 1
        if not self._left:
            self.begun.set()
        await self.ended.wait()


class Bookings:
    """The last booked slot of each host."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def note(self, leases: Iterable[Lease], now: float) -> None:
        """Records the slots of new leases, in the order of their slots. `now`: seconds since the epoch."""
        for lease in leases:
            if lease.at > now:
                self._last[origin(lease.visit.url)] = lease.at

    def spare(self, lease: Lease, now: float) -> float:
        """Seconds that the result of a lease may wait, not above 0 if it may not."""
        return self._last.get(origin(lease.visit.url), now) - AHEAD - now


class Pool:
    """The tasks that visit pages. Use it inside `running`."""

    def __init__(
        self,
        visit: Callable[[Lease], Awaitable[Returned]],
        concurrency: int,
        prefetch: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`concurrency`: requests in flight. `prefetch`: tasks for each, if visits wait for a process."""
        self._visit, self._concurrency, self._clock = visit, concurrency, clock
        self._tasks = concurrency * prefetch
        self._resting = self._tasks - concurrency + 1  # tasks, during a turn of another request
        self._size, self._group_size = (NEXT + prefetch) * concurrency, GROUP  # leases, settlements at most
        self._most = LARGER * self._size  # leases that it may become
        self._bookings = Bookings()
        self._leases: dict[int, Lease] = {}
        self._give: MemoryObjectSendStream[Lease | _Turn]
        self._done: MemoryObjectReceiveStream[Returned]
        self._group: anyio.abc.TaskGroup | None = None
        self._sleep: anyio.CancelScope | None = None
        self._is_woken = False

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Starts the tasks, and cancels them at the end. What they have not finished stays in `leases`."""
        self._give, todo = anyio.create_memory_object_stream[Lease | _Turn](
            self._most + TURNS * self._resting
        )
        back, self._done = anyio.create_memory_object_stream[Returned](self._most)
        async with anyio.create_task_group() as tasks, self._give, self._done:
            self._group = tasks
            with todo, back:
                for _ in range(self._tasks):
                    tasks.start_soon(self._work, todo.clone(), back.clone())
            yield
            tasks.cancel_scope.cancel()

    def start(self, call: Callable[[], Coroutine[None, None, None]]) -> None:
        """Runs a task beside the visits, until `running` ends at the latest."""
        if self._group is not None:
            self._group.start_soon(call)

    async def _work(
        self, todo: MemoryObjectReceiveStream[Lease | _Turn], back: MemoryObjectSendStream[Returned]
    ) -> None:
        async with todo, back:
            while True:
                try:
                    item = todo.receive_nowait()
                except anyio.EndOfStream:  # the crawl ended before this task began
                    return
                except anyio.WouldBlock:
                    item = await todo.receive()  # takes several times as long
                if isinstance(item, _Turn):
                    await item.join()
                    continue
                back.send_nowait(await self._visit(item))  # the buffer holds as many as can be leased

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Takes the place of a visit, so that requests in flight stay within the limit. One at a time."""
        turn = _Turn(self._resting)
        for _ in range(self._resting):
            self._give.send_nowait(turn)
        try:
            await turn.begun.wait()
            yield
        finally:
            turn.ended.set()

    @property
    def leases(self) -> Sequence[Lease]:
        """The leases that were added and not removed."""
        return list(self._leases.values())

    @property
    def is_empty(self) -> bool:
        return not self._leases

    def room(self, visits: int | None) -> int:
        """How many more leases may be added, up to `visits` including those in flight."""
        return (self._size if visits is None else min(self._size, visits)) - len(self._leases)

    def note_answer(self, took: float, *, full: bool) -> None:
        """Leases came after `took` seconds; `full`: as many as there was room for.

        If the tasks ran out of work meanwhile, more are held from now on: the next ones are in hand while the
        last are settled.
        """
        if full and took >= SLOW and not self._give.statistics().current_buffer_used:
            grown = min(2 * self._size, self._most)
            self._group_size = self._group_size * grown // self._size
            self._size = grown

    def add(self, leases: Sequence[Lease]) -> None:
        """Hands out leases, the earliest slot first: no task waits for a slot while an earlier one passes."""
        leases = sorted(leases, key=_slot)
        self._bookings.note(leases, self._clock())
        for lease in leases:
            self._leases[lease.id] = lease
            self._give.send_nowait(lease)

    def remove(self, returned: Sequence[Returned]) -> None:
        """Forgets leases that are settled or released."""
        for item in returned:
            self._leases.pop(item.lease.id, None)

    def clear(self) -> None:
        self._leases.clear()

    async def gather(self, wait: float) -> list[Returned]:
        """Results of visits: at least one, or none after `wait` seconds or a call of `wake`."""
        group: list[Returned] = []
        with anyio.move_on_after(0.0 if self._is_woken else max(0.0, wait)) as self._sleep:
            group.append(await self._done.receive())
            waiting, ready = (end.statistics().current_buffer_used for end in (self._give, self._done))
            if waiting >= self._concurrency and ready < GROUP:
                await anyio.sleep(LINGER)  # more results arrive meanwhile, and no task runs out of work
            await self._linger(group)
        self._sleep = None
        weight = sum(map(_weight, group))
        with suppress(anyio.WouldBlock):
            while len(group) < self._group_size and weight < HEAVY:
                group.append(self._done.receive_nowait())
                weight += _weight(group[-1])
        return group

    async def _linger(self, group: list[Returned]) -> None:
        """Adds results to the group as long as all in it may wait."""
        spare = self._bookings.spare(group[0].lease, self._clock())
        while spare > 0 and len(group) < GROUP:
            began = self._clock()
            with anyio.move_on_after(spare):
                group.append(await self._done.receive())
            spare -= max(0.0, self._clock() - began)
            spare = min(spare, self._bookings.spare(group[-1].lease, self._clock()))

    def wake(self) -> None:
        """Ends the wait in `gather`, also of the next call: there may be something to lease."""
        self._is_woken = True
        self.interrupt()

    def interrupt(self) -> None:
        """Ends the wait in `gather`, if there is one now."""
        if self._sleep:
            self._sleep.cancel()

    def clear_wake(self) -> None:
        """From here on `gather` waits until the next call of `wake`. Call it before the frontier is asked."""
        self._is_woken = False


def _slot(lease: Lease) -> float:
    return lease.at


def _weight(item: Returned) -> int:
    return 0 if isinstance(item, Unvisited) else sum(len(visit.url) for visit in item.found)
