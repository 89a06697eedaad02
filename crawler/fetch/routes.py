"""Chooses the transport: the one that the settings select, or the one passed in by the caller.

Reads the settings for proxies and certificates. Limits, timeouts and decoding are in `exchange`.
"""

import ssl
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.pool import PORTS, Destination, Pool, Proxy
from crawler.fetch.transport import PoolTransport
from crawler.settings.sections import Http

Transport: TypeAlias = (
    httpx.AsyncBaseTransport | Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]
)
"""A transport that replaces the default one, or a function (or class) that takes the default one and returns a wrapper."""


def transport_for(
    chosen: Http, guard: AddressGuard, connections: int, given: Transport | None = None
) -> httpx.AsyncBaseTransport:
    """The transport for one crawl. Raises `ConfigError`."""
    if isinstance(given, httpx.AsyncBaseTransport):
        return _foreign(given, chosen, guard)
    named = _named(chosen, guard, connections)
    return given(named) if given else named


def _foreign(given: httpx.AsyncBaseTransport, chosen: Http, guard: AddressGuard) -> httpx.AsyncBaseTransport:
    from crawler.fetch import httpx_transport  # noqa: PLC0415 - brings httpcore, which is seldom needed

    if httpx_transport.speaks_http2(given):
        raise ConfigError("A transport with HTTP/2 enabled cannot be passed in: use the setting http2.")
    if chosen.http2 or chosen.proxy:
        raise ConfigError(
            "http2 and proxy have no effect on a transport that is passed in: leave them unset."
        )
    return httpx_transport.Foreign(given, guard)


def _named(chosen: Http, guard: AddressGuard, connections: int) -> httpx.AsyncBaseTransport:
    """The transport that the settings select."""
    proxies = Proxies(chosen)

    def pooled() -> httpx.AsyncBaseTransport:
        return PoolTransport(Pool(guard, Trust(chosen), connections), proxies.destination)

    if not chosen.http2 and not proxies.foreign:
        return pooled()
    from crawler.fetch import httpx_transport  # noqa: PLC0415 - as above

    def stock(*, http2: bool) -> httpx.AsyncBaseTransport:
        # Each has its own SSL context, since httpx stores its ALPN protocols there.
        proxy = proxies.foreign or proxies.any
        return httpx_transport.stock(Trust(chosen)(), guard, connections, proxy, http2=http2)

    http1 = stock(http2=False) if proxies.foreign else pooled()
    return httpx_transport.ByAlpn(stock(http2=True), http1) if chosen.http2 else http1


class Proxies:
    """Which proxy serves an origin. Proxies resolve names themselves: the guard checks only direct connections."""

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

    def destination(self, site: str) -> Destination:
        """The destination of requests to an origin."""
        parts = urlsplit(site)
        host = parts.hostname or ""
        url = self._urls.get(parts.scheme) or self._urls.get("all")
        if url and self._from_environment:
            from urllib.request import proxy_bypass  # noqa: PLC0415 - as above

            url = None if proxy_bypass(host) else url
        return Destination(
            parts.scheme, host, parts.port or PORTS[parts.scheme], self._proxies[url] if url else None
        )


class Trust:
    """The trusted certificates, loaded on first use. An invalid file is reported at once."""

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
