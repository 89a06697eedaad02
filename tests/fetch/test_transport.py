"""The connection pool as an httpx transport under httpx's own client, and the requests given to any transport."""

import copy
import pickle
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.connection import ignore_progress
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.httpx_types import PROGRESS, WIRE_LIMIT, ExactUrl, PoolTransport, built
from crawler.fetch.pool import ConnectionPool
from crawler.fetch.request_headers import RequestIdentity
from crawler.fetch.routes import Proxies
from crawler.fetch.transport import OwnTransport, RequestBuilder
from crawler.model.reply import Response
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.settings.sections import Http
from tests.fetch.test_exchange import OK, says, talks, whole
from tests.server import Origin, Talk, http, serving, wire

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    pool = ConnectionPool(AddressGuard(allowed=["127.0.0.1"]), ssl.create_default_context, 2)
    transport = PoolTransport(OwnTransport(pool, Proxies(Http()).destination))
    async with httpx.AsyncClient(transport=transport, timeout=60) as opened:
        yield opened


async def test_httpx_client_works_over_pool_transport() -> None:
    serve, seen = talks(whole(b"a"), whole(b"b"))
    with wire(serve) as url:
        async with client() as asking:
            first = await asking.get(url)
            assert (first.content, first.reason_phrase, first.http_version) == (b"a", "OK", "HTTP/1.1")
            assert (await asking.get(url + "?b|c")).content == b"b"
            with pytest.raises(httpx.UnsupportedProtocol):
                await asking.put(url, content=b"data")
    assert seen == [[b"GET / HTTP/1.1", b"GET /?b|c HTTP/1.1"]]


async def test_a_post_has_a_body_and_a_connection_of_its_own() -> None:
    """On an idle connection that the server has closed meanwhile, it would be sent twice."""
    site, heard = Origin("a", "127.0.0.1"), list[tuple[str, int]]()

    def answer(talk: Talk) -> None:
        heard.append((talk.asked.method, talk.raw.getpeername()[1]))
        talk.say(http("yes"))

    site.put("/", answer)
    with serving(site):
        url = Url(site.url())
        async with HttpFetcher(Http(), AddressGuard([url]), RequestIdentity(Http(), ())) as fetcher:
            for post in (None, None, b"{}"):
                reply = await fetcher.fetch(Request(url, post=post))
                assert isinstance(reply, Response)
                assert reply.body == b"yes"
    assert [method for method, _ in heard] == ["GET", "GET", "POST"]
    assert heard[0][1] == heard[1][1] != heard[2][1]


async def test_a_post_of_json_as_it_is_sent() -> None:
    builder = RequestBuilder(RequestIdentity(Http(), ()))
    url, post = Url("http://a.example/x"), b'{"a": 1}'
    fields = builder.fields(url, {}, post)
    request = built(url, fields, 9, ignore_progress, "POST", post)
    assert (request.method, await request.aread()) == ("POST", b'{"a": 1}')
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert request.headers["content-length"] == "8"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"nonsense", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000, httpx.RemoteProtocolError),
        (OK + b"Content-Length: 9\r\n\r\nshort", httpx.ReadError),
        (b"", httpx.ReadError),
        (whole(b"x" * 400_000), httpx.ReadError),  # more than the wire limit
    ],
)
async def test_wire_failures_raise_httpx_exceptions(answer: bytes, error: type[Exception]) -> None:
    with wire(says(answer)) as url:
        async with client() as asking:
            with pytest.raises(error):
                await asking.get(url, extensions={WIRE_LIMIT: 400_000})


async def test_connection_failures_raise_httpx_transport_error() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with wire(says(OK), context) as url:
        async with client() as asking:
            for refused in ("http://10.0.0.1/", url, url.replace("https", "http")):
                with pytest.raises(httpx.TransportError):
                    await asking.get(refused)


async def test_progress_extension_counts_all_bytes() -> None:
    moved: list[int] = []
    answer = whole(b"x" * 5_000)
    with wire(says(answer)) as url:
        async with client() as asking:
            await asking.get(url, extensions={PROGRESS: moved.append})
    assert sum(moved) == len(answer)


async def test_line_break_in_header_is_refused() -> None:
    serve, seen = talks(whole(b"a"))
    with wire(serve) as url:
        async with client() as asking:
            with pytest.raises(httpx.LocalProtocolError):
                await asking.get(url, headers={"x": "y\r\nz: w"})
    assert seen == []


# -- requests --------------------------------------------------------------------------------------------


def test_built_request_has_all_headers_sent() -> None:
    url, builder = Url("http://a.example:8080/b?c"), RequestBuilder(RequestIdentity(Http(), []))
    request = built(url, builder.fields(url, {"if-none-match": '"é"'}), 10, ignore_progress, "GET", b"")
    assert (request.method, request.content if request.read() else b"") == ("GET", b"")
    assert request.headers.raw[0] == (b"host", b"a.example:8080")
    assert (b"if-none-match", b'"\xe9"') in request.headers.raw
    assert str(request.url) == "http://a.example:8080/b?c"
    assert (request.url.host, request.url.port, request.url.path) == ("a.example", 8080, "/b")


def test_requests_do_not_share_headers() -> None:
    builder = RequestBuilder(RequestIdentity(Http(), []))
    url = Url("http://a.example/")
    first, second = (built(url, builder.fields(url, {}), 10, ignore_progress, "GET", b"") for _ in range(2))
    first.headers["x"] = "y"
    assert "x" not in second.headers


@given(st.text(max_size=30), st.sampled_from(["http://a.example", "https://[::1]:8443", "http://1.2.3.4"]))
def test_exact_url_equals_httpx_url_except_for_target(text: str, site: str) -> None:
    url = Normaliser(strip=())(text, site + "/")
    if url is None:
        return
    exact, known = ExactUrl(url), httpx.URL(url)
    assert (exact.scheme, exact.netloc) == (known.scheme, known.netloc)
    assert exact.raw_path == url.partition(exact.netloc.decode())[2].encode()
    assert (exact.host, exact.port, exact.path, str(exact)) == (
        known.host,
        known.port,
        known.path,
        str(known),
    )
    assert exact == known


def test_exact_url_can_be_copied_and_pickled() -> None:
    exact = ExactUrl(Url("http://a.example/b"))
    assert copy.copy(exact) == copy.deepcopy(exact) == pickle.loads(pickle.dumps(exact)) == exact
    assert not hasattr(exact, "nonsense")
