"""An answer without the moment at which it was made, and without tokens of its request, in HTML and JSON.

Neither is content. A page made from it is made again after some days in any case, as its scripts see a clock.
Only moments near the answer's own date are left out, so what was edited just now counts the next night. Pure.
"""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from crawler.model.reply import Response
from crawler.parse.dates import http_date
from crawler.parse.late import late

NEAR: Final = 60  # seconds between an answer and a moment in it that is its own
KINDS: Final = ("json", "html")  # in their media types; scripts are files, and large
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# Seconds since the epoch, or thousandths, or millionths of them; ISO 8601; and as in HTTP.
_MOMENT: Final = late(
    rb"(?<![\d.])\d{10}(?:\d{3}|\d{6})?(?:\.\d{1,9})?(?!\d)"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"
)
NAMES: Final = (b"nonce", b"csrf", b"request", b"trace", b"correlation")
_TOKEN: Final = late(
    rb"(?i)\b(nonce|csrf[-_]?token|(?:request|trace|correlation)[-_]?id)"
    rb"""["']?(?:\s{0,3}[:=]|\s{1,3}(?:content|value)=)\s{0,3}["']([\w+/=.:-]{8,200})["']"""
)
_POLICY: Final = late(rb"'nonce-[^']{8,200}'")


def steady(reply: Response, head: bytes) -> bytes:
    """The body, after what is seen of its headers, in which the same content has the same bytes."""
    if not any(kind in (reply.headers.get("content-type") or "") for kind in KINDS):
        return head + b"\n" + reply.body
    body = reply.body
    made = http_date(reply.headers.get("date") or "", _EPOCH)
    if made is not None and any(sign in body for sign in _signs(made)):
        second = made.timestamp()
        body = _MOMENT.sub(lambda found: b"" if _is_near(found[0], second) else found[0], body)
    folded = body.lower()
    if any(name in folded for name in NAMES):
        names = Counter(name for name, _ in set(_TOKEN.findall(body)))  # several are those of what it lists
        body = _TOKEN.sub(lambda found: found[1] if names[found[1]] == 1 else found[0], body)
    return _POLICY.sub(b"", head) + b"\n" + body


def _signs(made: datetime) -> list[bytes]:
    """What stands in each moment near to that one: a search for it is quick."""
    seconds = {str(int(made.timestamp()) + more)[:7] for more in (-NEAR, NEAR)}
    days = (f"{made + timedelta(more):%Y-%m-%d}" for more in (-1, 0, 1))  # in any zone
    return [b" GMT", *(sign.encode() for sign in (*seconds, *days))]


def _is_near(text: bytes, second: float) -> bool:
    at: datetime | None = None
    if text[4:5] == b"-":
        with suppress(ValueError):
            at = datetime.fromisoformat(text.decode())
    elif text[:1].isdigit():
        at = datetime.fromtimestamp(int(text[:10]), UTC)
    else:
        at = http_date(text.decode(), _EPOCH)
    return at is not None and abs((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - second) <= NEAR
