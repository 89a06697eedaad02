"""`--every`: repeats the crawl in one process, for containers without a scheduler.

The first run starts at once, the others at multiples of the interval after it, with a small random delay, so
that many sites on one machine do not start together. A failed run changes nothing about that; one that is
longer than the interval skips starts. One that could not start because of another is tried again soon. Wrong
settings end the program, as waiting does not correct them.
"""

import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from crawler.cli.notify import exit_of, sentence
from crawler.errors import ConfigError, Exit
from crawler.model.log import log
from crawler.report.formatting import iso
from crawler.settings.sections import Settings

JITTER: Final = 0.05  # of the interval, at most
SOON: Final = 300.0  # seconds after a run that another one kept out


def check(settings: Settings) -> None:
    """Raises `ConfigError` for settings that a second run could not have."""
    if settings.pace.every is None:
        return
    if settings.state.fresh:
        raise ConfigError("--every and --fresh: each run would start over and forget what changed.")
    if "-" in settings.scope.input:
        raise ConfigError("--every: stdin can be read only once; name a file with --input.")


async def repeat(
    run: Callable[[], Awaitable[Exit]],
    every: float,
    is_ending: Callable[[], bool],
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    chance: Callable[[], float] = random.random,  # noqa: S311 - spreads the load
) -> Exit:
    """Runs until `is_ending`; the exit code of the last run. `every`: seconds; `chance`: from 0 to 1.

    Raises `ConfigError`.
    """
    first = clock()
    while True:
        code = await _ended(run)
        if is_ending():
            return code
        wait = next_start(first, every, clock()) + chance() * JITTER * every - clock()
        if code is Exit.BUSY:
            wait = min(wait, SOON)
        log.info("waiting for the next run", exit=code.value, next=iso(clock() + wait))
        await sleep(max(0.0, wait))


def next_start(first: float, every: float, now: float) -> float:
    """The first time after `now` that is a multiple of `every` after `first`. All in seconds."""
    return first + every * (math.floor(max(0.0, now - first) / every) + 1)


async def _ended(run: Callable[[], Awaitable[Exit]]) -> Exit:
    """The exit code of one run. An error that ends it is logged here, as nothing above this handles it."""
    try:
        return await run()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - also after a bug, the next run is tried
        failure = error
    code, why = exit_of(failure), sentence(failure)
    trace = failure if code is Exit.INTERNAL else None
    log.error(why, event="run failed", exit=code.value, error=why, exc_info=trace)
    return code
