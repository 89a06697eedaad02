"""Seeds: URLs from sitemaps and from files, read before the crawl begins. Not a validator: what can be read is used.

Indexes are followed two levels down; each sitemap is read once; robots.txt and the scope hold for sitemaps as
for pages. What is wrong with one is logged and costs that sitemap only.
"""

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import anyio.to_thread

from crawler.errors import ConfigError
from crawler.model import MAX_BYTES, Broken, Permit
from crawler.ports import Fetcher, Pacer, Request, Turn
from crawler.urls import Normaliser, Url, origin

LEVELS: Final = 3  # a sitemap, named by an index, named by an index
MOST: Final = 50_000  # sitemaps that are read: as many as one index may name
REDIRECTS: Final = 5

log = logging.getLogger("crawler.seeds")


class Lines:
    """The URLs of `--input`, one a line; `-` is stdin, `#` begins a comment. A line that is no URL is passed over."""

    def __init__(self, name: str, normalise: Normaliser) -> None:
        """Raises `ConfigError` when the file cannot be read."""
        self._name, self._normalise = name, normalise
        try:
            self._file = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115 - read while crawling
        except OSError as error:
            raise ConfigError(f"--input: {name} cannot be read ({error.strerror}).") from error

    def chunks(self) -> Iterator[list[Url]]:
        """Some thousand URLs at a time."""
        numbered = enumerate(self._file, 1)
        while chunk := list(islice(numbered, 5_000)):
            yield [url for number, line in chunk if (url := self._read(number, line))]

    def _read(self, number: int, line: bytes) -> Url | None:
        text = line.decode("utf-8-sig", "replace").strip()
        if not text or text.startswith("#"):
            return None
        url = self._normalise(text)
        if url is None:
            log.warning("a line is no URL", extra={"fields": {"input": self._name, "line": number}})
        return url

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not sys.stdin.buffer:
            self._file.close()


class Seeds:
    """Reads sitemaps. `permit` asks robots.txt of a URL, `belongs` the scope."""

    def __init__(
        self,
        fetcher: Fetcher,
        pacer: Pacer,
        normalise: Normaliser,
        *,
        permit: Callable[[Url], Awaitable[Permit]],
        belongs: Callable[[Url], bool],
        turn: Turn,
    ) -> None:
        self._fetcher, self._pacer, self._normalise = fetcher, pacer, normalise
        self._permit, self._belongs, self._turn = permit, belongs, turn
        self._met: set[Url] = set()

    async def read(self, sitemaps: Iterable[Url]) -> AsyncIterator[Sequence[Url]]:
        """The pages that the sitemaps name, one sitemap at a time. Those of other sites are logged and passed over."""
        named = dict.fromkeys(sitemaps)
        for url in named:
            if not self._belongs(url):
                self._passed_over(url, "is not on the site")
        level = [url for url in named if self._is_new(url)]
        for _ in range(LEVELS):
            below: list[Url] = []
            for url in level:
                pages, more = await self._one(url)
                yield pages
                below += [child for child in more if self._is_new(child)]
            level = below

    def _is_new(self, url: Url) -> bool:
        new = self._belongs(url) and url not in self._met and len(self._met) < MOST
        if new:
            self._met.add(url)
        return new

    async def _one(self, url: Url) -> tuple[list[Url], list[Url]]:
        body = await self._body(url)
        if body is None:
            return [], []
        pages, more, fault = await anyio.to_thread.run_sync(self._parse, body, url)
        log.info("read a sitemap", extra={"fields": {"url": url, "pages": len(pages), "sitemaps": len(more)}})
        if fault:
            log.warning("a sitemap is broken", extra={"fields": {"url": url, "fault": fault}})
        return pages, more

    async def _body(self, url: Url) -> bytes | None:
        for _ in range(REDIRECTS + 1):
            if not (await self._permit(url)).allowed:
                self._passed_over(url, "forbidden by robots.txt")
                return None
            await self._turn(origin(url), await self._pacer.slot(origin(url)))
            reply = await self._fetcher.fetch(Request(url, limit=MAX_BYTES))
            if isinstance(reply, Broken):
                self._passed_over(url, f"{reply.cause.says} {reply.detail}".strip())
                return None
            if reply.status == 200:
                return reply.body
            to = (
                self._normalise(reply.headers.get("location") or "", url)
                if 300 < reply.status < 309
                else None
            )
            if to is None or not self._belongs(to):
                self._passed_over(url, f"answered {reply.status}")
                return None
            url = to
        self._passed_over(url, "redirects too often")
        return None

    def _passed_over(self, url: Url, reason: str) -> None:
        log.warning("a sitemap was passed over", extra={"fields": {"url": url, "reason": reason}})

    def _parse(self, body: bytes, url: Url) -> tuple[list[Url], list[Url], str | None]:
        from crawler.sitemap import read  # noqa: PLC0415 - lxml takes long to import, for those without a sitemap yet

        pages: dict[Url, None] = {}
        more: dict[Url, None] = {}
        found = read.read([body])
        for item in found:
            loc = self._normalise(item.loc, url)
            if loc:
                (more if item.kind == "sitemap" else pages)[loc] = None
        return list(pages), list(more), found.malformed
