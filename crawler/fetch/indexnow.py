"""IndexNow: tells a search engine, which tells the others, that URLs of one host changed.

See indexnow.org/documentation. A file with the key on the host proves who submits, so that is checked first.
Redirects are not followed, no credentials are sent, and the response is not trusted: a short printable piece
of it is shown. What is due is decided by `rules.submission`.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import Struct

from crawler.errors import ConfigError, NotSubmitted
from crawler.fetch.retry import because
from crawler.model.protocol import REDIRECTS
from crawler.model.reply import Broken, Headers, Reply
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Fetcher, Request
from crawler.report.printable import printable
from crawler.rules.throttle import OVERLOADED, QUICK, retry_after

ENDPOINT: Final = "https://api.indexnow.org/indexnow"
LARGEST_BATCH: Final = 10_000  # URLs of one request
KEY_FILE: Final = 1_000  # bytes that are read of it
SHOWN: Final = 200  # characters of an answer
ANSWER: Final = 2_000  # bytes of an answer that are read
WRONG: Final = {
    400: "the request is not valid",
    403: "the key was not found, or is not the one in the file",
    422: "the URLs do not belong to the host, or the key is not valid",
}
"""Statuses by which an engine refuses for good."""


class Key(Struct, frozen=True):
    """The key of a site, and where its file is: by default at the root of each host."""

    text: str
    location: Url | None = None

    def place(self, site: str) -> Url:
        """The URL of the key file of an origin."""
        if self.location and urls.origin(self.location) == site:
            return self.location
        return Url(f"{site}/{self.text}.txt")

    def covers(self, url: Url) -> bool:
        """Whether the key file is valid for a URL: it is valid for the folder that it is in."""
        return url.startswith(self.place(urls.origin(url)).rpartition("/")[0] + "/")


async def check_key(fetcher: Fetcher, key: Key, site: str) -> None:
    """Fetches the key file of an origin as an engine would.

    Raises `ConfigError` if it does not hold the key.
    """
    place = key.place(site)
    reply = await fetcher.fetch(Request(place, limit=KEY_FILE, cut=True))
    wrong = _wrong_with(reply, key)
    if wrong:
        raise ConfigError(
            f"The key file {place} {wrong}: search engines need it as plain text that holds only the key. "
            "Nothing was submitted."
        )


def _wrong_with(reply: Reply, key: Key) -> str:
    if isinstance(reply, Broken):
        return f"cannot be read ({_shown(reply)})"
    if reply.status in REDIRECTS:
        return f"is a redirect ({reply.status}) to {printable(reply.headers.get('location') or 'nowhere')}"
    if reply.status != 200:
        return f"answers {reply.status}"
    if reply.body.removeprefix(b"\xef\xbb\xbf").strip() != key.text.encode():
        return f'holds "{_text(reply.body, 60)}" instead of the key'
    return ""


class Engine(Struct, frozen=True):
    """The search engine at one endpoint."""

    endpoint: Url
    key: Key
    fetcher: Fetcher  # retries failures of the network
    retries: int
    max_wait: float  # seconds: longest Retry-After to wait for
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    waiting: Callable[[float], None] = lambda _: None  # called before each of those waits, with its seconds
    repeated: Callable[[Url, str, int], None] = lambda _url, _because, _attempt: None  # as in `Retrying`

    async def submit(self, batch: Sequence[str]) -> bool:
        """Submits up to `LARGEST_BATCH` URLs of one origin; whether the key is still to be checked (202).

        Raises `ConfigError` if the engine refuses them, `NotSubmitted` if they may be accepted later.
        """
        from crawler.rules import retries  # noqa: PLC0415 - takes long to import, and every crawl loads this module

        posting = retries.while_result(
            lambda reply: self._wait(reply) is not None,
            tries=self.retries + 1,
            sleep=self._pause,
            wait=self._wait,
            repeats=lambda reply, attempt: self.repeated(self.endpoint, because(reply), attempt),
        )
        return self._answered(await posting(partial(self._post, batch)))

    async def _pause(self, seconds: float) -> None:
        self.waiting(seconds)
        await self.sleep(seconds)

    async def _post(self, batch: Sequence[str]) -> Reply:
        site = urls.origin(batch[0])
        facts = {
            "host": urls.netloc(site),
            "key": self.key.text,
            "keyLocation": self.key.place(site),
            "urlList": list(batch),
        }
        body = json.dumps(facts, ensure_ascii=False).encode()
        return await self.fetcher.fetch(
            Request(self.endpoint, limit=ANSWER, cut=True, wants_body=_wants_body, post=body)
        )

    def _wait(self, reply: Reply) -> float | None:
        """Seconds after which to try again; shorter waits were made by the fetcher."""
        if isinstance(reply, Broken) or reply.status not in OVERLOADED:
            return None
        wait = retry_after(reply.headers, datetime.fromtimestamp(self.now(), UTC))
        return wait if wait is not None and QUICK < wait <= self.max_wait else None

    def _answered(self, reply: Reply) -> bool:
        name = urls.netloc(self.endpoint)
        if isinstance(reply, Broken):
            raise NotSubmitted(f"{name} could not be reached ({_shown(reply)}): {LATER}")
        if 200 <= reply.status < 300:
            return reply.status == 202
        quote = f' It says: "{_text(reply.body, SHOWN)}".' if reply.body else ""
        if reply.status in {408, 429} or reply.status >= 500:
            after = printable(reply.headers.get("retry-after") or "", 40)
            wait = f", Retry-After {after}" if after else ""
            raise NotSubmitted(f"{name} did not accept the URLs ({reply.status}{wait}): {LATER}{quote}")
        if reply.status in REDIRECTS:
            to = printable(reply.headers.get("location") or "nowhere")
            raise ConfigError(
                f"{name} answered with a redirect ({reply.status}) to {to}, which is not followed: "
                "--indexnow-endpoint names another engine."
            )
        why = WRONG.get(reply.status, "it does not take submissions there")
        raise ConfigError(f"{name} refused the URLs ({reply.status}): {why}.{quote}")


LATER: Final = "the next submission sends the rest."


def _wants_body(status: int, headers: Headers) -> bool:
    """Only a refusal is read, and only as plain text."""
    return status >= 400 and not headers.get("content-encoding")


def _text(body: bytes, most: int) -> str:
    return printable(" ".join(body.decode("utf-8", "replace").split()), most)


def _shown(reply: Broken) -> str:
    return printable(": ".join(filter(None, (reply.cause.says, reply.detail))))
