"""One request, with limits on bytes and time. Does not follow redirects, store cookies or retry.

Every network failure becomes a `Broken`, and so does the answer of a firewall in place of the site
(`rules.walls`); an exception is a bug. Requests and responses are sent and received by the transport that
`routes` chooses. The body is received raw and decoded here, so that decompression is bounded (see
`content_coding`).
"""

import math
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import anyio
import anyio.lowlevel

from crawler.fetch.address_guard import AddressGuard, AddressRefused, NoAddress
from crawler.fetch.connection import (
    ClosedEarly,
    ConnectionLost,
    HeadTooLarge,
    IncomingResponse,
    MalformedResponse,
    ResponseTooLarge,
)
from crawler.fetch.pool import NoConnection
from crawler.fetch.request_headers import RequestIdentity
from crawler.fetch.routes import Transport, transport_for
from crawler.fetch.transport import LineBreak, RequestBuilder
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse import content_coding
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Request, Room
from crawler.rules import walls
from crawler.settings.sections import Http

if TYPE_CHECKING:
    from crawler.fetch.httpx_types import HttpxResponse

OVERHEAD: Final = 8  # most bytes on the wire per byte of body: a chunk of one byte takes six
# Bytes a second: the least average rate of a response that takes longer than the read timeout.
MIN_RATE: Final = 100
SLACK: Final = 8  # the read timeout may be exceeded by this fraction (1/8)
PAUSE: Final = 16  # decoding steps, at most a megabyte, before yielding to other tasks
MARGIN: Final = 1_000_000  # bytes on the wire allowed in addition
SMALL_BODY: Final = 1_000_000  # bytes that need no room of their own
GLIMPSE: Final = 3.0  # seconds for a body that is only read to see who answered

# Exceptions, with their cause and whether they are transient; the first match counts, then those of the
# transport.
CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (MalformedResponse, Cause.PROTOCOL, True),
    (HeadTooLarge, Cause.PROTOCOL, False),
    (ResponseTooLarge, Cause.TOO_LARGE, False),
    (NoAddress, Cause.DNS, False),
    (AddressRefused, Cause.ADDRESS, False),
    (content_coding.TooLarge, Cause.TOO_LARGE, False),
    (content_coding.UnknownCoding, Cause.CODING, False),
    (content_coding.BrokenCoding, Cause.CODING, True),
    (UnicodeError, Cause.PROTOCOL, False),  # a host name that IDNA refuses
    (NoConnection, Cause.CONNECT, True),
    (ConnectionLost, Cause.TRUNCATED, True),
    (LineBreak, Cause.PROTOCOL, False),
)


Enlarge: TypeAlias = Callable[[int], Awaitable[None]]


class HttpFetcher:
    """A `ports.Fetcher`. Use as an async context manager: it holds connections."""

    def __init__(
        self,
        chosen: Http,
        guard: AddressGuard,
        identity: RequestIdentity,
        *,
        connections: int = 16,
        transport: "Transport | None" = None,
        public: bool = False,
    ) -> None:
        """`transport` replaces or wraps the default transport. Raises `ConfigError` for an unusable setting.

        `public`: trust the public certificate authorities beside those of `--ca-file`, which may be for one
        site.
        """
        self._chosen, self._builder = chosen, RequestBuilder(identity)
        # Names are resolved by a proxy, or by another transport.
        self._guard = None if transport is not None or chosen.proxy else guard
        self._transport = transport_for(
            chosen, guard, connections, transport, identity.origins, public=public
        )

    async def __aenter__(self) -> Self:
        """Return the fetcher; connections open on demand."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        with anyio.CancelScope(shield=True):
            await self._transport.aclose()

    async def address(self, url: Url) -> str | None:
        """The address and port that a request for this URL connects to; None if they are not known here."""
        if self._guard is None:
            return None
        port = urls.port(url)
        try:
            return f"{(await self._guard.resolve(urls.host(url), port))[0]} {port}"
        except (AddressRefused, NoAddress):
            return None

    async def fetch(self, request: Request) -> Reply:
        seconds = self._chosen.total_timeout if request.seconds is None else request.seconds
        with anyio.CancelScope() as scope:
            timeouts = _Timeouts(scope, seconds, self._chosen.timeout)
            try:
                return await self._exchange(request, timeouts)
            except Exception as error:
                for kind, cause, transient in (*CAUSES, *self._transport.causes):
                    if isinstance(error, kind):
                        return _broken(error, cause, transient=transient)
                raise
        return Broken(Cause.TIMEOUT, timeouts.reason(), transient=True)

    async def _exchange(self, request: Request, timeouts: "_Timeouts") -> Reply:
        limit = self._chosen.max_body if request.limit is None else request.limit
        received = await self._send(request, limit, timeouts)
        try:
            fields = Headers(
                [(name.decode("latin-1"), value.decode("latin-1")) for name, value in received.fields]
            )
            status = received.status
            if status == 304 and not (request.head or _is_conditional(request)):
                return Broken(Cause.PROTOCOL, "304 without a condition", transient=True)
            is_unwanted = request.wants_body and not request.wants_body(status, fields)
            if request.head or is_unwanted:
                shown = b"" if request.head or status == 200 else await self._glimpse(received, fields)
                return _walled(status, fields, shown) or Response(status, fields, took=timeouts.elapsed)
            body = _small_body(received, fields, limit) or await _body(
                received, fields, limit, cut=request.cut, enlarge=timeouts.waiting(request.room)
            )
            return _walled(status, fields, body) or Response(status, fields, body, timeouts.elapsed)
        finally:
            await received.aclose()

    async def _send(
        self, request: Request, limit: int, timeouts: "_Timeouts"
    ) -> "IncomingResponse | HttpxResponse":
        """Send a request, and receive the head of the response."""
        return await self._transport.ask(
            request.url,
            self._builder.fields(request.url, conditions(request), request.post),
            OVERHEAD * limit + MARGIN,
            timeouts.on_progress,
            "POST" if request.post is not None else "HEAD" if request.head else "GET",
            request.post or b"",
        )

    async def _glimpse(self, received: "IncomingResponse | HttpxResponse", fields: Headers) -> bytes:
        """The body of a reply that nobody wants, if it may be the short page of a firewall."""
        body = b""
        if walls.may_be_page(received.status, fields):
            with anyio.move_on_after(min(GLIMPSE, self._chosen.timeout / 2)), suppress(Exception):
                body = await _body(received, fields, walls.LONGEST, cut=True)
        return body


def fetcher_of(
    chosen: Http,
    reached: Iterable[str],
    own: Iterable[str] = (),
    *,
    connections: int = 16,
    public: bool = False,
) -> HttpFetcher:
    """A fetcher over the default transport. `reached`: URLs whose hosts are exempt from the address guard.

    `own`: the origins that the credentials of the settings are for. Raises `ConfigError`.
    """
    guard = AddressGuard(reached, chosen.allow_address)
    return HttpFetcher(chosen, guard, RequestIdentity(chosen, own), connections=connections, public=public)


class _Timeouts:
    """Two timeouts in one scope: for the whole exchange, and between reads."""

    def __init__(self, scope: anyio.CancelScope, total: float, read_timeout: float) -> None:
        self._scope, self._total, self._read_timeout = scope, total, read_timeout
        self._began, self._started = anyio.current_time(), time.monotonic()
        self._received, self._is_too_slow = 0, False
        self._set_deadline(0.0)

    @property
    def elapsed(self) -> int:
        """Milliseconds since the request started."""
        return round((time.monotonic() - self._started) * 1000)

    def on_progress(self, count: int = 0) -> None:
        """`count` bytes were received: restart the read timeout, unless the average rate is too low."""
        elapsed = time.monotonic() - self._started
        self._received += count
        if elapsed > self._read_timeout and self._received < MIN_RATE * elapsed:
            self._is_too_slow, self._scope.deadline = True, -math.inf
        elif elapsed - self._set_at > self._read_timeout / SLACK:
            self._set_deadline(elapsed)

    def _set_deadline(self, elapsed: float) -> None:
        """Set the deadline a little late: resetting it for each piece would be slow."""
        self._set_at = elapsed
        self._scope.deadline = self._began + min(self._total, elapsed + self._read_timeout * (1 + 1 / SLACK))

    def waiting(self, room: Room | None) -> "Enlarge | None":
        """Reserves room for a body; meanwhile, neither timeout runs."""
        return None if room is None else partial(self._reserve, room)

    async def _reserve(self, room: Room, size: int) -> None:
        began, self._scope.deadline = time.monotonic(), math.inf
        await room.reserve(size)
        waited = time.monotonic() - began
        self._began, self._started = self._began + waited, self._started + waited
        self._set_deadline(began - self._started + waited)

    def reason(self) -> str:
        """Which timeout expired, as a sentence."""
        if self._is_too_slow:
            return f"{self._received:,} bytes in {self._read_timeout:.0f} s"
        if self._scope.deadline >= self._began + self._total:
            return f"no complete response within {self._total:.0f} s"
        return f"no data for {self._read_timeout:.0f} s"


def conditions(request: Request) -> dict[str, str]:
    """The headers of this request only; both validators, exactly as received (RFC 9110 13.1.2, 13.1.3)."""
    known = {"if-none-match": request.validators.etag, "if-modified-since": request.validators.modified}
    given = {name: value for name, value in known.items() if value}
    return {**request.headers, **given} if request.headers else given


def _is_conditional(request: Request) -> bool:
    """Whether a 304 confirms what the sender of the request knows."""
    known = request.validators
    return bool(known.etag or known.modified) or any(name.startswith("if-") for name in request.headers)


def _small_body(received: "IncomingResponse | HttpxResponse", fields: Headers, limit: int) -> bytes | None:
    """A small body that arrived with its head, as most do, decoded in one step; None for any other."""
    codings, most = fields.all("content-encoding"), min(limit, SMALL_BODY)
    body = received.whole() if codings in ([], ["gzip"]) else None
    if body and codings:
        return content_coding.gunzip(body, most)
    return body if body and len(body) <= most else None


async def _body(
    received: "IncomingResponse | HttpxResponse",
    fields: Headers,
    limit: int,
    *,
    cut: bool,
    enlarge: Enlarge | None = None,
) -> bytes:
    """The decoded body. `enlarge`: called with the size that it may have before it is more than small."""
    codings = [word.strip().lower() for line in fields.all("content-encoding") for word in line.split(",")]
    decoder = content_coding.decoder([word for word in codings if word], limit)
    body, size, steps = bytearray(), 0, 0
    try:
        if not cut:
            _check_length(_length(fields), limit)
        while chunk := await received.read():  # still encoded
            size += len(chunk)
            if decoder.is_coded:
                _check_coded(size, limit)
            for piece in decoder.steps(chunk):
                if enlarge and len(body) + len(piece) > SMALL_BODY:
                    await enlarge(limit if decoder.is_coded else _length(fields) or limit)
                    enlarge = None
                body += piece
                steps += 1
                # Decoding a few bytes may take seconds: let other tasks and deadlines run.
                if steps % PAUSE == 0:
                    await anyio.lowlevel.checkpoint()
        decoder.finish()
    except content_coding.DecompressionBomb:
        raise
    except content_coding.TooLarge:
        if not cut:
            raise
    return bytes(body)


def _walled(status: int, fields: Headers, body: bytes) -> Broken | None:
    """What is left of a reply that a firewall gave in place of the site."""
    wall = walls.wall_of(status, fields, body)
    return Broken(Cause.WALL, f"{wall}, status {status}") if wall else None


def _check_coded(received: int, limit: int) -> None:
    if received > limit:
        raise content_coding.DecompressionBomb(f"more than {limit:,} bytes before decompression")


def _length(fields: Headers) -> int:
    """Content-Length; 0 if there is none."""
    length = fields.get("content-length") or ""
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise content_coding.TooLarge(f"{length:,} bytes according to Content-Length, more than {limit:,}")


def _broken(error: Exception, cause: Cause, *, transient: bool) -> Broken:
    text = str(error) or type(error).__name__
    # A TLS error in the middle of a response is a broken connection, not an untrusted certificate.
    in_the_middle = isinstance(error, ConnectionLost) and not isinstance(error, ClosedEarly)
    chain: BaseException | None = None if in_the_middle else error
    while chain is not None:
        if isinstance(chain, ssl.SSLError):
            return Broken(Cause.TLS, _tls(chain) or text, transient=False)
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, NoAddress):
        transient = error.transient
    return Broken(cause, text, transient=transient)


def _tls(error: ssl.SSLError) -> str:
    if error.reason == "WRONG_VERSION_NUMBER":
        return "the server does not speak TLS there; it may be plain http://"
    return getattr(error, "verify_message", "") or str(error.reason or "")
