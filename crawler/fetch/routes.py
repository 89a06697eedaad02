"""How a request gets out: over our own connections, directly or through a proxy, or over a transport of httpx.

What the settings say of proxies and certificates is read here. What may be asked, how long it may take and what the
bytes mean is for `exchange`.
"""

import ssl
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.pool import PORTS, Place, Pool, Proxy
from crawler.fetch.transport import Answering, Causes, Way
from crawler.parse import url as urls
from crawler.settings.sections import Http

if TYPE_CHECKING:
    import httpx


def way_out(
    chosen: Http, guard: AddressGuard, connections: int, transport: "httpx.AsyncBaseTransport | None" = None
) -> Way:
    """The way that the settings name; a `transport` of httpx goes before. Raises `ConfigError`."""
    proxies, trust = Proxies(chosen), Trust(chosen)
    if not transport and not chosen.http2 and not proxies.foreign:
        return OverPool(Pool(guard, trust, connections), proxies)
    from crawler.fetch import httpx_transport  # noqa: PLC0415 - takes a quarter of the time to start, and is seldom needed

    if transport:
        if httpx_transport.speaks_http2(transport):
            raise ConfigError("A transport with HTTP/2 enabled cannot be passed in: use the setting http2.")
        return httpx_transport.OverHttpx(transport)

    def stock(*, http2: bool) -> httpx_transport.OverHttpx:
        # Each with certificates of its own: httpx writes into them which protocols it speaks.
        proxy = proxies.foreign or proxies.any
        return httpx_transport.stock(Trust(chosen)(), guard, connections, proxy, http2=http2)

    http1 = stock(http2=False) if proxies.foreign else OverPool(Pool(guard, trust, connections), proxies)
    return httpx_transport.ByAlpn(stock(http2=True), http1) if chosen.http2 else http1


class OverPool:
    """Requests over `Pool`, each written in one piece."""

    causes: Causes = ()

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
            from urllib.request import getproxies  # noqa: PLC0415 - takes long to import, and is seldom needed

            self._urls = getproxies()
        else:
            self._urls = {"all": chosen.proxy}
        named = {url for scheme, url in self._urls.items() if scheme in {"http", "https", "all"}}
        self.any = next(iter(named), None)
        self.foreign = next((url for url in named if not url.startswith("http://")), None)
        try:
            self._proxies = {} if self.foreign else {url: Proxy.of(url) for url in named}
        except ValueError as error:
            raise ConfigError("--proxy: is not a usable proxy URL.") from error

    def place(self, site: str) -> Place:
        """Where a request to an origin goes."""
        parts = urlsplit(site)
        host = parts.hostname or ""
        url = self._urls.get(parts.scheme) or self._urls.get("all")
        if url and self._from_environment:
            from urllib.request import proxy_bypass  # noqa: PLC0415 - as above

            url = None if proxy_bypass(host) else url
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
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        import certifi  # noqa: PLC0415 - takes long to import, for those who meet no https

        try:
            return ssl.create_default_context(cafile=self._file or certifi.where())
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--ca-file: {self._file} contains no readable certificates.") from error
