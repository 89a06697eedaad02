"""The default transport: writes requests as bytes, and sends them over the connections of `pool`.

`routes` chooses the transport of a crawl; limits and decoding are in `exchange`. httpx's types are in
`httpx_requests`, as they would take a third of an exchange.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from crawler.fetch.connection import ExchangeFailure, IncomingResponse
from crawler.fetch.pool import ConnectionPool, Destination
from crawler.fetch.request_headers import RequestIdentity
from crawler.parse import url as urls
from crawler.parse.url import Url

MAX_WIRE: Final = 100_000_000  # most bytes of one response if the request has no limit
JSON: Final = "application/json; charset=utf-8"

RawField: TypeAlias = tuple[bytes, bytes]


class UnsafeRequest(ExchangeFailure):
    """A line break in the request line or in a header field."""


class OwnTransport:
    """Sends requests over a `ConnectionPool`: guarded, bounded; GET, HEAD and POST only."""

    def __init__(self, pool: ConnectionPool, destination: Callable[[str], Destination]) -> None:
        """`destination`: gives the destination of requests to an origin."""
        self._pool, self._destination = pool, lru_cache(1_000)(destination)

    async def send(
        self,
        method: str,
        url: str,
        fields: Sequence[RawField],
        limit: int,
        progress: Callable[[int], None],
        post: bytes = b"",
    ) -> IncomingResponse:
        """Send a request with these header fields. A POST gets a connection of its own.

        Raises `UnsafeRequest`, and what `ConnectionPool.ask` raises.
        """
        destination = self._destination(urls.origin(url))
        target, netloc = urls.target(url).encode("ascii"), urls.netloc(url).encode("ascii")
        head = _head(method.encode("ascii"), target, netloc, fields, destination)
        if method == "GET":
            return await self._pool.ask(destination, head, limit, progress)
        return await self._pool.ask(
            destination, head + post, limit, progress, fresh=method == "POST", bodiless=method == "HEAD"
        )

    async def aclose(self) -> None:
        """Close the idle connections."""
        self._pool.close()


def _head(
    method: bytes, target: bytes, netloc: bytes, fields: Sequence[RawField], destination: Destination
) -> bytes:
    """The request line and header fields. Raises `UnsafeRequest`."""
    lines = [b"%s: %s" % field for field in fields]
    if destination.proxy and destination.scheme == "http":  # a proxy needs the whole URL (RFC 9112 3.2.2)
        target = b"http://" + netloc + target
        if destination.proxy.authorization:
            lines.append(b"Proxy-Authorization: " + destination.proxy.authorization.encode("ascii"))
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, target, b"\r\n".join(lines))
    if head.count(b"\n") != len(lines) + 2:
        raise UnsafeRequest("line break in a request line or header field")
    return head


class RequestFields:
    """The header fields of requests, with those that all requests to an origin share built once."""

    def __init__(self, identity: RequestIdentity) -> None:
        self._identity = identity
        self._of_origin = lru_cache(1_000)(self._shared)

    def of(self, url: Url, conditions: Mapping[str, str], post: bytes | None = None) -> Sequence[RawField]:
        """The header fields of a request. `post`: its body, as JSON."""
        if post is not None:
            conditions = {**conditions, "content-type": JSON, "content-length": str(len(post))}
        shared = self._of_origin(urls.origin(url))
        if cookie := self._identity.cookie(url):
            conditions = {"cookie": cookie, **conditions}
        if not conditions:
            return shared
        if "accept" in conditions:  # the request of a script: its own headers, but never in place of ours
            shared = [field for field in shared if field[0] != b"accept"]
            ours = {name.decode("ascii") for name, _ in shared}
            conditions = {name: value for name, value in conditions.items() if name not in ours}
        return [*shared, *_raw(conditions)]

    def _shared(self, origin: str) -> list[RawField]:
        return _raw({"host": urls.netloc(origin), **self._identity.of_origin(origin)})


def _raw(fields: Mapping[str, str]) -> list[RawField]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in fields.items()]
