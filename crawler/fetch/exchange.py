"""One GET: bounded in bytes and time, without redirects, kept cookies or opinions.

Whatever the network does becomes a `Broken`; only a bug raises. A request and a response are httpx's; how they get out
and in is for the transport, which `routes` chooses. The body is read raw and decoded here, so that a small answer
cannot become a large one (see `content_coding`).
"""

import math
import ssl
import time
from types import TracebackType
from typing import Final, Self, cast

import anyio
import anyio.lowlevel
import httpx

from crawler.fetch.address_guard import AddressGuard, AddressRefused, NoAddress
from crawler.fetch.connection import BrokenAnswer, ClosedEarly, CutShort, TooMuchHead, TooMuchWire
from crawler.fetch.request_builder import RequestBuilder
from crawler.fetch.request_headers import Identity
from crawler.fetch.routes import Transport, transport_for
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse import content_coding
from crawler.ports import Request
from crawler.settings.sections import Http

OVERHEAD: Final = 8  # bytes on the wire for a byte of body, at most: chunks of one byte take six
SLOWEST: Final = (
    100  # bytes a second, in the mean, that an answer must come with once it takes longer than a silence
)
SLACK: Final = 8  # a silence may last longer by one part in so many
PAUSE: Final = 16  # steps of decoding, after which others get their turn: a megabyte at most
MARGIN: Final = 1_000_000  # bytes on the wire beside that

# What may be raised, the first that fits: ours, then httpx's tree, flattened. A test fails when httpx gains one that
# none of these covers.
CAUSES: Final[tuple[tuple[type[Exception], Cause, bool], ...]] = (
    (BrokenAnswer, Cause.PROTOCOL, True),
    (TooMuchHead, Cause.PROTOCOL, False),
    (TooMuchWire, Cause.TOO_LARGE, False),
    (NoAddress, Cause.DNS, False),
    (AddressRefused, Cause.ADDRESS, False),
    (content_coding.TooLarge, Cause.TOO_LARGE, False),
    (content_coding.UnknownCoding, Cause.CODING, False),
    (content_coding.BrokenCoding, Cause.CODING, True),
    (UnicodeError, Cause.PROTOCOL, False),  # a host name that IDNA refuses
    (httpx.TimeoutException, Cause.TIMEOUT, True),
    (httpx.ConnectError, Cause.CONNECT, True),
    (httpx.ProxyError, Cause.CONNECT, True),
    (httpx.NetworkError, Cause.TRUNCATED, True),
    (httpx.RemoteProtocolError, Cause.PROTOCOL, True),
    (httpx.TransportError, Cause.PROTOCOL, False),
    (httpx.InvalidURL, Cause.PROTOCOL, False),
    (httpx.StreamError, Cause.TRUNCATED, True),
)


class HttpFetcher:
    """A `ports.Fetcher`. Use as an async context manager: it holds connections."""

    def __init__(
        self,
        chosen: Http,
        guard: AddressGuard,
        identity: Identity,
        *,
        connections: int = 16,
        transport: Transport | None = None,
    ) -> None:
        """`transport` takes the place of our own, or stands around it. Raises `ConfigError` for an unusable setting."""
        self._chosen, self._builder = chosen, RequestBuilder(identity)
        self._transport = transport_for(chosen, guard, connections, transport)

    async def __aenter__(self) -> Self:
        """Open for requests."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        with anyio.CancelScope(shield=True):
            await self._transport.aclose()

    async def fetch(self, request: Request) -> Reply:
        """See `ports.Fetcher.fetch`."""
        seconds = self._chosen.total_timeout if request.seconds is None else request.seconds
        with anyio.CancelScope() as scope:
            patience = _Patience(scope, seconds, self._chosen.timeout)
            try:
                return await self._exchange(request, patience)
            except Exception as error:
                for kind, cause, transient in CAUSES:
                    if isinstance(error, kind):
                        return _broken(error, cause, transient=transient)
                raise
        return Broken(Cause.TIMEOUT, patience.says(), transient=True)

    async def _exchange(self, request: Request, patience: "_Patience") -> Reply:
        limit = self._chosen.max_body if request.limit is None else request.limit
        question = self._builder.build(
            request.url, conditions(request), OVERHEAD * limit + MARGIN, patience.heard
        )
        response = await self._transport.handle_async_request(question)
        try:
            fields = Headers(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
            )
            if request.wants_body and not request.wants_body(response.status_code, fields):
                return Response(response.status_code, fields, took=patience.elapsed)
            body = await _body(response, fields, limit, cut=request.cut)
            return Response(response.status_code, fields, body, patience.elapsed)
        finally:
            await response.aclose()


class _Patience:
    """Two limits in one scope: the whole exchange, and the silence in it."""

    def __init__(self, scope: anyio.CancelScope, total: float, silence: float) -> None:
        self._scope, self._total, self._silence = scope, total, silence
        self._began, self._from = anyio.current_time(), time.monotonic()
        self._received, self._drips = 0, False
        self._arm(0.0)

    @property
    def elapsed(self) -> int:
        """Milliseconds since the request."""
        return round((time.monotonic() - self._from) * 1000)

    def heard(self, count: int = 0) -> None:
        """So many bytes came: the silence begins again, unless they only drip."""
        elapsed = time.monotonic() - self._from
        self._received += count
        if elapsed > self._silence and self._received < SLOWEST * elapsed:
            self._drips, self._scope.deadline = True, -math.inf
        elif elapsed - self._armed > self._silence / SLACK:
            self._arm(elapsed)

    def _arm(self, elapsed: float) -> None:
        """Set the deadline, a little later than it need be: to set it anew for each piece would take long."""
        self._armed = elapsed
        self._scope.deadline = self._began + min(self._total, elapsed + self._silence * (1 + 1 / SLACK))

    def says(self) -> str:
        """What ran out."""
        if self._drips:
            return f"{self._received:,} bytes in {self._silence:.0f} s"
        if self._scope.deadline >= self._began + self._total:
            return f"no complete response within {self._total:.0f} s"
        return f"no data for {self._silence:.0f} s"


def conditions(request: Request) -> dict[str, str]:
    """Both validators, exactly as they came (RFC 9110 13.1.2, 13.1.3)."""
    known = {"if-none-match": request.validators.etag, "if-modified-since": request.validators.modified}
    return {name: value for name, value in known.items() if value}


async def _body(response: httpx.Response, fields: Headers, limit: int, *, cut: bool) -> bytes:
    codings = [word.strip().lower() for line in fields.all("content-encoding") for word in line.split(",")]
    decoder = content_coding.decoder([word for word in codings if word], limit)
    body, received, steps = bytearray(), 0, 0
    try:
        if not cut:
            _check_length(fields.get("content-length") or "", limit)
        async for chunk in cast("httpx.AsyncByteStream", response.stream):  # as it came, coded
            received += len(chunk)
            if decoder.is_coded:
                _check_coded(received, limit)
            for piece in decoder.steps(chunk):
                body += piece
                steps += 1
                if (
                    steps % PAUSE == 0
                ):  # a few bytes may be the work of seconds: others, and deadlines, have their turn
                    await anyio.lowlevel.checkpoint()
        decoder.finish()
    except content_coding.DecompressionBomb:
        raise
    except content_coding.TooLarge:
        if not cut:
            raise
    return bytes(body)


def _check_coded(received: int, limit: int) -> None:
    if received > limit:
        raise content_coding.DecompressionBomb(f"more than {limit:,} bytes before decompression")


def _check_length(said: str, limit: int) -> None:
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        raise content_coding.TooLarge(
            f"{int(said[:20]):,} bytes according to Content-Length, more than {limit:,}"
        )


def _broken(error: Exception, cause: Cause, *, transient: bool) -> Broken:
    text = str(error) or type(error).__name__
    # TLS that breaks in the middle of an answer is a broken connection, not a certificate that nobody trusts.
    in_the_middle = isinstance(error, CutShort) and not isinstance(error, ClosedEarly)
    chain: BaseException | None = None if in_the_middle else error
    while chain is not None:
        if isinstance(chain, ssl.SSLError):
            return Broken(Cause.TLS, _tls(chain) or text, transient=False)
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, NoAddress):
        transient = error.passing
    return Broken(cause, text, transient=transient)


def _tls(error: ssl.SSLError) -> str:
    if error.reason == "WRONG_VERSION_NUMBER":
        return "the server does not speak TLS there; it may be plain http://"
    return getattr(error, "verify_message", "") or str(error.reason or "")
