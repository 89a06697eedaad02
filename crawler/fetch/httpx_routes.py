"""The transports with httpx's types: a caller's, ours for a caller's wrapper, and httpx's own.

`routes` imports this only if one of them is needed.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import httpx

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.httpx_requests import PoolTransport
from crawler.fetch.routes import Proxies, Transport, Trust, own_transport
from crawler.settings.sections import Http


def transport_for(
    chosen: Http,
    guard: AddressGuard,
    connections: int,
    given: Transport | None,
    origins: Collection[str],
    *,
    public: bool,
) -> httpx.AsyncBaseTransport:
    """See `routes.transport_for`."""
    if isinstance(given, httpx.AsyncBaseTransport):
        return _foreign(given, chosen, guard)
    named = _named(chosen, guard, connections, public=public)
    if chosen.client_cert:
        identified = _named(chosen, guard, connections, identified=True)
        named = ByOrigin(lambda origin: origin in origins, {True: identified, False: named})
    return given(named) if given else named


class ByOrigin(httpx.AsyncBaseTransport):
    """Chooses a transport by origin: a client certificate is for the site only, a proxy not for all."""

    def __init__(
        self, choose: Callable[[str], Hashable], transports: Mapping[Any, httpx.AsyncBaseTransport]
    ) -> None:
        """`choose` gives the key in `transports` for an origin."""
        self._choose, self._transports = choose, transports

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        chosen = self._choose(f"{request.url.scheme}://{request.url.netloc.decode('ascii')}")
        return await self._transports[chosen].handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.aclose()


def _foreign(given: httpx.AsyncBaseTransport, chosen: Http, guard: AddressGuard) -> httpx.AsyncBaseTransport:
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
) -> httpx.AsyncBaseTransport:
    """The transport that the settings select. `identified`: with the client certificate.

    `public`: see `Trust`.
    """
    proxies = Proxies(chosen)
    uses_ours = chosen.transport == "own" and not proxies.foreign

    def ours() -> httpx.AsyncBaseTransport:
        return PoolTransport(
            own_transport(chosen, guard, connections, proxies, identified=identified, public=public)
        )

    if uses_ours and not chosen.http2:
        return ours()
    from crawler.fetch.httpx_transport import ByAlpn, GuardedTransport  # noqa: PLC0415 - as above

    def of_httpx(*, http2: bool) -> httpx.AsyncBaseTransport:
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
