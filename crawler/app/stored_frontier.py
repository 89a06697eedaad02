"""A frontier whose file is kept in an object store between runs: fetched at the start, put back at the end,
and every ten minutes while it is worked on.

Everything else is that of a state file, which lies in a temporary folder. `stored_state` has the objects and
the lock. The store never stalls the crawl: it is asked from threads, and a put that fails in between is a
warning. Without the lock, nothing is written and nothing is published.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final, ParamSpec, TypeVar

import anyio

from crawler import scratch
from crawler.app.stored_state import StoredState
from crawler.errors import FrontierError, StateBusy
from crawler.frontier.frontier import FrontierOptions
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.state_file import lock_of
from crawler.model.log import log
from crawler.model.run import SessionEnd
from crawler.report.formatting import second
from crawler.settings.object_url import ObjectUrl
from crawler.sitemap.publish.object_store import abandonable

P = ParamSpec("P")
T = TypeVar("T")
Left = Callable[[], float]

FILE: Final = "state.db"  # in a temporary folder
KEPT_BESIDE: Final = ", which keeps the damaged file under another name"  # not so of a temporary file
RENEW_EVERY: Final = 60.0  # seconds between two puts of the lock
SAVE_EVERY: Final = 540.0  # seconds between two puts of the state: with the put itself, within ten minutes
LEAST: Final = 1.5  # seconds that the last put has, however late it begins
GIVING_BACK: Final = 2.0  # seconds to give the lock back if the state cannot be opened


def forever() -> float:
    """Seconds that a program has that nobody told to end."""
    return inf


async def open_stored(
    url: ObjectUrl, seconds: float, options: FrontierOptions, *, fresh: bool, left: Left = forever
) -> "StoredFrontier":
    """The frontier of the state at `url`, to work on it.

    `seconds`: for all requests of one step to the store. `left`: seconds until the program must have ended;
    infinite unless it was told to. Raises `ConfigError`, `FrontierError`, `StateBusy`.
    """
    stored = StoredState(url, seconds)
    files = ExitStack()
    path = files.enter_context(scratch.folder()) / FILE

    def begin() -> None:
        with stored.translated("fetched"):
            stored.take()
            if not fresh:
                stored.fetch(path)

    try:
        await abandonable(begin)
        with _naming(path, url):
            return StoredFrontier(stored, files, path, options, left)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _give_back(stored)
        files.close()
        raise


async def _give_back(stored: StoredState) -> None:
    ends = monotonic() + GIVING_BACK
    try:
        await abandonable(stored.release, lambda: monotonic() > ends)
    except (OSError, TimeoutError):
        log.warning("lock not given back", state=str(stored.url))


class StoredFrontier(SqliteFrontier):
    """See the module. Made by `open_stored`."""

    def __init__(
        self, stored: StoredState, files: ExitStack, path: Path, options: FrontierOptions, left: Left
    ) -> None:
        super().__init__(str(path), **options)
        self._stored, self._files, self._file, self._left = stored, files, path, left
        self._saving, self._ended = Lock(), Event()
        self._lost: StateBusy | None = None
        self._is_broken = self._is_told = False
        for every, step in (RENEW_EVERY, stored.renew), (SAVE_EVERY, partial(self._save, is_open=True)):
            Thread(target=self._repeat, args=(every, step), daemon=True).start()

    async def check_leadership(self) -> None:
        """See `ports.Runs.check_leadership`: also that no other job has taken the state."""
        await super().check_leadership()
        with self._stored.translated("locked"):
            await abandonable(self._stored.renew, self._is_over())

    async def end_session(self, end: SessionEnd) -> None:
        """See `ports.Runs.end_session`. The state is put back, so that a failure of that is told as well."""
        await super().end_session(end)
        if self._left() == inf and not self._is_told:
            self._is_told = True
            await self._put_back(partial(self._save, is_open=True))

    async def close(self) -> None:
        """See `ports.Frontier.close`: puts the state back, and gives the lock back."""
        await super().close()
        self._ended.set()
        try:
            with anyio.CancelScope(shield=True):
                if self._lost is None:
                    await self._put_back(self._finish)
        finally:
            self._files.close()

    async def _put_back(self, step: Callable[[], None]) -> None:
        """Raises `FrontierError`; after a signal, time is short, and it is a warning."""
        try:
            with self._stored.translated("put back"):
                await abandonable(step, self._is_over())
        except FrontierError as error:
            if self._left() == inf:
                raise
            log.warning("state not put back", error=str(error))
        except TimeoutError:
            log.warning(
                "state not put back", state=str(self._stored.url), because="the program was told to end"
            )

    def _is_over(self) -> Callable[[], bool]:
        began = monotonic()
        return lambda: self._left() <= 0 and monotonic() > began + LEAST

    def _finish(self) -> None:
        if not self._is_broken:
            self._save(is_open=False)  # if it fails, the lock stays: who finds it void deletes what is left
        self._stored.release()

    def _save(self, *, is_open: bool) -> None:
        with self._saving:
            if is_open and self._ended.is_set():
                return
            self._stored.put_back(self._file, is_open=is_open)

    def _repeat(self, every: float, step: Callable[[], None]) -> None:
        """In a thread: does a step now and then. A lost lock ends the crawl, at its next transaction."""
        began = monotonic()
        while not self._ended.wait(max(0.0, began + every - monotonic())):
            began = monotonic()
            try:
                with self._stored.translated("put back"):
                    step()
            except StateBusy as error:
                self._lost = error
                return
            except FrontierError as error:
                log.warning("state not put back; trying again later", error=str(error))

    def _transact(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._lost:
            raise self._lost
        try:
            with _naming(self._file, self._stored.url):
                return super()._transact(verb, *args, **kwargs)
        except FrontierError:
            self._is_broken = True  # what is there is better
            raise


@contextmanager
def _naming(path: Path, url: ObjectUrl) -> Iterator[None]:
    """Errors name the state, not the temporary file."""
    try:
        yield
    except FrontierError as error:
        error.args = (str(error).replace(str(path), str(url)).replace(KEPT_BESIDE, ""),)
        raise


class CopiedFrontier(SqliteFrontier):
    """A copy of a state in an object store, for reading, without its lock."""

    def __init__(self, files: ExitStack, path: Path, options: FrontierOptions) -> None:
        self._files = files
        super().__init__(str(path), **options, read_only=True)

    async def close(self) -> None:
        await super().close()
        self._files.close()


@contextmanager
def copied(url: ObjectUrl, seconds: float, says: Callable[[str], None]) -> Iterator[Path]:
    """The path of a copy of the state as it was stored last; `says` gets a sentence about that. The lock
    beside the copy shows when a job last gave a sign of life. Raises `ConfigError`, `FrontierError`.
    """
    files, path, said = _fetch(url, seconds)
    with files, _naming(path, url):
        yield path
    says(said)


async def open_copy(
    url: ObjectUrl, seconds: float, says: Callable[[str], None], options: FrontierOptions
) -> CopiedFrontier:
    """A frontier on such a copy. Raises the same."""
    files, path, said = await abandonable(partial(_fetch, url, seconds))
    try:
        with _naming(path, url):
            frontier = CopiedFrontier(files, path, options)
    except BaseException:
        files.close()
        raise
    says(said)
    return frontier


def _fetch(url: ObjectUrl, seconds: float) -> tuple[ExitStack, Path, str]:
    stored = StoredState(url, seconds)
    files = ExitStack()
    path = files.enter_context(scratch.folder()) / FILE
    try:
        with stored.translated("fetched"):
            put_at = stored.fetch_known(path)
            heard = stored.heard_of(datetime.fromtimestamp(time.time(), UTC))
        lock_of(path).write_text("copy")
        os.utime(lock_of(path), (heard or put_at.timestamp(),) * 2)
    except BaseException:
        files.close()
        raise
    return files, path, f"{url}: read as it was put there at {second(put_at.timestamp())}, without its lock."
