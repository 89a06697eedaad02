"""One HTTP/1.1 connection: sends a request, reads the response, and can be reused or not (RFC 9112).

llhttp (`httptools`) parses the bytes strictly. This module checks for stray bytes: if any arrive after a
complete body, or while no request is pending, they belong to no response (RFC 9112 9.2) and the connection is
closed. Pooling is in `pool`; of the body, only its end is interpreted.
"""

import socket
import ssl
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from crawler.fetch.readiness import readiness

READ: Final = 65_536  # bytes read from a socket at once
# Bytes of status line and fields, including any informational responses before them.
MAX_HEAD: Final = 256 * 1024
MAX_FIELDS: Final = 1_000  # header fields
# Bytes of trailer fields, and consecutive bytes of anything else that is not body.
MAX_TRAILER: Final = 65_536
# Fields that determine where a body ends.
FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
MAX_REASON: Final = 1_000  # bytes of a reason phrase that are kept
DRAINED: Final = 65_536  # bytes of an unwanted body to read so that the connection can be reused
DRAINING: Final = 1.0  # seconds to spend on that
READS_PER_YIELD: Final = 16  # consecutive reads before yielding to other tasks


class MalformedResponse(Exception):  # noqa: N818
    """The received bytes are not valid HTTP."""


class HeadTooLarge(Exception):  # noqa: N818
    """The header section exceeds a limit, in bytes or in fields."""


class ResponseTooLarge(Exception):  # noqa: N818
    """A response exceeded its limit of bytes on the wire."""


class ConnectionLost(Exception):  # noqa: N818
    """The connection ended in the middle of the response."""


class ClosedEarly(ConnectionLost):
    """The connection ended before the first byte of the response, by FIN, RST or TLS close."""


def ignore_progress(_: int) -> None:
    """A callback that does nothing."""


class Wire:
    """A non-blocking socket, with or without TLS, on any event loop that anyio supports."""

    __slots__ = ("_readiness", "_reads", "_socket", "on_progress", "served")

    def __init__(
        self, connected: socket.socket, on_progress: Callable[[int], None] = ignore_progress
    ) -> None:
        """`on_progress` is called after each transfer, with the number of bytes received."""
        self._socket, self.on_progress, self._reads = connected, on_progress, 0
        self._readiness = readiness(connected.fileno())
        self.served = 0  # responses received so far

    async def read(self) -> bytes:
        """Read at least one byte; empty at the end of the stream. Raises `ConnectionLost`."""
        self._reads += 1
        if self._reads % READS_PER_YIELD == 0:
            await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self._socket.recv(READ)
            except (BlockingIOError, ssl.SSLWantReadError):
                await self._readiness.wait()
            except ssl.SSLWantWriteError:
                await anyio.wait_writable(self._socket)
            except OSError as error:
                raise ConnectionLost(error.strerror or type(error).__name__) from error
            else:
                self.on_progress(len(data))
                return data

    async def write(self, data: bytes) -> None:
        """Send all of `data`, then wait until there is something to read. Raises `ConnectionLost`."""
        while data:
            try:
                data = data[self._socket.send(data) :]
                self.on_progress(0)
            except (BlockingIOError, ssl.SSLWantWriteError):
                await anyio.wait_writable(self._socket)
            except ssl.SSLWantReadError:
                await self._readiness.wait()
            except OSError as error:
                raise ConnectionLost(error.strerror or type(error).__name__) from error
        await self._readiness.wait()

    async def secure(self, context: ssl.SSLContext, name: str) -> "Wire":
        """Start TLS, and verify the certificate for `name`. Raises `ssl.SSLError`, `ConnectionLost`."""
        wrapped = context.wrap_socket(self._socket, server_hostname=name, do_handshake_on_connect=False)
        self._socket = wrapped
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                await self._readiness.wait()
            except ssl.SSLWantWriteError:
                await anyio.wait_writable(wrapped)
            except ssl.SSLError:
                raise
            except OSError as error:
                raise ConnectionLost(error.strerror or type(error).__name__) from error
            else:
                self.on_progress(0)
                return self

    def is_reusable(self) -> bool:
        """Whether the idle connection can be reused: it is open, and no unexpected bytes have arrived."""
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """Close the socket immediately."""
        self._readiness.close()
        self._socket.close()


class IncomingResponse:
    """A response being received: `begin` reads the head, `read` the body in pieces."""

    __slots__ = (
        "_bodiless", "_complete", "_done", "_first", "_has_head", "_has_length", "_has_surplus",
        "_is_informational", "_is_reading", "_keep_alive", "_max_bytes", "_overhead", "_parser",
        "_pieces", "_received", "_trailer", "_wire", "fields", "reason", "status",
    )  # fmt: skip

    def __init__(
        self,
        wire: Wire,
        max_bytes: int,
        done: Callable[[Wire, bool], None],
        *,
        first: bool = True,
        bodiless: bool = False,
    ) -> None:
        """`max_bytes`: most bytes to receive.

        `done` is called once, with whether the connection can be reused. `first`: the first response on this
        connection. Stray bytes after a later one are an error: they make it unclear which response belongs to
        the request. `bodiless`: the response to a HEAD, which ends with its head (RFC 9110 9.3.2). Its
        connection is not reused: some servers send a body all the same.
        """
        self._bodiless = bodiless
        self.status, self.reason = 0, b""
        self.fields: list[tuple[bytes, bytes]] = []  # as received
        self._wire, self._max_bytes, self._done, self._first = wire, max_bytes, done, first
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._received = 0
        self._overhead = self._trailer = 0  # bytes since the last byte of the body; bytes of trailer fields
        self._has_head = self._is_informational = self._has_length = self._is_reading = False
        self._complete = self._keep_alive = self._has_surplus = False

    async def begin(self) -> None:
        """Read up to the end of the head. Raises `MalformedResponse`, `HeadTooLarge`, `ConnectionLost`."""
        while not self._has_head:
            await self._advance()
            if (self._received > MAX_HEAD and not self._has_head) or len(self.fields) > MAX_FIELDS:
                raise HeadTooLarge(f"more than {MAX_HEAD:,} bytes or {MAX_FIELDS:,} header fields")
        self._overhead = 0

    def whole(self) -> bytes | None:
        """The body, if all of it was received; `read` returns it as well."""
        if not self._complete:
            return None
        self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    async def read(self) -> bytes:
        """The next piece of the body, without its transfer coding; empty at the end.

        Raises `MalformedResponse`, `ConnectionLost` or `ResponseTooLarge`.
        """
        self._is_reading = True
        while not self._pieces and not self._complete:
            await self._advance()
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def aclose(self) -> None:
        """Finish the response, whether or not its body was read to the end."""
        if self._parser is None:
            return
        if not self._complete and not self._is_reading:
            await self._drain()
        self._parser = None  # breaks the reference cycle
        self._done(self._wire, self._complete and self._keep_alive and not self._has_surplus)

    async def _drain(self) -> None:
        """Read and discard the rest of a short body, so that the connection can be reused."""
        end = self._received + DRAINED
        try:
            with anyio.move_on_after(DRAINING):
                while not self._complete and self._received < end:
                    await self._advance()
        except (MalformedResponse, ConnectionLost, ResponseTooLarge):
            pass
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Finish a failed response: its connection is not reused."""
        if self._parser is not None:
            self._parser = None
            self._done(self._wire, False)

    async def _advance(self) -> None:
        try:
            data = await self._wire.read()
        except ConnectionLost as error:
            if self._received:
                raise
            raise ClosedEarly(str(error)) from error
        parser = self._parser
        if not data or parser is None:
            self._end()
            return
        self._received += len(data)
        if self._received > self._max_bytes:
            raise ResponseTooLarge(f"more than {self._max_bytes:,} bytes received")
        try:
            parser.feed_data(data)
        except HttpParserUpgrade as error:
            raise MalformedResponse("unexpected switch to another protocol") from error
        except HttpParserError as error:
            if not self._complete:
                raise MalformedResponse(str(error) or type(error).__name__) from error
            self._has_surplus = True
        self._check_framing(len(data))
        if self._has_surplus and not self._first:
            raise MalformedResponse("unexpected bytes after a response on a reused connection")

    def _check_framing(self, count: int) -> None:
        """Limit bytes that are not body, `count` more: llhttp copies an unfinished field at each read."""
        self._overhead = 0 if self._pieces or self._complete or not self._has_head else self._overhead + count
        if max(self._overhead, self._trailer) > MAX_TRAILER:
            raise ResponseTooLarge(f"more than {MAX_TRAILER:,} bytes of trailer fields or chunk extensions")

    def _end(self) -> None:
        if self._has_head and not self._has_length:
            self._complete = True  # the end of the connection ends the body (RFC 9112 6.3, rule 8)
        elif self._received:
            raise ConnectionLost("connection closed in the middle of the response")
        else:
            raise ClosedEarly("connection closed without a response")

    # -- callbacks of llhttp -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The start of a message; a second one was not requested."""
        self._has_surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or a trailer field, which is only counted."""
        if self._has_head:
            self._trailer += len(name) + len(value)
        else:
            self.fields.append((name, value))

    def on_status(self, reason: bytes) -> None:
        """The reason phrase, or a part of it."""
        if not self._has_head:
            self.reason = (self.reason + reason)[:MAX_REASON]

    def on_headers_complete(self) -> None:
        """The end of the head of the response, or of an informational response before it (RFC 9110 15.2)."""
        if self._has_head or self._parser is None:
            return
        status = self._parser.get_status_code()
        self._is_informational = 100 <= status < 200
        if not self._is_informational:
            self._has_head, self.status = True, status
            self._has_length = any(name.lower() in FRAMING for name, _ in self.fields)
            self._complete = self._bodiless

    def on_body(self, piece: bytes) -> None:
        if not self._complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self._is_informational:
            self._is_informational, self.reason = False, b""
            self.fields.clear()
        elif not self._complete and self._parser is not None:
            self._complete, self._keep_alive = True, self._parser.should_keep_alive()
