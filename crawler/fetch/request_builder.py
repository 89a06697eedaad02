"""Builds requests of httpx's type cheaply: the part that all requests to an origin share is built once.

Building an `httpx.URL` takes half as long as an exchange and only repeats what Ada has already parsed, so it
is built only on demand. A transport sends the requests.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import httpx

from crawler.fetch.request_headers import Identity
from crawler.fetch.transport import PROGRESS, WIRE_LIMIT
from crawler.parse import url as urls
from crawler.parse.url import Url

_NOTHING: Final = httpx.ByteStream(b"")
JSON: Final = "application/json; charset=utf-8"


class ExactUrl(httpx.URL):
    """An `httpx.URL` that keeps our spelling of the request target, and is parsed by httpx only on demand."""

    def __init__(self, url: Url) -> None:  # without super(): see __getattr__
        self._ours = url

    def __getattr__(self, name: str) -> Any:
        """Parse the URL with httpx when one of its attributes is first read."""
        if "_ours" not in vars(self):
            raise AttributeError(name)
        parsed = vars(httpx.URL(self._ours))
        if name not in parsed:
            raise AttributeError(name)
        vars(self).update(parsed)
        return parsed[name]

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._ours[: self._ours.index(":")]

    @property
    def netloc(self) -> bytes:
        """Host, and the port if it is not the scheme's default."""
        return urls.netloc(self._ours).encode("ascii")

    @property
    def raw_path(self) -> bytes:
        """Path and query."""
        return urls.target(self._ours).encode("ascii")


class RequestBuilder:
    """Builds requests, with the shared parts cached by origin."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._of_origin = lru_cache(1_000)(self._made)

    def build(
        self,
        url: Url,
        conditions: Mapping[str, str],
        limit: int,
        progress: Callable[[int], None],
        post: bytes | None = None,
        *,
        head: bool = False,
    ) -> httpx.Request:
        """A GET, a HEAD, or a POST of the JSON `post`.

        `limit` and `progress`: see `WIRE_LIMIT` and `PROGRESS`.
        """
        site, headers = self._of_origin(urls.origin(url))
        if cookie := self._identity.cookie(url):
            conditions = {"cookie": cookie, **conditions}
        if post is not None:
            conditions = {**conditions, "content-type": JSON, "content-length": str(len(post))}
        if conditions:
            shared = headers.raw
            if "accept" in conditions:  # the request of a script: its own headers, but never in place of ours
                shared = [field for field in shared if field[0] != b"accept"]
                ours = {name.decode("ascii") for name, _ in shared}
                conditions = {name: value for name, value in conditions.items() if name not in ours}
            headers = httpx.Headers([*shared, *_raw(conditions)])
        extensions = {WIRE_LIMIT: limit, PROGRESS: progress}
        method, body = ("HEAD" if head else "GET", _NOTHING)
        if post is not None:
            method, body = "POST", httpx.ByteStream(post)
        request = httpx.Request(method, site, headers=headers, stream=body, extensions=extensions)
        request.url = ExactUrl(url)
        return request

    def _made(self, site: str) -> tuple[httpx.URL, httpx.Headers]:
        headers = {"host": urls.netloc(site), **self._identity.of_origin(site)}
        return httpx.URL(site), httpx.Headers(_raw(headers))


def _raw(fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in fields.items()]
