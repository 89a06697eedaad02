"""Serves the metrics at /metrics while the program works (`--metrics-port`): GET and HEAD over HTTP/1.1.

Requests are read up to a few kilobytes and a few seconds, a few at a time, and no error here ends the crawl.
It answers with numbers that are not secret and changes nothing, so it needs no login; it listens on loopback
unless told otherwise.
"""

import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import SocketListener, SocketStream

from crawler.errors import OutputError, ungrouped
from crawler.model.log import log
from crawler.report.metrics import CONTENT_TYPE
from crawler.settings.values import host_and_port

PATH: Final = "/metrics"
OTHERS: Final = {"/": f"sitemap-crawler: see {PATH}\n", "/healthz": "ok\n"}
LONGEST: Final = 8_192  # bytes of a request
PATIENCE: Final = 5.0  # seconds for a request, and for its answer
CLIENTS: Final = 16  # at the same time, as each takes a file descriptor; a new one replaces a silent one
PAUSE: Final = 1.0  # seconds after a connection could not be accepted
GONE: Final = (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
BUSY: Final = "another program listens there"


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
    with ungrouped():
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, listener.accept, scrape)
            yield
            tasks.cancel_scope.cancel()


def _bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `OSError`."""
    [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return socket.create_server(address, family=family)  # closed if it fails, unlike that of anyio


async def serve(accept: Callable[[], Awaitable[SocketStream]], scrape: Callable[[], Awaitable[str]]) -> None:
    """Serves so many connections at a time, and goes on after what goes wrong.

    If there are more, the one that has been silent for longest is closed.
    """
    free, is_failing = anyio.Semaphore(CLIENTS), False
    silent = dict[SocketStream, anyio.CancelScope]()  # without a whole request yet, in the order of arrival

    async def handle(client: SocketStream) -> None:
        try:
            with anyio.move_on_after(PATIENCE) as scope, suppress(*GONE):
                async with client:
                    silent[client] = scope
                    request = await _request(client)
                    del silent[client]
                    await client.send(await _answer(request, scrape))
        except Exception:
            log.warning("metrics request failed", exc_info=True)
        finally:
            silent.pop(client, None)
            free.release()

    async with anyio.create_task_group() as tasks:
        while True:
            try:
                client = await accept()
            except (OSError, anyio.BrokenResourceError) as error:  # trio wraps the former in the latter
                if not is_failing:
                    log.warning(
                        "metrics port accepts no connections, trying again",
                        error=str(error.__cause__ or error),
                    )
                is_failing = True
                await anyio.sleep(PAUSE)
            else:
                is_failing = False
                if free.value == 0 and silent:
                    silent.pop(next(iter(silent))).cancel()
                await free.acquire()
                tasks.start_soon(handle, client)


async def _request(client: SocketStream) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        if len(request) > LONGEST:
            raise anyio.EndOfStream
        request += await client.receive(LONGEST)
    return request


async def _answer(request: bytes, scrape: Callable[[], Awaitable[str]]) -> bytes:
    method, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    is_head = method == "HEAD"
    if method not in {"GET", "HEAD"}:
        return _response("405 Method Not Allowed", "only GET\n", is_head=False)
    if path == PATH:
        return await _metrics(scrape, is_head=is_head)
    if path in OTHERS:
        return _response("200 OK", OTHERS[path], is_head=is_head)
    return _response("404 Not Found", OTHERS["/"], is_head=is_head)


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
