"""A supervised pool of worker processes: sends each lease to the least busy one and returns its result.

A worker that dies or hangs is replaced, and its pages are visited again one by one in a separate worker, so
that only the page that caused it fails: after the death of three workers. Politeness and state stay in the
main process; workers request slots for their retries from it.
"""

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, TypeVar

import anyio
import anyio.abc

from crawler.errors import ConfigError, ungrouped
from crawler.model.log import log
from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.model.settlement import Unvisited, Verdict, VisitResult, WhyUnvisited
from crawler.model.visit import Lease
from crawler.parse.url import Url, origin
from crawler.settings.sections import Settings
from crawler.workers import messages as codec
from crawler.workers.channel import MALFORMED
from crawler.workers.forked import Forks, forks
from crawler.workers.spawn import python, start
from crawler.workers.surroundings import Surroundings
from crawler.workers.worker import Worker, least_busy, shares

T = TypeVar("T")

MOST_WORKER_DEATHS: Final = 3  # worker processes that die on a page until it fails
# Leases sent to a worker for each request in flight, so that it need not wait for the next page.
PREFETCH: Final = 3
START_TIMEOUT: Final = 30.0  # seconds that a worker may take to become ready
# Seconds without a message, after which a busy worker is asked whether it is alive.
HANG_TIMEOUT: Final = 10.0
# Seconds that a worker and its children may take to exit before they are killed.
WORKER_EXIT_TIMEOUT: Final = 1.0
READ_INTERVAL: Final = 0.005  # seconds between reads of a worker's messages, to get several at once


class WorkerPool:
    """A `ports.Visitor` of up to `size` processes, which share the limit of requests in flight."""

    def __init__(
        self,
        settings: Settings,
        size: int,
        around: Surroundings,
        ended: anyio.Event,
        *,
        command: list[str] | None = None,
        stuck: float = HANG_TIMEOUT,
    ) -> None:
        """`ended` is set when no further page is to be requested.

        `command` starts a worker; `stuck` is in seconds. Both are for tests.
        """
        self._settings, self._size, self._around = settings, size, around
        self._ended, self._stuck = ended, stuck
        self.prefetch = PREFETCH if settings.pace.concurrency > 1 else 1
        self._forks = Forks() if command else forks
        self._command = command or python("crawler.app.worker:main")
        self._workers: list[Worker] = []
        self._single: Worker | None = None  # for pages that may have killed a worker
        self._alone = anyio.Lock()
        self._numbers = count()
        self._all_ready = anyio.Event()  # set once, after the start
        self._failed_starts = 0  # consecutive workers that exited before they were ready
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["WorkerPool"]:
        """Starts the workers, and ends them on exit. Raises `ConfigError` if they cannot be started."""
        try:
            with ungrouped():
                async with anyio.create_task_group() as self._tasks:
                    for share in shares(self._settings.pace.concurrency, self._size):
                        self._workers.append(await self._start(share))
                    self._tasks.start_soon(self._watch)
                    self._tasks.start_soon(self._call_back)
                    # Else pages that wait for their worker would be requested after their slots, in a burst.
                    with anyio.move_on_after(START_TIMEOUT):
                        await self._all_ready.wait()
                    yield self
                    self._tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                for worker in self._all():
                    worker.child.channel.close()
                for worker in self._all():
                    await worker.child.exit(WORKER_EXIT_TIMEOUT)

    async def visit(self, lease: Lease) -> VisitResult | Unvisited:
        result = await self._ask(least_busy(self._workers), lease)
        for _ in range(MOST_WORKER_DEATHS - 1):
            if result is not None:
                break
            async with self._alone:
                if self._ended.is_set():
                    return Unvisited(lease, WhyUnvisited.ENDING)
                if self._single is None:
                    self._single = await self._start(1)
                site = origin(lease.visit.url)
                await self._around.turn(site, await self._around.pacer.slot(site))
                result = await self._ask(self._single, lease)
        return result or VisitResult(
            Verdict(Failed(Cause.CRASHED, f"{MOST_WORKER_DEATHS} worker processes died on it"))
        )

    async def _ask(self, worker: Worker, lease: Lease) -> VisitResult | Unvisited | None:
        base = self._around.base
        return await worker.visit(next(self._numbers), lease, base.site if base else None)

    # -- supervision ---------------------------------------------------------------------------------------

    def _all(self) -> list[Worker]:
        return [*self._workers, self._single] if self._single else [*self._workers]

    async def _start(self, share: int) -> Worker:
        """Raises `ConfigError`."""
        try:
            child = self._forks.take() or await start(self._command)
        except OSError as error:
            raise ConfigError(
                f"--processes: no worker process can be started ({error.strerror}); use --processes 1."
            ) from error
        worker = Worker(child, share)
        pace = replace(self._settings.pace, concurrency=share)
        try:
            with suppress(OSError):  # the worker has already exited: `_listen` handles that
                ahead = self._around.clock() - time.time()
                await child.channel.post(codec.StartWork(replace(self._settings, pace=pace), ahead))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await child.end()
            raise
        if self._tasks is not None:
            self._tasks.start_soon(self._listen, worker)
        return worker

    async def _listen(self, worker: Worker) -> None:
        """Handles the messages of a worker until it exits or sends an invalid one; then replaces it."""
        try:
            while messages := await worker.child.channel.receive_batches(codec.FROM_WORKER):
                worker.last_message_at = time.monotonic()
                for message in messages:
                    self._handle(worker, message)
                await anyio.sleep(READ_INTERVAL)
        except MALFORMED:
            pass
        await worker.child.end()
        self._failed_starts = 0 if worker.is_ready else self._failed_starts + 1
        if self._failed_starts >= MOST_WORKER_DEATHS:
            raise ConfigError("--processes: worker processes exit right after starting; use --processes 1.")
        log.warning("a worker process died and was replaced", pages=len(worker.waiting))
        if worker is self._single:
            self._single = None
        else:
            # From the first death on, one request in flight is reserved for the worker that visits pages one
            # by one.
            is_first = sum(other.share for other in self._workers) == self._settings.pace.concurrency > 1
            place = self._workers.index(worker)
            self._workers[place] = await self._start(worker.share - is_first)
        worker.died()

    def _handle(self, worker: Worker, message: codec.FromWorker) -> None:
        """Raises one of `MALFORMED` for a message that is invalid in its context."""
        match message:
            case codec.PageVisited():
                self._visited(worker, message)
            case codec.LeaseReturned(number):
                self._returned(worker, number)
            case codec.SlotWanted(number, site):
                self._begin(worker, site, self._slot, number)
            case codec.PauseHost(site):
                self._begin(worker, site, self._slow, message)
            case codec.Throttled(wait):
                self._around.throttled(wait)
            case codec.Repeated(url, because, attempt):
                self._around.repeated(url, because, attempt)
            case codec.SessionFound(name, example):
                self._around.session(name, example)
            case codec.TrafficCounted(taken) if self._around.traffic:
                self._around.traffic.add(taken)
            case codec.Ready():
                self._ready(worker)

    def _visited(self, worker: Worker, message: codec.PageVisited) -> None:
        if waiting := worker.waiting.get(message.number):
            waiting.finish(codec.read(message.page, waiting.lease, worker.urls))
        else:
            codec.skip(message.page, worker.urls)

    def _returned(self, worker: Worker, number: int) -> None:
        if not self._ended.is_set():
            raise ValueError("a lease that was not asked back")
        if waiting := worker.waiting.get(number):
            waiting.finish(Unvisited(waiting.lease, WhyUnvisited.ENDING))

    def _ready(self, worker: Worker) -> None:
        worker.is_ready = True
        # The first one may be ready before the next one is started.
        count = len(shares(self._settings.pace.concurrency, self._size))
        if len(self._workers) == count and all(worker.is_ready for worker in self._workers):
            self._all_ready.set()

    def _begin(
        self,
        worker: Worker,
        site: Url,
        what: Callable[[Worker, Url, T], Coroutine[Any, Any, None]],
        detail: T,
    ) -> None:
        """Begins what a worker wants for a site, if it has an open visit of it."""
        if self._tasks is not None and worker.has_page_of(site):
            self._tasks.start_soon(what, worker, site, detail)

    async def _slow(self, reporter: Worker, origin: Url, pause: codec.PauseHost) -> None:
        """Pauses a throttled host: here, and in the other workers, which may hold leases of it."""
        if not await self._around.pacer.slow(origin, pause.until, once=pause.once):
            return
        for worker in self._all():
            if pause.once or worker is not reporter:
                await worker.send(codec.PauseHost(origin, pause.until))

    async def _slot(self, worker: Worker, origin: Url, number: int) -> None:
        """Waits for a slot of a host, then notifies the worker."""
        await self._around.turn(origin, await self._around.pacer.slot(origin))
        await worker.send(codec.GrantSlot(number))

    async def _call_back(self) -> None:
        """When the crawl ends, makes workers return the leases that they have not requested yet."""
        await self._ended.wait()
        if self._tasks is not None:
            for worker in self._all():
                self._tasks.start_soon(worker.send, codec.EndVisits())

    async def _watch(self) -> None:
        """Asks busy workers that are silent whether they are alive, and kills those that do not reply."""
        while True:
            await anyio.sleep(self._stuck / 2)
            for worker in self._all():
                silent = worker.silent()
                if silent > (2 * self._stuck if worker.is_ready else max(START_TIMEOUT, self._stuck)):
                    worker.child.kill()
                elif silent > self._stuck and worker.is_ready:
                    with anyio.move_on_after(self._stuck / 2):
                        await worker.send(codec.Ping())
