"""One GET over httpx: bounded in bytes and time, without redirects, kept cookies or opinions.

Whatever the network does becomes a `Broken`; only a bug raises. The body is read raw and decoded here, so that a
small answer cannot become a large one (see `inflate`).
"""

import ssl
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Final, Self

import anyio
import httpx

from crawler import inflate, urls
from crawler.errors import ConfigError
from crawler.fetch.guard import AddressGuard, AddressRefused, GuardedBackend, NoAddress
from crawler.fetch.identity import Identity
from crawler.model import Broken, Cause, Headers, Reply, Response
from crawler.ports import Request
from crawler.settings import Http

# httpx's tree, flattened: the first that fits. A test fails when httpx gains one that none of these covers.
_CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
    (UnicodeError, Cause.PROTOCOL, False),  # a host name that IDNA refuses
    (NoAddress, Cause.DNS, False),
    (AddressRefused, Cause.ADDRESS, False),
    (inflate.TooLarge, Cause.TOO_LARGE, False),
    (inflate.UnknownCoding, Cause.CODING, False),
    (inflate.BrokenCoding, Cause.CODING, True),
)


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
        """`transport` stands in for the network, in tests. Raises `ConfigError` for an unusable setting."""
        self._chosen, self._identity = chosen, identity
        self._client = httpx.AsyncClient(
            transport=transport or _direct(chosen, guard, connections),
            mounts=_proxied(chosen, connections) if transport is None else None,
            timeout=httpx.Timeout(chosen.timeout),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none are kept
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Open for requests."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        with anyio.CancelScope(shield=True):
            await self._client.aclose()

    async def fetch(self, request: Request) -> Reply:
        """See `ports.Fetcher.fetch`."""
        seconds = self._chosen.total_timeout if request.seconds is None else request.seconds
        try:
            with anyio.fail_after(seconds):
                return await self._exchange(request)
        except TimeoutError:
            return Broken(Cause.TIMEOUT, f"no complete answer in {seconds:.0f} s", transient=True)
        except Exception as error:
            for kind, cause, transient in _CAUSES:
                if isinstance(error, kind):
                    return _broken(error, cause, transient=transient)
            raise

    async def _exchange(self, request: Request) -> Reply:
        headers = self._identity.headers(request.url) | conditions(request)
        # The path exactly as the URL Standard spells it: httpx would write a few characters its own way.
        target = urls.target(request.url).encode("ascii")
        question = self._client.build_request(
            "GET", request.url, headers=headers, extensions={"target": target}
        )
        answer = await self._client.send(question, stream=True)
        try:
            fields = Headers(answer.headers.multi_items())
            if request.wants_body and not request.wants_body(answer.status_code, fields):
                return Response(answer.status_code, fields)
            limit = self._chosen.max_body if request.limit is None else request.limit
            return Response(answer.status_code, fields, await _body(answer, fields, limit))
        finally:
            await answer.aclose()


def conditions(request: Request) -> dict[str, str]:
    """Both validators, exactly as they came (RFC 9110 13.1.2, 13.1.3)."""
    known = {"if-none-match": request.validators.etag, "if-modified-since": request.validators.modified}
    return {name: value for name, value in known.items() if value}


async def _body(answer: httpx.Response, fields: Headers, limit: int) -> bytes:
    codings = [word.strip().lower() for line in fields.all("content-encoding") for word in line.split(",")]
    decoder = inflate.decoder([word for word in codings if word], limit)
    pieces: list[bytes] = []
    async for chunk in answer.aiter_raw():
        pieces.extend(decoder.feed(chunk))
    decoder.finish()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _broken(error: Exception, cause: Cause, *, transient: bool) -> Broken:
    text = str(error) or type(error).__name__
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, ssl.SSLError):
            return Broken(Cause.TLS, str(chain.reason or text), transient=False)
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, NoAddress):
        transient = error.passing
    return Broken(cause, text, transient=transient)


def _direct(chosen: Http, guard: AddressGuard, connections: int) -> httpx.AsyncHTTPTransport:
    transport = _transport(chosen, connections)
    # The pool's connector cannot be handed to httpx's transport; the attribute is the same in all of 0.28.
    transport._pool._network_backend = GuardedBackend(guard)  # noqa: SLF001
    return transport


def _proxied(chosen: Http, connections: int) -> Mapping[str, httpx.AsyncHTTPTransport | None] | None:
    """A proxy resolves names itself: the guard sees only what goes out directly."""
    if chosen.proxy is None:
        return None
    if chosen.proxy != "env":
        return {"all://": _transport(chosen, connections, chosen.proxy)}
    proxies = urllib.request.getproxies()
    mounts: dict[str, httpx.AsyncHTTPTransport | None] = {
        f"{scheme}://": _transport(chosen, connections, proxies[scheme])
        for scheme in ("http", "https", "all")
        if proxies.get(scheme)
    }
    direct = [host.strip().lstrip(".") for host in proxies.get("no", "").split(",")]
    return mounts | {f"all://*{host}": None for host in direct if host}


def _transport(chosen: Http, connections: int, proxy: str | None = None) -> httpx.AsyncHTTPTransport:
    try:
        return httpx.AsyncHTTPTransport(
            verify=_trust(chosen),
            http2=chosen.http2,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            proxy=proxy,
            trust_env=False,
        )
    except ImportError as error:
        raise ConfigError("--http2 needs the http2 extra: pip install 'sitemap-crawler[http2]'.") from error
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(
            f"--proxy: is not a proxy URL that can be used ({type(error).__name__})."
        ) from error


def _trust(chosen: Http) -> ssl.SSLContext | bool:
    if chosen.insecure:
        return False
    if chosen.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=chosen.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca-file: {chosen.ca_file} holds no certificates that can be read.") from error
