"""Adapters for httpx's own transport (HTTP/2, HTTPS and SOCKS proxies) and for transports passed in by the caller.

httpx takes stray bytes after a body for the next response, so over HTTP/1.1 each of its connections serves one request.
Limits and the decoding of bodies are in `exchange`.
"""

import ssl
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, Self, cast

import httpcore
import httpx
from httpcore._backends.anyio import AnyIOBackend  # private, but stable throughout httpx 0.28

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ignore_progress
from crawler.fetch.pool import PORTS
from crawler.fetch.transport import PROGRESS

MOST_ORIGINS: Final = 10_000  # most origins to remember


class ChoseHttp1(Exception):  # noqa: N818 - caught in this module, and not an error
    """The server chose HTTP/1.1. No request was sent yet."""


class _OnlyHttp2(httpcore.AsyncNetworkStream):
    """A stream that stops after the TLS handshake if the server chose HTTP/1.1 (ALPN, RFC 7301)."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

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
        if secured is not None and secured.selected_alpn_protocol() != "h2":
            await stream.aclose()
            raise ChoseHttp1
        return stream

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(AnyIOBackend):
    """httpcore's connector: checks addresses with the guard, except those of a proxy, which the user configured."""

    def __init__(self, guard: AddressGuard, *, to_proxy: bool, http2: bool) -> None:
        self._guard, self._to_proxy, self._http2 = guard, to_proxy, http2

    async def connect_tcp(  # type: ignore[override]  # other options are passed on
        self, host: str, port: int, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that is allowed and accepts the connection."""
        find = self._guard.look_up if self._to_proxy else self._guard.resolve
        *others, last = await find(host, port)
        for address in others:
            try:
                return self._wrapped(await super().connect_tcp(address, port, **options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._wrapped(await super().connect_tcp(last, port, **options))

    def _wrapped(self, stream: httpcore.AsyncNetworkStream) -> httpcore.AsyncNetworkStream:
        return _OnlyHttp2(stream) if self._http2 else stream


class Foreign(httpx.AsyncBaseTransport):
    """Wraps a foreign transport: one request per connection, progress reports, and a check of literal addresses.

    The guard checks the ports and literal addresses in URLs; names are resolved by the transport itself.
    """

    def __init__(
        self, transport: httpx.AsyncBaseTransport, guard: AddressGuard | None, *, http2: bool = False
    ) -> None:
        """`guard`: None if the transport already uses it. `http2`: the transport speaks only HTTP/2."""
        self._transport, self._guard, self._http2 = transport, guard, http2

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises `AddressRefused`, and whatever the transport raises."""
        url = request.url
        if self._guard:
            port = PORTS[url.scheme] if url.port is None else url.port
            self._guard.check_literal(url.raw_host.decode("ascii"), port)
        if not self._http2:
            request.headers["connection"] = "close"
        response = await self._transport.handle_async_request(request)
        progress = request.extensions.get(PROGRESS, ignore_progress)
        progress(0)
        response.stream = _Counted(cast("httpx.AsyncByteStream", response.stream), progress)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()


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
        """Send one request."""
        site = request.url.netloc
        if request.url.scheme == "https" and site not in self._plain:
            try:
                return await self._http2.handle_async_request(request)
            except ChoseHttp1:
                if len(self._plain) >= MOST_ORIGINS:
                    self._plain.clear()
                self._plain.add(site)
        return await self._http1.handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http2.aclose()
        await self._http1.aclose()


def speaks_http2(transport: httpx.AsyncBaseTransport) -> bool:
    """Whether an httpx transport passed in by the caller may use HTTP/2."""
    return bool(getattr(getattr(transport, "_pool", None), "_http2", False))


def stock(
    trust: ssl.SSLContext, guard: AddressGuard, connections: int, proxy: str | None, *, http2: bool
) -> Foreign:
    """Httpx's own transport: for HTTP/2 only, or for HTTP/1.1 through HTTPS and SOCKS proxies."""
    try:
        secured = {"ssl_context": trust} if proxy and proxy.startswith("https:") else {}
        transport = httpx.AsyncHTTPTransport(
            verify=trust,
            http2=http2,
            limits=httpx.Limits(
                max_connections=connections, max_keepalive_connections=connections if http2 else 0
            ),
            proxy=httpx.Proxy(proxy, **secured) if proxy else None,  # type: ignore[arg-type]
            trust_env=False,
        )
    except ImportError as error:
        need = "--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'."
        missing = proxy and proxy.startswith("socks") and find_spec("socksio") is None
        raise ConfigError("--proxy: a SOCKS proxy needs the package socksio." if missing else need) from error
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError("--proxy: is not a usable proxy URL.") from error
    # httpx's transport has no parameter for the connector; the attribute is stable throughout httpx 0.28.
    transport._pool._network_backend = _Backend(guard, to_proxy=proxy is not None, http2=http2)  # noqa: SLF001
    return Foreign(transport, guard if proxy else None, http2=http2)
