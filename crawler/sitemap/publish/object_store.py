"""An object store as the place of a sitemap: opens it by the environment, gets, puts and deletes objects
below a prefix.

Blocking: it is called from worker threads. The order of requests is decided by `upload`. What a store answers
is never shown, as it may contain signed URLs: errors are sentences of our own, with at most the error code of
the store.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from crawler.errors import ConfigError
from crawler.settings.object_url import ObjectUrl
from crawler.sitemap.publish.store_errors import CLOUDS, StoreError, check_bucket, check_environment, reason

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

REQUEST_TIMEOUT: Final = 60.0  # seconds for one request; files are put in requests of at most 5 MB
CONNECT: Final = 10.0  # seconds
RETRIES: Final = 5  # after connection errors and 5xx
RETRYING: Final = 120.0  # seconds, after which a request is not tried again
LARGEST_OBJECT: Final = 64_000_000  # bytes of an object that is held in memory

MEDIA_TYPES: Final = {
    ".gz": "application/gzip",
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


@dataclass(frozen=True, slots=True)
class Object:
    """An object that was read."""

    body: bytes
    version: ObjectVersion
    modified: datetime


def check_installed(url: ObjectUrl) -> None:
    """Raises `ConfigError` if the extra is not installed."""
    if find_spec("obstore") is None:
        raise ConfigError(
            f"--output {url.scheme}:// needs the cloud extra: pip install 'sitemap-crawler[cloud]'."
        )


def connect(url: ObjectUrl, environ: Mapping[str, str] = os.environ) -> "Store":
    """The store, with settings and credentials of the environment; no request yet. Raises `ConfigError`."""
    check_installed(url)
    check_environment(url, environ)
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra, loaded only when asked for

    try:
        return Store(url, client_of(url, environ))
    except (BaseError, ValueError):  # their words may contain what is in the variables
        cloud = CLOUDS[url.scheme]
        raise ConfigError(
            f"--output {url}: the settings of {cloud.name} in the environment are not complete or not valid: "
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
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRYING)},
    }
    if url.scheme == "s3":
        # Not all services know the deletion of several objects at once, of which we have few.
        return S3Store(url.bucket, disable_bulk_delete=True, **chosen)
    return GCSStore(url.bucket, **chosen) if url.scheme == "gs" else AzureStore(url.bucket, **chosen)


class Store:
    """The objects below the prefix, by name. Every method raises `StoreError`."""

    def __init__(self, url: ObjectUrl, client: "ObjectStore") -> None:
        self.url, self._client = url, client

    def get(self, name: str) -> Object | None:
        """An object; None if there is none."""
        import obstore  # noqa: PLC0415 - as above

        with self._translated():
            try:
                found = obstore.get(self._client, name)
                if found.meta["size"] > LARGEST_OBJECT:
                    raise StoreError(f"{name} is too large")
                return Object(bytes(found.bytes()), _version(found.meta), found.meta["last_modified"])
            except FileNotFoundError as error:
                check_bucket(error)
                return None

    def download(self, name: str, path: Path) -> bool:
        """Writes an object to a file; False if there is none, or if the name is impossible."""
        import obstore  # noqa: PLC0415 - as above

        with self._translated():
            try:
                found = obstore.get(self._client, name)
            except (FileNotFoundError, ValueError) as error:
                check_bucket(error)
                return False
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError:
                return False
            with open(path, "wb") as file:
                file.writelines(found.stream())
            return True

    def etag(self, name: str) -> str | None:
        """The ETag of an object; None if there is none."""
        import obstore  # noqa: PLC0415 - as above

        with self._translated():
            try:
                return obstore.head(self._client, name)["e_tag"]
            except FileNotFoundError:
                return None

    def put(self, name: str, path: Path, cache_control: str | None) -> str | None:
        """Puts a file, atomically; its ETag."""
        import obstore  # noqa: PLC0415 - as above

        attributes = {"Content-Type": MEDIA_TYPES[path.suffix]} | (
            {"Cache-Control": cache_control} if cache_control else {}
        )
        with self._translated():
            return obstore.put(self._client, name, path, attributes=attributes)["e_tag"]

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
        """Deletes an object, if there is one."""
        import obstore  # noqa: PLC0415 - as above

        with self._translated(), suppress(FileNotFoundError):
            obstore.delete(self._client, name)

    def _put(self, name: str, body: bytes, expected: ObjectVersion | None) -> ObjectVersion:
        import obstore  # noqa: PLC0415 - as above
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415 - as above

        mode: UpdateVersion | Any = "create" if expected is None else expected
        attributes = {"Content-Type": MEDIA_TYPES[Path(name).suffix]}
        with self._translated():
            try:
                done = obstore.put(self._client, name, body, mode=mode, attributes=attributes)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                check_bucket(error)
                raise Changed from None
            return _version(done)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns the errors of the library into ours. None of their words are kept."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above

        try:
            yield
        except BaseError as error:
            raise StoreError(reason(self.url, error, REQUEST_TIMEOUT)) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of the library
                raise
            raise StoreError("its client failed; maybe a setting in the environment is not valid") from None


def _version(meta: Mapping[str, Any]) -> ObjectVersion:
    """The library refuses keys without a value."""
    found: ObjectVersion = {}
    if meta["e_tag"]:
        found["e_tag"] = meta["e_tag"]
    if meta["version"]:
        found["version"] = meta["version"]
    return found
