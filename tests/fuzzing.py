"""What any bytes may meet: one target for each parser of what comes from the network, each with its laws.

Run by hypothesis in the suite, and by atheris for as long as one likes (`scripts/fuzz`).
"""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from crawler.fetch.connection import (
    ConnectionLost,
    HeadTooLarge,
    IncomingResponse,
    MalformedResponse,
    ResponseTooLarge,
    Wire,
)
from crawler.model.reply import Headers, Reply, Response
from crawler.model.visit import Lease, Visit
from crawler.parse import content_coding, dates, encoding, html, robots_meta, srcset
from crawler.parse import headers as fields
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.refresh import parse_refresh
from crawler.parse.robots_txt import parse
from crawler.parse.url import Url
from crawler.report.printable import printable
from crawler.rules import throttle, traps
from crawler.rules.indexing import Audience, indexing
from crawler.rules.judge import Judge, JudgeRules
from crawler.sitemap import read
from crawler.sitemap.validate.file import Check

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
BASE: Final = Url("https://a.example/dir/page?x=1")


def robots(data: bytes) -> None:
    """Any robots.txt gives an answer for any path."""
    text, _, path = data.partition(b"\x00")
    rules = parse(text, "sitemap-crawler")
    rules.permit("/" + path.decode("latin-1"))


def url(data: bytes) -> None:
    """What is a URL once is the same URL for ever, and ASCII."""
    normalise = Normaliser()
    found = normalise(data.decode("utf-8", "replace"), BASE)
    if found is not None:
        assert found.isascii()
        assert normalise(found) == found
        assert urls.origin(found) + urls.target(found) == found
        assert "@" not in urls.netloc(found)
        assert "#" not in found
        traps.obvious(found, 1)
        traps.pattern_of(found)
        traps.Traps().bars(found, 1)


def headers(data: bytes) -> None:
    """Any value of any field is read or ignored."""
    value = data.decode("latin-1")
    encoding.sniff(b"", fields.content_type(value)[1])
    fields.links([value])
    indexing(robots_meta.addressed([value]), Audience("sitemap-crawler", frozenset()), NOW)
    robots_meta.directives(value)
    at = dates.http_date(value, NOW)
    assert at is None or at.tzinfo is UTC
    dates.read_w3c(value)
    throttle.retry_after(Headers([("retry-after", value)]), NOW)
    assert printable(value, 100).isprintable()


def pieces(data: bytes) -> list[bytes]:
    """What follows the first byte, in pieces of the size that it says."""
    size = data[0] % 60 + 1 if data else 1
    return [data[at : at + size] for at in range(1, len(data), size)]


def sitemap(data: bytes) -> None:
    """Any file is partly read: broken in the middle."""
    found = sum(1 for _ in read.read(pieces(data), 1_000_000))
    assert found <= len(data)


def check(data: bytes) -> None:
    """The validator has an opinion of any file."""
    checking = Check("sitemap.xml", home="https://a.example/sitemap.xml", now=NOW)
    for finding in checking.run(pieces(data)):
        assert finding.line >= 0


def refresh(data: bytes) -> None:
    """Meta refresh and srcset: attributes with a grammar of their own."""
    text = data.decode("utf-8", "replace")
    found = parse_refresh(text)
    assert found is None or found[0] >= 0
    assert all(one.url and one.url == one.url.strip(",") for one in srcset.candidates(text))


def page(data: bytes) -> None:
    """Any bytes are a page, and what it links to is http(s)."""
    if html.PageSource(data, BASE).is_risky:
        return
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser()))
    charset = ["utf-8", "utf-16le", "gbk", "x-user-defined"][len(data) % 4]
    reply: Reply = Response(200, Headers([("content-type", f"text/html;charset={charset}")]), data)
    verdict = judge(Lease(1, 1, Visit(BASE)), reply, NOW)
    assert all(link.startswith(("http://", "https://")) for link in verdict.links.urls)


def coding(data: bytes) -> None:
    """No coding gives more than the limit, or raises an unexpected exception."""
    word = ["gzip", "deflate", "br", "zstd"][data[0] % 4] if data else "gzip"
    total = 0
    decoder = content_coding.decoder([word], 100_000)
    try:
        for piece in decoder.feed(data[1:]):
            total += len(piece)
        decoder.finish()
    except (content_coding.TooLarge, content_coding.BrokenCoding):
        pass
    assert total <= 100_000


class _Said(Wire):
    """A connection that says what it was given, in pieces."""

    def __init__(self, data: bytes) -> None:
        self.pieces = pieces(data)

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def answer(data: bytes) -> None:
    """Any bytes on a connection are an answer or none; one that is kept had nothing after it."""
    kept: list[bool] = []
    wire = _Said(data)

    async def talk() -> None:
        reply = IncomingResponse(wire, 100_000, lambda _, keeps: kept.append(keeps))
        try:
            await reply.begin()
            while await reply.read():
                pass
            await reply.aclose()
        except (MalformedResponse, ConnectionLost, HeadTooLarge, ResponseTooLarge):
            reply.drop()

    _run(talk())
    assert len(kept) == 1


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end, without an event loop: nothing here ever waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    target.__name__: target
    for target in (robots, url, headers, sitemap, check, refresh, page, coding, answer)
}
SEEDS: Final[dict[str, list[bytes]]] = {
    "robots": [b"User-agent: *\nDisallow: /a*b$\nAllow: /%70\nCrawl-delay: 1\nSitemap: /x\x00a%2fb"],
    "url": [b"/a/.;sid=1/..;jsessionid=2", b"//;sid=1;sid=1/", b"//user:pw@EXAMPLE.com:443/a/../b;jsessionid=1?utm_source=x&y=%zz#f", "http://\u00fc.example/\\x".encode()],
    "headers": [b'text/html; charset="utf-8"', b'<a>; rel="next prev"; title*=UTF-8\'\'x', b"sitemap-crawler: noindex, unavailable_after: x",
                b"Sunday, 06-Nov-94 08:49:37 GMT", b"2026-11-21T08:49:37.5+01:00"],
    "sitemap": [b"c<?xml version='1.0'?><urlset xmlns='x'><url><loc>http://a/</loc><lastmod>2020</lastmod></url></urlset>", b"\x05http://a.example/\r\n", b"c\x1f\x8b<"],
    "check": [b"c\x1f\x8b<", b"c<?xml version='1.0'?><sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><sitemap><loc>http://a/</loc></sitemap></sitemapindex>"],
    "refresh": [b"5;url='x'", b"a 1x, b 2x"],
    "page": [b"<!doctype html><meta charset=utf-8><base href=/b><a href='x y#z' rel=nofollow>t</a><link rel=canonical href=/c><time itemprop=dateModified datetime=2020>"],
    "coding": [b"\x00\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00", b"\x03\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00x"],
    "answer": [b"\x14HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nHTTP/1.1", b"\x05HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"],
}  # fmt: skip
