"""httpx beneath or above: any transport of httpx in the place of our own, and our own in the place of httpx's.

The first serves HTTP/2, proxies that are not plain HTTP, and tests; the second lets `httpx.AsyncClient` stand on
`Pool`. Both are thin: what an exchange may cost and what its bytes mean is decided in `exchange`.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, cast

import httpcore
import httpx
from httpcore._backends.anyio import AnyIOBackend  # no public way to it; the httpx 0.28 line keeps the name

from crawler import urls
from crawler.errors import ConfigError
from crawler.fetch.connection import Answer, BrokenAnswer, CutShort, TooMuchHead, TooMuchWire, nobody
from crawler.fetch.guard import AddressGuard, AddressRefused, NoAddress
from crawler.fetch.pool import NoConnection, Place, Pool
from crawler.fetch.way import Answering, Causes
from crawler.model import Cause

MAX_WIRE = 100_000_000  # bytes of one answer, for whoever uses the pool through httpx


class GuardedBackend(AnyIOBackend):
    """httpcore's connector, behind the guard."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def connect_tcp(  # type: ignore[override]  # options are passed on, whatever they are
        self, host: str, port: int, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that is permitted and answers."""
        *others, last = await self._guard.resolve(host, port)
        for address in others:
            try:
                return await super().connect_tcp(address, port, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await super().connect_tcp(last, port, **options)


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


def guarded(transport: httpx.AsyncHTTPTransport, guard: AddressGuard) -> httpx.AsyncHTTPTransport:
    """Httpx's own transport, which then connects behind the guard."""
    # The pool's connector cannot be handed to httpx's transport; the attribute is the same in all of 0.28.
    transport._pool._network_backend = GuardedBackend(guard)  # noqa: SLF001
    return transport


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
        """Let the connection go."""
        await self._answer.aclose()


class OverHttpx:
    """A `Way` over a transport of httpx, through its client."""

    causes: Causes = CAUSES

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=None,  # noqa: S113 - the exchange has its own
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none are kept
            follow_redirects=False,
            trust_env=False,
        )

    async def ask(
        self, url: str, headers: Mapping[str, str], _allowance: int, heard: Callable[[int], None]
    ) -> Answering:
        """Send a GET."""
        target = urls.target(url).encode("ascii")
        question = self._client.build_request(
            "GET", url, headers=dict(headers), extensions={"target": target}
        )
        answer = await self._client.send(question, stream=True)
        heard(0)
        return HttpxAnswer(answer, heard)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def stock(
    trust: ssl.SSLContext, guard: AddressGuard, connections: int, proxy: str | None, *, http2: bool
) -> httpx.AsyncBaseTransport:
    """Httpx's own transport: for HTTP/2, and for proxies that are not plain HTTP."""
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=trust,
            http2=http2,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            proxy=proxy,
            trust_env=False,
        )
    except ImportError as error:
        need = "--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'."
        raise ConfigError(need if http2 else "--proxy: a SOCKS proxy needs the package socksio.") from error
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError("--proxy: is not a proxy URL that can be used.") from error
    return transport if proxy else guarded(transport, guard)


class PoolTransport(httpx.AsyncBaseTransport):
    """`httpx.AsyncClient(transport=PoolTransport(pool))`: httpx's client on our connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange. Raises httpx's own exceptions."""
        if request.method == "HEAD":
            raise httpx.UnsupportedProtocol("HEAD is not spoken here", request=request)
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
