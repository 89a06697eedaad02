"""The patterns of crawler traps in the text of a single URL: a calendar, a query, a path that repeats.

Whether a pattern is a trap depends on its pages: see `traps`. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from crawler.model.outcome import Pattern
from crawler.parse import url as urls

SAME_SEGMENTS: Final = 5  # times that one path segment may occur
SEGMENTS: Final = 25
PARAMETERS: Final = 20
SAME_PARAMETERS: Final = 10
DEEPEST: Final = 2_000  # links from the start

_YEAR: Final = r"(?:1[5-9]|2\d)\d\d"
_MONTH: Final = r"(?:0?[1-9]|1[0-2])"
_NAMED: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
# Deliberately narrow: album_1523_7 and IMG_20220102 are not dates, and pages of a calendar are compared
# without numbers.
_DATE_PATH: Final = re.compile(
    rf"(?<=[/_.-])(?:{_YEAR}([-/])(?:(?:{_MONTH}|{_NAMED})(?:\1{_DAY})?|W\d\d)|{_NAMED}[-/]{_YEAR}(?:/{_DAY})?)"
    r"(?=/?(?:\.[a-z]{1,5})?$)",
    re.IGNORECASE,
)
# Without backtracking (`(?>` and `*+`), as a URL may contain "calend" a thousand times.
_CALENDAR_PATH: Final = re.compile(
    r"/(?:(?:(?>[^/?]*?(?:calend|kalend|agenda))[^/?]*+|cal)/[^?]*\d|cal[_-]\d)", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\d+")
_COUNT: Final = re.compile(r"-?\d")  # or an offset, as in month=-3
_DATE_VALUE: Final = re.compile(rf"{_YEAR}-?(?:0[1-9]|1[0-2])(?:-?(?:0[1-9]|[12]\d|3[01]))?|{_YEAR}-?W\d\d")
_DATE_NAMES: Final = frozenset({"year", "month", "day", "week", "date", "yr", "mon", "yyyy", "mm", "dd"})
_SHORT_NAMES: Final = frozenset({"y", "m", "d", "w"})


def calendar_of(url: str) -> str | None:
    """The pattern of the calendar that a URL is a page of, or None."""
    path, _, query = url.partition("?")
    if query and (named := _calendar_query(query)):
        return f"{path}?{named}"
    site, target = urls.origin(path), urls.target(path)
    if found := _DATE_PATH.search(target):
        return f"{site}{target[: found.start()]}{{date}}{target[found.end() :]}"
    if found := _CALENDAR_PATH.match(target):
        return site + _NUMBER.sub("{n}", target)
    return None


def _calendar_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&")]
    names = {name.lower() for name, _, _ in pairs}
    dated = {name for name, _, value in pairs if _DATE_VALUE.fullmatch(value)}
    dated |= {name for name, _, value in pairs if name.lower() in _DATE_NAMES and _COUNT.match(value)}
    if len(names & _SHORT_NAMES) > 1:
        dated |= {name for name, _, value in pairs if name.lower() in _SHORT_NAMES and value.isdigit()}
    others = {_NUMBER.sub("{n}", name) for name, _, _ in pairs if name not in dated}
    parts = [f"{name}={{date}}" for name in dated] + [f"{name}=…" for name in others]
    return "&".join(sorted(parts)) if dated else ""


def pattern_of(url: str) -> Pattern | None:
    """The narrowest pattern that a URL matches; most match none.

    For a query it is the path and the set of parameter names, in which all numbers are equal (`a[1]`,
    `a[2]`).
    """
    path, mark, query = url.partition("?")
    if calendar := calendar_of(url):
        return Pattern("calendar", calendar, f"calendars of {urls.origin(url)}")
    if not mark:
        return None
    parts = {_parameter(part) for part in query.split("&")}
    return Pattern("query", f"{path}?{'&'.join(sorted(parts))}", f"{path}?…")


def _parameter(part: str) -> str:
    name, mark, _ = part.partition("=")
    return f"{_NUMBER.sub('{n}', name)}=…" if mark else "{value}"


def obvious(url: str, depth: int) -> tuple[str, str] | None:
    """The kind and pattern of a trap that the URL alone gives away."""
    path, _, query = url.partition("?")
    if path.count("/") > SAME_SEGMENTS + 3:
        segments = urls.target(path).split("/")
        most, times = _most_common(filter(None, segments))
        if times > SAME_SEGMENTS:
            return "path", f"{urls.origin(path)}/…/{most}/…/{most}/…"
        if len(segments) - 1 > SEGMENTS:
            return "path", f"{urls.origin(path)}/… more than {SEGMENTS} segments"
    if query.count("&") >= SAME_PARAMETERS:
        names = [part.partition("=")[0] for part in query.split("&")]
        most, times = _most_common(names)
        if times > SAME_PARAMETERS:
            return "query", f"{path}?{most}=…&{most}=…"
        if len(names) > PARAMETERS:
            return "query", f"{path}? more than {PARAMETERS} parameters"
    if depth > DEEPEST:
        return "depth", f"more than {DEEPEST:,} links from the start"
    return None


def _most_common(words: Iterable[str]) -> tuple[str, int]:
    """The most frequent word and its count, in one pass, as a URL may contain thousands."""
    return next(iter(Counter(words).most_common(1)), ("", 0))
