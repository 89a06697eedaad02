"""A worker process, started by `workers.pool`: visits the pages that it is sent, and returns the results.

It has no state and schedules no requests: it requests slots for retries from the main process, and exits when
that is gone.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from crawler.app.compose import open_fetcher, open_visitor, traffic_of
from crawler.app.event_loop import run
from crawler.app.settings_urls import publish_base, starts_of
from crawler.fetch.politeness import Politeness
from crawler.model.settlement import Unvisited, VisitResult, WhyUnvisited
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, origin
from crawler.ports import Visitor
from crawler.report.traffic import Traffic
from crawler.settings.sections import Pace, Settings
from crawler.workers import messages as codec
from crawler.workers.channel import Channel
from crawler.workers.forked import forks
from crawler.workers.messages import SentUrls
from crawler.workers.surroundings import Surroundings
from crawler.workers.worker import shares


class _MainProcess:
    """A `ports.Pacer`, a `Turn` and three callbacks that use the main process over the channel.

    When a host is paused, only pages that were already sent to this worker have to wait here.
    """

    def __init__(self, channel: Channel, tasks: TaskGroup, clock: Callable[[], float]) -> None:
        self._channel, self._tasks = channel, tasks
        self._numbers = count()
        self._slots: dict[int, anyio.Event] = {}
        self._reported: set[str] = set()
        self.politeness = Politeness(clock, anyio.sleep)

    async def slot(self, origin: str) -> float:
        """Waits until the slot itself: only the main process can keep all requests apart. Returns 0."""
        number, granted = next(self._numbers), anyio.Event()
        self._slots[number] = granted
        try:
            await self._channel.post(codec.SlotWanted(number, Url(origin)))
            await granted.wait()
        finally:
            del self._slots[number]
        return 0.0

    def grant(self, number: int) -> None:
        """Ends the wait for a slot."""
        if number in self._slots:
            self._slots[number].set()

    async def take(self, message: codec.ToWorker, base: PublishBase | None) -> None:
        """Does what the main process says, apart from visits."""
        match message:
            case codec.GrantSlot(number):
                self.grant(number)
            case codec.SetSite(site) if base:
                base.move(site)
            case codec.PauseHost(origin, until):
                self.politeness.slow(origin, until)
            case codec.Ping():
                await self._channel.post(codec.Pong())
            case codec.EndVisits():
                self.politeness.end()

    async def turn(self, origin: str, at: float) -> None:
        """Does nothing, as the main process has already waited."""

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        """Pauses a throttled host, here and in the main process; if `once`, when that one says so."""
        if not once:
            self.politeness.slow(origin, until)
        await self._channel.post(codec.PauseHost(Url(origin), until, once))
        return not once

    def throttled(self, wait: float) -> None:
        """Reports a pause to the main process, for the progress display."""
        self._tasks.start_soon(self._channel.post, codec.Throttled(wait))

    def repeated(self, url: Url, because: str, attempt: int) -> None:
        """Reports a repeated request to the main process, for the log."""
        self._tasks.start_soon(self._channel.post, codec.Repeated(url, because, attempt))

    def session(self, name: str, example: str) -> None:
        """Reports a session parameter to the main process, once per name: a page may have thousands."""
        if name not in self._reported:
            self._reported.add(name)
            self._tasks.start_soon(self._channel.post, codec.SessionFound(name, Url(example)))


async def _visit_all(
    todo: MemoryObjectReceiveStream[codec.VisitPage],
    visitor: Visitor,
    channel: Channel,
    politeness: Politeness,
    traffic: Traffic | None,
    sent: SentUrls,
) -> None:
    while True:
        try:
            message = todo.receive_nowait()
        except anyio.WouldBlock:
            message = await todo.receive()  # takes several times as long
        lease = message.lease
        await politeness(origin(lease.visit.url), 0.0)
        is_ending = politeness.ended.is_set()
        result = Unvisited(lease, WhyUnvisited.ENDING) if is_ending else await visitor.visit(lease)
        if isinstance(result, VisitResult):
            await channel.post(codec.PageVisited(message.number, codec.written(result, sent)))
        else:
            await channel.post(codec.LeaseReturned(message.number))
        if traffic and traffic.requests:
            await channel.post(codec.TrafficCounted(traffic.take()))


async def _hand_back(todo: MemoryObjectReceiveStream[codec.VisitPage], channel: Channel) -> None:
    """Returns the leases that no task has taken yet."""
    with suppress(anyio.WouldBlock):
        while True:
            await channel.post(codec.LeaseReturned(todo.receive_nowait().number))


async def work(
    channel: Channel, settings: Settings, clock: Callable[[], float], messages: list[codec.ToWorker]
) -> None:
    """Visits pages until the main process is gone. `clock`: of the crawl; `messages`: received so far."""
    # Unbounded, as the main process limits how many leases it sends.
    give, todo = anyio.create_memory_object_stream[codec.VisitPage](float("inf"))
    async with give, todo, anyio.create_task_group() as tasks:
        parent, base = _MainProcess(channel, tasks, clock), publish_base(settings, starts_of(settings))
        traffic, sent = traffic_of(settings), SentUrls()
        callbacks = (parent, parent.turn, parent.throttled, parent.session)
        around = Surroundings(*callbacks, base, traffic, clock, children=1, repeated=parent.repeated)
        async with open_fetcher(settings) as fetcher, open_visitor(settings, fetcher, around) as visiting:
            for _ in range(settings.pace.concurrency):
                tasks.start_soon(
                    _visit_all, todo, visiting.visitor, channel, parent.politeness, traffic, sent
                )
            await channel.post(codec.Ready())
            messages = messages or await channel.receive_batches(codec.TO_WORKER)
            while messages:
                for message in messages:
                    if isinstance(message, codec.VisitPage):
                        give.send_nowait(message)
                    else:
                        await parent.take(message, base)
                if parent.politeness.ended.is_set():
                    await _hand_back(todo, channel)
                messages = await channel.receive_batches(codec.TO_WORKER)
            tasks.cancel_scope.cancel()


async def _run(end: socket.socket) -> None:
    channel = Channel(end)
    match await channel.receive_batches(codec.TO_WORKER):
        case [codec.StartWork(settings, ahead), *messages]:
            try:
                await work(channel, settings, lambda: time.time() + ahead, messages)
            except* OSError:
                pass  # the main process is gone


@contextmanager
def forked_workers(pace: Pace) -> Iterator[None]:
    """Forks the workers that a crawl needs in the block. There must be no event loop yet."""
    forks.fork(main, len(shares(pace.concurrency, pace.processes)) if pace.processes > 1 else 0)
    try:
        yield
    finally:
        forks.end()


def main(end: socket.socket) -> None:
    """Serves the process at the other end of the socket."""
    run(_run, end)
