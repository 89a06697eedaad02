"""Which date of a page can be believed: the ladder of `lastmod`, each rung with its source.

True or absent: a date that is unreadable, in the future, or from before the web is left out, never mended and
never replaced by a guess. Pure: `now` is given.
"""

from datetime import UTC, datetime
from typing import Final

from crawler.dates import http_date
from crawler.model import Headers, Lastmod, Source

FIRST_PAGE: Final = datetime(1991, 8, 6, tzinfo=UTC)
"""The day the first website was announced. Older dates are clocks that were never set."""


def credible(at: datetime, now: datetime) -> bool:
    """Whether a page can have changed at that moment."""
    return FIRST_PAGE <= at <= now


def from_header(headers: Headers, now: datetime) -> Lastmod | None:
    """The date of Last-Modified (RFC 9110 8.8.2), if there is exactly one and it is credible."""
    values = headers.all("last-modified")
    if len(values) != 1:
        return None
    at = http_date(values[0], now)
    return Lastmod(at, Source.HEADER) if at and credible(at, now) else None
