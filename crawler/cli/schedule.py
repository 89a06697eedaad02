"""`--every`: crawls again and again in one process, for containers that nothing else starts.

A run begins at each slot (the first at once, then every interval after it), a little later by chance, so that many sites of
one machine do not begin together. A run that fails waits for its slot like any other; one that is longer than the interval
skips slots. Wrong settings end the program, as waiting does not mend them.
"""

import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import anyio

from crawler.cli.run_end import exit_of, sentence
from crawler.errors import ConfigError, Exit
from crawler.settings.sections import Settings

JITTER: Final = 0.05  # of the interval, at most

log = logging.getLogger("crawler")


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
    chance: Callable[[], float] = random.random,
) -> Exit:
    """Runs until `is_ending`; the exit code of the last run. `every`: seconds; `chance`: from 0 to 1.

    Raises `ConfigError`.
    """
    first = clock()
    while True:
        code = await _ended(run)
        if is_ending():
            return code
        wait = slot_after(first, every, clock()) + chance() * JITTER * every - clock()
        at = datetime.fromtimestamp(clock() + wait, UTC).isoformat(timespec="seconds")
        log.info("waiting for the next run", extra={"fields": {"exit": code.value, "next": at}})
        await sleep(max(0.0, wait))


def slot_after(first: float, every: float, now: float) -> float:
    """The next slot after `now`, of those that begin at `first`. All in seconds."""
    return first + every * (math.floor(max(0.0, now - first) / every) + 1)


async def _ended(run: Callable[[], Awaitable[Exit]]) -> Exit:
    """The exit code of one run. What ends it is logged, as there is nobody left to say it to."""
    try:
        return await run()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - also after a bug, the next run has its chance
        failure = error
    code, why = exit_of(failure), sentence(failure)
    fields = {"exit": code.value, "error": why}
    trace = failure if code is Exit.INTERNAL else None
    log.error(why, extra={"event": "run failed", "fields": fields}, exc_info=trace)
    return code
