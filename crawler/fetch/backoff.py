"""Repeats a failed request, with a pause before each retry. The only module that uses tenacity.

Which replies are final, and what a single attempt does, is defined by `retry`.
"""

import random
from collections.abc import Awaitable, Callable
from datetime import datetime

from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt
from tenacity.wait import wait_base, wait_exponential_jitter

from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Reply, Response
from crawler.rules import retry_after


async def until(
    stands: Callable[[Reply], bool],
    *,
    first: Reply,
    ask: Callable[[], Awaitable[Reply]],
    tries: int,
    sleep: Callable[[float], Awaitable[None]],
    now: Callable[[], datetime],
) -> Reply:
    """The first final reply, or the last one. `first` is the reply to the first attempt, which was already made."""
    replies = [first]
    again = AsyncRetrying(
        stop=stop_after_attempt(tries),
        wait=_Backoff(now),
        retry=lambda state: not stands(_reply_of(state)),
        sleep=sleep,
        retry_error_callback=_reply_of,
    )

    async def attempt() -> Reply:
        return replies.pop() if replies else await ask()

    result: Reply = await again(attempt)
    return result


class _Backoff(wait_base):
    """Seconds to wait: Retry-After if the server sent it, otherwise half a second, doubling each time. With jitter."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._growing = wait_exponential_jitter(multiplier=0.5, max=8, jitter=0.5)

    def __call__(self, retry_state: RetryCallState) -> float:
        reply = _reply_of(retry_state)
        delay = retry_after.retry_after(reply.headers, self._now()) if isinstance(reply, Response) else None
        return self._growing(retry_state) if delay is None else delay + random.uniform(0, 0.5)  # noqa: S311


def _reply_of(state: RetryCallState) -> Reply:
    if state.outcome is None:  # for the type checker; a finished attempt always has an outcome
        return Broken(Cause.PROTOCOL)
    reply: Reply = state.outcome.result()
    return reply
