"""One exchange: bounded in bytes and time; every network failure is returned as a value.

The protocol is tested with respx, the wire with sockets.
"""

import gzip
import random
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import pytest
import respx
import trustme

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ClosedEarly, ConnectionLost, IncomingResponse, Wire, ignore_progress
from crawler.fetch.exchange import SMALL_BODY, HttpFetcher
from crawler.fetch.httpx_types import CAUSES
from crawler.fetch.pool import ConnectionPool, Destination
from crawler.fetch.request_headers import RequestIdentity
from crawler.fetch.routes import Trust
from crawler.model.facts import Validators
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Reply, Response
from crawler.parse import content_coding
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.settings.sections import Http
from tests.server import free_port, wire
from tests.waiting import outlive, tick

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

URL = Url("http://site.example/page")
LIBRARY = (Path(__file__).parents[2] / "docs/use/library.md").read_text()


CLIENT: Final = {"name": "own"}


@pytest.fixture(autouse=True)
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of this test: our connections, or httpx's own."""
    monkeypatch.setitem(CLIENT, "name", getattr(request, "param", "own"))


over_both = pytest.mark.parametrize(
    "client", ["own", pytest.param("httpx", marks=pytest.mark.system)], indirect=True
)


def over_ours(differs: str) -> pytest.MarkDecorator:
    """For a test that does not hold over httpx's client; `differs`: the row in docs/use/library.md that says so."""
    assert f"\n| {differs} |" in LIBRARY, "the table says nothing of this difference"
    return pytest.mark.parametrize("client", ["own"], indirect=True)


def fetcher_of(transport: httpx.AsyncBaseTransport | None = None, **chosen: Any) -> HttpFetcher:
    settings = Http(transport=CLIENT["name"], **chosen)
    guard = AddressGuard(allowed=["127.0.0.1"])
    return HttpFetcher(settings, guard, RequestIdentity(settings, []), transport=transport)


async def ask(
    url: str = URL,
    request: Request | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    **chosen: Any,
) -> Reply:
    async with fetcher_of(transport, **chosen) as fetcher:
        return await fetcher.fetch(request or Request(Url(url)))


def routed(router: respx.MockRouter) -> httpx.AsyncBaseTransport:
    """respx as the transport, instead of the network."""
    return httpx.MockTransport(router.async_handler)


async def mocked(answer: httpx.Response | Exception, request: Request | None = None, **chosen: Any) -> Reply:
    router = respx.MockRouter()
    route = router.get(request.url if request else URL)
    if isinstance(answer, Exception):
        route.side_effect = answer
    else:
        route.return_value = answer
    return await ask(request=request or Request(URL), transport=routed(router), **chosen)


def failure(reply: Reply | bytes) -> tuple[Cause, bool]:
    """The cause, and whether it may pass."""
    assert isinstance(reply, Broken)
    return reply.cause, reply.transient


def body_of(reply: Reply) -> bytes:
    assert isinstance(reply, Response)
    return reply.body


# -- the protocol ----------------------------------------------------------------------------------------


async def test_repeated_response_headers_stay_separate() -> None:
    headers = [("Content-Type", "text/html"), ("Link", "<a>; rel=next"), ("link", "<b>; rel=prev")]
    reply = await mocked(httpx.Response(200, headers=headers, content=b"<p>hello"))
    assert isinstance(reply, Response)
    assert (reply.status, reply.body) == (200, b"<p>hello")
    assert reply.headers.all("link") == ["<a>; rel=next", "<b>; rel=prev"]


async def test_validators_are_sent_back_unchanged() -> None:
    router = respx.MockRouter()
    route = router.get(URL).respond(304)
    known = Validators('W/"a b"', "Sunday, 06-Nov-94 08:49:37 GMT")
    await ask(request=Request(URL, known), transport=routed(router))
    sent = route.calls.last.request.headers
    assert sent["if-none-match"] == 'W/"a b"'
    assert sent["if-modified-since"] == "Sunday, 06-Nov-94 08:49:37 GMT"


@pytest.mark.parametrize("headers", [{}, {"accept": "*/*"}, {"if-none-match": '"1"'}])
async def test_a_304_that_nobody_asked_for_is_no_answer(headers: dict[str, str]) -> None:
    reply = await mocked(httpx.Response(304), Request(URL, headers=headers))
    if "if-none-match" in headers:
        assert isinstance(reply, Response), "a script of a page asked for it"
    else:
        assert failure(reply) == (Cause.PROTOCOL, True)


async def test_redirects_are_returned_and_not_followed() -> None:
    reply = await mocked(httpx.Response(301, headers={"Location": "/x"}))
    assert isinstance(reply, Response)
    assert (reply.status, reply.headers.get("location")) == (301, "/x")


async def test_cookies_are_not_stored() -> None:
    router = respx.MockRouter()
    route = router.get(URL).respond(200, headers={"Set-Cookie": "a=b"})
    async with fetcher_of(routed(router)) as fetcher:
        await fetcher.fetch(Request(URL))
        await fetcher.fetch(Request(URL))
    assert all("cookie" not in call.request.headers for call in route.calls)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("X-GZIP", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
    ],
)
async def test_content_codings_are_decoded(coding: str, body: bytes) -> None:
    stream = httpx.ByteStream(body)
    reply = await mocked(httpx.Response(200, headers={"Content-Encoding": coding}, stream=stream))
    assert body_of(reply) == b"hello"


@pytest.mark.parametrize(
    ("coding", "body", "cause"),
    [
        ("gzip", b"not gzip at all", Cause.CODING),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-3], Cause.CODING),
        ("gzip", gzip.compress(b"x" * 100_000, mtime=0), Cause.TOO_LARGE),
        ("identity", b"x" * 2_000, Cause.TOO_LARGE),
        ("compress", b"x", Cause.CODING),
        (", ".join(["gzip"] * 9), b"x", Cause.CODING),
    ],
)
async def test_undecodable_or_large_body_is_reported_as_broken(
    coding: str, body: bytes, cause: Cause
) -> None:
    answer = httpx.Response(200, headers={"Content-Encoding": coding}, stream=httpx.ByteStream(body))
    transport = httpx.MockTransport(lambda _: answer)  # not respx, which would decode the body itself
    reply = await ask(transport=transport, max_body=1_000)
    assert failure(reply)[0] is cause


async def test_request_limit_overrides_max_body() -> None:
    reply = await mocked(httpx.Response(200, content=b"x" * 20), Request(URL, limit=10))
    assert failure(reply)[0] is Cause.TOO_LARGE


async def test_unwanted_body_is_not_read() -> None:
    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            raise AssertionError("the body was read")
            yield b""

    transport = httpx.MockTransport(lambda _: httpx.Response(404, stream=Endless()))
    reply = await ask(request=Request(URL, wants_body=lambda *_: False), transport=transport)
    assert body_of(reply) == b""


@pytest.mark.parametrize(
    ("error", "cause", "transient"),
    [
        (httpx.ConnectTimeout("x"), Cause.TIMEOUT, True),
        (httpx.ReadTimeout("x"), Cause.TIMEOUT, True),
        (httpx.PoolTimeout("x"), Cause.TIMEOUT, True),
        (httpx.ConnectError("x"), Cause.CONNECT, True),
        (httpx.ReadError("x"), Cause.TRUNCATED, True),
        (httpx.RemoteProtocolError("x"), Cause.PROTOCOL, True),
        (httpx.LocalProtocolError("x"), Cause.PROTOCOL, False),
        (httpx.UnsupportedProtocol("x"), Cause.PROTOCOL, False),
        (httpx.ProxyError("x"), Cause.CONNECT, True),
    ],
)
async def test_httpx_exceptions_map_to_causes(error: Exception, cause: Cause, transient: bool) -> None:
    assert await mocked(error) == Broken(cause, "x", transient=transient)


def test_all_httpx_exceptions_are_mapped() -> None:
    mapped = tuple(kind for kind, _, _ in CAUSES)
    ours = {
        "HTTPStatusError",
        "TooManyRedirects",
        "CookieConflict",
        "HTTPError",
        "RequestError",
        "DecodingError",
    }
    known = {
        name
        for name, kind in vars(httpx).items()
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, mapped)
    }
    assert known <= ours, "a new exception of httpx needs a line in CAUSES (or here, if it cannot occur)"


async def test_programming_error_is_not_reported_as_network_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        await mocked(ZeroDivisionError())


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"proxy": "nonsense://x"}, "--proxy: is not a usable proxy URL"),
        ({"ca_file": "/nowhere.pem"}, "--ca-file: /nowhere.pem contains no readable certificates"),
    ],
)
async def test_unusable_http_settings_raise_config_error(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        await ask(**chosen)


# -- the wire --------------------------------------------------------------------------------------------


def says(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    return serve


async def told(answer: bytes, **chosen: Any) -> Reply:
    """The reply if a server sends these bytes."""
    with wire(says(answer)) as url:
        return await ask(url, **chosen)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@over_both
@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"\r\nhello",  # ended by closing the connection
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello",
    ],
)
async def test_all_message_framings_are_read(answer: bytes) -> None:
    reply = await told(answer)
    assert body_of(reply) == b"hello"


@over_both
@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 50\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        OK + b"Content-Length: -5\r\n\r\nhello",
        b"",
        b"\x00\x01\x02",
        b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\nhello",
    ],
)
async def test_malformed_response_is_transient_failure(answer: bytes) -> None:
    reply = await told(answer)
    assert isinstance(reply, Broken)
    assert reply.cause in {Cause.PROTOCOL, Cause.TRUNCATED}
    assert reply.transient


@over_both
@pytest.mark.slow
async def test_decompression_bomb_stops_at_limit() -> None:
    body = gzip.compress(bytes(200_000_000), 9, mtime=0)
    answer = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    reply = await told(answer, max_body=1_000_000)
    assert failure(reply)[0] is Cause.TOO_LARGE


@over_both
@pytest.mark.parametrize("chosen", [{"timeout": 0.1}, {"total_timeout": 0.1}])
async def test_silent_server_times_out(chosen: dict[str, Any]) -> None:
    gone = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(OK)
        gone.wait(600)

    with wire(drip) as url:
        reply = await ask(url, **chosen)
        gone.set()
    assert failure(reply) == (Cause.TIMEOUT, True)


@over_both
async def test_dripping_response_times_out_before_total_timeout() -> None:
    gone = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(OK + b"\r\n")
        while not gone.wait(0.02):
            connection.sendall(b"x")

    with wire(drip) as url:
        reply = await ask(url, timeout=2.0, total_timeout=600)
        gone.set()
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.transient) == (Cause.TIMEOUT, True)
    assert "bytes in" in reply.detail


class Room:
    """Room that is there at once, or never."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.asked, self.is_waiting, self.is_full = list[int](), anyio.Event(), is_full
        self.waited = 0.0

    async def reserve(self, size: int) -> None:
        self.asked.append(size)
        if self.is_full:
            self.is_waiting.set()
            await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("size", "fields", "asked"),
    [
        (SMALL_BODY, {}, []),
        (SMALL_BODY + 1, {}, [SMALL_BODY + 1]),
        (3 * SMALL_BODY, {}, [3 * SMALL_BODY]),
        (3 * SMALL_BODY, {"Content-Encoding": "gzip"}, [9_000_000]),  # as much as there may be
    ],
)
async def test_large_body_asks_for_room_once(size: int, fields: dict[str, str], asked: list[int]) -> None:
    body, room = random.randbytes(size), Room()
    sent = gzip.compress(body) if fields else body
    reply = await mocked(
        httpx.Response(200, headers=fields, content=sent), Request(URL, room=room), max_body=9_000_000
    )
    assert body_of(reply) == body
    assert room.asked == asked


async def test_timeouts_do_not_run_while_a_body_waits_for_room() -> None:
    room = Room(is_full=True)
    replies = list[Reply]()

    async def ask_large() -> None:
        answer = httpx.Response(200, content=b"x" * 2 * SMALL_BODY)
        replies.append(await mocked(answer, Request(URL, room=room), timeout=1.0, total_timeout=1.0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_large)
        await room.is_waiting.wait()
        await anyio.to_thread.run_sync(outlive, 1.5)
        tasks.cancel_scope.cancel()
    assert (room.asked, replies) == ([2 * SMALL_BODY], [])


@over_both
async def test_body_with_too_large_content_length_is_not_read() -> None:
    reply = await told(OK + b"Content-Length: 9223372036854775807\r\n\r\n")
    assert failure(reply) == (Cause.TOO_LARGE, False)


@over_both
@pytest.mark.parametrize("coded", [False, True])
async def test_too_large_body_is_truncated_if_requested(coded: bool) -> None:
    body = b"User-agent: *\n" + bytes(20_000_000)
    sent = gzip.compress(body, mtime=0) if coded else body
    more = b"Content-Encoding: gzip\r\n" if coded else b""
    with wire(says(whole(sent, more))) as url:
        reply = await ask(request=Request(Url(url), limit=1_000_000, cut=True))
    assert isinstance(reply, Response)
    assert reply.body.startswith(b"User-agent: *\n")
    assert 900_000 < len(reply.body) <= 1_000_000


@over_both
async def test_decompression_bomb_is_refused_even_if_cut_is_requested() -> None:
    sent = gzip.compress(b"", mtime=0) * 5_000
    with wire(says(whole(sent, b"Content-Encoding: gzip\r\n"))) as url:
        reply = await ask(request=Request(Url(url), limit=1_000_000, cut=True))
    assert failure(reply) == (Cause.TOO_LARGE, False)


@over_both
async def test_decoding_yields_to_event_loop_and_obeys_total_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endless decoding step stands for one that takes seconds: if it never yielded, this test would hang."""
    monkeypatch.setattr(content_coding.Inflater, "steps", lambda *_: repeat(b""))
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.lowlevel.checkpoint()
            beats += 1

    with wire(says(whole(zlib.compress(b"x"), b"Content-Encoding: deflate\r\n"))) as url:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            reply = await ask(request=Request(Url(url), seconds=0.3))
            tasks.cancel_scope.cancel()
    assert failure(reply)[0] is Cause.TIMEOUT
    assert beats


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


@over_ours("bounds of framing")
@pytest.mark.parametrize(
    "rest",
    [
        b"0\r\n" + b"X: y\r\n" * 40_000 + b"\r\n",
        b"0\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"0\r\n" + b"y" * 200_000 + b": x\r\n\r\n",
        b"1;" + b"e" * 200_000 + b"\r\nx\r\n0\r\n\r\n",
        b"1;e=" + b"e" * 200_000 + b"\r\nx\r\n0\r\n\r\n",
        b"0;" + b"e;" * 100_000 + b"\r\n\r\n",
    ],
    ids=["many fields", "a long value", "a long name", "an extension", "an extension value", "extensions"],
)
async def test_chunk_extensions_and_trailers_are_bounded(rest: bytes) -> None:
    reply = await told(CHUNKED + rest)
    assert failure(reply) == (Cause.TOO_LARGE, False)


@over_both
async def test_trailer_of_60_kilobytes_is_skipped() -> None:
    with wire(says(CHUNKED + b"0\r\n" + b"X: yyyyyy\r\n" * 4_500 + b"\r\n")) as url:
        assert cast("Response", await ask(url)).body == b"hello"


@over_both
async def test_refused_connection_is_reported_as_broken() -> None:
    reply = await ask(f"http://127.0.0.1:{free_port()}/")
    assert failure(reply) == (Cause.CONNECT, True)


@over_both
async def test_request_target_is_sent_as_serialised_by_url_standard() -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(connection.recv(65536).split(b"\r\n")[0])
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    with wire(serve) as url:
        await ask(url + "a'b(c)[d]?e=%zz&f='g'")
    assert seen == [b"GET /a'b(c)[d]?e=%zz&f='g' HTTP/1.1"]


@over_both
@pytest.mark.parametrize("host", ["127.0.0.2", "[::ffff:127.0.0.2]", "[::1]", "169.254.169.254", "10.0.0.1"])
async def test_private_address_is_refused_before_connecting(host: str) -> None:
    reply = await ask(f"http://{host}:9/")
    assert failure(reply) == (Cause.ADDRESS, False)


@over_both
async def test_certificate_verification_with_ca_file_and_insecure() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    answer = says(OK + b"Content-Length: 5\r\n\r\nhello")
    with authority.cert_pem.tempfile() as pem:
        for chosen, trusted in (({}, False), ({"ca_file": pem}, True), ({"insecure": True}, True)):
            with wire(answer, context) as url:
                reply = await ask(url, **chosen)
            assert isinstance(reply, Response) is trusted
            if isinstance(reply, Broken):
                assert (reply.cause, reply.transient) == (Cause.TLS, False)


@over_both
async def test_certificate_for_another_name_is_refused() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(context)
    with authority.cert_pem.tempfile() as pem, wire(says(OK), context) as url:
        reply = await ask(url, ca_file=pem)
    assert failure(reply)[0] is Cause.TLS


def test_public_authorities_are_trusted_beside_ca_file() -> None:
    with trustme.CA().cert_pem.tempfile() as pem:
        own = Trust(Http(ca_file=pem))().cert_store_stats()["x509_ca"]
        both = Trust(Http(ca_file=pem), public=True)().cert_store_stats()["x509_ca"]
    assert own == 1
    assert both == Trust(Http(), public=True)().cert_store_stats()["x509_ca"] + 1


# -- connections -----------------------------------------------------------------------------------------


def talks(*answers: bytes | None) -> tuple[Callable[[socket.socket], None], list[list[bytes]]]:
    """A server that gives these answers in order (None: closes the connection), and the request lines of each connection."""
    left = list(answers)
    seen: list[list[bytes]] = []

    def serve(connection: socket.socket) -> None:
        lines: list[bytes] = []
        seen.append(lines)
        while left and (request := connection.recv(65536)):
            lines.append(request.split(b"\r\n")[0])
            answer = left.pop(0)
            if answer is None:
                return
            connection.sendall(answer)

    return serve, seen


def whole(body: bytes, more: bytes = b"") -> bytes:
    return OK + b"Content-Length: %d\r\n" % len(body) + more + b"\r\n" + body


async def bodies(url: str, count: int, **chosen: Any) -> list[bytes | Broken]:
    async with fetcher_of(**chosen) as fetcher:
        found: list[bytes | Broken] = []
        for number in range(count):
            reply = await fetcher.fetch(Request(Url(f"{url}{number}")))
            found.append(reply.body if isinstance(reply, Response) else reply)
            await tick()
    return found


@over_ours("connections")
async def test_connection_is_reused() -> None:
    serve, seen = talks(whole(b"a"), whole(b"b"), whole(b"c"))
    with wire(serve) as url:
        assert await bodies(url, 3) == [b"a", b"b", b"c"]
    assert [len(lines) for lines in seen] == [3]


@over_both
@pytest.mark.parametrize(
    "surplus",
    [
        whole(b"fake"),
        b"x",
        b"HTTP/1.1 200 OK\r\n",
        b"\x00" * 100,
        b"0" * 100_000,
    ],
)
async def test_surplus_bytes_after_body_are_discarded_with_connection(surplus: bytes) -> None:
    """RFC 9112 9.2: the connection is closed, and the next request gets its own response."""
    serve, seen = talks(whole(b"a") + surplus, whole(b"b"))
    with wire(serve) as url:
        assert await bodies(url, 1) == [b"a"]
    serve, seen = talks(whole(b"a") + surplus, whole(b"b"))
    with wire(serve) as url:
        assert await bodies(url, 2) == [b"a", b"b"]
    assert len(seen) == 2


@over_ours("connections")
async def test_surplus_bytes_on_reused_connection_are_protocol_failure() -> None:
    """A forged response may have followed the first one, and would now be read before the genuine one."""
    serve, seen = talks(whole(b"a"), whole(b"forged") + whole(b"b"))
    with wire(serve) as url:
        first, second = await bodies(url, 2)
    assert first == b"a"
    assert failure(second) == (Cause.PROTOCOL, True)
    assert len(seen) == 1


@over_both
async def test_bytes_received_on_idle_connection_are_discarded_with_it() -> None:
    asked, sent = threading.Event(), threading.Event()
    seen: list[bytes] = []

    def later(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(whole(b"a") if len(seen) == 1 else whole(b"b"))
        if len(seen) == 1:
            asked.wait(120)
            connection.sendall(whole(b"fake"))
            sent.set()
            connection.recv(1)

    with wire(later) as url:
        async with fetcher_of() as fetcher:
            first = await fetcher.fetch(Request(Url(url)))
            asked.set()
            await anyio.to_thread.run_sync(sent.wait, 5)
            second = await fetcher.fetch(Request(Url(url)))
    assert [reply.body for reply in (first, second) if isinstance(reply, Response)] == [b"a", b"b"]


@over_ours("connections")
async def test_connection_closed_while_idle_costs_no_retry() -> None:
    serve, seen = talks(whole(b"a"), None, whole(b"b"))
    with wire(serve) as url:
        assert await bodies(url, 2) == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [2, 1]


def reset(connection: socket.socket) -> None:
    """Close with RST: sent data may be lost, and no more is accepted."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def in_turn(*steps: Callable[[socket.socket], None]) -> tuple[Callable[[socket.socket], None], list[int]]:
    """A server whose connections perform these steps in order, and the number of steps of each connection."""
    left, taken = list(steps), []

    def serve(connection: socket.socket) -> None:
        taken.append(0)
        while left and connection.recv(65536):
            taken[-1] += 1
            left.pop(0)(connection)
            if connection.fileno() < 0:
                return

    return serve, taken


def sends(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


def closes(connection: socket.socket) -> None:
    connection.close()


def closes_tls(connection: socket.socket) -> None:
    """Close with close_notify, without waiting for that of the client."""
    assert isinstance(connection, ssl.SSLSocket)
    connection.setblocking(False)
    with suppress(OSError):
        connection.unwrap()
    connection.close()


@over_ours("connections")
@pytest.mark.parametrize(
    "end", [closes, reset, sends(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n")]
)
async def test_connection_closed_on_reuse_costs_no_retry(
    end: Callable[[socket.socket], None],
) -> None:
    """Whichever way it closes, the request is sent again on a fresh connection, and nothing counts as a failure."""
    serve, taken = in_turn(sends(whole(b"a")), end, sends(whole(b"b")))
    with wire(serve) as url:
        assert await bodies(url, 2) == [b"a", b"b"]
    assert taken == [2, 1]


@over_ours("connections")
@pytest.mark.parametrize("end", [closes, reset, closes_tls])
async def test_tls_connection_closed_on_reuse_costs_no_retry(
    end: Callable[[socket.socket], None],
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    serve, taken = in_turn(sends(whole(b"a")), end, sends(whole(b"b")))
    with wire(serve, context) as url:
        assert await bodies(url, 2, insecure=True) == [b"a", b"b"]
    assert taken == [2, 1]


class CutWire:
    """A connection that is reset after some bytes."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self) -> bytes:
        if not self.pieces:
            raise ConnectionLost("Connection reset by peer")
        return self.pieces.pop(0)


@pytest.mark.parametrize(
    ("pieces", "early"),
    [
        ((), True),
        ((b"HTTP/1.1 200 OK\r\nContent-",), False),
        ((b"HTTP/1.1 103 Early Hints\r\n\r\n",), False),
        ((OK + b"Content-Length: 50\r\n\r\nhello",), False),
        ((OK + b"\r\nas long as the connection",), False),
    ],
)
async def test_reset_counts_as_closed_early_only_before_first_byte(
    pieces: tuple[bytes, ...], early: bool
) -> None:
    """After the first byte the response is truncated, which is a transient failure."""
    answer = IncomingResponse(cast("Wire", CutWire(*pieces)), 10_000, lambda *_: None)

    async def whole_answer() -> None:
        await answer.begin()
        while await answer.read():
            pass

    with pytest.raises(ConnectionLost) as caught:
        await whole_answer()
    assert isinstance(caught.value, ClosedEarly) is early


@over_both
async def test_reset_of_fresh_connection_is_a_failure() -> None:
    serve, taken = in_turn(reset)
    with wire(serve) as url:
        (only,) = await bodies(url, 1)
    assert failure(only) == (Cause.TRUNCATED, True)
    assert taken == [1]


@over_both
@pytest.mark.parametrize(
    "more", [b"Connection: close\r\n", b"Keep-Alive: timeout=5\r\nconnection: Close\r\n"]
)
async def test_connection_close_header_is_obeyed(more: bytes) -> None:
    serve, seen = talks(whole(b"a", more), whole(b"b"))
    with wire(serve) as url:
        assert await bodies(url, 2) == [b"a", b"b"]
    assert len(seen) == 2


@over_both
@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5000000\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        OK + b"\r\n",
        OK + b"Content-Length: 5\r\n\r\nhello",  # a body all the same
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
async def test_response_to_head_ends_with_its_head(answer: bytes) -> None:
    """Nothing is waited for after it, whatever length it states, and no body is taken for the next response."""
    serve, seen = talks(answer, whole(b"b"))
    with wire(serve) as url:
        async with fetcher_of() as fetcher:
            reply = await fetcher.fetch(Request(Url(url), head=True))
            following = await fetcher.fetch(Request(Url(url)))
    assert body_of(reply) == b""
    assert body_of(following) == b"b"
    assert [line.split(b" ")[0] for lines in seen for line in lines] == [b"HEAD", b"GET"]


@over_ours("connections")
async def test_connection_is_kept_after_short_unwanted_body() -> None:
    serve, seen = talks(whole(b"x" * 40_000), whole(b"b"))
    with wire(serve) as url:
        async with fetcher_of() as fetcher:
            await fetcher.fetch(Request(Url(url), wants_body=lambda *_: False))
            await fetcher.fetch(Request(Url(url)))
    assert len(seen) == 1


@over_ours("bounds of framing")
@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(5_000)) + b"\r\n",
        b"HTTP/1.1 200 " + b"O" * 1_000_000,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50_000,
    ],
)
async def test_endless_response_head_is_a_protocol_failure(head: bytes) -> None:
    reply = await told(head)
    assert failure(reply) == (Cause.PROTOCOL, False)


@over_both
async def test_bytes_on_the_wire_are_limited() -> None:
    empty = gzip.compress(b"", mtime=0)
    body = empty * (2_000_000 // len(empty))
    answer = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    chunks = OK + b"Transfer-Encoding: chunked\r\n\r\n" + (b"1;" + b"x" * 5_000 + b"\r\nx\r\n") * 1_000
    for sent in (answer, chunks):
        reply = await told(sent, max_body=100_000)
        assert failure(reply)[0] is Cause.TOO_LARGE


async def test_number_of_idle_connections_is_limited() -> None:
    guard, answers = AddressGuard(allowed=["127.0.0.1"]), [says(whole(b"a")) for _ in range(3)]
    pool = ConnectionPool(guard, ssl.create_default_context, 2)
    with wire(answers[0]) as one, wire(answers[1]) as two, wire(answers[2]) as three:
        for url in (one, two, three):
            destination = Destination("http", "localhost", int(url.rpartition(":")[2].strip("/")))
            answer = await pool.ask(
                destination, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 10_000, ignore_progress
            )
            assert await answer.read() == b"a"
            await answer.aclose()
        assert len(pool._order) == 2
        pool.close()


@over_both
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_requests_go_through_http_proxy(scheme: str) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("site.example").configure_cert(context)
    asked: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        if asked[-1].startswith(b"CONNECT"):
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            connection = context.wrap_socket(connection, server_side=True)
            asked.append(connection.recv(65536))
        connection.sendall(whole(b"hello"))
        connection.close()

    with wire(proxy) as url, authority.cert_pem.tempfile() as pem:
        through = url.replace("http://", "http://me:se%20cret@")
        reply = await ask(f"{scheme}://site.example/page", proxy=through, ca_file=pem)
        refused = await ask("http://10.0.0.1/", proxy=through)
    assert body_of(reply) == b"hello"
    first = asked[0].split(b"\r\n")[0]
    assert first == (
        b"GET http://site.example/page HTTP/1.1" if scheme == "http" else b"CONNECT site.example:443 HTTP/1.1"
    )
    assert b"Proxy-Authorization: Basic bWU6c2UgY3JldA==\r\n" in asked[0]
    if scheme == "https":
        assert asked[1].startswith(b"GET /page HTTP/1.1\r\n")
        assert b"Proxy-Authorization" not in asked[1]
    assert failure(refused)[0] is Cause.ADDRESS
    assert len(asked) == (1 if scheme == "http" else 2)


@over_ours("details of failures")
async def test_unreachable_proxy_is_named_in_detail() -> None:
    with wire(says(b"")) as url:
        pass
    reply = await ask("http://site.example/", proxy=url)
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.detail) == (Cause.CONNECT, "the proxy: Connection refused")


@over_both
async def test_tls_to_plain_http_server_is_reported() -> None:
    with wire(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        reply = await ask(url.replace("http://", "https://"))
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.detail) == (
        Cause.TLS,
        "the server does not speak TLS there; it may be plain http://",
    )


@over_both
@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b"nonsense\r\n\r\n", b""]
)
async def test_refusing_proxy_is_reported_as_broken(answer: bytes) -> None:
    with wire(says(answer)) as url:
        reply = await ask("https://site.example/", proxy=url)
    assert isinstance(reply, Broken)
    assert reply.cause in {Cause.CONNECT, Cause.PROTOCOL}
