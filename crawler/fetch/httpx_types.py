"""Our transport as one of httpx, for a caller who wraps it, and those of httpx with the methods of ours.

Building an `httpx.URL` takes half as long as an exchange and only repeats what Ada has already parsed, so it
is built only on demand. Additional parameters are passed in `Request.extensions`, under the names below.
Other transports may ignore them: the limits of `exchange` still hold.
"""

from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import httpx

from crawler.fetch.address_guard import AddressRefused, NoAddress
from crawler.fetch.connection import (
    ClosedEarly,
    ConnectionLost,
    HeadTooLarge,
    IncomingResponse,
    MalformedResponse,
    ResponseTooLarge,
    ignore_progress,
)
from crawler.fetch.pool import NoConnection
from crawler.fetch.transport import LineBreak, OwnTransport, Progress, RawField
from crawler.model.reasons import Cause
from crawler.parse import url as urls
from crawler.parse.url import Url

WIRE_LIMIT: Final = "wire_limit"  # int: most bytes of one response, as received from the network
# Callable[[int], None]: called after each transfer, with the number of bytes received.
PROGRESS: Final = "progress"
MAX_WIRE: Final = 100_000_000  # most bytes of one response if the request has no limit

# httpx's exceptions, with their cause and whether they are transient: its hierarchy, flattened. A test fails
# if a new one is not covered.
CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
)
# Our exceptions, and what they are for a caller who wraps our transport: httpx's as well.
_BOTH: Final = {
    ours: type(ours.__name__, (ours, theirs), {})
    for theirs, kinds in (
        (httpx.ConnectError, (AddressRefused, NoAddress, NoConnection)),
        (httpx.RemoteProtocolError, (MalformedResponse, HeadTooLarge)),
        (httpx.ReadError, (ResponseTooLarge, ConnectionLost, ClosedEarly)),
        (httpx.LocalProtocolError, (LineBreak,)),
    )
    for ours in kinds
}


@contextmanager
def as_httpx() -> Iterator[None]:
    """Raises our exceptions as httpx's, which they are then as well."""
    try:
        yield
    except tuple(_BOTH) as error:
        if isinstance(error, httpx.TransportError):
            raise  # a transport within another one
        raise _BOTH[type(error)](*error.args, **vars(error)) from error


class OverHttpx:
    """A transport of httpx, with the methods of ours."""

    causes = CAUSES

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def ask(
        self, url: Url, fields: Sequence[RawField], limit: int, progress: Progress, method: str, body: bytes
    ) -> "HttpxResponse":
        """See `OwnTransport.ask`. Raises httpx's exceptions."""
        request = built(url, fields, limit, progress, method, body)
        return HttpxResponse(await self._transport.handle_async_request(request))

    async def aclose(self) -> None:
        await self._transport.aclose()


def built(
    url: Url, fields: Sequence[RawField], limit: int, progress: Progress, method: str, body: bytes
) -> httpx.Request:
    """A request of httpx."""
    extensions = {WIRE_LIMIT: limit, PROGRESS: progress}
    stream = httpx.ByteStream(body)
    request = httpx.Request(method, _NOWHERE, headers=fields, stream=stream, extensions=extensions)
    request.url = ExactUrl(url)
    return request


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
        await self._response.aclose()


class PoolTransport(httpx.AsyncBaseTransport):
    """Our transport, as an `httpx.AsyncBaseTransport`.

    `Response.extensions` has `http_version` and `reason_phrase`, as with httpx's own transport.
    """

    def __init__(self, own: OwnTransport) -> None:
        self._own = own

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        if request.method not in {"GET", "HEAD", "POST"}:
            raise httpx.UnsupportedProtocol("only GET, HEAD and POST are supported", request=request)
        url, limits = request.url, request.extensions
        with as_httpx():
            answer = await self._own.ask(
                Url(f"{url.scheme}://{(url.netloc + url.raw_path).decode('ascii')}"),
                request.headers.raw,
                limits.get(WIRE_LIMIT, MAX_WIRE),
                limits.get(PROGRESS, ignore_progress),
                request.method,
                await request.aread() if request.method == "POST" else b"",
            )
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": answer.reason}
        return httpx.Response(
            answer.status,
            headers=answer.fields,
            stream=_Body(answer),
            extensions=extensions,
            request=request,
        )

    async def aclose(self) -> None:
        await self._own.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: IncomingResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with as_httpx():
            while piece := await self._answer.read():
                yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


class ByOrigin(httpx.AsyncBaseTransport):
    """Chooses a transport by origin: a client certificate is for the site only, a proxy not for all."""

    def __init__(
        self, choose: Callable[[str], Hashable], transports: Mapping[Any, httpx.AsyncBaseTransport]
    ) -> None:
        """`choose` gives the key in `transports` for an origin."""
        self._choose, self._transports = choose, transports

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        chosen = self._choose(f"{request.url.scheme}://{request.url.netloc.decode('ascii')}")
        return await self._transports[chosen].handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


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


_NOWHERE: Final = httpx.URL("http://localhost/")  # in place of a URL that httpx would parse
