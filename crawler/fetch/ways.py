"""How a request gets out: over our own connections, directly or through a proxy, or over a transport of httpx.

What the settings say of proxies and certificates is read here. What may be asked, how long it may take and what the
bytes mean is for `exchange`.
"""

import ssl
import urllib.request
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from crawler import urls
from crawler.errors import ConfigError
from crawler.fetch.guard import AddressGuard
from crawler.fetch.over_httpx import HttpxAnswer, guarded
from crawler.fetch.pool import PORTS, Place, Pool, Proxy
from crawler.settings import Http


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


class Way(Protocol):
    """Sends a GET."""

    async def ask(
        self, url: str, headers: Mapping[str, str], allowance: int, heard: Callable[[int], None]
    ) -> Answering:
        """Send it, and wait for the head of the answer. `allowance`: bytes that may come; `heard` is told of each."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


def way_out(
    chosen: Http, guard: AddressGuard, connections: int, transport: httpx.AsyncBaseTransport | None = None
) -> Way:
    """The way that the settings name; a `transport` of httpx goes before. Raises `ConfigError`."""
    proxies = Proxies(chosen)
    if transport is None and (chosen.http2 or proxies.foreign):
        transport = stock(chosen, guard, connections, proxies.foreign or proxies.any)
    if transport:
        return OverHttpx(transport)
    return OverPool(Pool(guard, Trust(chosen), connections), proxies)


class OverPool:
    """Requests over `Pool`, each written in one piece."""

    def __init__(self, pool: Pool, proxies: "Proxies") -> None:
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


class Proxies:
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


class Trust:
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


class OverHttpx:
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


def stock(chosen: Http, guard: AddressGuard, connections: int, proxy: str | None) -> httpx.AsyncBaseTransport:
    """Httpx's own transport: for HTTP/2, and for proxies that are not plain HTTP."""
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=Trust(chosen)(),
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
