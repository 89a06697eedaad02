"""Reads robots.txt before the first request to an origin, and sets its crawl delay.

`parse.robots_txt` interprets the file, and the frontier schedules slots. This module fetches and caches the
rules, and decides what applies when the file cannot be fetched.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from crawler.model.log import log
from crawler.model.reasons import Cause, Why
from crawler.model.rendering import Rendering
from crawler.model.reply import Broken, Permit, Reply, Response, RobotsFile
from crawler.model.visit import Lease
from crawler.parse import content_coding
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.robots_txt import LIMIT, Decision, RobotsRules, parse
from crawler.parse.url import Url, origin
from crawler.ports import Fetcher, Hosts, Politeness, Request, reads
from crawler.rules.redirects import Redirects, Stopped

CUT_DELAY: Final = 30.0  # seconds used for a Crawl-delay above --max-wait: few sites ask for more than this


class Access(Struct, eq=False):
    """Contacts origins: robots.txt first, then requests outside the queue. Times in seconds."""

    hosts: Hosts
    fetcher: Fetcher
    permits: "Robots"
    politeness: Politeness
    delay: float = 0.0  # between slots, at least
    max_wait: float = 600.0  # the longest Crawl-delay that is obeyed
    paced: Callable[[float], None] = lambda _: None  # called with the delay of the slowest origin
    slowest: float = 0.0

    async def read_robots(self, lease: Lease) -> bool:
        """Reads the origin's robots.txt if needed. Whether that used the slot of the page, which needs a new
        one.
        """
        site = origin(lease.visit.url)
        if not lease.robots_first and self.permits.knows(site):
            return False
        if await self._recalled(site):
            return False
        await self.politeness(site, lease.at)
        await self._ask(site)
        return True

    async def permit(self, url: Url) -> Permit:
        """Whether robots.txt allows a URL outside the queue, such as a sitemap."""
        site = origin(url)
        if not self.permits.knows(site) and not await self._recalled(site):
            await self.politeness(site, await self.hosts.slot(site))
            await self._ask(site)
        return self.permits.permit(url)

    async def fetch(self, request: Request) -> Reply:
        """The reply to a request outside the queue, at a slot of its own. `permit` must have allowed it."""
        site = origin(request.url)
        await self.politeness(site, await self.hosts.slot(site))
        return await self.fetcher.fetch(request)

    async def render(self, url: Url, shell: Response, rendering: Rendering) -> Reply:
        """What the scripts make of a response to such a request. Theirs have slots of their own."""
        return await self.fetcher.fetch(Request(url, shell=replace(shell, rendering=rendering)))

    async def _recalled(self, site: str) -> bool:
        file = await self.hosts.read(reads.RobotsOf(site))
        if file is not None:
            await self.permits.learn(site, file)
            await self.hosts.pace(site, self._set_pace(site))
        return file is not None

    async def _ask(self, site: str) -> None:
        """Fetches robots.txt. If that fails, rules read earlier in the run stay in effect (RFC 9309 2.4)."""
        file = await self.permits.ask(site)
        before = await self.hosts.read(reads.RobotsOf(site, stale=True)) if file.failed else None
        if before and not before.failed:
            log.warning("robots.txt cannot be read; using the last known rules", origin=site, now=file.detail)
            file = replace(before, fetched=file.fetched)
        await self.permits.learn(site, file)
        await self.hosts.store_robots(site, file, self._set_pace(site))

    def _set_pace(self, site: str) -> float:
        delay = self.permits.delay(site) or 0.0
        if delay > self.max_wait:
            log.warning(
                "Crawl-delay is longer than max-wait; shortened", origin=site, delay=delay, kept=CUT_DELAY
            )
            delay = min(CUT_DELAY, self.max_wait)
        delay = max(self.delay, delay)
        self.politeness.pace(site, delay)
        self.slowest = max(self.slowest, delay)
        self.paced(self.slowest)
        return delay


MAX_BODY: Final = 4 * 1024 * 1024  # bytes of a response; far above LIMIT: a long file is not rejected
MAX_TEXT: Final = LIMIT + 1  # one byte more, so that `parse` can tell that the file was longer
LARGE: Final = 16 * 1024  # bytes of a file that is parsed in a thread


class OriginRules(Struct, frozen=True):
    """The rules in the robots.txt of one origin for our product token, without network access."""

    rules: RobotsRules | None  # None: robots.txt could not be fetched
    detail: str
    sitemaps: tuple[Url, ...] = ()
    file: int = 0  # hash of the `RobotsFile`

    def permit(self, url: Url) -> Permit:
        if self.rules is None:
            return Permit(allowed=False, why=Why.ROBOTS_DOWN, line=self.detail)
        decision = self.rules.permit(urls.target(url))
        return Permit(decision.allowed, None if decision.allowed else Why.ROBOTS, decision.line)

    def decide(self, url: Url) -> Decision:
        """The group and the line that decide for `url`, of this origin."""
        return self.rules.permit(urls.target(url)) if self.rules else Decision(allowed=False)


_UNKNOWN: Final = OriginRules(None, "")


class CacheSize(Struct, frozen=True):
    """How many origins' rules are kept, and in about how many bytes."""

    origins: int = 10_000
    memory: int = 64 * 1024 * 1024


CACHE: Final = CacheSize()


class Robots:
    """Fetches and applies robots.txt for `agent`, the crawler's product token.

    Keeps the rules of the most recently used origins. `slot` waits for a slot of an origin. `ignore` permits
    everything; sitemaps and Crawl-delay are still read.
    """

    def __init__(
        self,
        agent: str,
        fetcher: Fetcher,
        slot: Callable[[str], Awaitable[None]] | None = None,
        *,
        now: Callable[[], float],
        ignore: bool = False,
        size: CacheSize = CACHE,
    ) -> None:
        self._agent, self._fetcher, self._slot = agent, fetcher, slot
        self._now, self._ignore, self._size = now, ignore, size
        self._known: OrderedDict[str, OriginRules] = OrderedDict()
        self._memory = 0
        self._parsing = anyio.Lock()

    async def ask(self, origin: str) -> RobotsFile:
        """Fetches /robots.txt of `origin`. The caller books its slot; redirects book their own."""
        return await ask_robots(origin, self._fetcher, self._now, self._slot)

    def knows(self, origin: str) -> bool:
        return origin in self._known

    async def learn(self, origin: str, file: RobotsFile) -> None:
        """Stores the rules in `file`, and drops the least recently used ones when there are too many."""
        async with self._parsing:  # of many tasks that need the same file, one parses it
            if self._known.get(origin, _UNKNOWN).file == hash(file):
                return
            known = await _parse_off_loop(file, self._agent, origin)
            self._forget(self._known.pop(origin, _UNKNOWN))
            self._known[origin] = known
        self._memory += known.rules.weight if known.rules else 0
        while len(self._known) > 1 and self._is_full():
            self._forget(self._known.popitem(last=False)[1])

    def _is_full(self) -> bool:
        return len(self._known) > self._size.origins or self._memory > self._size.memory

    def _forget(self, known: OriginRules) -> None:
        self._memory -= known.rules.weight if known.rules else 0

    def permit(self, url: Url) -> Permit:
        """Whether `url` may be fetched. Always false for an unknown origin."""
        if self._ignore:
            return Permit(allowed=True)
        return self._recall(urls.origin(url)).permit(url)

    def delay(self, origin: str) -> float | None:
        """The Crawl-delay for this crawler, in seconds."""
        rules = self._recall(origin).rules
        return rules.delay if rules else None

    def sitemaps(self, origin: str) -> list[Url]:
        """The http(s) sitemaps in the robots.txt of a known origin, in the order of the file, without
        duplicates.
        """
        return list(self._recall(origin).sitemaps)

    def _recall(self, origin: str) -> OriginRules:
        if origin not in self._known:
            return _UNKNOWN
        self._known.move_to_end(origin)
        return self._known[origin]


async def ask_robots(
    origin: str,
    fetcher: Fetcher,
    now: Callable[[], float],
    slot: Callable[[str], Awaitable[object]] | None = None,
) -> RobotsFile:
    """Fetches /robots.txt of `origin` (RFC 9309 2.3.1). Never raises for network errors.

    Redirects are followed to any host; before each, `slot` waits for a slot of the target's origin.
    """
    redirects = Redirects(Url(origin + "/robots.txt"))
    reply = await fetcher.fetch(Request(redirects.url, limit=MAX_BODY, cut=True))
    while to := redirects.follow(reply):
        if slot:
            await slot(urls.origin(to))
        reply = await fetcher.fetch(Request(to, limit=MAX_BODY, cut=True))
    if redirects.stopped:
        return _file(
            now(), "down" if redirects.stopped is Stopped.NO_TARGET else "none", b"", redirects.stopped.value
        )
    return _file(now(), *_interpreted(reply), redirects.url if redirects.moved else None)


def _file(fetched: float, status: str, text: bytes, detail: str, found_at: Url | None = None) -> RobotsFile:
    detail = " ".join(filter(None, [detail, f"at {found_at}" if found_at else ""]))
    return RobotsFile(status, text, detail, fetched)


async def _parse_off_loop(file: RobotsFile, agent: str, origin: str) -> OriginRules:
    """Parses a large file in a thread: 500 KiB of rules can take a second."""
    if len(file.text) <= LARGE:
        return origin_rules(file, agent, origin)
    return await anyio.to_thread.run_sync(origin_rules, file, agent, origin)


def origin_rules(file: RobotsFile, agent: str, origin: str) -> OriginRules:
    """Parses the robots.txt of `origin` for `agent`, the crawler's product token. Large files take long: see
    `LARGE`.
    """
    if file.status not in {"rules", "none"}:
        return OriginRules(None, file.detail, file=hash(file))
    rules = parse(file.text, agent) if file.status == "rules" else RobotsRules()
    normalise = Normaliser(strip=())
    named = (normalise(text, origin + "/") for text in rules.sitemaps)
    return OriginRules(rules, file.detail, tuple(dict.fromkeys(url for url in named if url)), hash(file))


def _interpreted(reply: Reply) -> tuple[str, bytes, str]:
    """The status, text and detail of a `RobotsFile`. A 429 and a firewall count as a server error."""
    if isinstance(reply, Broken):
        status = "down" if reply.cause is Cause.WALL else "unreachable"
        return status, b"", f"{reply.cause.says}: {reply.detail}".removesuffix(": ")
    if 200 <= reply.status < 300:
        return _rules(reply)
    absent = 400 <= reply.status < 500 and reply.status != 429
    return "none" if absent else "down", b"", f"HTTP {reply.status}"


def _rules(reply: Response) -> tuple[str, bytes, str]:
    """Decompresses a file that is gzip without Content-Encoding, as some servers send. A truncated one is
    invalid.
    """
    if not reply.body.startswith(content_coding.MAGIC):
        return "rules", reply.body[:MAX_TEXT], ""
    undone, text = content_coding.decoder(["gzip"], MAX_TEXT + content_coding.PIECE), bytearray()
    try:
        for piece in undone.feed(reply.body):
            text += piece
        undone.finish()
    except (content_coding.BrokenCoding, content_coding.TooLarge) as error:
        if len(text) < MAX_TEXT:
            return "down", b"", f"a broken gzip file ({error})"
    return "rules", bytes(text[:MAX_TEXT]), "gzip"
