"""Retry-After, and which waits are short enough to wait for. Pure.

After a short wait the same task retries (`fetch.retry`); for a longer one the URL goes back to the frontier
(`judge`). `QUICK` separates the two.
"""

from datetime import datetime
from typing import Final

from crawler.model.reply import Headers
from crawler.parse.dates import http_date

QUICK: Final = 5.0  # seconds that a task waits before its own retry, at most
TOO_MANY: Final = 429
OVERLOADED: Final = frozenset({429, 503})  # statuses of an overloaded server (RFC 6585 4, RFC 9110 15.6.4)
PASSING: Final = frozenset({429, 500, 502, 503, 504})  # statuses of failures that may be temporary


def retry_after(headers: Headers, now: datetime) -> float | None:
    """Seconds to wait by Retry-After: a number or an HTTP date (RFC 9110 10.2.3). A past date is 0.

    None if the field is absent, negative or invalid. An absurdly large number is returned as it is.
    """
    value = (headers.get("retry-after") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:20])
    at = http_date(value, now)
    return None if at is None else max(0.0, (at - now).total_seconds())
