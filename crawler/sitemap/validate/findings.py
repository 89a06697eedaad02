"""What can be wrong with a sitemap: a closed set of codes, each with its severity and its sentence.

An error breaks the protocol or keeps a search engine from reading; a warning is allowed, or forgiven by most, and
hardly meant.
"""

from dataclasses import dataclass
from typing import Any

from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES, MAX_LOC
from crawler.model.reasons import Reason


class Code(Reason):
    """The stable code of a finding; `says` is its sentence, with places for details."""

    UNREADABLE = "unreadable", "cannot be read: {}"
    NOT_GZIP = "not-gzip", "is named .gz and is not gzip"
    GZIP_NAME = "gzip-name", "is gzip and not named .gz"
    BROKEN_GZIP = "broken-gzip", "is broken gzip: {}"
    TOO_LARGE = "too-large", f"has more than {MAX_BYTES:,} bytes before compression"
    TOO_MANY = "too-many", f"has more than {MAX_ENTRIES:,} entries"
    EMPTY = "empty", "has no entries"
    NOT_WELL_FORMED = "not-well-formed", "is no well-formed XML: {}"
    ESCAPING = "escaping", "has an & that is not written &amp;"
    DOCTYPE = "doctype", "declares a document type, which no search engine reads"
    ENCODING = "encoding", "is not in UTF-8 but in {}"
    BYTE_ORDER_MARK = "byte-order-mark", "begins with a byte order mark"
    WEB_PAGE = "web-page", "is no sitemap but a web page"
    NOT_JSON = "not-json", "is no JSON object with a loc, and at most a lastmod"
    ROOT = "root", "is no sitemap: its root is <{}>"
    NAMESPACE = "namespace", "has the namespace {} instead of http://www.sitemaps.org/schemas/sitemap/0.9"
    ELEMENT = "element", "<{}> has no place in <{}>"
    REPEATED = "repeated", "<{}> stands twice in one entry"
    ORDER = "order", "<{}> stands behind <{}>, against the order of the schema"
    TEXT = "text", "text outside of any field: {}"
    LOC_MISSING = "loc-missing", "an entry has no <loc>"
    LOC_TOO_LONG = "loc-too-long", f"a URL of {{:,}} characters; at most {MAX_LOC:,} are allowed"
    LOC_INVALID = "loc-invalid", "is no absolute http(s) URL: {}"
    LOC_SPELLING = "loc-spelling", "is not spelled as RFC 3986 wants: {}"
    LOC_FRAGMENT = "loc-fragment", "has a fragment, which names no page of its own: {}"
    LOC_HOST = "loc-host", "is on another host than the sitemap: {}"
    LOC_FOLDER = "loc-folder", "lies outside of the folder of the sitemap: {}"
    DUPLICATE = "duplicate", "stands in the sitemap already: {}"
    LASTMOD_FORM = "lastmod-form", "is no W3C datetime: {}"
    LASTMOD_FUTURE = "lastmod-future", "lies in the future: {}"
    CHANGEFREQ = "changefreq", "is no changefreq: {}"
    PRIORITY = "priority", "is no priority from 0.0 to 1.0: {}"
    INDEX_NESTED = "index-nested", "an index names another index"
    INDEX_LOOP = "index-loop", "is named twice: {}"
    CHILD_ELSEWHERE = "child-elsewhere", "was not looked at: {}"
    EXTENSION = "extension", "an extension that no search engine is known to read: {}"
    EXTENSION_FIELD = "extension-field", "<{}> has no place in <{}>"
    EXTENSION_MISSING = "extension-missing", "<{}> lacks <{}>"
    EXTENSION_VALUE = "extension-value", "<{}> cannot be {}"
    EXTENSION_MANY = "extension-many", "more than {:,} <{}>"


WARNINGS = frozenset({
    Code.GZIP_NAME, Code.BYTE_ORDER_MARK, Code.ORDER, Code.LOC_SPELLING, Code.LOC_FRAGMENT, Code.LOC_FOLDER,
    Code.DUPLICATE, Code.CHILD_ELSEWHERE, Code.EXTENSION, Code.TEXT,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where."""

    place: str  # file or URL
    line: int  # from 1; 0: the whole
    code: Code
    says: str

    @property
    def severity(self) -> str:
        """`error` or `warning`."""
        return "warning" if self.code in WARNINGS else "error"


def finding(place: str, line: int, code: Code, *details: Any) -> Finding:
    """A finding with its sentence filled in. Details may come from the network; long ones are cut."""
    return Finding(place, line, code, code.says.format(*(_cut(detail) for detail in details)))


def _cut(detail: Any) -> Any:
    return detail[:197] + "…" if isinstance(detail, str) and len(detail) > 200 else detail
