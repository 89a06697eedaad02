"""Chooses the transport: the one that the settings select, or the one passed in by the caller.

Reads the settings for proxies and certificates. Limits, timeouts and decoding are in `exchange`.
"""

import ssl
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.pool import PORTS, ConnectionPool, Destination, Proxy
from crawler.fetch.transport import OwnTransport
from crawler.settings.sections import Http

if TYPE_CHECKING:
    import httpx

    from crawler.fetch.httpx_types import OverHttpx

Transport: TypeAlias = (
    "httpx.AsyncBaseTransport | Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]"
)
"""A transport that replaces the default one, or a function or class that takes that and returns a wrapper."""


def transport_for(
    chosen: Http,
    guard: AddressGuard,
    connections: int,
    given: "Transport | None" = None,
    origins: Collection[str] = (),
    *,
    public: bool = False,
) -> "OwnTransport | OverHttpx":
    """The transport for one crawl. `origins`: those that get the client certificate. Raises `ConfigError`.

    `public`: see `Trust`.
    """
    if chosen.client_key and not chosen.client_cert:
        raise ConfigError("--client-key needs --client-cert.")
    if not (given or chosen.client_cert or chosen.http2) and _uses_ours(chosen, Proxies(chosen)):
        return _ours(chosen, guard, connections, public=public)
    import httpx  # noqa: PLC0415 - takes a twelfth of a start, and is seldom needed

    from crawler.fetch.httpx_types import ByOrigin, OverHttpx  # noqa: PLC0415 - as above

    if isinstance(given, httpx.AsyncBaseTransport):
        return OverHttpx(_foreign(given, chosen, guard))
    named = _named(chosen, guard, connections, public=public)
    if chosen.client_cert:
        identified = _named(chosen, guard, connections, identified=True)
        named = ByOrigin(lambda origin: origin in origins, {True: identified, False: named})
    return OverHttpx(given(named) if given else named)


def _uses_ours(chosen: Http, proxies: "Proxies") -> bool:
    return chosen.transport == "own" and not proxies.foreign


def _ours(
    chosen: Http, guard: AddressGuard, connections: int, *, identified: bool = False, public: bool = False
) -> OwnTransport:
    trust = Trust(chosen, identified=identified, public=public)
    return OwnTransport(ConnectionPool(guard, trust, connections), Proxies(chosen).destination)


def _foreign(
    given: "httpx.AsyncBaseTransport", chosen: Http, guard: AddressGuard
) -> "httpx.AsyncBaseTransport":
    from crawler.fetch import httpx_transport  # noqa: PLC0415 - brings httpcore, which is seldom needed

    if httpx_transport.speaks_http2(given):
        raise ConfigError("A transport with HTTP/2 enabled cannot be passed in: use the setting http2.")
    if chosen.http2 or chosen.proxy or chosen.client_cert:
        raise ConfigError(
            "http2, proxy and client_cert have no effect on a transport that is passed in: leave them unset."
        )
    return httpx_transport.Foreign(given, guard)


def _named(
    chosen: Http, guard: AddressGuard, connections: int, *, identified: bool = False, public: bool = False
) -> "httpx.AsyncBaseTransport":
    """The transport that the settings select. `identified`: with the client certificate.

    `public`: see `Trust`.
    """
    from crawler.fetch.httpx_types import ByOrigin, PoolTransport  # noqa: PLC0415 - as above

    proxies = Proxies(chosen)
    uses_ours = _uses_ours(chosen, proxies)

    def ours() -> PoolTransport:
        return PoolTransport(_ours(chosen, guard, connections, identified=identified, public=public))

    if uses_ours and not chosen.http2:
        return ours()
    from crawler.fetch.httpx_transport import ByAlpn, GuardedTransport  # noqa: PLC0415 - as above

    def of_httpx(*, http2: bool) -> ByOrigin:
        # HTTP/1.1 and HTTP/2 need an SSL context each, as httpcore stores the ALPN protocols there.
        trust = Trust(chosen, identified=identified, public=public)()
        return ByOrigin(
            proxies.url,
            {
                url: GuardedTransport(trust, guard, connections, url, http2=http2)
                for url in (None, *proxies.named)
            },
        )

    http1 = ours() if uses_ours else of_httpx(http2=False)
    return ByAlpn(of_httpx(http2=True), http1) if chosen.http2 else http1


class Proxies:
    """Which proxy serves an origin.

    Proxies resolve names themselves: the guard checks only direct connections.
    """

    def __init__(self, chosen: Http) -> None:
        self._from_environment = chosen.proxy == "env"
        if chosen.proxy is None:
            self._urls: dict[str, str] = {}
        elif self._from_environment:
            from urllib.request import getproxies  # noqa: PLC0415 - takes long to import, and is seldom needed

            self._urls = getproxies()
        else:
            self._urls = {"all": chosen.proxy}
        self.named = {url for scheme, url in self._urls.items() if scheme in {"http", "https", "all"}}
        self.foreign = any(not url.startswith("http://") for url in self.named)  # not supported by `pool`
        try:
            self._proxies = {} if self.foreign else {url: Proxy.of(url) for url in self.named}
        except ValueError as error:
            raise ConfigError("--proxy: is not a usable proxy URL.") from error

    def url(self, origin: str) -> str | None:
        """The URL of the proxy for an origin."""
        parts = urlsplit(origin)
        url = self._urls.get(parts.scheme) or self._urls.get("all")
        if url and self._from_environment:
            from urllib.request import proxy_bypass  # noqa: PLC0415 - as above

            url = None if proxy_bypass(parts.hostname or "") else url
        return url

    def destination(self, origin: str) -> Destination:
        parts, url = urlsplit(origin), self.url(origin)
        proxy = self._proxies[url] if url else None
        return Destination(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme], proxy)


class Trust:
    """The trusted certificates, and our own if the server asks for one; loaded on first use.

    An invalid file is reported at once. `public`: the public authorities are trusted, too, where `--ca-file`
    names others.
    """

    def __init__(self, chosen: Http, *, identified: bool = False, public: bool = False) -> None:
        self._insecure, self._file, self._public = chosen.insecure, chosen.ca_file, public
        self._own = (chosen.client_cert, chosen.client_key) if identified else (None, None)
        if self._file is not None or identified:
            _ = self._context

    def __call__(self) -> ssl.SSLContext:
        return self._context

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = self._trusting()
        cert, key = self._own
        if cert is not None:
            _identify(context, cert, key)
        return context

    def _trusting(self) -> ssl.SSLContext:
        if self._insecure:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        import certifi  # noqa: PLC0415 - slow to import, and only needed for https

        try:
            first = certifi.where() if self._public else self._file
            context = ssl.create_default_context(cafile=first or certifi.where())
            if self._file is not None and self._public:
                context.load_verify_locations(self._file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--ca-file: {self._file} contains no readable certificates.") from error
        return context


def _identify(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    """Loads the client certificate. Never prompts for a passphrase, as the program may run unattended."""
    try:
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        why = (
            "the key does not belong to it"
            if error.reason == "KEY_VALUES_MISMATCH"
            else "it and its key must be PEM, without a passphrase"
        )
        raise ConfigError(f"--client-cert: {cert} cannot be used: {why}.") from None
    except OSError as error:
        raise ConfigError(f"--client-cert: {key or cert} cannot be read ({error.strerror}).") from error
