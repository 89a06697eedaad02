"""A website declared in a few lines and served on loopback. For the demo and tests only; `crawler.testing`
serves one without a network.

    site = Site()
    site.page("/", links=["/a"])
    with site.serve() as origin: ...

`{origin}` in links, robots.txt and Location becomes the origin that the site is served at.
"""

import html
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, ClassVar, TypedDict, Unpack

from msgspec import Struct

Fields = Mapping[str, str] | Sequence[tuple[str, str]]


class CannedResponse(Struct, frozen=True):
    """A response."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class LoggedRequest(Struct, frozen=True):
    """A received request."""

    time: float  # seconds, monotonic
    method: str
    target: str
    headers: Mapping[str, str]
    status: int


class PageOptions(TypedDict, total=False):
    """What a page has, beside its address."""

    links: Sequence[str]
    nofollow: Sequence[str]  # links with rel=nofollow
    title: str
    text: str  # markup
    head: str  # markup
    canonical: str | None
    noindex: bool
    lastmod: datetime | str | None  # a text is sent unchanged
    headers: Fields
    status: int


def _items(links: Sequence[str], rel: str = "") -> Iterator[str]:
    for link in map(html.escape, links):
        yield f'<li><a{rel} href="{link}">{link}</a>'


class SiteServer(ThreadingHTTPServer):
    """Answers each request in a thread of its own."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    scheme = "http"
    origin = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A closed connection is not reported."""


@dataclass(eq=False, repr=False)
class Site:
    """Pages by path and query. Others answer 404."""

    answers: dict[str, Callable[[Any], CannedResponse]] = field(default_factory=dict)
    log: list[LoggedRequest] = field(default_factory=list)
    server: type[SiteServer] = SiteServer

    def page(self, target: str, **page: Unpack[PageOptions]) -> None:
        title = html.escape(page.get("title") or target)
        head, canonical, lastmod = page.get("head", ""), page.get("canonical"), page.get("lastmod")
        head += f'<link rel="canonical" href="{html.escape(canonical)}">' if canonical else ""
        head += '<meta name="robots" content="noindex">' if page.get("noindex") else ""
        items = [*_items(page.get("links", ())), *_items(page.get("nofollow", ()), ' rel="nofollow"')]
        body = f"<h1>{title}</h1>{page.get('text', '')}<ul>{''.join(items)}</ul>"
        markup = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title>{head}</head><body>{body}</body></html>"
        )
        fields = [("Content-Type", "text/html; charset=utf-8"), *_pairs(page.get("headers", ()))]
        if lastmod is not None:
            date = lastmod if isinstance(lastmod, str) else format_datetime(lastmod, usegmt=True)
            fields.append(("Last-Modified", date))
        self.raw(target, body=markup.encode(), status=page.get("status", 200), headers=fields)

    def raw(self, target: str, *, body: bytes = b"", status: int = 200, headers: Fields = ()) -> None:
        """A response with any status, headers and body."""
        answer = self.answer(status, body, headers)
        self.answers[target] = lambda _: answer

    def redirect(self, target: str, to: str, status: int = 301) -> None:
        self.raw(target, status=status, headers=[("Location", to)])

    def respond(self, target: str, answer: Callable[[Any], Any]) -> None:
        """A function from the request to an `answer`, called in a thread of the server."""
        self.answers[target] = answer

    @staticmethod
    def answer(status: int = 200, body: bytes = b"", headers: Fields = ()) -> CannedResponse:
        """A response for `respond`; without a Content-Type it is HTML."""
        fields = _pairs(headers)
        if body and not any(name.lower() == "content-type" for name, _ in fields):
            fields.append(("Content-Type", "text/html; charset=utf-8"))
        return CannedResponse(status, body, tuple(fields))

    def robots(self, text: str) -> None:
        self.raw("/robots.txt", body=text.encode(), headers=[("Content-Type", "text/plain")])

    def sitemap(
        self, target: str, locs: Sequence[str], dates: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """A sitemap; paths become URLs of the site. `dates`: of some of `locs`."""
        lines = ""
        for loc in locs:
            url = loc if "://" in loc else "{origin}" + loc
            date = f"<lastmod>{html.escape(dates[loc])}</lastmod>" if loc in dates else ""
            lines += f"<url><loc>{html.escape(url)}</loc>{date}</url>"
        body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{lines}</urlset>'
        self.raw(target, body=body.encode(), headers=[("Content-Type", "application/xml")])

    def requests(self, target: str) -> int:
        """The number of requests for `target`."""
        return sum(asked.target == target for asked in self.log)

    def asked(
        self, method: str, target: str, headers: Mapping[str, str], origin: str, request: Any
    ) -> CannedResponse:
        """The response to a request, which is logged. `request`: what `respond` hands to its function."""
        came = time.monotonic()
        answer = _with_origin(self.answers.get(target, _missing)(request), origin)
        if _is_unchanged({name.lower(): value for name, value in headers.items()}, answer):
            answer = CannedResponse(304, b"", answer.headers)
        self.log.append(LoggedRequest(came, method, target, headers, answer.status))
        return answer

    @contextmanager
    def serve(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
        """Serves while the block runs; yields the origin, `http://127.0.0.1:40123`. Port 0: any free port."""
        server = self.server((host, port), _handler(self))
        server.origin = f"{server.scheme}://{host}:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.origin
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm: ClassVar[bool] = True
        wbufsize = -1  # one packet for head and body
        server: SiteServer

        def do_GET(self) -> None:
            headers = dict(self.headers.items())
            answer = site.asked(self.command, self.path, headers, self.server.origin, self)
            self.send_response_only(answer.status, _phrase(answer.status))
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.status != 304:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
            """Requests are in `site.log`."""

    return Handler


def _missing(_: Any) -> CannedResponse:
    return Site.answer(404, b"<title>Not found</title><h1>Not found</h1>")


def _with_origin(answer: CannedResponse, origin: str) -> CannedResponse:
    headers = tuple((name, value.replace("{origin}", origin)) for name, value in answer.headers)
    return CannedResponse(answer.status, answer.body.replace(b"{origin}", origin.encode()), headers)


def _is_unchanged(asked: Mapping[str, str], answer: CannedResponse) -> bool:
    """Whether to answer 304 (RFC 9110 13): by ETag if request and page have one, else by an equal date."""
    if answer.status != 200:
        return False
    if "if-none-match" in asked and answer.header("ETag"):
        return asked["if-none-match"] == answer.header("ETag")
    since = asked.get("if-modified-since")
    return since is not None and since == answer.header("Last-Modified")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _pairs(headers: Fields) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)
