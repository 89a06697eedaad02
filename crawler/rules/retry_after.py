"""What a server says about coming back: Retry-After, and how long is worth waiting. Pure.

Short waits are sat out by the task that met them (`fetch.retry`); longer ones give the URL back to the frontier
(`judge`). `QUICK` is the line between the two, so both look here.
"""

from datetime import datetime
from typing import Final

from crawler.model.reply import Headers
from crawler.parse.dates import http_date

QUICK: Final = 5.0
"""Seconds that a task waits itself."""

TOO_MANY: Final = 429

OVERLOADED: Final = frozenset({429, 503})
"""Statuses that say: too much, come back (RFC 6585 4, RFC 9110 15.6.4)."""

PASSING: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses that another try may not meet again."""


def retry_after(headers: Headers, now: datetime) -> float | None:
    """Seconds to wait by Retry-After: a number or an HTTP date (RFC 9110 10.2.3). A past date is 0.

    Nothing when the field is absent, negative or garbage. A number too large to mean anything is kept: it says
    'do not come back'.
    """
    value = (headers.get("retry-after") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:20])
    at = http_date(value, now)
    return None if at is None else max(0.0, (at - now).total_seconds())
