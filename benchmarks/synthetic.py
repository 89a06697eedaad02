"""A site of any size on loopback, made up page by page as it is asked for: no files, the same pages at every run.

Page n links to the pages 8n+1 to 8n+8, to twelve that every page links to, and to twelve elsewhere. Most have 4 kB; one in 50 has
100 kB of text, and one in 200 a table of 10,000 tags. One process; a page takes it a few tens of microseconds, so that the
crawler is what is measured.

    .venv/bin/python benchmarks/synthetic.py 100000 --port 8299
"""

import argparse
import asyncio
import random
import time
import urllib.request
from typing import cast

WORDS = [
    "crawl",
    "map",
    "page",
    "link",
    "host",
    "index",
    "query",
    "token",
    "route",
    "cache",
    "socket",
    "frame",
    "parse",
    "tree",
    "node",
    "leaf",
    "graph",
    "batch",
]
CHILDREN, EVERYWHERE, ELSEWHERE = 8, 12, 12
LONG, TABLE = 50, 200  # one page in so many
DATE = "Sat, 21 Sep 2024 10:00:00 GMT"
PARAGRAPHS = [" ".join(random.Random(seed).choices(WORDS, k=40)) for seed in range(64)]
LONG_TEXT = "".join(f"<p>{PARAGRAPHS[n % 64]}</p>" for n in range(500))
ROWS = "".join(f"<tr><td>{n}</td><td>{WORDS[n % 18]}</td></tr>" for n in range(1_700))


def answers(url: str) -> bool:
    """Whether a server that was just started answers within two minutes."""
    for _ in range(2_400):
        try:
            urllib.request.urlopen(url).read()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


def path(number: int) -> str:
    return f"/section-{number % 97}/page-{number}.html" if number else "/"


def page(number: int, total: int) -> bytes:
    """One page."""
    children = range(CHILDREN * number + 1, min(CHILDREN * number + CHILDREN + 1, total))
    step = number * 2_654_435_761
    elsewhere = [(step + k * 40_503_001) % total for k in range(ELSEWHERE)]
    items = "".join(f'<li><a href="{path(n)}">Section {n}</a></li>' for n in range(min(EVERYWHERE, total)))
    texts = "".join(
        f'<p>{PARAGRAPHS[(number + n) % 64]} <a href="{path(n)}">page {n}</a></p>'
        for n in (*children, *elsewhere)
    )
    more = LONG_TEXT if number % LONG == LONG - 1 else f"<table>{ROWS}</table>" if number % TABLE == 1 else ""
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Page {number}</title></head><body><nav><ul>{items}"
        f"</ul></nav><main><h1>Page {number}</h1>{texts}{more}</main></body></html>"
    ).encode()


class Serving(asyncio.Protocol):
    """Answers one request after the other on a connection."""

    def __init__(self, total: int) -> None:
        self._total = total

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out, self._rest = cast("asyncio.Transport", transport), b""

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            self._out.write(self._answer(head.split(b" ", 2)[1].decode("ascii")))

    def _answer(self, target: str) -> bytes:
        text = target.removesuffix(".html").rpartition("-")[2]
        number = 0 if target == "/" else int(text) if text.isdigit() else self._total
        if number >= self._total:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        body = page(number, self._total)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nLast-Modified: {DATE}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


async def serve(total: int, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Serving(total), "127.0.0.1", port, backlog=1024
    )
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("total", type=int, help="pages")
    parser.add_argument("--port", type=int, default=8299)
    chosen = parser.parse_args()
    try:
        import uvloop  # noqa: PLC0415 - an extra

        run = uvloop.run
    except ImportError:
        run = asyncio.run
    run(serve(chosen.total, chosen.port))


if __name__ == "__main__":
    main()
