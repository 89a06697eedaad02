"""A pool of keep-alive connections, opened through the address guard, with TLS or a proxy, and reused.

The newest idle connection to a destination is used first, found without a scan. If the server has closed it
meanwhile, that does not count as an attempt (RFC 9112 9.3.1). Takes bytes and returns an `IncomingResponse`.
"""

import base64
import errno
import os
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import anyio
from msgspec import Struct

from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ClosedEarly, ConnectionLost, IncomingResponse, MalformedResponse, Wire
from crawler.model.log import log

PORTS: Final = {"http": 80, "https": 443}
REQUEST_TIMEOUT: Final = 408  # status code: Request Timeout
CONNECTING: Final = 5.0  # seconds to try one address if there is another
MAX_PROXY_HEAD: Final = 65_536  # bytes of a proxy's response to CONNECT
FULL_PAUSE: Final = 0.5  # seconds between two attempts to get a file descriptor


class NoConnection(Exception):  # noqa: N818
    """No address of the host accepted a connection, or the TLS handshake failed."""


class Proxy(Struct, frozen=True):
    """An HTTP proxy, reached without TLS."""

    host: str
    port: int
    authorization: str | None = None

    @classmethod
    def of(cls, url: str) -> "Proxy":
        """Parse `http://user:password@host:port`. Raises `ValueError`."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("not an http proxy")
        secret = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            secret = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.hostname, parts.port or 80, secret)


class Destination(Struct, frozen=True):
    """The destination of a connection. Connections are reused only for an equal one."""

    scheme: str
    host: str  # an IPv6 address without brackets
    port: int
    proxy: Proxy | None = None


class ConnectionPool:
    """Connections to many destinations."""

    def __init__(self, guard: AddressGuard, trust: Callable[[], ssl.SSLContext], kept: int) -> None:
        """`kept`: most idle connections."""
        self._guard, self._trust, self._kept = guard, trust, kept
        self._idle: dict[Destination, list[Wire]] = {}
        self._order: OrderedDict[Wire, Destination] = OrderedDict()  # idle connections, oldest first

    async def ask(
        self,
        destination: Destination,
        head: bytes,
        max_bytes: int,
        on_progress: Callable[[int], None],
        *,
        fresh: bool = False,
        bodiless: bool = False,
    ) -> IncomingResponse:
        """Send a request, with the body after its head if it has one, and read the head of the response.

        `fresh`: on a new connection. A request that must not be sent twice cannot use an idle one, which the
        server may have closed (RFC 9110 9.2.2). `bodiless`: the request is a HEAD. `max_bytes`: most bytes of
        the response; `on_progress` is called after each transfer. Raises what `IncomingResponse.begin`
        raises, `NoConnection`, `NoAddress` and `AddressRefused`.
        """
        while not fresh and (wire := self._reusable(destination)) is not None:
            wire.on_progress = on_progress
            try:
                answer = await self._exchange(wire, destination, head, max_bytes, bodiless=bodiless)
            except ClosedEarly:
                continue  # the server closed it while it was idle
            if answer.status != REQUEST_TIMEOUT:
                return answer
            await answer.aclose()  # refers to the idle time before our request (RFC 9110 15.5.9)
        wire = await self._open(destination, on_progress)
        return await self._exchange(wire, destination, head, max_bytes, bodiless=bodiless)

    async def _exchange(
        self, wire: Wire, destination: Destination, head: bytes, max_bytes: int, *, bodiless: bool
    ) -> IncomingResponse:
        answer = IncomingResponse(
            wire,
            max_bytes,
            lambda wire, keeps: self._release(wire, destination, keeps=keeps),
            first=wire.served == 0,
            bodiless=bodiless,
        )
        wire.served += 1
        try:
            try:
                await wire.write(head)
            except ConnectionLost as error:
                raise ClosedEarly(str(error)) from error
            await answer.begin()
        except BaseException:
            answer.drop()
            raise
        return answer

    def _reusable(self, destination: Destination) -> Wire | None:
        idle = self._idle.get(destination)
        while idle:
            wire = idle.pop()
            del self._order[wire]
            if wire.is_reusable():
                return wire
            wire.close()
        return None

    def _release(self, wire: Wire, destination: Destination, *, keeps: bool) -> None:
        if not keeps:
            wire.close()
            return
        self._idle.setdefault(destination, []).append(wire)
        self._order[wire] = destination
        if len(self._order) > self._kept:
            oldest, where = self._order.popitem(last=False)
            self._idle[where].remove(oldest)
            if not self._idle[where]:
                del self._idle[where]
            oldest.close()

    def close(self) -> None:
        for wire in self._order:
            wire.close()
        self._order.clear()
        self._idle.clear()

    # -- opening -------------------------------------------------------------------------------------------

    async def _open(self, destination: Destination, on_progress: Callable[[int], None]) -> Wire:
        if destination.proxy:
            self._guard.check_literal(destination.host, destination.port)  # the proxy resolves names
            port = destination.proxy.port
            addresses = await self._guard.look_up(destination.proxy.host, port)
        else:
            port = destination.port
            addresses = await self._guard.resolve(destination.host, port)
        try:
            wire = Wire(await _connect(addresses, port), on_progress)
        except NoConnection as error:
            raise NoConnection(f"the proxy: {error}" if destination.proxy else str(error)) from error
        try:
            if destination.proxy and destination.scheme == "https":
                await _tunnel(wire, destination, destination.proxy)
            if destination.scheme == "https":
                await wire.secure(self._trust(), destination.host)
        except ssl.SSLError as error:
            wire.close()
            raise NoConnection(str(error)) from error
        except BaseException:
            wire.close()
            raise
        return wire


async def _connect(addresses: list[str], port: int) -> socket.socket:
    """Connect to the first address that accepts. Raises `NoConnection`."""
    *others, last = addresses
    for address in others:
        with anyio.move_on_after(CONNECTING):
            try:
                return await _connect_to(address, port)
            except OSError:
                continue
    try:
        return await _connect_to(last, port)
    except OSError as error:
        raise NoConnection(error.strerror or str(error)) from error


async def _connect_to(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = await _socket(family)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            made.connect((address, port))
        except BlockingIOError:
            await anyio.wait_writable(made)
            _check(made)
    except BaseException:
        made.close()
        raise
    return made


async def _socket(family: socket.AddressFamily) -> socket.socket:
    """A socket; waits until there is one, within the time of the request."""
    while True:
        try:
            return socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE}:
                raise
        log.warning("no file descriptor is left; waiting for one")
        await anyio.sleep(FULL_PAUSE)


def _check(connecting: socket.socket) -> None:
    """Raise `OSError` if the connection failed."""
    if number := connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(number, os.strerror(number))


async def _tunnel(wire: Wire, destination: Destination, proxy: Proxy) -> None:
    """Open a tunnel through the proxy with CONNECT (RFC 9110 9.3.6).

    Raises `NoConnection`, `MalformedResponse`, `ConnectionLost`.
    """
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    place = f"{host}:{destination.port}"
    secret = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    await wire.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{secret}\r\n".encode())
    words = b""
    while b"\r\n\r\n" not in words:
        data = await wire.read()
        words += data
        if not data or len(words) > MAX_PROXY_HEAD:
            raise NoConnection("the proxy did not respond to CONNECT")
    version, _, rest = words.partition(b"\r\n")[0].partition(b" ")
    if not version.startswith(b"HTTP/1.") or not words.endswith(b"\r\n\r\n"):
        raise MalformedResponse("the proxy's response to CONNECT is not HTTP")
    if not rest.startswith(b"2"):
        raise NoConnection(f"the proxy refused: {rest[:60].decode('latin-1')}")
