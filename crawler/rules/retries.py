"""How anything is tried again: what for, when to stop, how long to wait.

Policies on tenacity, which only this module imports. A policy is awaited with the attempt; nothing waits or
reads a clock here. A call costs 70 µs of CPU, and the import 10 ms: where nearly every first attempt succeeds
(a page, a lock), that one is made without it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying
from tenacity.retry import retry_if_exception
from tenacity.stop import stop_after_attempt, stop_before_delay, stop_never
from tenacity.wait import wait_exponential_jitter

T = TypeVar("T")
Policy: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Takes an attempt, which may be a coroutine function, and gives its last result."""

FIRST: Final = 0.5  # seconds to wait after the first attempt, and most seconds of jitter
LONGEST: Final = 8.0  # seconds


def while_result(
    again: Callable[[Any], bool],
    *,
    tries: int | None = None,
    sleep: Callable[[float], Awaitable[None]],
    wait: Callable[[Any], float | None] = lambda _: None,
    repeats: Callable[[Any, int], None] = lambda _result, _attempt: None,
) -> Policy:
    """Tries until `again` is false for the result, at most `tries` times if given; the last result.

    `wait`: the seconds that a result asks for. None: half a second, doubling, with jitter. `repeats`: called
    before each wait with the result, and the number of the next attempt.
    """
    growing = wait_exponential_jitter(multiplier=FIRST, max=LONGEST, jitter=FIRST)

    def waits(state: RetryCallState) -> float:
        seconds = wait(_result(state))
        return growing(state) if seconds is None else seconds

    return AsyncRetrying(
        stop=stop_after_attempt(tries) if tries else stop_never,
        wait=waits,
        retry=lambda state: again(_result(state)),
        sleep=sleep,
        before_sleep=lambda state: repeats(_result(state), state.attempt_number + 1),
        retry_error_callback=_result,
    )


def while_error(
    again: Callable[[BaseException], bool],
    *,
    seconds: float,
    tries: int | None = None,
    first: float = FIRST,
    sleep: Callable[[float], Awaitable[None]],
    repeats: Callable[[BaseException, int], None] = lambda _error, _attempt: None,
) -> Policy:
    """Tries for `seconds`, at most `tries` times if given, while `again` holds for what the attempt raises;
    then raises the last error. `first`, `repeats`: as above.
    """

    def before_sleep(state: RetryCallState) -> None:
        if state.outcome and (error := state.outcome.exception()):
            repeats(error, state.attempt_number + 1)

    return AsyncRetrying(
        stop=stop_before_delay(seconds) | (stop_after_attempt(tries) if tries else stop_never),
        wait=wait_exponential_jitter(multiplier=first, max=LONGEST, jitter=first),
        retry=retry_if_exception(again),
        sleep=sleep,
        before_sleep=before_sleep,
        reraise=True,
    )


def blocking(
    again: Callable[[BaseException], bool],
    *,
    tries: int | None = None,
    first: float = FIRST,
    ends: Callable[[float], bool] = lambda _: False,
) -> Callable[[Callable[[], T]], T]:
    """Blocks: tries while `again` holds for what the attempt raises; then raises the last error.

    At most `tries` times if given, until `ends` is true of the next wait, first `first` seconds.
    """
    return Retrying(
        stop=lambda state: state.attempt_number == tries or ends(state.upcoming_sleep),
        wait=wait_exponential_jitter(multiplier=first, max=LONGEST, jitter=first),
        retry=retry_if_exception(again),
        reraise=True,
    )


def _result(state: RetryCallState) -> Any:
    """The result of an attempt that is over. Raises what it raised."""
    return state.outcome.result() if state.outcome else None
