"""The HTTP server of the tests: on raw sockets, it sends any bytes, at one loopback address for each origin, and logs requests.

Whatever a test needs of a server is an answer, or a function that talks on the connection; no test listens by itself.
Standard library only, and deterministic. Nothing here knows a crawler.
"""

import errno
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

ASKED_EVERYWHERE = ("/robots.txt", "/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml", "-no-such-page")


@dataclass(frozen=True)
class LoggedRequest:
    """One request, as received."""

    path: str
    at: float
    headers: dict[str, str]
    method: str
    in_flight: int
    body: bytes = b""


@dataclass
class Expect:
    """The expectations for one URL. None: no expectation."""

    listed: bool | None = None
    asked: bool | None = None
    most: int | None = None  # requests
    lastmod: str | None = None


Answer = bytes | Callable[["Talk"], None]


@dataclass
class Talk:
    """A connection on which a request was received."""

    asked: LoggedRequest
    raw: socket.socket
    count: int  # the how-manieth request of this path
    gone: threading.Event  # the server closes
    answering: Callable[[], None]  # called before the first byte

    def say(self, data: bytes) -> None:
        """Send it."""
        self.answering()
        self.raw.sendall(data)

    def drip(self, data: bytes, pause: float = 0.05, seconds: float = 30.0) -> None:
        """A byte at a time, again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.gone.is_set():
            for at in range(len(data)):
                self.say(data[at : at + 1])
                if self.gone.wait(pause):
                    return

    def hold(self, seconds: float = 30.0) -> None:
        """Send nothing, and keep the connection open."""
        self.gone.wait(seconds)

    def reset(self) -> None:
        """End it with RST."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.raw.close()

    def close(self) -> None:
        """End it."""
        self.raw.shutdown(socket.SHUT_RDWR)


@dataclass
class Origin:
    """One host: its responses, the expectations, and the log of requests."""

    name: str
    address: str
    answers: dict[str, Answer] = field(default_factory=dict)
    expect: dict[str, Expect] = field(default_factory=dict)
    bounds: list[tuple[str, Callable[[str], bool], int]] = field(default_factory=list)
    others: Callable[[str], Answer | None] = lambda _: None
    log: list[LoggedRequest] = field(default_factory=list)
    waiting: int = 0  # requests that nothing was answered to yet
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0
    context: ssl.SSLContext | None = None  # it serves https
    connected: Callable[[socket.socket], None] | None = (
        None  # in place of all answers, one connection at a time
    )

    def put(self, path: str, answer: Answer, **right: object) -> None:
        """Serve `answer` at `path`; the rest says what is right."""
        self.answers[path] = answer
        self.expect[path] = Expect(**right)  # type: ignore[arg-type]

    def bound(self, name: str, within: Callable[[str], bool], most: int) -> None:
        """Expect at most `most` requests for paths `within`; which of them are listed does not matter."""
        self.bounds.append((name, within, most))

    def counts(self) -> Counter[str]:
        """Requests by path."""
        return Counter(asked.path for asked in self.log)

    def visits(self, since: int = 0) -> list[LoggedRequest]:
        """Requests for pages, without those for what every site is asked for."""
        return [asked for asked in self.log[since:] if not asked.path.endswith(ASKED_EVERYWHERE)]

    def url(self, path: str = "/") -> str:
        """Of a path."""
        return f"{'https' if self.context else 'http'}://{self.address}:{self.port}{path}"


def http(body: bytes | str = b"", status: str = "200 OK", **fields: str) -> bytes:
    """A whole answer. Underscores in names are hyphens; `Content_Length` may lie."""
    data = body.encode() if isinstance(body, str) else body
    given = {"Content_Type": "text/html; charset=utf-8", "Content_Length": str(len(data))} | fields
    lines = [
        f"HTTP/1.1 {status}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in given.items() if value),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def page(*links: str, head: str = "", text: str = "") -> str:
    """A page of its own content: no two pages say the same unless `text` says so."""
    said = text or " ".join(links) or head
    return f"<!doctype html><title>{said[:60]}</title>{head}<body><p>{said}</p>" + "".join(
        f'<a href="{link}">link</a>' for link in links
    )


def moved(to: str, status: str = "302 Found") -> bytes:
    """A redirect."""
    return http("", status, Location=to)


@contextmanager
def serving(*origins: Origin) -> Iterator[None]:
    """All of them, each at its own address and all at one port."""
    gone, threads = threading.Event(), []
    listeners = _listeners([origin.address for origin in origins])
    for origin, listener in zip(origins, listeners, strict=True):
        origin.port = listener.getsockname()[1]
        threads.append(threading.Thread(target=_accept, args=(origin, listener, gone), daemon=True))
        threads[-1].start()
    try:
        yield
    finally:
        gone.set()
        for listener in listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in threads:
            thread.join(120)


def _listeners(addresses: Sequence[str], attempts: int = 20) -> list[socket.socket]:
    """One at each address, at a port that is free at all of them."""
    with ExitStack() as opened:
        listeners = [opened.enter_context(socket.create_server((addresses[0], 0)))]
        port = listeners[0].getsockname()[1]
        try:
            listeners.extend(
                opened.enter_context(socket.create_server((address, port))) for address in addresses[1:]
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not attempts:
                raise
            return _listeners(addresses, attempts - 1)
        opened.pop_all()
        return listeners


@contextmanager
def wire(connected: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server of raw bytes at localhost: its URL. `connected` handles each connection, one after the other."""
    origin = Origin("wire", "127.0.0.1", connected=connected, context=context)
    with serving(origin):
        yield origin.url().replace("127.0.0.1", "localhost")


@contextmanager
def taken_port() -> Iterator[int]:
    """A port of 127.0.0.1 at which another program listens, and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def free_port(address: str = "127.0.0.1") -> int:
    """A port at which nobody listens, and which the system gives nobody: it chooses from 32,768 on."""
    while True:
        port = 11_000 + secrets.randbelow(21_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((address, port))
            return port


def _accept(origin: Origin, listener: socket.socket, gone: threading.Event) -> None:
    while not gone.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        if origin.connected:
            with suppress(OSError), _secured(origin, connection) as secured:
                origin.connected(secured)
        else:
            connection.settimeout(60)
            threading.Thread(target=_serve, args=(origin, connection, gone), daemon=True).start()


def _secured(origin: Origin, connection: socket.socket) -> socket.socket:
    """The connection after the handshake of TLS, if the origin serves https."""
    try:
        return origin.context.wrap_socket(connection, server_side=True) if origin.context else connection
    except OSError:
        connection.close()
        raise


def _serve(origin: Origin, accepted: socket.socket, gone: threading.Event) -> None:
    with suppress(OSError, ValueError), _secured(origin, accepted) as connection:
        buffer = b""
        while not gone.is_set():
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            first, *rest = head.decode("latin-1").split("\r\n")
            fields = (line.partition(":") for line in rest)
            headers = {name.lower(): value.strip() for name, _, value in fields}
            if headers.get("expect") == "100-continue":
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            length = int(headers.get("content-length", 0))
            while len(buffer) < length and (data := connection.recv(65536)):
                buffer += data
            body, buffer = buffer[:length], buffer[length:]
            method, path, _ = first.split(" ", 2)
            with origin.lock:
                origin.waiting += 1
                asked = LoggedRequest(path, time.monotonic(), headers, method, origin.waiting, body)
                origin.log.append(asked)
            _answer(origin, connection, asked, gone)


def _answer(origin: Origin, connection: socket.socket, asked: LoggedRequest, gone: threading.Event) -> None:
    answering = once(origin)
    try:
        answer = origin.answers.get(asked.path) or origin.others(asked.path) or http("gone", "404 Not Found")
        talk = Talk(asked, connection, origin.counts()[asked.path], gone, answering)
        if callable(answer):
            answer(talk)
        else:
            talk.say(answer)
    finally:
        answering()


def once(origin: Origin) -> Callable[[], None]:
    """One request waits no more, however often that is said."""
    left = [1]

    def answering() -> None:
        with origin.lock:
            origin.waiting -= left.pop() if left else 0

    return answering
