"""httpx's own transport (`--transport httpx`, HTTP/2, HTTPS and SOCKS proxies), and the caller's.

httpx takes stray bytes after a body for the next response, so over HTTP/1.1 each of its connections serves
one request. The choice is in `routes`; limits and the decoding of bodies are in
`exchange`.
"""

import ssl
from collections.abc import Callable
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, Final, Self, cast

import httpcore
import httpx

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ResponseTooLarge, ignore_progress
from crawler.fetch.httpx_types import MAX_WIRE, PROGRESS, WIRE_LIMIT, as_httpx
from crawler.fetch.pool import CONNECTING, PORTS

MAX_ORIGINS: Final = 10_000  # origins to remember
IDLE_HTTP2: Final = 5.0  # seconds that an unused connection is kept, as httpx does

# Called with the bytes received over a connection that the current task opens.
_meter: ContextVar[Callable[[int], None]] = ContextVar("meter", default=ignore_progress)


class ChoseHttp1(Exception):  # noqa: N818 - caught in this module, and not an error
    """The server chose HTTP/1.1. No request was sent yet."""


class _NetworkStream(httpcore.AsyncNetworkStream):
    """A connection that counts the bytes received.

    With `http2`, it ends if the server chooses HTTP/1.1 (ALPN, RFC 7301).
    """

    def __init__(
        self, stream: httpcore.AsyncNetworkStream, received: Callable[[int], None], *, http2: bool
    ) -> None:
        self._stream, self._received, self._http2 = stream, received, http2

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        data = await self._stream.read(max_bytes, timeout)
        self._received(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)
        self._received(0)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        secured = stream.get_extra_info("ssl_object")
        if self._http2 and secured is not None and secured.selected_alpn_protocol() != "h2":
            await stream.aclose()
            raise ChoseHttp1
        return _NetworkStream(stream, self._received, http2=False)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.AnyIOBackend):
    """httpcore's connector, with the guard; not for a proxy, which the user configured."""

    def __init__(self, guard: AddressGuard, *, to_proxy: bool, http2: bool) -> None:
        self._find = guard.look_up if to_proxy else guard.resolve
        self._http2 = http2

    async def connect_tcp(  # type: ignore[override]  # other options are passed on
        self, host: str, port: int, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that is allowed and accepts the connection."""
        with as_httpx():
            *others, last = await self._find(host, port)
        for address in others:
            try:
                stream = await super().connect_tcp(address, port, **options | {"timeout": CONNECTING})
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
            return _NetworkStream(stream, _meter.get(), http2=self._http2)
        stream = await super().connect_tcp(last, port, **options)
        return _NetworkStream(stream, _meter.get(), http2=self._http2)


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, over connections that the guard allows; HTTP/1.1 only, or HTTP/2 only.

    Names are resolved by a proxy if there is one: the guard then checks only ports and literal addresses.
    """

    def __init__(
        self,
        trust: ssl.SSLContext,
        guard: AddressGuard,
        connections: int,
        proxy: str | None = None,
        *,
        http2: bool = False,
    ) -> None:
        """`connections`: most at a time. Raises `ConfigError`."""
        self._proxied_guard, self._http2 = guard if proxy else None, http2
        # In place of super().__init__(), which has no parameter for the network backend of its pool.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust,
            proxy=_proxy(proxy, trust) if proxy else None,
            max_connections=connections,
            max_keepalive_connections=connections if http2 else 0,
            keepalive_expiry=IDLE_HTTP2,
            http2=http2,
            network_backend=_Backend(guard, to_proxy=proxy is not None, http2=http2),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises `AddressRefused`, `ResponseTooLarge`, `ChoseHttp1` and httpx's exceptions.
        """
        if self._proxied_guard:
            _check(request, self._proxied_guard)
        if self._http2:  # others share its connection, so only its body can be counted
            return _counted(await super().handle_async_request(request), request)
        request.headers["connection"] = "close"
        token = _meter.set(_meter_of(request))
        try:
            return await super().handle_async_request(request)
        finally:
            _meter.reset(token)


def _proxy(url: str, trust: ssl.SSLContext) -> httpcore.Proxy:
    """Raises `ConfigError`."""
    if url.startswith("socks") and find_spec("socksio") is None:
        raise ConfigError("--proxy: a SOCKS proxy needs the package socksio.")
    try:
        given = httpx.Proxy(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError("--proxy: is not a usable proxy URL.") from error
    place = httpcore.URL(
        scheme=given.url.raw_scheme, host=given.url.raw_host, port=given.url.port, target=given.url.raw_path
    )
    secured = trust if given.url.scheme == "https" else None
    return httpcore.Proxy(place, auth=given.raw_auth, ssl_context=secured)


def _meter_of(request: httpx.Request) -> Callable[[int], None]:
    limit = request.extensions.get(WIRE_LIMIT, MAX_WIRE)
    progress = request.extensions.get(PROGRESS, ignore_progress)
    received = 0

    def meter(count: int) -> None:
        nonlocal received
        received += count
        if received > limit:
            with as_httpx():
                raise ResponseTooLarge(f"more than {limit:,} bytes received")
        progress(count)

    return meter


class Foreign(httpx.AsyncBaseTransport):
    """A transport of the caller, over HTTP/1.1: one request per connection, and a check of literal addresses.

    The guard checks the ports and literal addresses in URLs; names are resolved by the transport itself.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, guard: AddressGuard) -> None:
        self._transport, self._guard = transport, guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises `AddressRefused`, and whatever the transport raises."""
        _check(request, self._guard)
        request.headers["connection"] = "close"
        return _counted(await self._transport.handle_async_request(request), request)

    async def aclose(self) -> None:
        await self._transport.aclose()


def _check(request: httpx.Request, guard: AddressGuard) -> None:
    url = request.url
    with as_httpx():
        guard.check_literal(url.raw_host.decode("ascii"), PORTS[url.scheme] if url.port is None else url.port)


def _counted(response: httpx.Response, request: httpx.Request) -> httpx.Response:
    progress = request.extensions.get(PROGRESS, ignore_progress)
    progress(0)
    response.stream = _Counted(cast("httpx.AsyncByteStream", response.stream), progress)
    return response


class _Counted(httpx.AsyncByteStream):
    """An encoded body that reports the size of each piece to a callback."""

    def __init__(self, stream: httpx.AsyncByteStream, progress: Callable[[int], None]) -> None:
        self._stream, self._progress = stream, progress
        self._pieces = stream.__aiter__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._pieces.__anext__()
        self._progress(len(piece))
        return piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class ByAlpn(httpx.AsyncBaseTransport):
    """Uses one transport where the server chooses HTTP/2, and another everywhere else.

    The first TLS handshake with an origin decides. HTTP/2 without TLS is not supported.
    """

    def __init__(self, http2: httpx.AsyncBaseTransport, http1: httpx.AsyncBaseTransport) -> None:
        self._http2, self._http1 = http2, http1
        self._plain: set[bytes] = set()  # hosts and ports that chose HTTP/1.1

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        site = request.url.netloc
        if request.url.scheme == "https" and site not in self._plain:
            try:
                return await self._http2.handle_async_request(request)
            except ChoseHttp1:
                if len(self._plain) >= MAX_ORIGINS:
                    self._plain.clear()
                self._plain.add(site)
        return await self._http1.handle_async_request(request)

    async def aclose(self) -> None:
        await self._http2.aclose()
        await self._http1.aclose()


def speaks_http2(transport: httpx.AsyncBaseTransport) -> bool:
    """Whether a caller's httpx transport may use HTTP/2, which no public attribute of it says."""
    return bool(getattr(getattr(transport, "_pool", None), "_http2", False))
