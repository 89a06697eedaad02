"""A server that speaks S3 (moto's answers, on the server of the tests), which can be made to fail: to refuse, to be slow, to lie, to lose answers.

Not a test. Requests are logged, so that tests see what was sent.
"""

import os
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from importlib import import_module
from itertools import count
from typing import Any

import pytest

from tests import server
from tests.server import Origin, Talk

KEY, SECRET = "AKIA0123456789KEYID", "very-secret-access-key"
NUMBERS = count(1)

Answer = Callable[[Any], Iterable[bytes]]


def package(name: str) -> Any:
    """A package of the extra `test`; at home its tests are skipped where it is missing, under `CI=true` they fail."""
    return import_module(name) if os.environ.get("CI") == "true" else pytest.importorskip(name)


@dataclass
class Request:
    method: str
    key: str
    headers: dict[str, str]


@dataclass
class S3:
    """The server, and one bucket of it."""

    address: str
    app: Any
    bucket: str = ""
    log: list[Request] = field(default_factory=list)
    fault: Callable[[Request], str | None] = lambda _: None
    """For a request: an error code to answer, "slow" (done once `released`), "hangs" (as long), "careless"
    (conditions are ignored), "lost" (done, but answered 503)."""
    released: threading.Event = field(default_factory=threading.Event)
    slow: list[threading.Event] = field(default_factory=list)
    """Of each slow request: set when it is done, also if nobody waits for its answer any more."""

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        headers = {
            name[5:].replace("_", "-").title(): environ[name] for name in environ if name.startswith("HTTP_")
        }
        headers |= {"Content-Type": environ.get("CONTENT_TYPE", "")}
        request = Request(
            environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(f"/{self.bucket}/"), headers
        )
        self.log.append(request)
        fault = self.fault(request)
        if fault == "slow":
            self.slow.append(done := threading.Event())
            self.released.wait(120)
            try:
                return list(self.app(environ, start))
            finally:
                done.set()
        if fault == "hangs":
            self.released.wait(120)
        elif fault == "careless":
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        elif fault:
            if fault == "lost":
                list(self.app(environ, lambda *_: None))
            else:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, code = {"lost": ("503 X", "SlowDown"), "SlowDown": ("503 X", "SlowDown"), "TooManyRequests": ("429 X", "TooManyRequests")}.get(
                fault, ("403 X", fault)
            )  # fmt: skip
            body = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode()
            start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        return list(self.app(environ, start))

    def finish_slow(self) -> None:
        """What was put late is there from now on, and not in the middle of the next run."""
        self.released.set()
        assert all(done.wait(60) for done in self.slow)

    def ask(self, method: str, key: str = "", body: bytes | None = None) -> tuple[bytes, Message]:
        """As the owner of the bucket, since objects are private: body and headers of the answer."""
        url = f"{self.address}/{self.bucket}" + (f"/{key}" if key else "")
        headers = {"Authorization": "AWS owner:x", "Content-Type": "application/json"}
        asked = urllib.request.Request(url, body, headers, method=method)
        with urllib.request.urlopen(asked) as found:
            return found.read(), found.headers

    def objects(self) -> list[str]:
        body = self.ask("GET")[0].decode()
        return sorted(piece.partition("</Key>")[0] for piece in body.split("<Key>")[1:])

    def new_bucket(self) -> None:
        self.bucket = f"bucket-{next(NUMBERS)}"
        self.ask("PUT")
        self.log.clear()
        self.slow.clear()
        self.released.set()
        self.released = threading.Event()
        self.fault = lambda _: None


@contextmanager
def serving() -> Iterator[S3]:
    moto, wsgi = package("moto.moto_server.werkzeug_app"), package("werkzeug.test")
    s3 = S3("", moto.DomainDispatcherApplication(moto.create_backend_app))

    def answer(talk: Talk) -> None:
        asked = talk.asked
        given = wsgi.EnvironBuilder(
            asked.path, s3.address, method=asked.method, headers=asked.headers, data=asked.body
        )
        found, status, fields = wsgi.run_wsgi_app(s3, given.get_environ())
        body = b"" if asked.method == "HEAD" else b"".join(found)
        fields.setdefault("Content-Length", str(len(body)))
        talk.say(f"HTTP/1.1 {status}\r\n{fields}".encode() + body)

    origin = Origin("s3", "127.0.0.1", others=lambda _: answer)
    with server.serving(origin):
        s3.address = origin.url("")
        try:
            yield s3
        finally:
            s3.released.set()
