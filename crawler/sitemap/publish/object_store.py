"""An object store as the place of a sitemap or a state: opens it by the environment, gets, puts and deletes
objects below a prefix.

Blocking: it is called from worker threads, each of which awaits its requests, up to a common time limit. The
order of requests is decided by `upload` and `app.stored_state`. What a store answers is never shown, as it
may contain signed URLs: errors are sentences of our own, with at most the error code of the store.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from importlib.util import find_spec
from math import inf
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

import anyio
from msgspec import Struct

from crawler.errors import ConfigError
from crawler.report.log import log_repeated
from crawler.settings.object_url import ObjectUrl
from crawler.settings.values import duration_words
from crawler.sitemap.publish.store_errors import (
    CLOUDS,
    StoreError,
    check_bucket,
    check_environment,
    may_pass,
    reason,
)

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

T = TypeVar("T")

REQUEST_TIMEOUT: Final = 60.0  # seconds for one request; files are put in requests of at most 5 MB
CONNECT: Final = 10.0  # seconds
RETRIES: Final = 5  # after connection errors and 5xx
RETRYING: Final = 120.0  # seconds, after which a request is not tried again
PAUSE: Final = 0.1  # seconds before the first retry
THREAD_INTERVAL: Final = 0.02  # seconds between looks at a thread
LARGEST_OBJECT: Final = 64_000_000  # bytes of an object that is held in memory

MEDIA_TYPES: Final = {
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".xml": "application/xml",
    ".txt": "text/plain; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
}


class Changed(Exception):  # noqa: N818
    """An object is not the expected version: another program has put it in between."""


class ObjectVersion(TypedDict, total=False):
    """What identifies a version of an object; which of them, depends on the store."""

    e_tag: str
    version: str


IMPOSSIBLE: Final = ObjectVersion(e_tag='"0x0"', version="1")  # which no object has, in any store


class Object(Struct, frozen=True):
    """An object that was read."""

    body: bytes
    version: ObjectVersion
    modified: datetime


def check_installed(url: ObjectUrl, flag: str = "--output") -> None:
    """Raises `ConfigError` if the extra is not installed."""
    if find_spec("obstore") is None:
        raise ConfigError(
            f"{flag} {url.scheme}:// needs the cloud extra: pip install 'sitemap-crawler[cloud]'."
        )


def connect(
    url: ObjectUrl, seconds: float, environ: Mapping[str, str] = os.environ, *, flag: str = "--output"
) -> "Store":
    """The store, with settings and credentials of the environment; no request yet. Raises `ConfigError`.

    `seconds`: for all requests to it. `flag`: the setting that names it.
    """
    check_installed(url, flag)
    check_environment(url, environ)
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra, loaded only when asked for

    try:
        return Store(url, client_of(url, environ), seconds)
    except (BaseError, ValueError):  # their words may contain what is in the variables
        cloud = CLOUDS[url.scheme]
        raise ConfigError(
            f"{flag} {url}: the settings of {cloud.name} in the environment are not complete or not valid: "
            f"check {cloud.credentials}, and all other variables for it."
        ) from None


def client_of(url: ObjectUrl, environ: Mapping[str, str]) -> "ObjectStore":
    """The client of the library. Tests replace it."""
    from obstore.store import AzureStore, GCSStore, S3Store  # noqa: PLC0415 - as above

    chosen: Any = {
        "prefix": url.prefix or None,
        "client_options": {
            "timeout": timedelta(seconds=REQUEST_TIMEOUT),
            "connect_timeout": timedelta(seconds=CONNECT),
            "allow_http": any(
                environ.get(name, "").startswith("http:") for name in CLOUDS[url.scheme].endpoints
            ),
        },
        "retry_config": {"max_retries": 0},  # retries are ours, and logged
    }
    if url.scheme == "s3":
        # Not all services know the deletion of several objects at once, of which we have few.
        return S3Store(url.bucket, disable_bulk_delete=True, **chosen)
    return GCSStore(url.bucket, **chosen) if url.scheme == "gs" else AzureStore(url.bucket, **chosen)


class _TimeLimit:
    """The time for all requests to a store, counted while at least one is under way."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._left = seconds, seconds
        self._under_way, self._since, self._lock = 0, 0.0, Lock()

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        """What requests return. Raises `StoreError` when the time is over, and their own errors."""
        with self._lock:
            if not self._under_way:
                self._since = monotonic()
            self._under_way += 1
            left = self._left - (monotonic() - self._since)
        try:
            return asyncio.run(asyncio.wait_for(work, left))
        except TimeoutError:
            words = f"it took longer than {duration_words(self._seconds)} (--publish-timeout)"
            raise StoreError(words) from None
        finally:
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    self._left -= monotonic() - self._since


class Store:
    """The objects below the prefix, by name. Every method raises `StoreError`.

    `seconds`: for all requests together.
    """

    def __init__(self, url: ObjectUrl, client: "ObjectStore", seconds: float) -> None:
        import obstore  # noqa: PLC0415 - as above

        self.url, self._client, self._time = url, client, _TimeLimit(seconds)
        self._library = obstore

    def for_seconds(self, seconds: float) -> "Store":
        """The same store, with so much time for all requests from now on."""
        return Store(self.url, self._client, seconds)

    def get(self, name: str, largest: int = LARGEST_OBJECT) -> Object | None:
        """An object; None if there is none. `largest`: bytes."""

        async def read() -> Object | None:
            try:
                found = await self._library.get_async(self._client, name)
            except FileNotFoundError as error:
                check_bucket(error)
                return None
            if found.meta["size"] > largest:
                raise StoreError(f"{name} is too large")
            body = bytes(await found.bytes_async())
            return Object(body, _version(found.meta), found.meta["last_modified"])

        return self._result(read)

    def download(self, name: str, path: Path, largest: float = inf) -> bool:
        """Writes an object to a file; False if there is none, or if the name is impossible.

        `largest`: bytes, behind which nothing is read.
        """

        async def copy() -> bool:
            try:
                found = await self._library.get_async(self._client, name)
            except (FileNotFoundError, ValueError) as error:
                check_bucket(error)
                return False
            if not _is_possible(path):
                return False
            with open(path, "wb") as file:  # noqa: ASYNC230 - in a thread of its own
                async for chunk in found.stream():
                    file.write(chunk)
                    if file.tell() > largest:
                        break
            return True

        return self._result(copy)

    def etag(self, name: str) -> str | None:
        """The ETag of an object; None if there is none."""

        async def ask() -> str | None:
            try:
                return (await self._library.head_async(self._client, name))["e_tag"]
            except FileNotFoundError:
                return None

        return self._result(ask)

    def put(self, name: str, path: Path, cache_control: str | None = None) -> str | None:
        """Puts a file, atomically; its ETag."""
        attributes = {"Content-Type": media_type(path)} | (
            {"Cache-Control": cache_control} if cache_control else {}
        )

        async def send() -> str | None:
            return (await self._library.put_async(self._client, name, path, attributes=attributes))["e_tag"]

        return self._result(send)

    def put_if(self, name: str, body: bytes, expected: ObjectVersion | None) -> ObjectVersion:
        """Puts an object if it is still this version, or absent; its new version. Raises `Changed`."""
        try:
            return self._put(name, body, expected)
        except Changed:
            there = self.get(name)
            if there and there.body == body:
                return there.version  # we have put it: the answer to the first attempt was lost
            raise

    def honours_conditions(self, name: str, there: Object | None) -> bool:
        """Whether the store refuses to put an object that is not the expected version.

        Also a check of all permissions to write. Changes nothing: a store that ignores conditions gets the
        same bytes again.
        """
        try:
            self._put(name, there.body if there else b"", IMPOSSIBLE)
        except Changed:
            return True
        if there is None:
            self.delete(name)
        return False

    def delete(self, name: str) -> None:
        async def remove() -> None:
            with suppress(FileNotFoundError):
                await self._library.delete_async(self._client, name)

        self._result(remove)

    def _put(self, name: str, body: bytes, expected: ObjectVersion | None) -> ObjectVersion:
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415 - as above

        mode: UpdateVersion | Any = "create" if expected is None else expected
        attributes = {"Content-Type": media_type(Path(name))}

        async def send() -> ObjectVersion:
            try:
                done = await self._library.put_async(
                    self._client, name, body, mode=mode, attributes=attributes
                )
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                check_bucket(error)
                raise Changed from None
            return _version(done)

        return self._result(send)

    def _result(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._translated():
            return self._time.result(self._tried(work))

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        from crawler.rules import retries  # noqa: PLC0415 - takes long to import

        trying = retries.while_error(
            may_pass,
            seconds=RETRYING,
            tries=RETRIES + 1,
            first=PAUSE,
            sleep=asyncio.sleep,
            repeats=lambda error, attempt: log_repeated(
                str(self.url), reason(self.url, error, REQUEST_TIMEOUT), attempt
            ),
        )
        done: T = await trying(work)
        return done

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns the errors of the library into ours. None of their words are kept."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above

        try:
            yield
        except BaseError as error:
            again = ", also when asked again" if may_pass(error) else ""
            raise StoreError(reason(self.url, error, REQUEST_TIMEOUT) + again) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of the library
                raise
            raise StoreError("its client failed; maybe a setting in the environment is not valid") from None


async def abandonable(call: Callable[[], T], is_over: Callable[[], bool] = lambda: False) -> T:
    """Calls a function in a thread that does not delay the exit of the program.

    The thread goes on if this is cancelled, or if it `is_over`: then it raises `TimeoutError`.
    """
    done: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            done.append(call())
        except BaseException as error:  # noqa: BLE001 - it is raised below
            raised.append(error)

    thread = Thread(target=work, daemon=True)  # those of anyio are waited for when the program ends
    thread.start()
    while thread.is_alive():
        if is_over():
            raise TimeoutError
        await anyio.sleep(THREAD_INTERVAL)
    if raised:
        raise raised[0]
    return done[0]


def media_type(path: Path) -> str:
    """The Content-Type of a file of that name."""
    return MEDIA_TYPES.get(path.suffix, "application/octet-stream")


def _is_possible(path: Path) -> bool:
    """Whether a file can have this name; it is made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError:
        return False
    return True


def _version(meta: Mapping[str, Any]) -> ObjectVersion:
    """The library refuses keys without a value."""
    found: ObjectVersion = {}
    if meta["e_tag"]:
        found["e_tag"] = meta["e_tag"]
    if meta["version"]:
        found["version"] = meta["version"]
    return found
