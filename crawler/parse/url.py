"""URLs as identities: one page, one text.

A `Url` is an absolute http or https URL as the WHATWG URL Standard serialises it (Ada does the parsing), made
one spelling by the rules of `Normaliser`. Every other room compares, stores and sorts these texts and never
looks at raw links. Nothing here touches the network, and nothing but this file calls Ada.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NewType

import ada_url

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


Url = NewType("Url", str)
"""A normalised absolute http(s) URL: ASCII, no fragment, no credentials, never an empty query."""
SHORT: Final = 500  # characters of a link, and of its URL, that is remembered: long ones would take gigabytes


# Links, and folders, that are spelled as every parser of URLs spells them: no escapes, no dot segments, no `;`.
_NAME = r"[A-Za-z0-9_~!$&'()*+,=@-][A-Za-z0-9._~!$&'()*+,=@-]*"
_PATH = rf"(?:{_NAME}/)*(?:{_NAME})?"
PLAIN_LINK = re.compile(rf"(https?://[a-z0-9.:-]+(?=/))?((?:\.\./)*)(/?{_PATH})")
PLAIN_FOLDER = re.compile(rf"https?://[a-z0-9.:-]+/(?:{_NAME}/)*")


def join(base: str | None, text: str) -> str | None:
    """`text` resolved against `base` by the WHATWG algorithm, any scheme; nothing when it is invalid."""
    try:
        return ada_url.join_url(base, text) if base else ada_url.normalize_url(text)
    except ValueError:
        return None


def origin(url: str) -> str:
    """Scheme, host and explicit port: `https://example.com:8443`. The unit of robots.txt and of pace."""
    return url[: path_start(url)]


def target(url: str) -> str:
    """Path and query, as a request line and a robots.txt rule see them."""
    return url[path_start(url) :]


def path_start(url: str) -> int:
    """Where the path of a URL begins: the length of its origin."""
    start = url.find("/", url.index("//") + 2)
    return len(url) if start < 0 else start


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
    """The port that a request goes to. Raises `ValueError` for one that is no number."""
    explicit = netloc(url)[len(host(url)) :].removeprefix(":")
    return int(explicit) if explicit else 443 if url.startswith("https:") else 80


def registrable(name: str) -> str:
    """The part of a host name that can be bought (`example.co.uk` of `www.example.co.uk`).

    Source: publicsuffix.org. An IP address, a bare suffix or a single label is its own.
    """
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return name
    return _suffix_list().privatesuffix(name) or name


@lru_cache(maxsize=1)
def _suffix_list() -> "PublicSuffixList":
    # Here and not above: reading the list takes 90 ms, and only `--scope domain` needs it.
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415

    return PublicSuffixList()
