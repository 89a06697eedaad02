"""The default transport: sends requests over the connections of `pool`, and builds them cheaply.

It is an `httpx.AsyncBaseTransport`, and `ask` is the same without httpx's objects, which take a third of an
exchange. The part that all requests to an origin share is built once. Building an `httpx.URL` takes half as
long as an exchange and only repeats what Ada has already parsed, so it is built only on demand.

`routes` chooses the transport of a crawl; limits and decoding are in `exchange`. Additional parameters are
passed in `Request.extensions`, under the names below. Other transports may ignore them: the limits of
`exchange` still hold.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import httpx

from crawler.fetch.connection import IncomingResponse, ignore_progress
from crawler.fetch.pool import ConnectionPool, Destination
from crawler.fetch.request_headers import RequestIdentity
from crawler.parse import url as urls
from crawler.parse.url import Url

WIRE_LIMIT: Final = "wire_limit"  # int: most bytes of one response, as received from the network
# Callable[[int], None]: called after each transfer, with the number of bytes received.
PROGRESS: Final = "progress"
MAX_WIRE: Final = 100_000_000  # most bytes of one response if the request has no limit

RawField: TypeAlias = tuple[bytes, bytes]


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
            _head(
                request.method.encode("ascii"),
                request.url.raw_path,
                request.url.netloc,
                request.headers.raw,
                destination,
            )
            + (await request.aread() if is_post else b""),
            limits.get(WIRE_LIMIT, MAX_WIRE),
            limits.get(PROGRESS, ignore_progress),
            fresh=is_post,
            bodiless=request.method == "HEAD",
        )
        return _response(answer, request)

    async def ask(
        self, url: Url, fields: Sequence[RawField], limit: int, progress: Callable[[int], None]
    ) -> IncomingResponse:
        """Send a GET with these header fields. Raises httpx's exceptions."""
        destination = self._destination(urls.origin(url))
        netloc, target = urls.netloc(url).encode("ascii"), urls.target(url).encode("ascii")
        head = _head(b"GET", target, netloc, fields, destination)
        return await self._pool.ask(destination, head, limit, progress)

    async def aclose(self) -> None:
        self._pool.close()


def _head(
    method: bytes, target: bytes, netloc: bytes, fields: Sequence[RawField], destination: Destination
) -> bytes:
    """The request line and header fields.

    Raises `httpx.LocalProtocolError` for a line break in one of them.
    """
    lines = [b"%s: %s" % field for field in fields]
    if destination.proxy and destination.scheme == "http":  # a proxy needs the whole URL (RFC 9112 3.2.2)
        target = b"http://" + netloc + target
        if destination.proxy.authorization:
            lines.append(b"Proxy-Authorization: " + destination.proxy.authorization.encode("ascii"))
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, target, b"\r\n".join(lines))
    if head.count(b"\n") != len(lines) + 2:
        raise httpx.LocalProtocolError("line break in a request line or header field")
    return head


def _response(answer: IncomingResponse, request: httpx.Request) -> httpx.Response:
    extensions = {"http_version": b"HTTP/1.1", "reason_phrase": answer.reason}
    return httpx.Response(
        answer.status, headers=answer.fields, stream=answer, extensions=extensions, request=request
    )


_NOTHING: Final = httpx.ByteStream(b"")
JSON: Final = "application/json; charset=utf-8"


class ExactUrl(httpx.URL):
    """An `httpx.URL` that keeps our spelling of the request target, and is parsed by httpx only on demand."""

    def __init__(self, url: Url) -> None:  # without super(): see __getattr__
        self._ours = url

    def __getattr__(self, name: str) -> Any:
        """Parse the URL with httpx when one of its attributes is first read."""
        if "_ours" not in vars(self):
            raise AttributeError(name)
        parsed = vars(httpx.URL(self._ours))
        if name not in parsed:
            raise AttributeError(name)
        vars(self).update(parsed)
        return parsed[name]

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._ours[: self._ours.index(":")]

    @property
    def netloc(self) -> bytes:
        """Host, and the port if it is not the scheme's default."""
        return urls.netloc(self._ours).encode("ascii")

    @property
    def raw_path(self) -> bytes:
        return urls.target(self._ours).encode("ascii")


class RequestBuilder:
    """Builds requests, with the shared parts cached by origin."""

    def __init__(self, identity: RequestIdentity) -> None:
        self._identity = identity
        self._of_origin = lru_cache(1_000)(self._made)

    def build(
        self,
        url: Url,
        conditions: Mapping[str, str],
        limit: int,
        progress: Callable[[int], None],
        post: bytes | None = None,
        *,
        head: bool = False,
    ) -> httpx.Request:
        """A GET, a HEAD, or a POST of the JSON `post`.

        `limit` and `progress`: see `WIRE_LIMIT` and `PROGRESS`.
        """
        site = self._of_origin(urls.origin(url))[0]
        if post is not None:
            conditions = {**conditions, "content-type": JSON, "content-length": str(len(post))}
        headers = self.fields(url, conditions)
        extensions = {WIRE_LIMIT: limit, PROGRESS: progress}
        method, body = ("HEAD" if head else "GET", _NOTHING)
        if post is not None:
            method, body = "POST", httpx.ByteStream(post)
        request = httpx.Request(method, site, headers=headers, stream=body, extensions=extensions)
        request.url = ExactUrl(url)
        return request

    def fields(self, url: Url, conditions: Mapping[str, str]) -> Sequence[RawField]:
        shared = self._of_origin(urls.origin(url))[1]
        if cookie := self._identity.cookie(url):
            conditions = {"cookie": cookie, **conditions}
        if not conditions:
            return shared
        if "accept" in conditions:  # the request of a script: its own headers, but never in place of ours
            shared = [field for field in shared if field[0] != b"accept"]
            ours = {name.decode("ascii") for name, _ in shared}
            conditions = {name: value for name, value in conditions.items() if name not in ours}
        return [*shared, *_raw(conditions)]

    def _made(self, site: str) -> tuple[httpx.URL, list[RawField]]:
        headers = {"host": urls.netloc(site), **self._identity.of_origin(site)}
        return httpx.URL(site), _raw(headers)


def _raw(fields: Mapping[str, str]) -> list[RawField]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in fields.items()]
