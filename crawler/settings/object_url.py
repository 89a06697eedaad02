"""The URL of a place in an object store: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`.

Parses the values of `--output`, where anything else is a folder, and of `--state`, where it names an object.
It never contains credentials: those come from the environment (`sitemap.publish.object_store`).
"""

import re
from typing import Final

from msgspec import Struct

from crawler.parse.late import late
from crawler.settings.values import TEXT, InvalidValue, Kind, show_state

SCHEMES: Final = ("s3", "gs", "az")

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)  # one letter: a drive of Windows
_SIMILAR: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "google": "gs",
    "azure": "az", "azblob": "az", "abfs": "az", "abfss": "az", "adl": "az", "wasb": "az", "wasbs": "az",
}  # fmt: skip
_BUCKET: Final = late(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")  # of all three: the longest are those of GCS
_SEGMENT: Final = late(r"[A-Za-z0-9!_.*'()@=+,$&;: -]+")
_LONGEST: Final = 900  # characters of a prefix; a key may have 1,024 bytes


class ObjectUrl(Struct, frozen=True):
    """A bucket, and the prefix of the names in it, without slashes around it."""

    scheme: str
    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        """The URL, without a slash at its end."""
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


def is_object_url(output: str) -> bool:
    """Whether an output is in an object store, and not a folder."""
    return output.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def parsed(output: str, place: str = "a folder", example: str = "prefix") -> ObjectUrl | None:
    """The parts of such a URL; None for a `place` on a disk. Raises `ValueError` with an `example`."""
    found = _URL.fullmatch(output)
    if found is None:
        return None
    scheme, rest = found[1].lower(), found[2]
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or "?" in rest or "#" in rest:
        raise InvalidValue("***", "must not contain credentials or a query: those come from the environment")
    if scheme not in SCHEMES:
        near = f"; did you mean {_SIMILAR[scheme]}://?" if scheme in _SIMILAR else ""
        raise ValueError(f"must be {place}, or a URL with s3://, gs:// or az://{near}")
    if not _BUCKET.fullmatch(bucket):
        rule = " of 2 to 222 letters, digits, dots, dashes and underscores" if bucket else ""
        raise ValueError(f"must name a bucket{rule}, as in {scheme}://my-bucket/{example}")
    prefix = prefix.strip("/")
    segments = prefix.split("/") if prefix else []
    if len(prefix) > _LONGEST or any(
        not _SEGMENT.fullmatch(part) or part in {".", ".."} for part in segments
    ):
        raise ValueError("must have a prefix of plain names, separated by single slashes")
    return ObjectUrl(scheme, bucket, prefix)


def _read(value: object) -> str:
    text = TEXT.read(value)
    url = parsed(text)
    return str(url) if url else text


def state_object(state: str | None) -> ObjectUrl | None:
    """The object in which a state is kept; None if it is kept elsewhere. Raises `ValueError`."""
    scheme, colon, _ = (state or "").partition("://")
    if state is None or not colon or scheme.lower() not in {*SCHEMES, *_SIMILAR}:
        return None
    url = parsed(state, "a file", "site.db")
    if url and not url.prefix:
        raise ValueError(f"must name an object, as in {url}/site.db")
    return url


def _read_state(value: object) -> str:
    text = TEXT.read(value)
    url = state_object(text)
    return str(url) if url else text


OUTPUT: Final = Kind("TEXT", _read)
STATE: Final = Kind("TEXT", _read_state, show_state)
