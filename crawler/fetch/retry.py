"""Retries: which failures are transient, how often to retry, and when. How is for `rules.retries`.

Retried are broken connections, timeouts, invalid framing, and 429, 500, 502, 503 and 504. Pauses grow from
half a second, with jitter; a Retry-After of a few seconds is obeyed here, a longer one is left to the judge.
Every attempt takes a slot of its host, and all attempts of one request share its total timeout.
"""

import math
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse.url import Url, origin
from crawler.ports import Fetcher, Pacer, Request, Turn
from crawler.report.traffic import Traffic
from crawler.rules.refusals import HostPause, Refusals
from crawler.rules.throttle import OVERLOADED, PASSING, QUICK, TOO_MANY, Throttle, retry_after

LONGEST_PAUSE: Final = 30.0  # most seconds that one Retry-After may pause a host
MOST_HELD: Final = 2  # times that a page waits with its folder before it is requested all the same
MAX_TIMEOUTS: Final = 2  # attempts that may time out
JITTER: Final = 0.5  # most seconds added to a Retry-After
ABSURD: Final = 86_400.0  # seconds; a longer Retry-After is taken to mean "never", for that page only


async def no_wait(_: Url) -> None:
    """Where addresses are not known."""


class Retrying(Struct, frozen=True, kw_only=True):
    """A `ports.Fetcher` that adds retries to another."""

    fetcher: Fetcher
    pacer: Pacer
    retries: int
    total: float  # seconds of exchange for all attempts together
    clock: Callable[[], float]  # seconds since the epoch
    sleep: Callable[[float], Awaitable[None]]
    turn: Turn
    # Called for every reply that shows an overloaded host, with the seconds to pause.
    throttled: Callable[[float], None] = lambda _: None
    traffic: Traffic | None = None  # counts the requests, for the metrics
    # Called before a request is repeated, with the reason, and the number of the attempt.
    repeated: Callable[[Url, str, int], None] = lambda _url, _because, _attempt: None
    # Waits until the address of a URL may be requested.
    at_address: Callable[[Url], Awaitable[None]] = no_wait
    throttle: Throttle = field(default_factory=Throttle)
    refusals: Refusals = field(default_factory=Refusals)

    async def fetch(self, request: Request) -> Reply:
        """Request until the reply is final, or the attempts or the time run out."""
        if 0 < request.attempt <= min(MOST_HELD, self.retries):
            wait = self.refusals.wait(request.url, self.clock())
            if wait > QUICK:
                return _held(wait)
            if wait > 0:
                await self.sleep(wait)
        budget = _Budget(self.total if request.seconds is None else request.seconds, self.clock)
        reply = await self._once(request, budget)
        if self.retries == 0 or not self._is_transient(reply, budget):
            return reply
        from crawler.rules import retries  # noqa: PLC0415 - takes long to import; nearly every first attempt stands

        first = [reply]

        async def attempt() -> Reply:
            return first.pop() if first else await self._again(request, budget)

        final: Reply = await retries.while_result(
            lambda reply: self._is_transient(reply, budget),
            tries=self.retries + 1,
            sleep=self.sleep,
            wait=self._asked_for,
            repeats=lambda reply, attempt: self.repeated(request.url, because(reply), attempt),
        )(attempt)
        return final

    async def _again(self, request: Request, budget: "_Budget") -> Reply:
        site = origin(request.url)
        await self.turn(site, await self.pacer.slot(site))
        if self.traffic:
            self.traffic.retried()
        return await self._once(request, budget)

    async def _once(self, request: Request, budget: "_Budget") -> Reply:
        await self.at_address(request.url)
        began, site = self.clock(), origin(request.url)
        fetch = self._counted if self.traffic else self.fetcher.fetch
        with budget:
            reply = await fetch(replace(request, seconds=budget.left))
        budget.timeouts += isinstance(reply, Broken) and reply.cause is Cause.TIMEOUT
        took = self.clock() - began - (request.room.waited if request.room else 0.0)
        wait = self.throttle.of(site, reply, max(0.0, took), self._now())
        if isinstance(reply, Response) and reply.status < 400:
            self.refusals.answered(request.url, began)
        if wait is None:
            return reply
        pause = min(wait, LONGEST_PAUSE) if wait <= ABSURD else 0.0
        self.throttled(pause)
        means_host = HostPause.YES
        if self._is_refusal(reply):
            means_host = self.refusals.refused(request.url, pause, self.clock())
        if means_host is not HostPause.NO:
            await self.pacer.slow(site, self.clock() + pause, once=means_host is HostPause.ONCE)
        return reply

    def _is_refusal(self, reply: Reply) -> bool:
        """Whether a reply asks for a pause: a 429, or a Retry-After."""
        if not isinstance(reply, Response) or reply.status not in OVERLOADED:
            return False
        return reply.status == TOO_MANY or retry_after(reply.headers, self._now()) is not None

    async def _counted(self, request: Request) -> Reply:
        began = time.monotonic()
        reply = await self.fetcher.fetch(request)
        status, size = (reply.status, len(reply.body)) if isinstance(reply, Response) else (None, 0)
        if self.traffic:
            self.traffic.answered(status, size, time.monotonic() - began)
        return reply

    def _is_transient(self, reply: Reply, budget: "_Budget") -> bool:
        if budget.left <= 0:
            return False
        if isinstance(reply, Broken):
            return reply.transient and budget.timeouts < MAX_TIMEOUTS
        return reply.status in PASSING and (retry_after(reply.headers, self._now()) or 0.0) <= QUICK

    def _asked_for(self, reply: Reply) -> float | None:
        """Seconds to wait by Retry-After, with jitter; None if there is none."""
        wait = retry_after(reply.headers, self._now()) if isinstance(reply, Response) else None
        return None if wait is None else wait + random.uniform(0, JITTER)  # noqa: S311

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)


def because(reply: Reply) -> str:
    """Why a request is repeated."""
    return reply.cause.says if isinstance(reply, Broken) else f"status {reply.status}"


def _held(wait: float) -> Response:
    """The reply to a page whose folder is to wait: as if it had been asked."""
    return Response(TOO_MANY, Headers([("retry-after", str(math.ceil(wait)))]))


class _Budget:
    """Seconds of exchange that are left. Waiting for a slot or during a pause does not count."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.left, self._clock, self._entered = seconds, clock, 0.0
        self.timeouts = 0  # attempts that timed out

    def __enter__(self) -> None:
        self._entered = self._clock()

    def __exit__(self, *_: object) -> None:
        self.left -= max(0.0, self._clock() - self._entered)
