"""What fetching and parsing alone cost: a bare loop on our connections, with or without the types of httpx.

A queue, a set, Lexbor, Ada: no robots.txt, no verdicts, no dates, no state. What the whole product costs above it is
what its promises cost. `benchmarks/speed.py` runs both in turn.

    python benchmarks/floor.py http://127.0.0.1:8202/ [--plain] [--tasks 16] [--found FILE]
"""

import argparse
import asyncio
import resource
import time
from pathlib import Path
from urllib.parse import urlsplit

import ada_url

import crawler.fetch  # first: else httpx loads its command line, with rich and Pygments  # isort: skip  # noqa: F401
import httpx
from selectolax.lexbor import LexborHTMLParser

from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ignore_progress
from crawler.fetch.pool import ConnectionPool, Destination
from crawler.fetch.routes import Proxies
from crawler.fetch.transport import PoolTransport
from crawler.settings.sections import Http

HEADERS = {"user-agent": "floor", "accept-encoding": "gzip, deflate, br, zstd"}


async def bare(start: str, tasks: int, *, plain: bool) -> list[str]:
    """URLs of pages read."""
    parts = urlsplit(start)
    place = Destination(parts.scheme, parts.hostname or "", parts.port or 80)
    pool = ConnectionPool(AddressGuard(allowed=["127.0.0.1"]), lambda: httpx.create_ssl_context(), tasks)  # noqa: PLW0108
    transport = PoolTransport(pool, Proxies(Http()).destination)
    seen, todo = {start}, [start]
    waiting, pages = 0, list[str]()
    more = asyncio.Condition()

    async def through_httpx(url: str) -> bytes:
        reply = await transport.handle_async_request(
            httpx.Request("GET", url, headers=HEADERS | {"host": parts.netloc})
        )
        try:
            return await reply.aread() if "html" in reply.headers.get("content-type", "") else b""
        finally:
            await reply.aclose()

    async def straight(url: str) -> bytes:
        target = url[len(start) - 1 :]
        head = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: floor\r\n\r\n"
        answer = await pool.ask(place, head.encode(), 100_000_000, ignore_progress)
        pieces = []
        while piece := await answer.read():
            pieces.append(piece)
        await answer.aclose()
        is_html = any(n.lower() == b"content-type" and b"html" in v for n, v in answer.fields)
        return b"".join(pieces) if is_html else b""

    async def work() -> None:
        nonlocal waiting
        ask = straight if plain else through_httpx
        while True:
            async with more:
                waiting += 1
                await more.wait_for(lambda: todo or waiting == tasks)  # noqa: B023 - both are of this function
                if not todo:
                    more.notify_all()
                    return
                waiting -= 1
                url = todo.pop()
            body = await ask(url)
            if not body:
                continue
            pages.append(url)
            new = []
            hrefs = {
                (node.attributes.get("href") or "").partition("#")[0]
                for node in LexborHTMLParser(body.decode("utf-8", "replace")).css("a[href]")
            }
            for href in hrefs:
                try:
                    found = ada_url.join_url(url, href)
                except ValueError:
                    continue
                if found.startswith(start) and found not in seen:
                    seen.add(found)
                    new.append(found)
            if new:
                async with more:
                    todo.extend(new)
                    more.notify(len(new))

    await asyncio.gather(*(work() for _ in range(tasks)))
    pool.close()
    return pages


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("start")
    parser.add_argument("--plain", action="store_true", help="without the types of httpx")
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--found", metavar="FILE", help="write the URLs that were read")
    chosen = parser.parse_args()
    try:
        import uvloop  # noqa: PLC0415 - an extra

        run = uvloop.run
    except ImportError:
        run = asyncio.run
    began = time.perf_counter()
    found = run(bare(chosen.start, chosen.tasks, plain=chosen.plain))
    if chosen.found:
        Path(chosen.found).write_text("\n".join(found))
    pages = len(found)
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    print(f"{pages:,} pages, {pages / wall:,.0f} pages/s, {cpu / pages * 1e3:.2f} ms of CPU a page")


if __name__ == "__main__":
    main()
