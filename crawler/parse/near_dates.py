"""The date in the address of a calendar, and the dates near it in the text of its page.

A day, a week or a month repeats its address by its dates, in digits and words, and by the days that it
numbers; `echo` leaves them out. Pure.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.volatile_text import MARK, NODE

YEARS: Final = 5  # to each side, that a calendar may lead to
SHORTEST_RUN: Final = 7  # days
LONGEST_DAY: Final = 4  # characters, as in "23rd"

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_YEAR: Final = r"(?P<year>(?:1[5-9]|2\d)\d\d)"
_NAMES: Final = "|".join(name[:3] for name in _MONTHS)
_ISO: Final = late(
    rf"(?<!\d){_YEAR}(?:[^0-9a-z]{{0,2}}(?P<month>\d\d?|{_NAMES})[a-z]{{0,6}}(?!\d)"
    r"(?:[^0-9a-z]{1,2}(?P<day>\d\d?)(?!\d))?)?"
)
_COMPACT: Final = late(rf"(?<!\d){_YEAR}(?P<month>\d\d)(?P<day>\d\d)?(?!\d)")
# 25-11-2026 or 11-25-2026: what cannot be a month is the day.
_YEAR_LAST: Final = late(rf"(?<=/)(?P<one>\d\d?)(?P<mark>[-.])(?P<two>\d\d?)(?P=mark){_YEAR}(?=/|$|\.\D)")
_UNIX_TIME: Final = late(r"=(1\d{9})(?:\d{3})?(?=&|$)")
_NAMED: Final = late(r"(?:^|[?&])(?P<name>y|m|d|year|yr|yyyy|month|mon|mm|day|dd)=(?P<value>\d{1,4})(?=&|$)")
# A date in a text: 23 November 2026, Nov 23rd, 23.11.2026, 23.11., 11/23, 2026-11-23, Mon 23.
_WEEKDAY: Final = rb"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}[.,]{0,2}\s+"
_MONTH: Final = rb"(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATES: Final = tuple(
    late(form, re.IGNORECASE)
    for form in (
        rb"(?:%b)?\b(?P<d>\d\d?)(?:st|nd|rd|th|\.)?\s+%b(?:,?\s+(?P<y>\d{4}))?\b" % (_WEEKDAY, _MONTH),
        rb"(?:%b)?\b%b\s+(?P<d>\d\d?)(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{4}))?\b" % (_WEEKDAY, _MONTH),
        rb"(?:%b)?\b(?P<d>\d\d?)[./](?P<m>\d\d?)(?:[./](?P<y>\d{4})\b|\.(?!\d)|(?![\d.:/]))" % _WEEKDAY,
        rb"\b(?P<y>\d{4})(?P<mark>[-/. ])(?P<m>\d\d?)(?P=mark)(?P<d>\d\d?)(?:\b|(?=t\d\d:))",
        rb"%b(?P<d>\d\d?)(?:st|nd|rd|th)?\b(?![./:])" % _WEEKDAY,
    )
)
WEEK: Final = timedelta(7)  # to each side of the date of a URL, that its page may show as well
_DAY: Final = late(rb"(\d\d?)(?:st|nd|rd|th|[.,])?")
_DAYS_IN_LINE: Final = late(rb"\s*(?:\d\d?(?:st|nd|rd|th|[.,])?\s+){6,}\d\d?(?:st|nd|rd|th|[.,])?\s*")
_ANY_DATE: Final = late(
    rb"\b(?:(?:1[5-9]|2\d)\d\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,9})\b",
    re.IGNORECASE,
)


def date_of(url: str) -> tuple[int, int, int] | None:
    """The date that a URL names: year, month and day, or zero for those that it does not name."""
    target = urls.target(url).lower()
    if found := _YEAR_LAST.search(target):
        one, two = int(found["one"]), int(found["two"])
        return int(found["year"]), *((one, two) if two > 12 else (two, one))
    target = target[1:]
    named = {found["name"][0]: int(found["value"]) for found in _NAMED.finditer(target)}
    if named.get("y", 0) > 1_000:
        return named["y"], named.get("m", 0), named.get("d", 0)
    if found := _UNIX_TIME.search(target):
        own = datetime.fromtimestamp(int(found[1]), UTC)
        return own.year, own.month, own.day
    found = _COMPACT.search(target) or _ISO.search(target)
    if found is None:
        return None
    month, day = found["month"] or "0", found["day"] or "0"
    return int(found["year"]), _number(month.encode()), int(day)


def dates_near(url: str) -> Iterator[bytes]:
    """The date of the URL of a calendar, and its neighbours, in digits and words."""
    found = date_of(url)
    if found is None:
        return
    year, month, day = found
    for number in range(year - YEARS, year + YEARS + 1):
        yield b"%d" % number
    if 1 <= month <= 12:
        for number in (month - 1, month, month + 1):
            name = _MONTHS[(number - 1) % 12]
            yield from (name.encode(), name[:3].encode())
            yield from _in_digits((number - 1) % 12 + 1)
        yield from _days_near(year, month, day)


def _days_near(year: int, month: int, day: int) -> Iterator[bytes]:
    try:
        own = date(year, month, day)
    except ValueError:
        return
    for shift in (-1, 0, 1):
        one = own + timedelta(shift)
        name = _DAYS[one.weekday()]
        yield from (name.encode(), name[:3].encode())
        yield from _in_digits(one.day)
        yield from (b"%d%s" % (one.day, suffix) for suffix in (b"st", b"nd", b"rd", b"th"))
        yield b"%d%02d%02d" % (one.year, one.month, one.day)
    number = own.timetuple().tm_yday
    yield from (*_in_digits(own.isocalendar().week), b"%d" % number, b"%03d" % number)


def without_near(text: bytes, dated: tuple[int, int, int]) -> bytes:
    """The text without dates that are at most a week from the day or month of the URL."""
    try:
        first, last = _span(*dated)
    except (ValueError, OverflowError):
        return text

    def left(found: re.Match[bytes]) -> bytes:
        shown = found.groupdict()
        year, month, day = (shown.get(name) or b"" for name in "ymd")
        years = {int(year)} if year else {first.year, last.year}
        months = {_number(month.lower())} if month else {first.month, dated[1], last.month}
        pairs = {pair for one in months for pair in ((one, int(day)), (int(day), one))}
        near = (_is_between(first, last, one, *pair) for one in years for pair in pairs)
        return MARK if any(near) else found[0]

    for form in _DATES:
        text = form.sub(left, text)
    return text


def _span(year: int, month: int, day: int) -> tuple[date, date]:
    """The days that a page may show."""
    first = date(year, month, day or 1)
    after = first + timedelta(0 if day else 31)
    return first - WEEK, (after if day else after - timedelta(after.day)) + WEEK


def _is_between(first: date, last: date, year: int, month: int, day: int) -> bool:
    try:
        return first <= date(year, month, day) <= last
    except ValueError:
        return False


def _number(month: bytes) -> int:
    return int(month) if month.isdigit() else _NAMES.split("|").index(month.decode()) + 1


def _in_digits(number: int) -> Iterator[bytes]:
    yield b"%d" % number
    yield b"%02d" % number


def without_days(text: bytes, *, dated: bool) -> bytes:
    """The text without the days that a calendar numbers one after the other, and their neighbours.

    `dated`: the URL names the date. Otherwise, as with month=-3, names of months and days, and years, are
    removed, too.
    """
    text = text if dated else _ANY_DATE.sub(MARK, text)
    pieces = [
        part
        for piece in text.split(NODE)
        for part in (piece.split() if _DAYS_IN_LINE.fullmatch(piece) else (piece,))
    ]
    runs: list[list[int]] = []
    before = 0
    for at, piece in enumerate(pieces):
        if len(piece) > LONGEST_DAY or (day := _DAY.fullmatch(piece)) is None:
            continue
        if runs and int(day[1]) == before + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
        before = int(day[1])
    long = [len(run) >= SHORTEST_RUN for run in runs]
    for number, run in enumerate(runs):
        if any(long[max(0, number - 1) : number + 2]):
            for at in run:
                pieces[at] = b""
    return NODE.join(filter(None, pieces))
