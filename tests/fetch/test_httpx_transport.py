"""httpx's own transport, for HTTP/2 and for SOCKS and https proxies: no byte of one response is read as another's."""

import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest
import trustme

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import RequestIdentity
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Response
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.settings.sections import Http
from tests.fetch.test_exchange import talks, whole
from tests.server import wire

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

FORGED = whole(b"forged")


@pytest.fixture
def contexts() -> Iterator[tuple[ssl.SSLContext, str]]:
    """The TLS context of a server on localhost, and the file of its certificate authority."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    with authority.cert_pem.tempfile() as pem:
        yield context, pem


async def bodies(
    urls: list[str], transport: httpx.AsyncBaseTransport | None = None, **chosen: Any
) -> list[bytes | Broken]:
    settings = Http(**chosen)
    guard = AddressGuard(urls if transport else (), allowed=["127.0.0.1"])
    found: list[bytes | Broken] = []
    async with HttpFetcher(
        settings, guard, RequestIdentity(settings, []), connections=1, transport=transport
    ) as fetcher:
        for url in urls:
            reply = await fetcher.fetch(Request(Url(url)))
            found.append(reply.body if isinstance(reply, Response) else reply)
    return found


def after(
    greet: Callable[[socket.socket], None], serve: Callable[[socket.socket], None]
) -> Callable[[socket.socket], None]:
    def both(connection: socket.socket) -> None:
        greet(connection)
        serve(connection)

    return both


def socks5(connection: socket.socket) -> None:
    """The server's side of the SOCKS5 handshake (RFC 1928), without a login; the proxy then answers requests itself."""
    connection.recv(64)
    connection.sendall(b"\x05\x00")
    connection.recv(512)
    connection.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50")


@pytest.mark.parametrize("surplus", [FORGED, b"x", b"HTTP/1.1 200 OK\r\n"])
async def test_custom_transport_discards_surplus_bytes_after_body(surplus: bytes) -> None:
    serve, seen = talks(whole(b"a") + surplus, whole(b"b"))
    with wire(serve) as url:
        assert await bodies([url, url], httpx.AsyncHTTPTransport()) == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [1, 1], "one request per connection"


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://[::1]/", "http://app.localhost/", "http://a.example:22/"]
)
async def test_custom_transport_gets_no_request_for_private_address(url: str) -> None:
    def respond(_: httpx.Request) -> httpx.Response:
        raise AssertionError("the transport got a request")

    settings = Http()
    async with HttpFetcher(
        settings, AddressGuard(), RequestIdentity(settings, []), transport=httpx.MockTransport(respond)
    ) as fetcher:
        reply = await fetcher.fetch(Request(Url(url)))
    assert isinstance(reply, Broken)
    assert (reply.cause, reply.transient) == (Cause.ADDRESS, False)


async def test_socks_proxy_discards_surplus_bytes_after_body() -> None:
    pytest.importorskip("socksio")
    serve, seen = talks(whole(b"a") + FORGED, whole(b"b"))
    with wire(after(socks5, serve)) as url:
        proxy = url.replace("http:", "socks5:").rstrip("/")
        assert await bodies(["http://site.example/1", "http://site.example/2"], proxy=proxy) == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [1, 1]


async def test_https_proxy_discards_surplus_bytes_after_body(
    contexts: tuple[ssl.SSLContext, str],
) -> None:
    context, pem = contexts
    serve, seen = talks(whole(b"a") + FORGED, whole(b"b"))
    with wire(serve, context) as url:
        found = await bodies(
            ["http://site.example/1", "http://site.example/2"], proxy=url.rstrip("/"), ca_file=pem
        )
    assert found == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [1, 1]


async def test_waiting_requests_never_get_a_used_connection() -> None:
    """Between the end of a response and the closing of its connection, another request of the pool may be given it."""
    serve, seen = talks(*[whole(b"a") + FORGED] * 6)
    limits = httpx.Limits(max_connections=1)
    settings = Http()
    with wire(serve) as url:
        async with HttpFetcher(
            settings,
            AddressGuard([url]),
            RequestIdentity(settings, []),
            transport=httpx.AsyncHTTPTransport(limits=limits),
        ) as fetcher:
            found: list[object] = []

            async def one() -> None:
                reply = await fetcher.fetch(Request(Url(url)))
                found.append(reply.body if isinstance(reply, Response) else reply)

            async with anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(one)
    assert found == [b"a"] * 6
    assert [len(lines) for lines in seen] == [1] * 6


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:8009", "https://127.0.0.1:8009"])
@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://localhost/", "http://[::1]/", "http://site.example:22/"]
)
async def test_proxy_gets_no_request_for_private_address_or_bad_port(proxy: str, url: str) -> None:
    if proxy.startswith("socks"):
        pytest.importorskip("socksio")
    (reply,) = await bodies([url], proxy=proxy)
    assert isinstance(reply, Broken)
    assert reply.cause is Cause.ADDRESS


# -- HTTP/2 ----------------------------------------------------------------------------------------------


async def test_alpn_http_1_uses_own_connection_pool(
    contexts: tuple[ssl.SSLContext, str],
) -> None:
    """The first handshake decides; no request is sent over its connection."""
    pytest.importorskip("h2")
    context, pem = contexts
    serve, seen = talks(whole(b"a") + FORGED, whole(b"b"))
    with wire(serve, context) as url:
        assert await bodies([url] * 2, http2=True, ca_file=pem) == [b"a", b"b"]
        assert [len(lines) for lines in seen] == [0, 1, 1]
    serve, seen = talks(*map(whole, (b"a", b"b", b"c")))
    with wire(serve, context) as url:
        assert await bodies([url] * 3, http2=True, ca_file=pem) == [b"a", b"b", b"c"]
    assert [len(lines) for lines in seen] == [0, 3]


async def test_alpn_http_1_through_socks_proxy(contexts: tuple[ssl.SSLContext, str]) -> None:
    pytest.importorskip("h2")
    pytest.importorskip("socksio")
    context, pem = contexts
    serve, seen = talks(whole(b"a") + FORGED, whole(b"b"))

    def tunnelled(connection: socket.socket) -> None:
        socks5(connection)
        with context.wrap_socket(connection, server_side=True) as secured:
            serve(secured)

    with wire(tunnelled) as url:
        proxy, port = url.replace("http:", "socks5:").rstrip("/"), url.rpartition(":")[2]
        urls = [f"https://127.0.0.1:{port}"] * 2
        assert await bodies(urls, proxy=proxy, http2=True, ca_file=pem) == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [0, 1, 1]


async def test_custom_http_2_transport_is_refused() -> None:
    """Whether its connections are safe to reuse depends on the protocol that each server chose."""
    pytest.importorskip("h2")
    with pytest.raises(ConfigError, match="http2"):
        await bodies([], httpx.AsyncHTTPTransport(http2=True))


async def test_plain_http_uses_own_connection_pool() -> None:
    pytest.importorskip("h2")
    serve, seen = talks(whole(b"a"), whole(b"b"))
    with wire(serve) as url:
        assert await bodies([url] * 2, http2=True) == [b"a", b"b"]
    assert [len(lines) for lines in seen] == [2]


def speaks_http2(
    bodies_: list[bytes], *, goaway_after: int
) -> tuple[Callable[[socket.socket], None], list[int]]:
    """A server that answers each stream in order, and sends GOAWAY after some of them."""
    import h2.config  # noqa: PLC0415 - an extra
    import h2.connection  # noqa: PLC0415
    import h2.events  # noqa: PLC0415

    left, seen = list(bodies_), list[int]()

    def serve(connection: socket.socket) -> None:
        speaker = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        speaker.initiate_connection()
        connection.sendall(speaker.data_to_send())
        seen.append(0)
        while data := connection.recv(65536):
            for event in speaker.receive_data(data):
                if isinstance(event, h2.events.RequestReceived) and event.stream_id and left:
                    seen[-1] += 1
                    speaker.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/html")])
                    speaker.send_data(event.stream_id, left.pop(0), end_stream=True)
                    if seen[-1] == goaway_after:
                        speaker.close_connection(last_stream_id=event.stream_id)
            connection.sendall(speaker.data_to_send())
            if seen[-1] == goaway_after:
                while connection.recv(65536):
                    pass
                return

    return serve, seen


@pytest.mark.parametrize(("goaway_after", "connections"), [(9, [3]), (1, [1, 1, 1])])
async def test_http_2_connection_is_shared_until_goaway(
    contexts: tuple[ssl.SSLContext, str], goaway_after: int, connections: list[int]
) -> None:
    """Requests after GOAWAY are sent on a fresh connection, which is not a failure."""
    pytest.importorskip("h2")
    context, pem = contexts
    context.set_alpn_protocols(["h2"])
    serve, seen = speaks_http2([b"a", b"b", b"c"], goaway_after=goaway_after)
    with wire(serve, context) as url:
        assert await bodies([url] * 3, http2=True, ca_file=pem) == [b"a", b"b", b"c"]
    assert seen == connections
