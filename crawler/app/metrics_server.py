"""Serves the metrics at /metrics while the program works (`--metrics-port`): GET and HEAD over HTTP/1.1.

Requests are read up to a few kilobytes and a few seconds, so that no client can hold it up. It answers with
numbers that are not secret and changes nothing, so it needs no login; it listens on loopback unless told
otherwise.
"""

import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import SocketListener, SocketStream

from crawler.errors import OutputError, ungrouped
from crawler.report.metrics import CONTENT_TYPE
from crawler.settings.values import host_and_port

PATH: Final = "/metrics"
LONGEST: Final = 8_192  # bytes of a request
PATIENCE: Final = 5.0  # seconds for a request, and for its answer
CLIENTS: Final = 16  # at the same time; others wait
GONE: Final = (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
BUSY: Final = "another program listens there"

log = logging.getLogger("crawler.app.metrics")


@asynccontextmanager
async def serving(place: str, scrape: Callable[[], Awaitable[str]]) -> AsyncIterator[None]:
    """Serves what `scrape` returns while the block runs. `place`: HOST:PORT.

    Raises `OutputError` if the port is not available.
    """
    host, port = host_and_port(place)
    try:
        listener = await SocketListener.from_socket(_bound(host, port))
    except OSError as error:
        why = BUSY if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise OutputError(f"--metrics-port: {place} cannot be used: {why}.") from error
    limit = anyio.Semaphore(CLIENTS)

    async def handle(client: SocketStream) -> None:
        with anyio.move_on_after(PATIENCE), suppress(*GONE):
            async with client, limit:
                await _answer(client, scrape)

    with ungrouped():
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            yield
            tasks.cancel_scope.cancel()


def _bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `OSError`."""
    [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return socket.create_server(address, family=family)  # closed if it fails, unlike that of anyio


async def _answer(client: SocketStream, scrape: Callable[[], Awaitable[str]]) -> None:
    request = b""
    while b"\r\n\r\n" not in request:
        if len(request) > LONGEST:
            return
        request += await client.receive(LONGEST)
    method, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if method not in {"GET", "HEAD"}:
        await client.send(_response("405 Method Not Allowed", "only GET\n", is_head=False))
    elif path != PATH:
        await client.send(_response("404 Not Found", f"see {PATH}\n", is_head=method == "HEAD"))
    else:
        await client.send(await _metrics(scrape, is_head=method == "HEAD"))


async def _metrics(scrape: Callable[[], Awaitable[str]], *, is_head: bool) -> bytes:
    try:
        return _response("200 OK", await scrape(), is_head=is_head)
    except Exception:  # whatever is wrong with the state, a scrape does not end the crawl
        log.debug("metrics could not be gathered", exc_info=True)
        return _response("503 Service Unavailable", "the state cannot be read\n", is_head=is_head)


def _response(status: str, text: str, *, is_head: bool) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if is_head else body)
