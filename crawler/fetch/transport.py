"""The default transport: sends httpx requests over the connections of `pool`.

`routes` chooses the transport of a crawl; limits and decoding are in `exchange`. Additional parameters are
passed in `Request.extensions`, under the names below. Other transports may ignore them: the limits of
`exchange` still hold.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import httpx

from crawler.fetch.connection import IncomingResponse, ignore_progress
from crawler.fetch.pool import ConnectionPool, Destination

WIRE_LIMIT: Final = "wire_limit"  # int: most bytes of one response, as received from the network
# Callable[[int], None]: called after each transfer, with the number of bytes received.
PROGRESS: Final = "progress"
MAX_WIRE: Final = 100_000_000  # most bytes of one response if the request has no limit


class PoolTransport(httpx.AsyncBaseTransport):
    """An `httpx.AsyncBaseTransport` over a `ConnectionPool`: guarded, bounded; GET, HEAD and POST only.

    Raises httpx's exceptions.

    `Response.extensions` has `http_version` and `reason_phrase`, as with httpx's own transport.

    """

    def __init__(self, pool: ConnectionPool, destination: Callable[[str], Destination]) -> None:
        """`destination`: gives the destination of requests to an origin."""
        self._pool, self._destination = pool, lru_cache(1_000)(destination)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the stream of the response is an `IncomingResponse`.

        A POST gets a connection of its own.
        """
        if request.method not in {"GET", "HEAD", "POST"}:
            raise httpx.UnsupportedProtocol("only GET, HEAD and POST are supported", request=request)
        is_post = request.method == "POST"
        destination = self._destination(f"{request.url.scheme}://{request.url.netloc.decode('ascii')}")
        limits = request.extensions
        answer = await self._pool.ask(
            destination,
            _head(request, destination) + (await request.aread() if is_post else b""),
            limits.get(WIRE_LIMIT, MAX_WIRE),
            limits.get(PROGRESS, ignore_progress),
            fresh=is_post,
            bodiless=request.method == "HEAD",
        )
        return _response(answer, request)

    async def aclose(self) -> None:
        """Close the idle connections."""
        self._pool.close()


def _head(request: httpx.Request, destination: Destination) -> bytes:
    """The request line and header fields.

    Raises `httpx.LocalProtocolError` for a line break in one of them.
    """
    target = request.url.raw_path
    lines = []
    if destination.proxy and destination.scheme == "http":  # a proxy needs the whole URL (RFC 9112 3.2.2)
        target = b"http://" + request.url.netloc + target
        if destination.proxy.authorization:
            lines.append(b"Proxy-Authorization: " + destination.proxy.authorization.encode("ascii"))
    lines += [b"%s: %s" % field for field in request.headers.raw]
    method = request.method.encode("ascii")
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, target, b"\r\n".join(lines))
    if head.count(b"\n") != len(lines) + 2:
        raise httpx.LocalProtocolError("line break in a request line or header field", request=request)
    return head


def _response(answer: IncomingResponse, request: httpx.Request) -> httpx.Response:
    extensions = {"http_version": b"HTTP/1.1", "reason_phrase": answer.reason}
    return httpx.Response(
        answer.status, headers=answer.fields, stream=answer, extensions=extensions, request=request
    )
