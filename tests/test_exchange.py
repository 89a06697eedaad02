"""One exchange: bounded in bytes and time, and every failure of the network a value. respx for the protocol, sockets for
the wire."""

import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import respx
import trustme

from crawler.errors import ConfigError
from crawler.fetch import AddressGuard, HttpFetcher
from crawler.fetch.exchange import _CAUSES
from crawler.fetch.identity import Identity
from crawler.model import Broken, Cause, Reply, Response, Validators
from crawler.ports import Request
from crawler.settings import Http
from crawler.urls import Url

pytestmark = pytest.mark.anyio

URL = Url("http://site.example/page")


async def ask(url: str = URL, request: Request | None = None, **chosen: Any) -> Reply:
    settings = Http(**chosen)
    guard = AddressGuard(["127.0.0.1", "localhost"])
    async with HttpFetcher(settings, guard, Identity(settings, [])) as fetcher:
        return await fetcher.fetch(request or Request(Url(url)))


async def mocked(answer: httpx.Response | Exception, request: Request | None = None, **chosen: Any) -> Reply:
    """Through respx, behind httpx's own transport."""
    with respx.mock() as router:
        route = router.get(request.url if request else URL)
        if isinstance(answer, Exception):
            route.side_effect = answer
        else:
            route.return_value = answer
        return await ask(request=request or Request(URL), **chosen)


# -- the protocol ----------------------------------------------------------------------------------------


async def test_an_answer_comes_with_its_fields_apart() -> None:
    headers = [("Content-Type", "text/html"), ("Link", "<a>; rel=next"), ("link", "<b>; rel=prev")]
    reply = await mocked(httpx.Response(200, headers=headers, content=b"<p>hello"))
    assert isinstance(reply, Response)
    assert (reply.status, reply.body) == (200, b"<p>hello")
    assert reply.headers.all("link") == ["<a>; rel=next", "<b>; rel=prev"]


async def test_validators_are_sent_exactly_as_they_came() -> None:
    with respx.mock() as router:
        route = router.get(URL).respond(304)
        await ask(request=Request(URL, Validators('W/"a b"', "Sunday, 06-Nov-94 08:49:37 GMT")))
    sent = route.calls.last.request.headers
    assert sent["if-none-match"] == 'W/"a b"'
    assert sent["if-modified-since"] == "Sunday, 06-Nov-94 08:49:37 GMT"


async def test_redirects_are_answers() -> None:
    reply = await mocked(httpx.Response(301, headers={"Location": "/x"}))
    assert isinstance(reply, Response)
    assert (reply.status, reply.headers.get("location")) == (301, "/x")


async def test_cookies_are_not_kept() -> None:
    with respx.mock() as router:
        route = router.get(URL).respond(200, headers={"Set-Cookie": "a=b"})
        settings = Http()
        async with HttpFetcher(settings, AddressGuard(), Identity(settings, [])) as fetcher:
            await fetcher.fetch(Request(URL))
            await fetcher.fetch(Request(URL))
    assert all("cookie" not in call.request.headers for call in route.calls)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("X-GZIP", gzip.compress(b"hel") + gzip.compress(b"lo")),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
    ],
)
async def test_codings_are_decoded(coding: str, body: bytes) -> None:
    stream = httpx.ByteStream(body)
    reply = await mocked(httpx.Response(200, headers={"Content-Encoding": coding}, stream=stream))
    assert isinstance(reply, Response)
    assert reply.body == b"hello"


@pytest.mark.parametrize(
    ("coding", "body", "cause"),
    [
        ("gzip", b"not gzip at all", Cause.CODING),
        ("gzip", gzip.compress(b"hello")[:-3], Cause.CODING),
        ("gzip", gzip.compress(b"x" * 100_000), Cause.TOO_LARGE),
        ("identity", b"x" * 2_000, Cause.TOO_LARGE),
        ("compress", b"x", Cause.CODING),
        (", ".join(["gzip"] * 9), b"x", Cause.CODING),
    ],
)
async def test_a_body_that_cannot_be_had_is_a_value(coding: str, body: bytes, cause: Cause) -> None:
    answer = httpx.Response(200, headers={"Content-Encoding": coding}, stream=httpx.ByteStream(body))
    settings = Http(max_body=1_000)
    fetcher = HttpFetcher(  # not respx, which would decode the body itself
        settings, AddressGuard([]), Identity(settings, []), transport=httpx.MockTransport(lambda _: answer)
    )
    async with fetcher:
        reply = await fetcher.fetch(Request(URL))
    assert isinstance(reply, Broken)
    assert reply.cause is cause


async def test_a_request_may_have_a_limit_of_its_own() -> None:
    reply = await mocked(httpx.Response(200, content=b"x" * 20), Request(URL, limit=10))
    assert isinstance(reply, Broken)
    assert reply.cause is Cause.TOO_LARGE


async def test_a_body_nobody_wants_is_not_read() -> None:
    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            raise AssertionError("the body was read")
            yield b""

    reply = await mocked(httpx.Response(404, stream=Endless()), Request(URL, wants_body=lambda *_: False))
    assert isinstance(reply, Response)
    assert reply.body == b""


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
async def test_every_failure_of_httpx_has_a_cause(error: Exception, cause: Cause, transient: bool) -> None:
    assert await mocked(error) == Broken(cause, "x", transient=transient)


def test_httpx_has_no_failure_that_nobody_mapped() -> None:
    mapped = tuple(kind for kind, _, _ in _CAUSES)
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
    assert known <= ours, "a new exception of httpx wants a line in _CAUSES (or here, if we cannot meet it)"


async def test_a_bug_is_not_hidden_as_a_failure_of_the_network() -> None:
    with pytest.raises(ZeroDivisionError):
        await mocked(ZeroDivisionError())


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"proxy": "nonsense://x"}, "--proxy: is not a proxy URL"),
        ({"ca_file": "/nowhere.pem"}, "--ca-file: /nowhere.pem holds no certificates"),
    ],
)
async def test_settings_that_cannot_be_used_are_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        await ask(**chosen)


# -- the wire --------------------------------------------------------------------------------------------


@contextmanager
def wire(serve: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server of raw bytes: `serve` is given each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def loop() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                if context:
                    connection = context.wrap_socket(connection, server_side=True)
                serve(connection)
            except OSError:
                pass
            finally:
                connection.close()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    scheme = "https" if context else "http"
    try:
        yield f"{scheme}://localhost:{listener.getsockname()[1]}/"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def says(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    return serve


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"\r\nhello",  # ended by the connection
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello",
    ],
)
async def test_every_framing_of_an_answer_is_read(answer: bytes) -> None:
    with wire(says(answer)) as url:
        reply = await ask(url)
    assert isinstance(reply, Response)
    assert reply.body == b"hello"


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
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
    ],
)
async def test_a_broken_answer_is_worth_another_try_and_never_a_page(answer: bytes) -> None:
    with wire(says(answer)) as url:
        reply = await ask(url)
    assert isinstance(reply, Broken)
    assert reply.cause in {Cause.PROTOCOL, Cause.TRUNCATED}
    assert reply.transient


async def test_a_bomb_stops_at_the_limit() -> None:
    body = gzip.compress(bytes(200_000_000), 9)
    answer = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with wire(says(answer)) as url:
        reply = await ask(url, max_body=1_000_000)
    assert isinstance(reply, Broken)
    assert reply.cause is Cause.TOO_LARGE


@pytest.mark.parametrize("chosen", [{"timeout": 0.1}, {"total_timeout": 0.1}])
async def test_silence_and_slowness_end(chosen: dict[str, Any]) -> None:
    gone = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(OK)
        gone.wait(5)

    with wire(drip) as url:
        reply = await ask(url, **chosen)
        gone.set()
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.transient) == (Cause.TIMEOUT, True)


async def test_a_refused_connection_is_a_value() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    reply = await ask(f"http://127.0.0.1:{port}/")
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.transient) == (Cause.CONNECT, True)


async def test_the_path_is_asked_for_exactly_as_the_url_standard_spells_it() -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(connection.recv(65536).split(b"\r\n")[0])
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    with wire(serve) as url:
        await ask(url + "a'b(c)[d]?e=%zz&f='g'")
    assert seen == [b"GET /a'b(c)[d]?e=%zz&f='g' HTTP/1.1"]


@pytest.mark.parametrize("host", ["127.0.0.2", "[::ffff:127.0.0.2]", "[::1]", "169.254.169.254", "10.0.0.1"])
async def test_an_address_that_is_not_public_is_refused_before_a_packet_leaves(host: str) -> None:
    reply = await ask(f"http://{host}:9/")
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.transient) == (Cause.ADDRESS, False)


async def test_certificates_are_checked_and_can_be_given_or_waived() -> None:
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


async def test_a_certificate_for_another_name_is_refused() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(context)
    with authority.cert_pem.tempfile() as pem, wire(says(OK), context) as url:
        reply = await ask(url, ca_file=pem)
    assert isinstance(reply, Broken)
    assert reply.cause is Cause.TLS
