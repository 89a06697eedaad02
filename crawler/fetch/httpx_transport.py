"""httpx beneath or above: any transport of httpx in the place of our own, and our own in the place of httpx's.

The first serves HTTP/2, proxies that are not plain HTTP, and tests; the second lets `httpx.AsyncClient` stand on
`Pool`. Both are thin: what an exchange may cost and what its bytes mean is decided in `exchange`. httpx takes bytes
behind a body for the answer to the next request, so over HTTP/1.1 its connections serve one request each.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from typing import Any, Final, cast

import httpcore
import httpx
from httpcore._backends.anyio import AnyIOBackend  # no public way to it; the httpx 0.28 line keeps the name

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard, AddressRefused, NoAddress
from crawler.fetch.connection import Answer, BrokenAnswer, CutShort, TooMuchHead, TooMuchWire, nobody
from crawler.fetch.pool import NoConnection, Place, Pool
from crawler.fetch.transport import Answering, Causes, Way
from crawler.model.reasons import Cause
from crawler.parse import url as urls

MOST_ORIGINS: Final = 10_000  # that are remembered
MAX_WIRE = 100_000_000  # bytes of one answer, for whoever uses the pool through httpx


class ChoseHttp1(Exception):  # noqa: N818 - caught here, and nobody's failure
    """The server does not want HTTP/2. Nothing was asked of it yet."""


class _OnlyHttp2(httpcore.AsyncNetworkStream):
    """A stream that goes no further than its TLS handshake when the server chose HTTP/1.1 in it (RFC 7301)."""

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
    """httpcore's connector: behind the guard, or to a proxy, which was named by the user."""

    def __init__(self, guard: AddressGuard, *, to_proxy: bool, http2: bool) -> None:
        self._guard, self._to_proxy, self._http2 = guard, to_proxy, http2

    async def connect_tcp(  # type: ignore[override]  # options are passed on, whatever they are
        self, host: str, port: int, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that is permitted and answers."""
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


# httpx's tree, flattened: the first that fits. A test fails when httpx gains one that none of these covers.
CAUSES: Final[Causes] = (
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
)


class HttpxAnswer:
    """An answer of httpx that reads as one of ours does."""

    def __init__(self, answer: httpx.Response, heard: Callable[[int], None]) -> None:
        self.status = answer.status_code
        self.fields = [(name.lower(), value) for name, value in answer.headers.multi_items()]
        self._answer, self._heard = answer, heard
        self._pieces = cast("httpx.AsyncByteStream", answer.stream).__aiter__()  # as it came, coded

    async def read(self) -> bytes:
        """More of the body; nothing at its end."""
        async for piece in self._pieces:
            if piece:
                self._heard(len(piece))
                return piece
        return b""

    async def close(self) -> None:
        """Let go of the answer."""
        await self._answer.aclose()


class OverHttpx:
    """A `Way` over a transport of httpx, through its client."""

    causes: Causes = CAUSES

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        through: AddressGuard | None = None,
        *,
        http2: bool = False,
    ) -> None:
        """`through`: the guard that is asked what a proxy may connect to for us. `http2`: nothing else is spoken."""
        self._through, self._more = through, {} if http2 else {"connection": "close"}
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=None,  # noqa: S113 - the exchange has its own
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none are kept
            follow_redirects=False,
            trust_env=False,
        )

    async def ask(
        self, url: str, headers: Mapping[str, str], _allowance: int, heard: Callable[[int], None]
    ) -> HttpxAnswer:
        """Send a GET."""
        if self._through:
            self._through.check_literal(urls.host(url).strip("[]"), urls.port(url))
        target = urls.target(url).encode("ascii")
        question = self._client.build_request(
            "GET", url, headers={**headers, **self._more}, extensions={"target": target}
        )
        answer = await self._client.send(question, stream=True)
        heard(0)
        return HttpxAnswer(answer, heard)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()


class ByAlpn:
    """A `Way` for HTTP/2: one `Way` where the server chooses it, another everywhere else.

    The first handshake with an origin tells. HTTP/2 without TLS is spoken by nobody here.
    """

    causes: Causes = CAUSES

    def __init__(self, http2: OverHttpx, http1: Way) -> None:
        self._http2, self._http1 = http2, http1
        self._plain: set[str] = set()  # origins that chose HTTP/1.1

    async def ask(
        self, url: str, headers: Mapping[str, str], allowance: int, heard: Callable[[int], None]
    ) -> Answering:
        """Send a GET."""
        site = urls.origin(url)
        if site.startswith("https:") and site not in self._plain:
            try:
                return await self._http2.ask(url, headers, allowance, heard)
            except ChoseHttp1:
                if len(self._plain) >= MOST_ORIGINS:
                    self._plain.clear()
                self._plain.add(site)
        return await self._http1.ask(url, headers, allowance, heard)

    async def close(self) -> None:
        """Close every connection."""
        await self._http2.close()
        await self._http1.close()


def speaks_http2(transport: httpx.AsyncBaseTransport) -> bool:
    """Whether a transport of httpx, handed in from outside, may choose HTTP/2."""
    return bool(getattr(getattr(transport, "_pool", None), "_http2", False))


def stock(
    trust: ssl.SSLContext, guard: AddressGuard, connections: int, proxy: str | None, *, http2: bool
) -> OverHttpx:
    """Httpx's own transport: for HTTP/2 alone, or for HTTP/1.1 through proxies that are not plain HTTP."""
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
    # The pool's connector cannot be handed to httpx's transport; the attribute is the same in all of 0.28.
    transport._pool._network_backend = _Backend(guard, to_proxy=proxy is not None, http2=http2)  # noqa: SLF001
    return OverHttpx(transport, guard if proxy else None, http2=http2)


class PoolTransport(httpx.AsyncBaseTransport):
    """`httpx.AsyncClient(transport=PoolTransport(pool))`: httpx's client on our connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange. Raises httpx's own exceptions."""
        if request.method == "HEAD":
            raise httpx.UnsupportedProtocol("only GET is supported", request=request)
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        body = await request.aread()
        lines = [b"%s %s HTTP/1.1" % (request.method.encode(), url.raw_path)]
        lines += [b"%s: %s" % field for field in request.headers.raw]
        place = Place(url.scheme, url.host, port)
        try:
            answer = await self._pool.ask(place, b"\r\n".join([*lines, b"", body]), MAX_WIRE, nobody)
        except (NoAddress, AddressRefused, NoConnection) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        except (BrokenAnswer, TooMuchHead) as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error
        except (CutShort, TooMuchWire) as error:
            raise httpx.ReadError(str(error), request=request) from error
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.fields]
        return httpx.Response(answer.status, headers=fields, stream=_Body(answer), request=request)

    async def aclose(self) -> None:
        """Close what is idle."""
        self._pool.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while piece := await self._answer.read():
                yield piece
        except (BrokenAnswer, CutShort, TooMuchWire) as error:
            raise httpx.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._answer.close()
