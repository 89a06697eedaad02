"""Asks for the URLs of other sites that pages link to: whether they answer, and nothing more
(`--check-external`).

By HEAD, and by GET without its body where HEAD may not tell. robots.txt of each host is obeyed, requests to a
host, and to an address that several hosts share, are a second apart or more, and a host that does not answer
is given up. `rules.external` says what a reply means; which URLs are checked, and where the answers are kept,
is decided by the caller.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import anyio
from msgspec.structs import replace

from crawler.engine.robots import Robots, ask_robots
from crawler.errors import ungrouped
from crawler.model.external import Answer, CheckedLink, DueLink
from crawler.model.reasons import Cause, Why
from crawler.model.reply import Broken, Reply, Response
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Fetcher, Request
from crawler.rules.external import (
    ANSWER_BY_CAUSE,
    HOST_IS_DEAD,
    REFUSING,
    UNREACHED,
    answer_of,
    asks_for_less,
    needs_get,
)
from crawler.rules.redirects import Redirects

DELAY: Final = 1.0  # seconds between two requests to a host, at least
LONGEST_WAIT: Final = 15.0  # seconds to wait for the turn of a host; what needs more is left for later
EXCHANGE: Final = 15.0  # seconds for one request
HOST_SECONDS: Final = 120.0  # spent waiting for the responses of one host
# hosts contacted for the first time at once: as many names as uvloop looks up, others would time out waiting
MAX_FIRST_CONTACTS: Final = 4
SILENT: Final = 2  # URLs in a row without a response, after which a host is given up
REFUSALS: Final = 3  # the same for those that it refused with 429, 503 and Retry-After, or 999
GROUP: Final = 100  # answers in one transaction
FLUSH: Final = 5.0  # seconds after which answers are stored
LONGEST_DETAIL: Final = 500  # characters
SLOW: Final = "their hosts are too slow"  # why URLs are left to the next check
DELAYED: Final = "their hosts ask for longer pauses"
SHARED: Final = "too many of them lead to one address"
ALONE: Final = 5  # hosts; if so many fail and none answers, this machine is probably offline


class _Exclusion(NamedTuple):
    """Why a URL is not requested."""

    answer: Answer
    detail: str = ""


@dataclass(eq=False, repr=False)
class _Site:
    """What is known of an origin."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)  # while its robots.txt is read
    exclusion: _Exclusion | None = None  # it is given up
    failures: int = 0  # URLs in a row without a response
    refusals: int = 0  # URLs in a row that it refused


@dataclass(eq=False, repr=False)
class _ExternalHost:
    """What is known of a host, under all its origins. Times are those of the clock."""

    delay: float  # seconds between two requests
    next: float = 0.0  # its next request
    spent: float = 0.0  # seconds of waiting for it


@dataclass(eq=False, repr=False)
class _LinkAddress:
    """An address that one or more names lead to: they may all be one server."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)  # while one of its URLs is checked
    next: float = 0.0  # its next request


async def no_address(_: Url) -> str | None:
    """Where addresses are not known."""
    return None


@dataclass(eq=False, repr=False)
class ExternalLinks:
    """One check. `fetcher` must send nothing of ours to other hosts, and guard the addresses of all.

    `find` looks up the address of a URL. `store` keeps answers; `clock`: seconds that never jump; `now`:
    seconds since the epoch.
    """

    fetcher: Fetcher
    agent: str  # product token for robots.txt
    store: Callable[[Sequence[CheckedLink]], Awaitable[None]]
    clock: Callable[[], float]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    concurrency: int = 16
    max_redirects: int = 10
    delay: float = DELAY
    find: Callable[[Url], Awaitable[str | None]] = no_address
    checked: int = field(init=False, default=0)  # URLs with an answer that is stored
    is_offline: bool = field(init=False, default=False)  # no host answered at all
    left: Counter[str] = field(init=False, default_factory=Counter)  # URLs that were left, by why
    _robots: Robots = field(init=False)
    _first_contacts: anyio.Semaphore = field(init=False)
    _places: anyio.CapacityLimiter = field(init=False)  # hosts that are asked at the same time
    _hosts: dict[str, _ExternalHost] = field(init=False)
    _sites: dict[str, _Site] = field(init=False, default_factory=lambda: defaultdict(_Site))
    _addresses: dict[str, _LinkAddress] = field(init=False, default_factory=lambda: defaultdict(_LinkAddress))
    _answers: list[CheckedLink] = field(init=False, default_factory=list)  # not stored yet
    _flushed: float = field(init=False, default=0.0)
    _is_online: bool = field(init=False, default=False)  # some host has answered

    def __post_init__(self) -> None:
        """Prepares robots.txt rules, which apply whatever the settings for our own site say."""
        self._hosts = defaultdict(lambda: _ExternalHost(self.delay))
        self._first_contacts = anyio.Semaphore(MAX_FIRST_CONTACTS)
        self._robots = Robots(self.agent, self.fetcher, now=self.now)

    async def ask(self, links: Sequence[DueLink]) -> None:
        """Asks for each URL, until all have an answer or the task is cancelled. Answers so far are always
        stored.
        """
        by_host = defaultdict[str, list[DueLink]](list)
        for link in links:
            by_host[urls.host(link.url)].append(link)
        self._places = anyio.CapacityLimiter(self.concurrency)
        self._flushed = self.clock()
        try:
            with ungrouped():
                async with anyio.create_task_group() as tasks:
                    for name, of_host in by_host.items():
                        tasks.start_soon(self._ask_host, self._hosts[name], of_host)
                self._judge_connection()
        finally:
            with anyio.CancelScope(shield=True):
                await self._flush()

    async def _ask_host(self, host: _ExternalHost, links: Sequence[DueLink]) -> None:
        """Asks a host for one URL after the other. What takes too long is left to the next check."""
        for position, link in enumerate(links):
            if host.spent > HOST_SECONDS or host.next - self.clock() > LONGEST_WAIT:
                self.left[SLOW if host.spent > HOST_SECONDS else self._why(host)] += len(links) - position
                return
            await self._sleep_until(host.next)  # meanwhile, another host has the place
            address = await self._address(link.url)
            async with address.lock:
                await self._sleep_until(address.next)
                async with self._places:
                    try:
                        self._answers.append(await self._answer(link))
                    except _TooLong as error:
                        self.left[str(error)] += 1
            if len(self._answers) >= GROUP or self.clock() - self._flushed >= FLUSH:
                await self._flush()

    def _why(self, host: _ExternalHost) -> str:
        """Why the turn of a host is too far away."""
        return DELAYED if host.delay > self.delay else SHARED

    async def _flush(self) -> None:
        """Stores the answers, unless it may be this machine that is offline."""
        if self._answers and self._is_online:
            answers, self._answers = self._answers, []
            self.checked += len(answers)
            await self.store(answers)
        self._flushed = self.clock()

    def _judge_connection(self) -> None:
        """If hosts failed and none answered, that says little about them, unless they are few."""
        self.is_offline = not self._is_online and len(self._hosts) >= ALONE
        self._is_online = not self.is_offline

    # -- one URL -----------------------------------------------------------------------------------------

    async def _answer(self, link: DueLink) -> CheckedLink:
        redirects, sets_cookie, reply = Redirects(link.url, hops=self.max_redirects), False, None
        while reply is None or redirects.follow(reply):
            if exclusion := await self._exclusion(redirects.url):
                return self._checked(link, exclusion.answer, None, _words(redirects, exclusion.detail))
            reply = await self._exchange(redirects.url, is_file=link.is_file)
            sets_cookie = sets_cookie or (
                isinstance(reply, Response) and bool(reply.headers.get("set-cookie"))
            )
        answer = answer_of(reply, redirects, sets_cookie=sets_cookie, is_file=link.is_file)
        status = reply.status if isinstance(reply, Response) else None
        return self._checked(link, answer, status, _words(redirects, getattr(reply, "detail", "")))

    def _checked(self, link: DueLink, answer: Answer, status: int | None, detail: str) -> CheckedLink:
        return CheckedLink(link.id, answer.value, status, detail[:LONGEST_DETAIL], self.now())

    async def _exchange(self, url: Url, *, is_file: bool) -> Reply:
        """The reply to a HEAD, or to a GET if the first may be wrong."""
        reply = await self._fetch(Request(url, head=True))
        if needs_get(reply, is_file=is_file):
            again = await self._fetch(Request(url, wants_body=lambda *_: False))
            is_refused = isinstance(reply, Response) and reply.status in REFUSING
            reply = reply if is_refused and isinstance(again, Broken) else again
        self._count(self._sites[urls.origin(url)], reply)
        return reply

    @staticmethod
    def _count(site: _Site, reply: Reply) -> None:
        """The circuit breaker: a host that stopped answering, or refuses everything, is given up."""
        site.failures = site.failures + 1 if isinstance(reply, Broken) and reply.cause in UNREACHED else 0
        if site.failures >= SILENT and isinstance(reply, Broken):
            site.exclusion = _Exclusion(Answer.SILENT, reply.detail)
        site.refusals = site.refusals + 1 if asks_for_less(reply) else 0
        if site.refusals >= REFUSALS:
            site.exclusion = _Exclusion(
                Answer.REFUSED, f"not requested: its host refused {REFUSALS} requests in a row"
            )

    async def _fetch(self, request: Request) -> Reply:
        """One request, at the turn of its host and of its address. Raises `_TooLong`."""
        host, address = self._hosts[urls.host(request.url)], await self._address(request.url)
        at = max(host.next, address.next, self.clock())
        if at - self.clock() > LONGEST_WAIT:
            raise _TooLong(self._why(host))
        host.next, address.next = at + host.delay, at + self.delay
        await self._sleep_until(at)
        began = self.clock()
        reply = await self.fetcher.fetch(replace(request, seconds=EXCHANGE))
        host.spent += self.clock() - began
        host.next = max(host.next, began + host.delay)
        address.next = max(address.next, began + self.delay)
        has_answered = isinstance(reply, Response) or reply.cause is Cause.WALL
        self._is_online = self._is_online or has_answered
        return reply

    async def _address(self, url: Url) -> _LinkAddress:
        """The address of a URL, or its host if that is not known."""
        async with self._first_contacts if urls.origin(url) not in self._sites else nullcontext():
            found = await self.find(url)
        return self._addresses[found or urls.host(url)]

    async def _sleep_until(self, at: float) -> None:
        while (pause := at - self.clock()) > 0:
            await self.sleep(pause)

    # -- whether it may be requested ---------------------------------------------------------------------

    async def _exclusion(self, url: Url) -> _Exclusion | None:
        """Why a URL is not to be requested: its host is given up, or robots.txt forbids it."""
        name = urls.origin(url)
        site = self._sites[name]
        async with site.lock:
            if site.exclusion is None and not self._robots.knows(name):
                async with self._first_contacts:
                    site.exclusion = await self._read_robots(name)
        if site.exclusion:
            return site.exclusion
        permit = self._robots.permit(url)
        if permit.allowed:
            return None
        return _Exclusion(Answer.ROBOTS if permit.why is Why.ROBOTS else Answer.ROBOTS_DOWN, permit.line)

    async def _read_robots(self, name: str) -> _Exclusion | None:
        """Reads robots.txt. If the host cannot be reached at all, the links to it are broken."""
        contact = _Contact(self._fetch)
        file = await ask_robots(name, contact, self.now)
        if contact.failure and contact.failure.transient:
            contact = _Contact(self._fetch)
            file = await ask_robots(name, contact, self.now)
        if contact.failure and contact.failure.cause in HOST_IS_DEAD:
            return _Exclusion(ANSWER_BY_CAUSE[contact.failure.cause], contact.failure.detail)
        await self._robots.learn(name, file)
        host = self._hosts[urls.host(name)]
        host.delay = max(host.delay, self._robots.delay(name) or 0.0)  # from the next request on
        return None


class _TooLong(Exception):  # noqa: N818 - caught in this module, and not an error
    """The turn of a host, or of its address, is too far away; its text says why."""


class _Contact:
    """A `ports.Fetcher` that notes how the first request failed, unless the host began to answer."""

    def __init__(self, fetch: Callable[[Request], Awaitable[Reply]]) -> None:
        self._fetch = fetch
        self._has_answered = False
        self.failure: Broken | None = None

    async def fetch(self, request: Request) -> Reply:
        reply = await self._fetch(replace(request, wants_body=self._wants_body))
        if isinstance(reply, Broken) and not self._has_answered:
            self.failure = reply
        self._has_answered = True  # what a redirect leads to is another host
        return reply

    def _wants_body(self, *_: object) -> bool:
        """Called once the head of a response has arrived."""
        self._has_answered = True
        return True


def _words(redirects: Redirects, detail: str) -> str:
    """The detail of an answer: where redirects led, and what went wrong there."""
    return ": ".join(filter(None, [f"redirects to {redirects.url}" if redirects.moved else "", detail]))
