"""One GET: bounded in bytes and time, without redirects, kept cookies or opinions.

Whatever the network does becomes a `Broken`; only a bug raises. It goes over our own connections (`pool`), or over
any transport of httpx (`over_httpx`). The body is read raw and decoded here, so that a small answer cannot become a
large one (see `inflate`).
"""

import ssl
import urllib.request
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import urlsplit

import anyio
import httpx

from crawler import inflate, urls
from crawler.errors import ConfigError
from crawler.fetch.connection import BrokenAnswer, CutShort, TooMuchHead, TooMuchWire
from crawler.fetch.guard import AddressGuard, AddressRefused, NoAddress
from crawler.fetch.identity import Identity
from crawler.fetch.over_httpx import HttpxAnswer, guarded
from crawler.fetch.pool import PORTS, NoConnection, Place, Pool, Proxy
from crawler.model import Broken, Cause, Headers, Reply, Response
from crawler.ports import Request
from crawler.settings import Http

OVERHEAD: Final = 8  # bytes on the wire for a byte of body, at most: chunks of one byte take six
SLOWEST: Final = (
    100  # bytes a second, in the mean, that an answer must come with once it takes longer than a silence
)
MARGIN: Final = 1_000_000  # bytes on the wire beside that

# What may be raised, ours and httpx's tree, flattened: the first that fits. A test fails when httpx gains one that
# none of these covers.
_CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (CutShort, Cause.TRUNCATED, True),
    (BrokenAnswer, Cause.PROTOCOL, True),
    (TooMuchHead, Cause.PROTOCOL, False),
    (TooMuchWire, Cause.TOO_LARGE, False),
    (NoConnection, Cause.CONNECT, True),
    (NoAddress, Cause.DNS, False),
    (AddressRefused, Cause.ADDRESS, False),
    (ssl.SSLError, Cause.TLS, False),
    (inflate.TooLarge, Cause.TOO_LARGE, False),
    (inflate.UnknownCoding, Cause.CODING, False),
    (inflate.BrokenCoding, Cause.CODING, True),
    (UnicodeError, Cause.PROTOCOL, False),  # a host name that IDNA refuses
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
)


class Answering(Protocol):
    """An answer whose head is there: ours, or one of httpx."""

    status: int
    fields: list[tuple[str, str]]

    async def read(self) -> bytes:
        """More of the body; nothing at its end."""
        ...

    async def close(self) -> None:
        """The rest is not wanted."""
        ...


class HttpFetcher:
    """A `ports.Fetcher`. Use as an async context manager: it holds connections."""

    def __init__(
        self,
        chosen: Http,
        guard: AddressGuard,
        identity: Identity,
        *,
        connections: int = 16,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport`, any of httpx, takes the place of our own. Raises `ConfigError` for an unusable setting."""
        self._chosen, self._identity = chosen, identity
        proxies = _Proxies(chosen)
        if transport is None and (chosen.http2 or proxies.foreign):
            transport = _stock(chosen, guard, connections, proxies.foreign or proxies.any)
        self._way: _OverPool | _OverHttpx = (
            _OverHttpx(transport)
            if transport
            else _OverPool(Pool(guard, _Trust(chosen), connections), proxies)
        )

    async def __aenter__(self) -> Self:
        """Open for requests."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        with anyio.CancelScope(shield=True):
            await self._way.close()

    async def fetch(self, request: Request) -> Reply:
        """See `ports.Fetcher.fetch`."""
        seconds = self._chosen.total_timeout if request.seconds is None else request.seconds
        with anyio.CancelScope() as scope:
            patience = _Patience(scope, seconds, self._chosen.timeout)
            try:
                return await self._exchange(request, patience.heard)
            except Exception as error:
                for kind, cause, transient in _CAUSES:
                    if isinstance(error, kind):
                        return _broken(error, cause, transient=transient)
                raise
        return Broken(Cause.TIMEOUT, patience.says(), transient=True)

    async def _exchange(self, request: Request, heard: Callable[[int], None]) -> Reply:
        limit = self._chosen.max_body if request.limit is None else request.limit
        headers = self._identity.headers(request.url) | conditions(request)
        answer = await self._way.ask(request.url, headers, OVERHEAD * limit + MARGIN, heard)
        try:
            fields = Headers(answer.fields)
            if request.wants_body and not request.wants_body(answer.status, fields):
                return Response(answer.status, fields)
            return Response(answer.status, fields, await _body(answer, fields, limit))
        finally:
            await answer.close()


class _Patience:
    """Two limits in one scope: the whole exchange, and the silence in it."""

    def __init__(self, scope: anyio.CancelScope, total: float, silence: float) -> None:
        self._scope, self._total, self._silence = scope, total, silence
        self._began = anyio.current_time()
        self._end, self._received, self._drips = self._began + total, 0, False
        self.heard()

    def heard(self, count: int = 0) -> None:
        """So many bytes came: the silence begins again, unless they only drip."""
        now = anyio.current_time()
        self._received += count
        self._drips = now - self._began > self._silence and self._received < SLOWEST * (now - self._began)
        self._scope.deadline = now if self._drips else min(self._end, now + self._silence)

    def says(self) -> str:
        """What ran out."""
        if self._drips:
            return f"{self._received:,} bytes in {self._silence:.0f} s"
        if self._scope.deadline >= self._end:
            return f"no complete answer in {self._total:.0f} s"
        return f"silent for {self._silence:.0f} s"


def conditions(request: Request) -> dict[str, str]:
    """Both validators, exactly as they came (RFC 9110 13.1.2, 13.1.3)."""
    known = {"if-none-match": request.validators.etag, "if-modified-since": request.validators.modified}
    return {name: value for name, value in known.items() if value}


async def _body(answer: Answering, fields: Headers, limit: int) -> bytes:
    codings = [word.strip().lower() for line in fields.all("content-encoding") for word in line.split(",")]
    decoder = inflate.decoder([word for word in codings if word], limit)
    said = fields.get("content-length") or ""
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        raise inflate.TooLarge(f"{int(said[:20]):,} bytes by its Content-Length, more than {limit:,}")
    pieces: list[bytes] = []
    received = 0
    while chunk := await answer.read():
        received += len(chunk)
        if received > limit:
            raise inflate.TooLarge(f"more than {limit:,} bytes, coded")
        pieces.extend(decoder.feed(chunk))
    decoder.finish()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _broken(error: Exception, cause: Cause, *, transient: bool) -> Broken:
    text = str(error) or type(error).__name__
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, ssl.SSLError):
            return Broken(Cause.TLS, _tls(chain) or text, transient=False)
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, NoAddress):
        transient = error.passing
    return Broken(cause, text, transient=transient)


def _tls(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", "") or str(error.reason or "")


# -- over our own connections ------------------------------------------------------------------------------


class _OverPool:
    """Requests over `Pool`, each written in one piece."""

    def __init__(self, pool: Pool, proxies: "_Proxies") -> None:
        self._pool = pool
        self._place = lru_cache(1_000)(proxies.place)

    async def ask(
        self, url: str, headers: Mapping[str, str], allowance: int, heard: Callable[[int], None]
    ) -> Answering:
        """Send a GET."""
        site = urls.origin(url)
        place = self._place(site)
        # The path exactly as the URL Standard spells it. Through a proxy, an http URL is named whole (RFC 9112 3.2.2).
        target = url if place.proxy and place.scheme == "http" else urls.target(url)
        lines = [f"GET {target} HTTP/1.1\r\nHost: {urls.netloc(site)}\r\n"]
        lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
        if place.proxy and place.proxy.authorization and place.scheme == "http":
            lines.append(f"Proxy-Authorization: {place.proxy.authorization}\r\n")
        head = "".join([*lines, "\r\n"]).encode("latin-1", "replace")
        return await self._pool.ask(place, head, allowance, heard)

    async def close(self) -> None:
        """Close what is idle."""
        self._pool.close()


class _Proxies:
    """Which proxy serves an origin. A proxy resolves names itself: the guard sees only what goes out directly."""

    def __init__(self, chosen: Http) -> None:
        self._from_environment = chosen.proxy == "env"
        if chosen.proxy is None:
            self._urls: dict[str, str] = {}
        elif self._from_environment:
            self._urls = urllib.request.getproxies()
        else:
            self._urls = {"all": chosen.proxy}
        named = {url for scheme, url in self._urls.items() if scheme in {"http", "https", "all"}}
        self.any = next(iter(named), None)
        self.foreign = next((url for url in named if not url.startswith("http://")), None)
        try:
            self._proxies = {} if self.foreign else {url: Proxy.of(url) for url in named}
        except ValueError as error:
            raise ConfigError("--proxy: is not a proxy URL that can be used.") from error

    def place(self, site: str) -> Place:
        """Where a request to an origin goes."""
        parts = urlsplit(site)
        host = parts.hostname or ""
        url = self._urls.get(parts.scheme) or self._urls.get("all")
        if url and self._from_environment and urllib.request.proxy_bypass(host):
            url = None
        return Place(
            parts.scheme, host, parts.port or PORTS[parts.scheme], self._proxies[url] if url else None
        )


class _Trust:
    """The certificates we believe, read when the first is to be checked. A bad file is told at once."""

    def __init__(self, chosen: Http) -> None:
        self._insecure, self._file = chosen.insecure, chosen.ca_file
        if self._file is not None:
            _ = self._context

    def __call__(self) -> ssl.SSLContext:
        return self._context

    @cached_property
    def _context(self) -> ssl.SSLContext:
        if self._insecure:
            return httpx.create_ssl_context(verify=False, trust_env=False)
        if self._file is None:
            return httpx.create_ssl_context(trust_env=False)
        try:
            return ssl.create_default_context(cafile=self._file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--ca-file: {self._file} holds no certificates that can be read.") from error


# -- over httpx --------------------------------------------------------------------------------------------


class _OverHttpx:
    """Requests over a transport of httpx, through its client."""

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


def _stock(
    chosen: Http, guard: AddressGuard, connections: int, proxy: str | None
) -> httpx.AsyncBaseTransport:
    """Httpx's own transport: for HTTP/2, and for proxies that are not plain HTTP."""
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=_Trust(chosen)(),
            http2=chosen.http2,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            proxy=proxy,
            trust_env=False,
        )
    except ImportError as error:
        need = "--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'."
        raise ConfigError(
            need if chosen.http2 else "--proxy: a SOCKS proxy needs the package socksio."
        ) from error
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(
            f"--proxy: is not a proxy URL that can be used ({type(error).__name__})."
        ) from error
    return transport if proxy else guarded(transport, guard)
