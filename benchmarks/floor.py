"""The bare loop: what fetching a site and following its links costs at least, in Python and with httpx's types.

A queue, a set, Lexbor, Ada, and a sitemap at the end: no robots.txt, no limits, no verdicts, no dates of its own, no state, no
retries. It shares no code with the crawler, so that it is a yardstick: it stays as it is. What links mean is remembered by
folder, so that most are looked up and not resolved.

    python benchmarks/floor.py http://127.0.0.1:8202/ sitemap.xml.gz [--tasks 32]
"""

import argparse
import asyncio
import gzip
import re
import resource
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import httptools
import httpx
from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

HEADERS = {"user-agent": "bench/1", "accept": "text/html,*/*;q=0.1", "accept-encoding": "gzip"}
TIMEOUT = 30  # seconds
# Links with nothing to normalise: paths, and paths relative to their folder.
PLAIN = re.compile(r"/(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(?:/|$))*").fullmatch
PLAIN_RELATIVE = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(?:/|$))+").fullmatch


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection: one response at a time."""

    def __init__(self) -> None:
        self.is_closed = False
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        if self._answer and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("closed"))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._answer and not self._answer.done():
                self._answer.set_exception(error)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, piece: bytes) -> None:
        self.body.append(piece)

    def on_message_complete(self) -> None:
        self.is_kept = self._parser.should_keep_alive()
        if self._answer and not self._answer.done():
            self._answer.set_result(self._parser.get_status_code())

    def send(self, request: bytes) -> asyncio.Future[int]:
        """The status of the answer, when it is complete."""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer


class Transport(httpx.AsyncBaseTransport):
    """Connections to a few hosts, kept alive."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        place = url.host, url.port or 80
        idle = self._idle.setdefault(place, [])
        connection = next(
            (one for one in iter(lambda: idle.pop() if idle else None, None) if not one.is_closed), None
        )
        if connection is None:
            _, connection = await asyncio.get_running_loop().create_connection(Connection, *place)
        fields = [b"%b: %b\r\n" % field for field in request.headers.raw]
        head = [request.method.encode(), b" ", url.raw_path, b" HTTP/1.1\r\n", *fields, b"\r\n"]
        async with asyncio.timeout(TIMEOUT):
            status = await connection.send(b"".join(head))
        if connection.is_kept:
            idle.append(connection)
        else:
            connection.transport.close()
        stream = httpx.ByteStream(b"".join(connection.body))
        return httpx.Response(status, headers=connection.headers, stream=stream)


class Crawl:
    """One crawl."""

    def __init__(self, start: str) -> None:
        parts = urlsplit(start)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._headers = httpx.Headers({"host": parts.netloc, **HEADERS})
        self._transport = Transport()
        self._seen, self._todo = {start}, [start]
        # Links that were looked at: those that are the same on all pages, and those of each folder.
        self._everywhere: set[str] = set()
        self._folders: dict[str, set[str]] = {}
        self._busy, self._is_over, self._idle = 0, False, list[asyncio.Event]()
        self.pages: list[tuple[str, str]] = []  # with Last-Modified

    async def run(self, tasks: int) -> None:
        """Crawls."""
        async with asyncio.TaskGroup() as group:
            for _ in range(tasks):
                group.create_task(self._work())

    async def _work(self) -> None:
        while not self._is_over:
            if not self._todo:
                event = asyncio.Event()
                self._idle.append(event)
                await event.wait()
                continue
            url = self._todo.pop()
            self._busy += 1
            try:
                await self._page(url)
            finally:
                self._busy -= 1
            self._is_over = not (self._busy or self._todo)
            for _ in range(len(self._idle) if self._is_over else min(len(self._todo), len(self._idle))):
                self._idle.pop().set()

    async def _page(self, url: str) -> None:
        try:
            reply = await self._transport.handle_async_request(
                httpx.Request("GET", url, headers=self._headers)
            )
            body = await reply.aread()
        except (OSError, httpx.HTTPError, httptools.HttpParserError) as error:
            print(f"{url}: {error!r}", file=sys.stderr)
            return
        if reply.status_code == 200 and reply.headers.get("content-type", "").startswith("text/html"):
            self.pages.append((url, reply.headers.get("last-modified", "")))
            self._links(url, body)

    def _links(self, url: str, body: bytes) -> None:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = body.decode("latin-1")
        hrefs = set()
        for node in LexborHTMLParser(text).css("a[href]"):
            if href := node.attributes["href"]:
                hrefs.add(href.partition("#")[0])
        folder = url[: url.rfind("/") + 1]
        known = self._folders.setdefault(folder, set())
        for href in hrefs - self._everywhere - known:
            self._link(url, folder, known, href)

    def _link(self, url: str, folder: str, known: set[str], href: str) -> None:
        found = None
        if href.startswith("/"):
            self._everywhere.add(href)
            found = self._origin + href if PLAIN(href) else None
        elif href.startswith(("http:", "https:")):
            self._everywhere.add(href)
        elif href and not href.startswith("?"):
            known.add(href)
            found = folder + href if PLAIN_RELATIVE(href) else None
        if not href:
            return
        try:
            found = found or join_url(url, href.strip())
        except ValueError:
            return
        if found.startswith(self._origin + "/") and found not in self._seen:
            self._seen.add(found)
            self._todo.append(found)


def write(file: Path, pages: list[tuple[str, str]]) -> None:
    """The sitemap."""
    dates: dict[str, str] = {}
    with gzip.open(file, "wt", compresslevel=6) as out:
        out.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        )
        for url, modified in sorted(pages):
            if modified and modified not in dates:
                dates[modified] = parsedate_to_datetime(modified).isoformat()
            lastmod = f"<lastmod>{dates[modified]}</lastmod>" if modified else ""
            out.write(f"<url><loc>{escape(url)}</loc>{lastmod}</url>\n")
        out.write("</urlset>\n")


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("start")
    parser.add_argument("sitemap", type=Path)
    parser.add_argument("--tasks", type=int, default=32)
    chosen = parser.parse_args()
    try:
        import uvloop  # noqa: PLC0415 - an extra

        run = uvloop.run
    except ImportError:
        run = asyncio.run
    began, crawl = time.perf_counter(), Crawl(chosen.start)
    run(crawl.run(chosen.tasks))
    write(chosen.sitemap, crawl.pages)
    pages, wall = len(crawl.pages), time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    print(f"{pages:,} pages, {pages / wall:,.0f} pages/s, {cpu / pages * 1e3:.2f} ms of CPU a page")


if __name__ == "__main__":
    main()
