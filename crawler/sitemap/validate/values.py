"""Validates the values of a sitemap's fields: URLs, dates, frequencies, and the extensions that search
engines read.

Each check returns the codes of the faults. The structure of the file is validated in `xml`.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from crawler.model.protocol import MAX_IMAGES, MAX_LOC
from crawler.parse import languages
from crawler.parse.dates import read_w3c
from crawler.parse.url import join, origin
from crawler.sitemap.validate.findings import FaultCode

FREQUENCIES: Final = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})

_SPELLED: Final = re.compile(
    r"(?=.)[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]*+)*+"
)

Fault = tuple[FaultCode, tuple[Any, ...]]


def check_loc(loc: str, home: str | None) -> Iterator[Fault]:
    """Checks a URL. `home`: the URL of the sitemap, if known."""
    if len(loc) > MAX_LOC:
        yield FaultCode.LOC_TOO_LONG, (len(loc),)
    url = join(None, loc)
    if url is None or not url.startswith(("http://", "https://")) or "://" not in loc:
        yield FaultCode.LOC_INVALID, (loc,)
        return
    if not _SPELLED.fullmatch(loc):
        yield FaultCode.LOC_SPELLING, (loc,)
    if "#" in loc:
        yield FaultCode.LOC_FRAGMENT, (loc,)
    if home is None:
        return
    if origin(url) != origin(home):
        yield FaultCode.LOC_HOST, (loc,)
    elif not url.startswith(home[: home.rindex("/") + 1]):
        yield FaultCode.LOC_FOLDER, (loc,)


def is_plainly_good(loc: str, prefix: str) -> bool:
    """Fast: accepts nearly every valid URL, short and below `prefix`. Others need `check_loc`."""
    return (
        prefix != ""
        and loc.startswith(prefix)
        and len(loc) <= MAX_LOC
        and "#" not in loc
        and _SPELLED.fullmatch(loc) is not None
    )


def site_of(loc: str) -> str:
    """The prefix of all URLs of the same site; empty if `loc` is not a URL."""
    url = join(None, loc)
    site = f"{origin(url)}/" if url and url.startswith(("http://", "https://")) else ""
    return site if loc.startswith(site) else ""


def same_site(loc: str, home: str) -> bool:
    """Whether two URLs have the same scheme and host. True for what is no URL, a finding of its own."""
    url, other = join(None, loc), join(None, home)
    return (
        url is None or other is None or "//" not in url or "//" not in other or origin(url) == origin(other)
    )


def check_lastmod(text: str, now: datetime) -> Iterator[Fault]:
    """Checks for a W3C datetime (https://www.w3.org/TR/NOTE-datetime) that is not in the future."""
    at = read_w3c(text)
    if at is None:
        yield FaultCode.LASTMOD_FORM, (text,)
    elif at > now:
        yield FaultCode.LASTMOD_FUTURE, (text,)


def is_plainly_past(text: str, now: datetime) -> bool:
    """Fast: accepts nearly every valid date, past and in UTC. Others need `check_lastmod`."""
    if len(text) != len("2026-01-31T23:59:59+00:00") or text[4] != "-" or text[10] != "T":
        return False
    try:
        return text.endswith("+00:00") and datetime.fromisoformat(text) <= now
    except ValueError:
        return False


def check_changefreq(text: str) -> Iterator[Fault]:
    """Checks for one of the seven words."""
    if text not in FREQUENCIES:
        yield FaultCode.CHANGEFREQ, (text,)


def check_priority(text: str) -> Iterator[Fault]:
    """Checks for a decimal from 0 to 1."""
    if not re.fullmatch(r"\d*\.?\d+|\d+\.", text, re.ASCII) or float(text) > 1:
        yield FaultCode.PRIORITY, (text,)


# -- extensions ------------------------------------------------------------------------------------------


class Extension(Struct, frozen=True):
    """The elements that an extension adds to an entry, with their fields."""

    prefix: str
    fields: Mapping[str, frozenset[str]]  # element -> allowed fields
    required: Mapping[str, tuple[str, ...]]  # element -> required fields; `a|b` means either
    most: Mapping[str, int]  # element -> maximum number in one entry


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IMAGES: Final = Extension(
    "image",
    {"image": _words("loc caption geo_location title license")},
    {"image": ("loc",)},
    {"image": MAX_IMAGES},
)
EXTENSIONS: Final[Mapping[str, Extension]] = {
    "http://www.google.com/schemas/sitemap-image/1.1": IMAGES,
    "http://www.google.com/schemas/sitemap-video/1.1": Extension(
        "video",
        {
            "video": _words(
                "thumbnail_loc title description content_loc player_loc duration expiration_date rating "
                "view_count publication_date family_friendly restriction platform price "
                "requires_subscription uploader live tag category gallery_loc id content_segment_loc "
                "tvshow"
            )
        },
        {"video": ("thumbnail_loc", "title", "description", "content_loc|player_loc")},
        {},
    ),
    "http://www.google.com/schemas/sitemap-news/0.9": Extension(
        "news",
        {
            "news": _words("publication publication_date title keywords stock_tickers genres access"),
            "publication": _words("name language"),
        },
        {"news": ("publication", "publication_date", "title"), "publication": ("name", "language")},
        {"news": 1},
    ),
    "http://www.w3.org/1999/xhtml": Extension("xhtml", {"link": frozenset()}, {}, {}),
    "http://www.google.com/schemas/sitemap-mobile/1.0": Extension("mobile", {"mobile": frozenset()}, {}, {}),
    "http://www.google.com/schemas/sitemap-pagemap/1.0": Extension("pagemap", {}, {}, {}),
}
_DATED: Final = frozenset({"publication_date", "expiration_date"})
RETIRED: Final = frozenset({"caption", "title", "geo_location", "license"})  # of images, by Google in 2022
_LINKED: Final = frozenset({"thumbnail_loc", "content_loc", "player_loc", "loc"})


def is_web_address(text: str) -> bool:
    """Whether a text is an absolute http(s) URL, as far as the URL Standard accepts it."""
    return (join(None, text) or "").startswith(("http://", "https://"))


def check_value(prefix: str, name: str, text: str) -> Iterator[Fault]:
    """Checks the value of a field of an extension."""
    good = True
    if name in _LINKED:
        good = is_web_address(text)
    elif name in _DATED:
        good = read_w3c(text) is not None
    elif name == "duration":
        good = bool(re.fullmatch(r"\d{1,9}", text, re.ASCII)) and 1 <= int(text) <= 28_800
    elif name == "rating":
        good = bool(re.fullmatch(r"\d(\.\d{1,9})?", text, re.ASCII)) and float(text) <= 5
    elif name == "title":
        good = bool(text)
    if not good:
        yield FaultCode.EXTENSION_VALUE, (f"{prefix}:{name}", repr(text))


def check_image(loc: str) -> Iterator[Fault]:
    """Checks the URL of an image, on any host. One that is no http(s) URL is a fault of its field."""
    if not loc.startswith(("http://", "https://")):
        return
    if len(loc) > MAX_LOC:
        yield FaultCode.IMAGE_LOC, (f"has {len(loc):,} characters; at most {MAX_LOC:,} are allowed", loc)
    elif not _SPELLED.fullmatch(loc):
        yield FaultCode.IMAGE_LOC, ("contains characters that RFC 3986 does not allow", loc)
    elif "#" in loc:
        yield FaultCode.IMAGE_LOC, ("has a fragment", loc)


def check_link(attributes: Mapping[str, str]) -> Iterator[Fault]:
    """Checks an xhtml:link: an alternate needs a language and an absolute URL."""
    if attributes.get("rel") != "alternate":
        return
    for name in ("hreflang", "href"):
        if not attributes.get(name):
            yield FaultCode.EXTENSION_MISSING, ("xhtml:link", name)
    code = attributes.get("hreflang")
    if code and languages.canonical(code) is None:
        yield FaultCode.HREFLANG_CODE, (repr(code), languages.hint(code))
    href = attributes.get("href")
    if href and not is_web_address(href):
        yield FaultCode.EXTENSION_VALUE, ("xhtml:link", repr(href))
