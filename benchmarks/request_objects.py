"""What httpx's types cost a page: microseconds of CPU for the objects alone, and for whole exchanges on loopback.

    .venv/bin/python benchmarks/request_objects.py

An exchange is made in two ways, in turn, over the same connections: as bytes (`ConnectionPool.ask`), and through httpx's types
(`HttpFetcher`'s request, `PoolTransport`, its response). Neither decodes the body. The server runs in a process of its
own, so its CPU is not counted; medians of the rounds, with quartiles.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import synthetic

from crawler.app.event_loop import run
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ignore_progress
from crawler.fetch.httpx_types import PoolTransport, built
from crawler.fetch.pool import ConnectionPool, Destination, NoConnection
from crawler.fetch.request_headers import RequestIdentity
from crawler.fetch.routes import Proxies, Trust
from crawler.fetch.transport import OwnTransport, RequestBuilder
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.sections import Http

PORT = 8297
SITE = f"http://localhost:{PORT}"
LIMIT = 10_000_000  # bytes on the wire
FIELDS = [
    (b"Server", b"nginx/1.22.1"),
    (b"Date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    (b"Content-Type", b"text/html; charset=utf-8"),
    (b"Content-Length", b"4096"),
    (b"Last-Modified", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    (b"ETag", b'"65a1b2c3-1000"'),
    (b"Accept-Ranges", b"bytes"),
]


def objects(builder: RequestBuilder, count: int) -> dict[str, float]:
    """Microseconds of CPU for each, on URLs of the made-up site."""
    links = [Url("https://www.example.com" + synthetic.path(number)) for number in range(count)]
    request = built(links[0], builder.fields(links[0], {}), LIMIT, ignore_progress, "GET", b"")
    response = httpx.Response(200, headers=FIELDS, stream=httpx.ByteStream(b""), request=request)
    return {
        "httpx.URL": per_call(lambda: [httpx.URL(url) and None for url in links], count),
        "httpx.Request, URL and headers included": per_call(
            lambda: [
                built(url, builder.fields(url, {}), LIMIT, ignore_progress, "GET", b"") and None
                for url in links
            ],
            count,
        ),
        "httpx.Response": per_call(
            lambda: [
                httpx.Response(200, headers=FIELDS, stream=response.stream, request=request) and None
                for _ in links
            ],
            count,
        ),
    }


def per_call(work: Callable[[], Any], count: int, times: int = 7) -> float:
    """The best of some times."""
    took = []
    for _ in range(times):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took) / count * 1e6


def as_bytes(pool: ConnectionPool, identity: RequestIdentity) -> Callable[[Url], Awaitable[int]]:
    """An exchange without a type of httpx."""
    place = Destination("http", "localhost", PORT)

    async def ask(url: Url) -> int:
        lines = [f"GET {urls.target(url)} HTTP/1.1\r\nHost: {urls.netloc(url)}\r\n"]
        lines += [f"{name}: {value}\r\n" for name, value in identity.headers(url).items()]
        head = "".join([*lines, "\r\n"]).encode("latin-1", "replace")
        answer = await pool.ask(place, head, LIMIT, ignore_progress)
        size = len([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.fields])
        while piece := await answer.read():
            size += len(piece)
        await answer.aclose()
        return size

    return ask


def through_httpx(pool: ConnectionPool, builder: RequestBuilder) -> Callable[[Url], Awaitable[int]]:
    """The same exchange as `HttpFetcher` makes it."""
    transport = PoolTransport(OwnTransport(pool, Proxies(Http()).destination))

    async def ask(url: Url) -> int:
        request = built(url, builder.fields(url, {}), LIMIT, ignore_progress, "GET", b"")
        response = await transport.handle_async_request(request)
        size = len([(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw])
        async for piece in response.stream:  # type: ignore[union-attr]  # ours is asynchronous
            size += len(piece)
        await response.aclose()
        return size

    return ask


async def exchanges(count: int, rounds: int) -> dict[str, list[float]]:
    """Microseconds of CPU an exchange, of each round."""
    identity = RequestIdentity(Http(), [SITE])
    guard = AddressGuard([SITE])
    pool = ConnectionPool(guard, Trust(Http()), 4)
    links = [Url(SITE + synthetic.path(number)) for number in range(count)]
    took: dict[str, list[float]] = {"as bytes": [], "through httpx's types": []}
    both = as_bytes(pool, identity), through_httpx(pool, RequestBuilder(identity))
    ways = dict(zip(took, both, strict=True))
    await until_ready(ways["as bytes"], links[0])
    for _ in range(rounds):
        for name, ask in ways.items():
            began = time.process_time()
            for url in links:
                await ask(url)
            took[name].append((time.process_time() - began) / count * 1e6)
    pool.close()
    return took


async def until_ready(ask: Callable[[Url], Awaitable[int]], url: Url) -> None:
    """Wait for the server."""
    for _ in range(200):
        try:
            await ask(url)
        except NoConnection:
            await anyio.sleep(0.05)
        else:
            return
    raise SystemExit("the server did not start")


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=75)
    chosen = parser.parse_args()
    for name, each in objects(RequestBuilder(RequestIdentity(Http(), [])), chosen.pages).items():
        print(f"{each:8.1f}  {name}")
    file = Path(__file__).parent / "synthetic.py"
    server = subprocess.Popen([sys.executable, str(file), str(chosen.pages), "--port", str(PORT)])
    try:
        took = run(exchanges, chosen.pages, chosen.rounds)
    finally:
        server.terminate()
        server.wait()
    for name, rounds in took.items():
        low, middle, high = statistics.quantiles(rounds, n=4)
        print(f"{middle:8.1f}  an exchange {name} ({low:.1f} to {high:.1f})")
    first, second = took.values()
    print(f"{statistics.median(b - a for a, b in zip(first, second, strict=True)):8.1f}  the difference")


if __name__ == "__main__":
    main()
