"""One HTTP/1.1 connection: a request out, an answer in, and whether another request may follow (RFC 9112).

The bytes are parsed by llhttp (`httptools`), strictly. What is ours is the hygiene: what comes after a complete
body, or while nothing was asked, belongs to no answer (RFC 9112 9.2), and the connection is dropped. Not a pool, and
without opinions on the body beyond where it ends. What fails is one of httpx's exceptions, as `transport` needs them.
"""

import socket
import ssl
from collections.abc import Callable
from typing import Final, Self

import anyio
import anyio.lowlevel
import httpx
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from crawler.fetch.readiness import readiness

READ: Final = 65_536  # bytes taken from a socket at once
MAX_HEAD: Final = 256 * 1024  # bytes of status line and fields, with all informational answers before them
MAX_FIELDS: Final = 1_000  # header fields
MAX_TRAILER: Final = (
    65_536  # bytes of trailer fields, and of anything else that comes in a row and is no body
)
FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})  # fields that say where a body ends
MAX_REASON: Final = 1_000  # bytes of a reason phrase that are kept
DRAINED: Final = 65_536  # bytes of an unwanted body that are read to keep the connection
DRAINING: Final = 1.0  # seconds for that
BREATH: Final = 16  # reads in a row, after which others get their turn


class BrokenAnswer(httpx.RemoteProtocolError):
    """What came is no valid HTTP."""


class TooMuchHead(httpx.RemoteProtocolError):
    """More header fields, or bytes of them, than any server needs."""


class TooMuchWire(httpx.ReadError):
    """More bytes came for one answer than it may have."""


class CutShort(httpx.ReadError):
    """The connection ended in the middle of the answer."""


class ClosedEarly(CutShort):
    """The connection ended before the first byte of the answer, by FIN, RST or an end of TLS."""


def nobody(_: int) -> None:
    """Hears nothing."""


class Wire:
    """The bytes of a connection: a socket that never blocks, with or without TLS, on any event loop of anyio."""

    __slots__ = ("_readiness", "_reads", "_socket", "heard", "served")

    def __init__(self, connected: socket.socket, heard: Callable[[int], None] = nobody) -> None:
        """`heard` is called on each transfer, with the number of bytes received."""
        self._socket, self.heard, self._reads = connected, heard, 0
        self._readiness = readiness(connected.fileno())
        self.served = 0  # answers

    async def read(self) -> bytes:
        """What there is, at least a byte; nothing at the end. Raises `CutShort`."""
        self._reads += 1
        if self._reads % BREATH == 0:
            await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self._socket.recv(READ)
            except (BlockingIOError, ssl.SSLWantReadError):
                await self._readiness.wait()
            except ssl.SSLWantWriteError:
                await anyio.wait_writable(self._socket)
            except OSError as error:
                raise CutShort(error.strerror or type(error).__name__) from error
            else:
                self.heard(len(data))
                return data

    async def write(self, data: bytes) -> None:
        """Send all of it, and wait for something to read. Raises `CutShort`."""
        while data:
            try:
                data = data[self._socket.send(data) :]
                self.heard(0)
            except (BlockingIOError, ssl.SSLWantWriteError):
                await anyio.wait_writable(self._socket)
            except ssl.SSLWantReadError:
                await self._readiness.wait()
            except OSError as error:
                raise CutShort(error.strerror or type(error).__name__) from error
        await self._readiness.wait()

    async def secure(self, context: ssl.SSLContext, name: str) -> "Wire":
        """The same connection under TLS, its certificate checked for `name`. Raises `ssl.SSLError`, `CutShort`."""
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
                raise CutShort(error.strerror or type(error).__name__) from error
            else:
                self.heard(0)
                return self

    def is_quiet(self) -> bool:
        """Open, with nothing to read: whatever came unasked puts it in doubt, and so does its end."""
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """Let go of it at once."""
        self._readiness.close()
        self._socket.close()


class Answer(httpx.AsyncByteStream):
    """One answer as it comes in: its head is there, its body is read piece by piece, or iterated over."""

    __slots__ = (
        "_allowance",
        "_bare",
        "_begun",
        "_complete",
        "_done",
        "_first",
        "_framed",
        "_headed",
        "_informed",
        "_keeps",
        "_parser",
        "_pieces",
        "_received",
        "_surplus",
        "_trailer",
        "_wire",
        "fields",
        "reason",
        "status",
    )  # fmt: skip

    def __init__(
        self, wire: Wire, allowance: int, done: Callable[[Wire, bool], None], *, first: bool = True
    ) -> None:
        """`allowance`: bytes that may come. `done` is told, once, whether the connection may serve another.

        `first`: on this connection. Of a later one with bytes behind it, nobody can say which of the two it is.
        """
        self.status, self.reason = 0, b""
        self.fields: list[tuple[bytes, bytes]] = []  # as they came
        self._wire, self._allowance, self._done, self._first = wire, allowance, done, first
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._received = 0
        self._bare = self._trailer = 0  # bytes since the last one of the body; of trailer fields
        self._headed = self._informed = self._framed = self._begun = False
        self._complete = self._keeps = self._surplus = False

    async def begin(self) -> None:
        """Read up to the end of the head. Raises `BrokenAnswer`, `TooMuchHead`, `CutShort`."""
        while not self._headed:
            await self._advance()
            if (self._received > MAX_HEAD and not self._headed) or len(self.fields) > MAX_FIELDS:
                raise TooMuchHead(f"more than {MAX_HEAD:,} bytes or {MAX_FIELDS:,} header fields")
        self._bare = 0

    async def read(self) -> bytes:
        """More of the body, its transfer coding undone; nothing at its end.

        Raises `BrokenAnswer`, `CutShort` or `TooMuchWire`.
        """
        self._begun = True
        while not self._pieces and not self._complete:
            await self._advance()
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def __aiter__(self) -> Self:
        """The pieces of the body, as `read` gives them."""
        return self

    async def __anext__(self) -> bytes:
        """See `read`."""
        if piece := await self.read():
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the body: it was read, or the rest is not needed."""
        if self._parser is None:
            return
        if not self._complete and not self._begun:
            await self._drain()
        self._parser = None  # the two know each other
        self._done(self._wire, self._complete and self._keeps and not self._surplus)

    async def _drain(self) -> None:
        """Reads the rest of a short body that is not needed, so that the connection can be kept."""
        end = self._received + DRAINED
        try:
            with anyio.move_on_after(DRAINING):
                while not self._complete and self._received < end:
                    await self._advance()
        except (BrokenAnswer, CutShort, TooMuchWire):
            pass
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """The answer failed: its connection is not used again."""
        if self._parser is not None:
            self._parser = None
            self._done(self._wire, False)

    async def _advance(self) -> None:
        try:
            data = await self._wire.read()
        except CutShort as error:
            if self._received:
                raise
            raise ClosedEarly(str(error)) from error
        parser = self._parser
        if not data or parser is None:
            self._end()
            return
        self._received += len(data)
        if self._received > self._allowance:
            raise TooMuchWire(f"more than {self._allowance:,} bytes received")
        try:
            parser.feed_data(data)
        except HttpParserUpgrade as error:
            raise BrokenAnswer("unexpected switch to another protocol") from error
        except HttpParserError as error:
            if not self._complete:
                raise BrokenAnswer(str(error) or type(error).__name__) from error
            self._surplus = True
        self._check_framing(len(data))
        if self._surplus and not self._first:
            raise BrokenAnswer("unexpected bytes after a response on a reused connection")

    def _check_framing(self, count: int) -> None:
        """So many bytes came. llhttp keeps a field that does not end, and copies it for each part that comes."""
        self._bare = 0 if self._pieces or self._complete or not self._headed else self._bare + count
        if max(self._bare, self._trailer) > MAX_TRAILER:
            raise TooMuchWire(f"more than {MAX_TRAILER:,} bytes of trailer fields or chunk extensions")

    def _end(self) -> None:
        if self._headed and not self._framed:
            self._complete = True  # as long as the connection (RFC 9112 6.3, rule 8)
        elif self._received:
            raise CutShort("connection closed in the middle of the response")
        else:
            raise ClosedEarly("connection closed without a response")

    # -- what llhttp calls ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A second message, which was not requested."""
        self._surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field, also of a trailer: that is none of the answer's."""
        if self._headed:
            self._trailer += len(name) + len(value)
        else:
            self.fields.append((name, value))

    def on_status(self, reason: bytes) -> None:
        """The reason phrase, or a part of it."""
        if not self._headed:
            self.reason = (self.reason + reason)[:MAX_REASON]

    def on_headers_complete(self) -> None:
        """The head of the answer, or of an informational one before it (RFC 9110 15.2)."""
        if self._headed or self._parser is None:
            return
        status = self._parser.get_status_code()
        self._informed = 100 <= status < 200
        if not self._informed:
            self._headed, self.status = True, status
            self._framed = any(name.lower() in FRAMING for name, _ in self.fields)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        if not self._complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The end, or that of an informational answer."""
        if self._informed:
            self._informed, self.reason = False, b""
            self.fields.clear()
        elif not self._complete and self._parser is not None:
            self._complete, self._keeps = True, self._parser.should_keep_alive()
