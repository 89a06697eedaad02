"""The findings of the validator: an enum of codes, each with a severity and a sentence.

An error violates the protocol or prevents search engines from reading the file. A warning is allowed or
tolerated by most, but probably a mistake. An info changes no exit code.
"""

from typing import Any

from msgspec import Struct

from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES, MAX_LOC
from crawler.model.reasons import Reason


class FaultCode(Reason):
    """The stable code of a finding; `says` is its sentence, with placeholders for details."""

    UNREADABLE = "unreadable", "cannot be read: {}"
    NOT_GZIP = "not-gzip", "is named .gz and is not gzip"
    GZIP_NAME = "gzip-name", "is gzip and not named .gz"
    BROKEN_GZIP = "broken-gzip", "is a broken gzip file: {}"
    TOO_LARGE = "too-large", f"has more than {MAX_BYTES:,} bytes before compression"
    TOO_MANY = "too-many", f"has more than {MAX_ENTRIES:,} entries"
    EMPTY = "empty", "has no entries"
    NOT_WELL_FORMED = "not-well-formed", "is not well-formed XML: {}"
    ESCAPING = "escaping", "has an & that is not escaped as &amp;"
    DOCTYPE = "doctype", "declares a document type, which no search engine reads"
    ENCODING = "encoding", "is encoded in {}, not in UTF-8"
    BYTE_ORDER_MARK = "byte-order-mark", "begins with a byte order mark"
    WEB_PAGE = "web-page", "is a web page, not a sitemap"
    NOT_JSON = "not-json", "is not a JSON object with a loc and an optional lastmod"
    ROOT = "root", "is not a sitemap: its root element is <{}>"
    NAMESPACE = "namespace", "has the namespace {} instead of http://www.sitemaps.org/schemas/sitemap/0.9"
    ELEMENT = "element", "<{}> is not allowed in <{}>"
    REPEATED = "repeated", "<{}> appears twice in one entry"
    ORDER = "order", "<{}> comes after <{}>, against the order of the schema"
    TEXT = "text", "text outside of any element: {}"
    LOC_MISSING = "loc-missing", "an entry has no <loc>"
    LOC_TOO_LONG = "loc-too-long", f"a URL of {{:,}} characters; at most {MAX_LOC:,} are allowed"
    LOC_INVALID = "loc-invalid", "is not an absolute http(s) URL: {}"
    LOC_SPELLING = "loc-spelling", "contains characters that RFC 3986 does not allow: {}"
    LOC_FRAGMENT = "loc-fragment", "has a fragment, which does not identify a page of its own: {}"
    LOC_HOST = "loc-host", "is on another host or scheme than the sitemap, or the first URL of a file: {}"
    LOC_FOLDER = "loc-folder", "is outside the folder of the sitemap: {}"
    DUPLICATE = "duplicate", "is already in the sitemap: {}"
    LASTMOD_FORM = "lastmod-form", "is not a W3C datetime: {}"
    LASTMOD_FUTURE = "lastmod-future", "is in the future: {}"
    LASTMOD_UNIFORM = "lastmod-uniform", "every URL has the same date, so that search engines ignore it: {}"
    CHANGEFREQ = "changefreq", "is not a valid changefreq: {}"
    PRIORITY = "priority", "is not a priority between 0.0 and 1.0: {}"
    FEED_LINK = "feed-link", "an item has no link"
    FEED_DATE = "feed-date", "is not a date of RSS (RFC 822): {}"
    INDEX_NESTED = "index-nested", "an index contains another index"
    INDEX_LOOP = "index-loop", "is listed twice: {}"
    CHILD_ELSEWHERE = "child-elsewhere", "was not checked: {}"
    EXTENSION = "extension", "an extension that no known search engine reads: {}"
    EXTENSION_FIELD = "extension-field", "<{}> is not allowed in <{}>"
    EXTENSION_MISSING = "extension-missing", "<{}> has no <{}>"
    EXTENSION_VALUE = "extension-value", "<{}> cannot be {}"
    HREFLANG_CODE = "hreflang-code", "is not a valid hreflang: {} ({})"
    HREFLANG_SELF = "hreflang-self", "does not name itself among its language versions: {}"
    HREFLANG_RETURN = "hreflang-return", "names a language version that does not name it: {}"
    IMAGE_LOC = "image-loc", "is the URL of an image that {}: {}"
    IMAGE_REPEATED = "image-repeated", "is twice among the images of one entry: {}"
    IMAGE_RETIRED = "image-retired", "<{}> is not read by search engines any more (since 2022)"
    EXTENSION_MANY = "extension-many", "more than {:,} <{}>"


WARNINGS = frozenset({
    FaultCode.GZIP_NAME, FaultCode.BYTE_ORDER_MARK, FaultCode.ORDER, FaultCode.LOC_SPELLING,
    FaultCode.LOC_FRAGMENT, FaultCode.LOC_FOLDER, FaultCode.DUPLICATE, FaultCode.CHILD_ELSEWHERE,
    FaultCode.EXTENSION, FaultCode.TEXT, FaultCode.HREFLANG_CODE, FaultCode.HREFLANG_SELF,
    FaultCode.HREFLANG_RETURN, FaultCode.IMAGE_LOC, FaultCode.IMAGE_REPEATED, FaultCode.IMAGE_RETIRED,
})  # fmt: skip


INFOS = frozenset({FaultCode.LASTMOD_UNIFORM})


class SitemapFinding(Struct, frozen=True):
    """A fault, and where it is."""

    place: str  # file or URL
    line: int  # from 1; 0: the whole file
    code: FaultCode
    says: str

    @property
    def severity(self) -> str:
        """`error`, `warning` or `info`."""
        return "warning" if self.code in WARNINGS else "info" if self.code in INFOS else "error"


def finding(place: str, line: int, code: FaultCode, *details: Any) -> SitemapFinding:
    """A finding with the details in its sentence. Long details are truncated."""
    return SitemapFinding(place, line, code, code.says.format(*(_cut(detail) for detail in details)))


def _cut(detail: Any) -> Any:
    return detail[:197] + "…" if isinstance(detail, str) and len(detail) > 200 else detail
