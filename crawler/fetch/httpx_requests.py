"""httpx's types, for transports that speak them: what stands between them and `exchange`, and ours as one.

Building an `httpx.URL` takes half as long as an exchange and only repeats what Ada has already parsed, so it
is built only on demand. Nothing here is imported for a crawl over our own connections: httpx takes a tenth of
a start.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, cast

import httpx

from crawler.fetch.address_guard import AddressRefused, NoAddress
from crawler.fetch.connection import (
    ConnectionLost,
    HeadTooLarge,
    IncomingResponse,
    MalformedResponse,
    ResponseTooLarge,
    ignore_progress,
)
from crawler.fetch.pool import NoConnection
from crawler.fetch.transport import MAX_WIRE, OwnTransport, RawField, UnsafeRequest
from crawler.model.reasons import Cause
from crawler.parse import url as urls
from crawler.parse.url import Url

# The names of parameters in `Request.extensions`. Transports may ignore them: the limits of `exchange` still
# hold.
WIRE_LIMIT: Final = "wire_limit"  # int: most bytes of one response, as received from the network
# Callable[[int], None]: called after each transfer, with the number of bytes received.
PROGRESS: Final = "progress"

# httpx's hierarchy, flattened, as in `exchange.CAUSES`. A test fails if a new exception is not covered.
HTTPX_CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
)
_AS_HTTPX: Final[Mapping[type[Exception], type[httpx.TransportError]]] = {
    NoConnection: httpx.ConnectError,
    AddressRefused: httpx.ConnectError,
    NoAddress: httpx.ConnectError,
    ConnectionLost: httpx.ReadError,
    ResponseTooLarge: httpx.ReadError,
    MalformedResponse: httpx.RemoteProtocolError,
    HeadTooLarge: httpx.RemoteProtocolError,
    UnsafeRequest: httpx.LocalProtocolError,
}


@contextmanager
def as_httpx() -> Iterator[None]:
    """Raises our errors as httpx's, which a caller's transport expects; ours are the cause."""
    try:
        yield
    except tuple(_AS_HTTPX) as error:
        kind = next(kind for own, kind in _AS_HTTPX.items() if isinstance(error, own))
        raise kind(str(error)) from error


class PoolTransport(httpx.AsyncBaseTransport):
    """Ours as an `httpx.AsyncBaseTransport`: guarded, bounded; GET, HEAD and POST only.

    `Response.extensions` has `http_version` and `reason_phrase`, as with httpx's own transport.
    """

    def __init__(self, own: OwnTransport) -> None:
        self._own = own

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises httpx's exceptions."""
        if request.method not in {"GET", "HEAD", "POST"}:
            raise httpx.UnsupportedProtocol("only GET, HEAD and POST are supported", request=request)
        limits, url = request.extensions, request.url
        with as_httpx():
            answer = await self._own.send(
                request.method,
                f"{url.scheme}://{(url.netloc + url.raw_path).decode('ascii')}",
                request.headers.raw,
                limits.get(WIRE_LIMIT, MAX_WIRE),
                limits.get(PROGRESS, ignore_progress),
                await request.aread() if request.method == "POST" else b"",
            )
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": answer.reason}
        return httpx.Response(
            answer.status, headers=answer.fields, stream=_Body(answer), extensions=extensions, request=request
        )

    async def aclose(self) -> None:
        """Close the idle connections."""
        await self._own.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of a response of ours."""

    def __init__(self, answer: IncomingResponse) -> None:
        self._answer = answer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        with as_httpx():
            if piece := await self._answer.read():
                return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._answer.aclose()


class HttpxResponse:
    """The response of any transport, in the form of ours."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.fields = response.status_code, response.headers.raw
        self._response = response
        self._pieces = aiter(cast("httpx.AsyncByteStream", response.stream))  # as received, still encoded

    def whole(self) -> bytes | None:
        """The body, if it is known to have been received."""
        return None

    async def read(self) -> bytes:
        """The next piece of the body; empty at the end."""
        while (piece := await anext(self._pieces, None)) is not None:
            if piece:
                return piece
        return b""

    async def aclose(self) -> None:
        """Close the response."""
        await self._response.aclose()


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
        """Path and query."""
        return urls.target(self._ours).encode("ascii")


def build(  # `limit` and `progress`: see `WIRE_LIMIT` and `PROGRESS`
    method: str,
    url: Url,
    fields: Sequence[RawField],
    limit: int,
    progress: Callable[[int], None],
    post: bytes = b"",
) -> httpx.Request:
    """A request as httpx has it."""
    extensions = {WIRE_LIMIT: limit, PROGRESS: progress}
    body = httpx.ByteStream(post)
    request = httpx.Request(method, urls.origin(url), headers=fields, stream=body, extensions=extensions)
    request.url = ExactUrl(url)
    return request
