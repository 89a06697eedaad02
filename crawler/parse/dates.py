"""Parses HTTP dates (RFC 9110 5.6.7), W3C datetimes, which it also writes, and dates as pages state them. All
results are in UTC.

Whether a date is credible is decided by `rules.lastmod`.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from crawler.parse.late import late

_MONTHS = {
    m: i
    for i, m in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_TIME = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)"
_FORMS = tuple(
    late(form, re.ASCII | re.IGNORECASE)
    for form in (
        # IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
        rf"(?:mon|tue|wed|thu|fri|sat|sun), (?P<d>\d\d) (?P<m>[a-z]{{3}}) (?P<Y>\d{{4}}) {_TIME} GMT",
        # rfc850-date: Sunday, 06-Nov-94 08:49:37 GMT
        rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day, (?P<d>\d\d)-(?P<m>[a-z]{{3}})-(?P<y>\d\d) {_TIME} GMT",
        # asctime-date: Sun Nov  6 08:49:37 1994
        rf"(?:mon|tue|wed|thu|fri|sat|sun) (?P<m>[a-z]{{3}}) (?P<d>\d\d| \d) {_TIME} (?P<Y>\d{{4}})",
    )
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHORT = "="
_LONGEST = len("Wednesday, 06-Nov-94 08:49:37 GMT")


def http_date(text: str, now: datetime) -> datetime | None:
    """The instant of an HTTP date; None if it has none of the three forms of RFC 9110 5.6.7.

    A two-digit year more than 50 years after `now` is read as a past one. A leap second is read as the second
    after it. The weekday is not checked against the date.
    """
    text = text.strip(" \t")
    if not text or len(text) > _LONGEST:
        return None
    if at := _fixdate(text):
        return at
    for form in _FORMS:
        if match := form.fullmatch(text):
            return _instant(match.groupdict(), now)
    return None


@lru_cache(1_024)  # all responses of one second carry the same Date
def _fixdate(text: str) -> datetime | None:
    """The usual case: an IMF-fixdate."""
    match = _FORMS[0].fullmatch(text)
    return _instant(match.groupdict(), datetime.min.replace(tzinfo=UTC)) if match else None


def _instant(part: dict[str, str], now: datetime) -> datetime | None:
    try:
        at = datetime(
            int(part["Y"]) if "Y" in part else now.year - now.year % 100 + int(part["y"]),
            _MONTHS[part["m"].lower()],
            int(part["d"]),
            int(part["H"]),
            int(part["M"]),
            59 if part["S"] == "60" else int(part["S"]),
            tzinfo=UTC,
        )
        if part["S"] == "60":
            at += timedelta(seconds=1)
        if "y" in part and at.replace(year=at.year - 50) > now:
            return at.replace(year=at.year - 100)
    except (KeyError, ValueError, OverflowError):
        return None
    return at


@lru_cache(1_024)  # many pages of a site have one date
def shortened(text: str) -> str | None:
    """An HTTP date as it is stored: the usual form in ten characters, any other text as it is.

    None for a text, which is no date, that begins like a short one.
    """
    at = _fixdate(text)
    if at and _written(at) == text:
        return f"{_SHORT}{int(at.timestamp()):x}"
    return None if text.startswith(_SHORT) else text


def lengthened(text: str) -> str:
    """The inverse of `shortened`."""
    if not text.startswith(_SHORT):
        return text
    try:
        return _written(datetime.fromtimestamp(int(text.removeprefix(_SHORT), 16), UTC))
    except (ValueError, OverflowError, OSError):  # not written by `shortened`
        return text


def _written(at: datetime) -> str:
    """As an IMF-fixdate, in any locale."""
    day, month = _DAYS[at.weekday()], [*_MONTHS][at.month - 1].capitalize()
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} GMT"


def w3c(at: datetime) -> str:
    """A W3C datetime to the second: `2026-01-31T23:59:59+00:00`."""
    at = at if at.tzinfo is UTC else at.astimezone(UTC)
    return at.isoformat(timespec="seconds") if at.microsecond else at.isoformat()


_W3C = late(
    r"(?P<Y>\d{4})(?:-(?P<m>\d\d)(?:-(?P<d>\d\d)"
    r"(?:T(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?P<f>\.\d+)?)?(?P<z>Z|[+-]\d\d:\d\d))?)?)?",
    re.ASCII,
)


@lru_cache(4_096)  # a sitemap repeats its dates
def read_w3c(text: str) -> datetime | None:
    """The first instant of a W3C datetime; None if it has none of the six forms (NOTE-datetime).

    A year, a month or a day without a time begins at midnight UTC.
    """
    match = _W3C.fullmatch(text) if len(text) <= _LONGEST_W3C else None
    if match is None:
        return None
    part = {name: value or "" for name, value in match.groupdict().items()}
    zone = part["z"].replace("Z", "+00:00") or "+00:00"
    try:
        at = datetime.fromisoformat(
            f"{part['Y']}-{part['m'] or '01'}-{part['d'] or '01'}"
            f"T{part['H'] or '00'}:{part['M'] or '00'}:{part['S'] or '00'}{zone}"
        )
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_LONGEST_W3C = 64  # characters, enough for any real fraction of a second


_ISO = late(
    r"(\d{4})(-?)(\d\d)\2(\d\d)"
    r"(?:[T ](\d\d)(:?)(\d\d)(?:\6(\d\d)(?:[.,]\d{1,9})?)? ?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_RFC_822 = late(
    r"(?:[a-z]{3,9}, ?)?\d{1,2} [a-z]{3} \d{4} \d\d:\d\d(?::\d\d)?(?: (?:[a-z]{1,5}|[+-]\d{4}))?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_STATED = 64  # characters


@lru_cache(4_096)  # a site repeats its dates
def read_stated(text: str) -> datetime | None:
    """The first instant of a date as pages state it; None if it has no form that is known.

    A W3C datetime; ISO 8601 with a blank, or compact (`20240102T030405Z`); or RFC 822 5 with a year of four
    digits. A time without a zone is read as UTC.
    """
    text = text.strip()[:_LONGEST_STATED]
    try:
        if match := _ISO.fullmatch(text):
            year, _, month, day, hour, _, minute, second, zone = match.groups(default="")
            clock = f"T{hour}:{minute}:{second or '00'}" if hour else ""
            at = datetime.fromisoformat(f"{year}-{month}-{day}{clock}{zone.upper() if clock else ''}")
        elif _RFC_822.fullmatch(text):
            from email.utils import parsedate_to_datetime  # noqa: PLC0415 - slow to import, and few pages need it

            at = parsedate_to_datetime(text)
        else:
            return read_w3c(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return None
