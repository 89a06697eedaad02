"""`Url`, the normalised URL that identifies a page, and its parts.

A `Url` is an absolute http or https URL as serialised by the WHATWG URL Standard (parsed by Ada), in the
normal form of `Normaliser`. All other packages compare, store and sort `Url`s and never see raw links. Pure.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, NewType

import ada_url
from msgspec import Meta

from crawler.parse.late import late

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


Url = NewType("Url", str)
"""A normalised absolute http(s) URL: ASCII, no fragment, no credentials, never an empty query."""
# What all packages rely on in a URL: a host, and no character that could end a line, header or attribute.
HTTP_ORIGIN: Final = r"https?://(?:\[[0-9a-f:.]++\]|[!\"$-.0-9;<=>A-Z^-~]++)(?::[0-9]{1,5}+)?+"
HTTP_URL: Final = HTTP_ORIGIN + "(?:[/?][!-~]*)?"
ReceivedUrl = Annotated[Url, Meta(pattern=rf"\A{HTTP_URL}\Z")]
"""A `Url` as another process may send it: msgspec refuses what the other packages could not rely on."""
EARLIEST_PATH: Final = len("https://")  # where a path may begin: `http://` is followed by a host
# Characters of a link, and of its URL, that is cached: long ones would take gigabytes.
LONGEST_URL: Final = 8_192  # characters of a URL that is fetched (RFC 9110 4.1: all should support 8,000)
LONGEST_CACHED_LINK: Final = 500


# Links and folders that are already in normal form: no escapes, no dot segments, no `;`.
_NAME = r"[A-Za-z0-9_~!$&'()*+,=@-][A-Za-z0-9._~!$&'()*+,=@-]*"
_PATH = rf"(?:{_NAME}/)*(?:{_NAME})?"
_PLAIN_PATH = late(rf"(?:\.\./)*/?{_NAME}(?:/{_NAME})*")
PLAIN_LINK = re.compile(rf"(https?://[a-z0-9.:-]+(?=/))?((?:\.\./)*)(/?{_PATH})")
# Among links that are joined by line breaks, those that are a path.
PATH_LINES = re.compile(rf"^(?!$)/?(?:{_NAME}/)*+(?:{_NAME})?$", re.MULTILINE)
_PLAIN_URL = re.compile(rf"(https?://[a-z0-9.:-]{{1,260}})/{_PATH}")
_PLAIN_LINES = late(rf"^(https?://[a-z0-9.:-]{{1,260}})/{_PATH}$", re.MULTILINE)
PLAIN_FOLDER = re.compile(rf"https?://[a-z0-9.:-]+/(?:{_NAME}/)*")


def is_plain_path(text: str) -> bool:
    """Whether a link is a path in normal form, without a host and without a query."""
    return _PLAIN_PATH.fullmatch(text) is not None


def is_plain(text: str) -> bool:
    """Whether an absolute URL without a query is in normal form, as nearly all of a sitemap are."""
    found = _PLAIN_URL.fullmatch(text)
    return found is not None and _is_origin(found[1])


def are_plain(texts: Sequence[str]) -> bool:
    """Whether all of them are, at a fraction of the cost."""
    lines = "\n".join(texts)
    origins = _PLAIN_LINES.findall(lines)
    return len(origins) == len(texts) == lines.count("\n") + 1 and all(map(_is_origin, {*origins}))


@lru_cache(maxsize=1_000)
def _is_origin(text: str) -> bool:
    return join(None, f"{text}/") == f"{text}/"


def join(base: str | None, text: str) -> str | None:
    """`text` resolved against `base` by the URL Standard, with any scheme; None if it is invalid."""
    try:
        return ada_url.join_url(base, text) if base else ada_url.normalize_url(text)
    except ValueError:
        return None


def origin(url: str) -> str:
    """Scheme, host and explicit port: `https://example.com:8443`. The unit of robots.txt and politeness."""
    start = url.find("/", EARLIEST_PATH)
    return url if start < 0 else url[:start]


def target(url: str) -> str:
    """Path and query, as in a request line."""
    start = url.find("/", EARLIEST_PATH)
    return "" if start < 0 else url[start:]


def path_start(url: str) -> int:
    """Where the path of a URL begins: the length of its origin."""
    start = url.find("/", EARLIEST_PATH)
    return len(url) if start < 0 else start


def in_folder(url: str) -> tuple[str, str]:
    """The folder of the path of a URL, and its name there, which may end with "/": many sites write all their
    pages like that.
    """
    path = url.partition("?")[0]
    at = folder_end(path)
    return path[:at], path[at:]


def folder_end(path: str) -> int:
    """The length of the folder of a URL without a query."""
    start = path_start(path) + 1
    return path.rfind("/", start, max(start, len(path) - 1)) + 1 or start


def netloc(url: str) -> str:
    """Host with explicit port: `example.com:8443`."""
    return url[url.index("//") + 2 : path_start(url)]


def host(url: str) -> str:
    """Host without port; an IPv6 address keeps its brackets."""
    name = netloc(url)
    if name.startswith("["):
        return name[: name.index("]") + 1]
    return name.partition(":")[0]


def port(url: str) -> int:
    """The port that a request goes to. Raises `ValueError` if it is not a number."""
    explicit = netloc(url)[len(host(url)) :].removeprefix(":")
    return int(explicit) if explicit else 443 if url.startswith("https:") else 80


def registrable(name: str) -> str:
    """The registrable domain of a host name (`example.co.uk` of `www.example.co.uk`), by publicsuffix.org.

    An IP address, a public suffix or a single label is returned unchanged.
    """
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return name
    return _suffix_list().privatesuffix(name) or name


@lru_cache(maxsize=1)
def _suffix_list() -> "PublicSuffixList":
    # Imported here because reading the list takes 90 ms, and only `--scope domain` needs it.
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415

    return PublicSuffixList()
