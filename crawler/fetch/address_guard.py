"""The SSRF guard: which addresses and ports may be connected to.

Allowed are public addresses, the addresses that the start URLs' hosts resolve to (at the ports named), and
those given by `--allow-address`. A name is resolved once, every address is checked, and the connection goes
to the checked address, so DNS rebinding has no effect. TLS and the Host header still use the name.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

import anyio

from crawler.fetch.bad_ports import BAD_PORTS
from crawler.parse import url as urls
from crawler.settings.values import network_and_port

Address = IPv4Address | IPv6Address

MEMORY: Final = 60.0  # seconds that a resolved name is remembered
TRIED: Final = 4  # most addresses of one name to try
WEB: Final = frozenset({80, 443})

# Networks whose last 32 bits are an IPv4 address: NAT64 (RFC 6052), IPv4-compatible (RFC 4291), translated
# (RFC 2765).
_WRAPPED: Final = tuple(map(ip_network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
# Not global, though `is_global` says so: site-local (RFC 3879), documentation (RFC 9637), segment routing
# (RFC 9602), 6to4 relays (RFC 7526), and local-use NAT64, where the position of the IPv4 part varies (RFC
# 8215).
_INNER: Final = tuple(
    map(ip_network, ("fec0::/10", "3fff::/20", "5f00::/16", "192.88.99.0/24", "64:ff9b:1::/48"))
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # before an IPv4 address, in any IPv6 network (RFC 5214)


class AddressRefused(Exception):  # noqa: N818
    """Connecting to the port, or to any address of the host, is not allowed."""


class NoAddress(Exception):  # noqa: N818
    """The name does not resolve. `transient`: the name server failed, which may be temporary."""

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


def is_public(address: Address) -> bool:
    """Whether the address, and each one embedded in it (mapped, 6to4, Teredo, NAT64…), is global."""
    if isinstance(address, IPv6Address):
        wrapped = list(_wrapped_in(address))
        if wrapped:
            return all(map(is_public, wrapped))
    if address.is_multicast or any(address in network for network in _INNER):
        return False
    return address.is_global


def _wrapped_in(address: IPv6Address) -> Iterator[IPv4Address]:
    for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
        if inner is not None:
            yield inner
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _WRAPPED):
        yield last
    if int(address) >> 32 & 0xFFFFFFFF in _ISATAP and not is_public(last):
        yield last


class AddressGuard:
    """Resolves host names, and refuses addresses that are not public and ports reserved for other protocols.

    The host of a start URL is exempt: the addresses of its first resolution stay allowed for that name, at
    the ports named. `allow_hosts` (host, or host:port) add ports for it; 80 and 443 are allowed together, as
    sites move from one to the other. `allowed` networks (in CIDR notation, optionally with `:port`) are
    allowed for every name.
    """

    def __init__(
        self,
        start_urls: Iterable[str] = (),
        allowed: Iterable[str] = (),
        allow_hosts: Iterable[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        starts = list(start_urls)
        self._starts = frozenset(_name(urls.host(url)) for url in starts)
        self._ports = frozenset(_named_ports([*starts, *(f"http://{host}" for host in allow_hosts)]))
        self._allowed = [network_and_port(text) for text in allowed]
        # By start host: the addresses of its first resolution.
        self._first: dict[str, frozenset[Address]] = {}
        self._clock = clock
        self._remembered: dict[tuple[str, int], tuple[float, list[str]]] = {}

    async def resolve(self, host: str, port: int) -> list[str]:
        """The allowed addresses of a host, in the resolver's order.

        Raises `NoAddress` if the host has no address, `AddressRefused` if the port or every address is not
        allowed.
        """
        kept = self._remembered.get((host, port))
        if kept and kept[0] > self._clock():
            return kept[1]
        _check_port(port)
        found = await _addresses(host, port)
        if _name(host) in self._starts:
            self._remember_start(_name(host), port, found)
        addresses = [str(address) for address in found if self._permits(host, port, address)]
        if not addresses:
            raise AddressRefused(self._refusal(host, port, found))
        if len(self._remembered) > 10_000:
            self._remembered.clear()
        self._remembered[host, port] = (self._clock() + MEMORY, addresses[:TRIED])
        return addresses[:TRIED]

    def _remember_start(self, name: str, port: int, found: list[Address]) -> None:
        """Remember the addresses of the first resolution of a start host.

        A name with both public and private addresses may be an attack on the local network: no address is
        exempt then.
        """
        private = [address for address in found if not is_public(address)]
        first = self._first.setdefault(name, frozenset(private if len(private) == len(found) else ()))
        unforeseen = [
            address for address in private if address not in first and not self._open_to_all(port, address)
        ]
        if unforeseen and len(private) < len(found):
            raise AddressRefused(
                f"{name} resolves to both public and private addresses ({', '.join(map(str, found))}); "
                "--allow-address allows the private ones"
            )

    def _permits(self, host: str, port: int, address: Address) -> bool:
        if self._open_to_all(port, address):
            return True
        return address in self._first.get(_name(host), ()) and self._is_named(host, port)

    def _open_to_all(self, port: int, address: Address) -> bool:
        """Whether the address is allowed for every name."""
        return is_public(address) or any(
            address in network and only in (None, port) for network, only in self._allowed
        )

    def _is_named(self, host: str, port: int) -> bool:
        return (_name(host), port) in self._ports

    def _refusal(self, host: str, port: int, found: Iterable[Address]) -> str:
        listed = ", ".join(map(str, found))
        if _name(host) in self._starts and not self._is_named(host, port):
            return f"{host} is {listed}, and port {port} is not allowed (allow-host {host}:{port} allows it)"
        return f"{host} is {listed}"

    def check_literal(self, host: str, port: int) -> None:
        """Check the port, and a literal address, before a proxy or foreign transport connects.

        Names are resolved by the proxy or the transport, so their addresses cannot be checked here. Raises
        `AddressRefused`.
        """
        _check_port(port)
        if _name(host) in self._starts and self._is_named(host, port):
            return
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            if _name(host).rpartition(".")[2] == "localhost":  # names of the machine itself (RFC 6761 6.3)
                raise AddressRefused(f"{host} is the machine that makes the connection") from None
            return
        if not self._open_to_all(port, address):
            raise AddressRefused(self._refusal(host, port, [address]))

    async def look_up(self, host: str, port: int) -> list[str]:
        """The addresses of a proxy, unchecked, since the user configured it. Raises `NoAddress`."""
        return [str(address) for address in await _addresses(host, port)][:TRIED]


def _check_port(port: int) -> None:
    if port in BAD_PORTS:
        raise AddressRefused(
            f"port {port} is reserved for another protocol (a bad port of the Fetch Standard)"
        )


def _name(host: str) -> str:
    """A host in lower case, addresses without brackets and names without a trailing dot."""
    return host.strip("[]").lower().removesuffix(".")


def _named_ports(places: Iterable[str]) -> Iterator[tuple[str, int]]:
    for url in places:
        with suppress(ValueError):  # an invalid --allow-host
            port = urls.port(url)
            for each in WEB if port in WEB else {port}:
                yield _name(urls.host(url)), each


async def _addresses(host: str, port: int) -> list[Address]:
    try:
        return [ip_address(host.partition("%")[0])]
    except ValueError:
        pass
    try:
        infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NoAddress(f"{host}: {error.strerror}", transient=error.errno == socket.EAI_AGAIN) from error
    except UnicodeError as error:
        raise NoAddress(f"{host}: not a valid host name", transient=False) from error
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))
