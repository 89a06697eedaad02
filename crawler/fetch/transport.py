"""Sends requests over the connections of `pool`; what the requests to an origin share is built once.

`routes` chooses between this and the transports of httpx, which `httpx_types` gives the same methods. Here
httpx is not even imported, as that takes a twelfth of a start. Limits and decoding are in `exchange`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from crawler.fetch.connection import IncomingResponse
from crawler.fetch.pool import ConnectionPool, Destination
from crawler.fetch.request_headers import RequestIdentity
from crawler.model.reasons import Cause
from crawler.parse import url as urls
from crawler.parse.url import Url

JSON: Final = "application/json; charset=utf-8"

RawField: TypeAlias = tuple[bytes, bytes]
Progress: TypeAlias = Callable[[int], None]


class LineBreak(Exception):  # noqa: N818
    """A request line or header field has a line break."""


class OwnTransport:
    """Requests over a `ConnectionPool`: guarded, bounded; GET, HEAD and POST only."""

    causes: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = ()  # all are in `exchange`

    def __init__(self, pool: ConnectionPool, destination: Callable[[str], Destination]) -> None:
        """`destination`: gives the destination of requests to an origin."""
        self._pool, self._destination = pool, lru_cache(1_000)(destination)

    async def ask(
        self, url: Url, fields: Sequence[RawField], limit: int, progress: Progress, method: str, body: bytes
    ) -> IncomingResponse:
        """Send a request with these header fields. Raises what `ConnectionPool.ask` raises, and `LineBreak`.

        `limit`: most bytes of the response, as received from the network; `progress` is called after each
        transfer, with the number of bytes received. A POST gets a connection of its own.
        """
        origin = urls.origin(url)
        destination = self._destination(origin)
        head = _head(method, origin, urls.target(url), fields, destination)
        return await self._pool.ask(
            destination, head + body, limit, progress, fresh=method == "POST", bodiless=method == "HEAD"
        )

    async def aclose(self) -> None:
        self._pool.close()


def _head(
    method: str, origin: str, target: str, fields: Sequence[RawField], destination: Destination
) -> bytes:
    """The request line and header fields."""
    lines = [b"%s: %s" % field for field in fields]
    if destination.proxy and destination.scheme == "http":  # a proxy needs the whole URL (RFC 9112 3.2.2)
        target = origin + target
        if destination.proxy.authorization:
            lines.append(b"Proxy-Authorization: " + destination.proxy.authorization.encode("ascii"))
    start = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
    head = b"%s%s\r\n\r\n" % (start, b"\r\n".join(lines))
    if head.count(b"\n") != len(lines) + 2:
        raise LineBreak("line break in a request line or header field")
    return head


class RequestBuilder:
    """Builds the header fields of requests, with the shared parts cached by origin."""

    def __init__(self, identity: RequestIdentity) -> None:
        self._identity = identity
        self._of_origin = lru_cache(1_000)(self._made)

    def fields(
        self, url: Url, conditions: Mapping[str, str], post: bytes | None = None
    ) -> Sequence[RawField]:
        """The header fields of a request; `post`: JSON."""
        shared: Sequence[RawField] = self._of_origin(urls.origin(url))
        if cookie := self._identity.cookie(url):
            conditions = {"cookie": cookie, **conditions}
        if post is not None:
            conditions = {**conditions, "content-type": JSON, "content-length": str(len(post))}
        if not conditions:
            return shared
        if "accept" in conditions:  # the request of a script: its own headers, but never in place of ours
            shared = [field for field in shared if field[0] != b"accept"]
            ours = {name.decode("ascii") for name, _ in shared}
            conditions = {name: value for name, value in conditions.items() if name not in ours}
        return [*shared, *_raw(conditions)]

    def _made(self, site: str) -> list[RawField]:
        return _raw({"host": urls.netloc(site), **self._identity.of_origin(site)})


def _raw(fields: Mapping[str, str]) -> list[RawField]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in fields.items()]
