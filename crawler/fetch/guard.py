"""Where a connection may go: the public internet, what the start URLs resolve to, and what was allowed by name.

A name is resolved once, every address is checked, and the connection is made to the address that was checked:
a name that changes its mind in between changes nothing. TLS and the Host header keep the name.
"""

import socket
import time
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import anyio

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MEMORY: Final = 60.0  # seconds that a resolved name is remembered
TRIED: Final = 4  # addresses of one name that are tried
# Networks whose last 32 bits are an IPv4 address: NAT64 (RFC 6052, RFC 8215), IPv4-compatible (RFC 4291), translated (RFC 2765).
_WRAPPED: Final = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
# Not global, which the standard library does not know of: site-local (RFC 3879), documentation (RFC 9637), segment
# routing (RFC 9602), 6to4 relays (RFC 7526).
_INNER: Final = tuple(map(ip_network, ("fec0::/10", "3fff::/20", "5f00::/16", "192.88.99.0/24")))


class AddressRefused(Exception):  # noqa: N818 - becomes Cause.ADDRESS where it is caught
    """Every address of the host is one that we may not connect to."""


class NoAddress(Exception):  # noqa: N818 - becomes Cause.DNS where it is caught
    """The name does not resolve. `passing` when the name server could not say."""

    def __init__(self, text: str, *, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


def is_public(address: Address) -> bool:
    """Whether the address is globally routable, also the one that is wrapped in it (mapped, 6to4, Teredo, NAT64…)."""
    if isinstance(address, IPv6Address):
        for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
            if inner is not None:
                return is_public(inner)
        if any(address in network for network in _WRAPPED):
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.is_multicast or any(address in network for network in _INNER):
        return False
    return address.is_global


class AddressGuard:
    """Resolves host names and refuses what is not public.

    `start_hosts` are exempt: what they resolve to at first may be connected to from then on. So are `allowed`
    networks (CIDR texts).
    """

    def __init__(
        self,
        start_hosts: Iterable[str] = (),
        allowed: Iterable[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._unseen = {host.strip("[]").lower() for host in start_hosts}
        self._allowed: list[Network] = [ip_network(text, strict=False) for text in allowed]
        self._exempt: set[Address] = set()
        self._clock = clock
        self._remembered: dict[tuple[str, int], tuple[float, list[str]]] = {}

    def permits(self, address: Address) -> bool:
        """Whether a connection to it may be made."""
        return (
            address in self._exempt
            or any(address in network for network in self._allowed)
            or is_public(address)
        )

    async def resolve(self, host: str, port: int) -> list[str]:
        """The permitted addresses of a host, in the resolver's order.

        Raises `NoAddress` when there is none, `AddressRefused` when none is permitted.
        """
        kept = self._remembered.get((host, port))
        if kept and kept[0] > self._clock():
            return kept[1]
        found = await _addresses(host, port)
        if host.lower() in self._unseen:
            self._unseen.discard(host.lower())
            self._exempt.update(found)
        addresses = [str(address) for address in found if self.permits(address)]
        if not addresses:
            raise AddressRefused(f"{host} is {', '.join(map(str, found))}")
        if len(self._remembered) > 10_000:
            self._remembered.clear()
        self._remembered[host, port] = (self._clock() + MEMORY, addresses[:TRIED])
        return addresses[:TRIED]

    def check_literal(self, host: str) -> None:
        """Refuse an address that somebody else, a proxy, would connect to. A name is theirs to resolve.

        Raises `AddressRefused`.
        """
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return
        if host.lower() not in self._unseen and not self.permits(address):
            raise AddressRefused(f"{host} is {address}")

    async def look_up(self, host: str, port: int) -> list[str]:
        """The addresses of a host that was named by the user, a proxy, whatever they are. Raises `NoAddress`."""
        return [str(address) for address in await _addresses(host, port)][:TRIED]


async def _addresses(host: str, port: int) -> list[Address]:
    try:
        return [ip_address(host.partition("%")[0])]
    except ValueError:
        pass
    try:
        infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NoAddress(f"{host}: {error.strerror}", passing=error.errno == socket.EAI_AGAIN) from error
    except UnicodeError as error:
        raise NoAddress(f"{host}: not a host name", passing=False) from error
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))
