"""Crawler traps: endless URLs that a site generates, and the rule that stops following them.

Some are obvious from one URL (`obvious`) and never fetched. The others are recognised by their pages: the
URLs of a pattern are fetched in samples, and two samples in a row without new content close the pattern. What
a pattern brought is the only thing that counts: no other pattern, and no number of patterns. This module has
the rule and its constants; the frontier schedules the samples in rounds (`frontier.rounds`). Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.url import Url

# Pages of a pattern in its first sample; links of one page into unproven patterns in a round.
SAMPLE: Final = 20
ENOUGH_NEW: Final = 10  # a sample may be doubled if one in so many pages of the last one was new
DRY_SAMPLES: Final = 2  # samples in a row without anything new, after which a pattern is closed
# How many times as many pages as a new content took so far are read before a pattern is closed, at most that
# many pages: of a museum in which each twelfth object is described, the others are true pages, too.
PATIENCE: Final = 8
MOST_DRY: Final = 200
# Of a run. What the site is asked at the end comes in addition: so much, and one for each content.
REQUESTS: Final = 800
REQUESTS_PER_CONTENT: Final = 9
QUESTIONS: Final = 180
OVER_BUDGET: Final = f"more than {REQUESTS_PER_CONTENT} requests for each distinct content"
POOR_REQUESTS: Final = 200  # of a run at least, and in addition, from which on its site may be poor
POOR_PER_CONTENT: Final = 2
GROWN: Final = 20  # consecutive rounds in which the longest URL of a pattern may grow
MAX_REPORTED: Final = 1_000  # traps that are reported
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
_WEEK: Final = r"(?:w|wk|week|kw|woche|semaine|semana|settimana|tydzien)"
_TWO: Final = r"(?:0[1-9]|1[0-2])"
_TWO_DAYS: Final = r"(?:0[1-9]|[12]\d|3[01])"
# Deliberately narrow: album_1523_7 and IMG_20220102 are not dates, and pages of a calendar are compared
# without numbers. Eight digits, or a year at the end, are a date as the whole name of a page in a folder.
_DATE_PATH: Final = late(
    rf"(?<=[/_.-])(?:{_YEAR}([-/])(?:(?:{_MONTH}|{_NAMED})(?:\1{_DAY})?|W\d\d|{_WEEK}/\d\d?)|{_NAMED}[-/]{_YEAR}(?:/{_DAY})?"
    rf"|(?<=\w/)(?:{_YEAR}{_TWO}{_TWO_DAYS}|(?:{_DAY}([-.]){_MONTH}\2|{_MONTH}([-.]){_DAY}\3){_YEAR}))"
    r"(?=/?(?:\.[a-z]{1,5})?$)",
    re.IGNORECASE,
)
# Anywhere in an address: a whole date, or a year and month with "-"; /2024/05/title is an article.
_DATE_INSIDE: Final = late(
    rf"(?<![^\W_])(?:{_YEAR}([-/._])(?:{_MONTH}|{_NAMED})\1{_DAY}|{_DAY}([-.]){_MONTH}\2{_YEAR}"
    rf"|{_YEAR}-?(?:W|{_WEEK})\d\d?|{_YEAR}-{_TWO}|(?<=/){_YEAR}{_TWO}{_TWO_DAYS}(?=/))(?=[\W_]|T\d|$)",
    re.IGNORECASE,
)
# Without backtracking (`(?>` and `*+`), as a URL may contain "calend" a thousand times.
# At the end of a value that has a route, or another name before it.
_DATE_IN_VALUE: Final = late(
    rf"(?:(?<=[/_.-])|(?<=%2F)){_YEAR}([-/]|%2F)(?:(?:{_MONTH}|{_NAMED})(?:\1{_DAY})?|W\d\d|{_WEEK}\1\d\d?)"
    rf"(?=(?:/|%2F)?(?:\.[a-z]{{1,5}})?(?:&|$))|(?:(?<=/)|(?<=%2F)){_YEAR}{_TWO}{_TWO_DAYS}(?=&|$)",
    re.IGNORECASE,
)
_CALENDAR_PATH: Final = late(
    r"/(?:(?:(?>[^/?]*?(?:calend|kalend|agenda))[^/?]*+|cal)/[^?]*\d|cal[_-]\d)", re.IGNORECASE
)
_SOME_YEAR: Final = re.compile(_YEAR)  # most URLs have none, which is found out sooner
_NUMBER: Final = late(r"\d+")
_COUNT: Final = late(r"-?\d")  # or an offset, as in month=-3
_DATE_VALUE: Final = late(rf"{_YEAR}-?(?:0[1-9]|1[0-2])(?:-?(?:0[1-9]|[12]\d|3[01]))?|{_YEAR}-?W\d\d")
_UNIX_TIME: Final = late(r"1\d{9}(?:\d{3})?")  # in seconds or milliseconds, from 2001 to 2033
_DATE_IN_QUERY: Final = late(rf"=({_DATE_VALUE.pattern}|{_YEAR})(?=&|$)")
_DATE_NAMES: Final = frozenset({"year", "month", "day", "week", "date", "yr", "mon", "yyyy", "mm", "dd"})
_SHORT_NAMES: Final = frozenset({"y", "m", "d", "w"})
_TIME_NAMES: Final = frozenset({"time", "timestamp", "ts", "t", "start", "from", "when", *_DATE_NAMES})


class Sampling(NamedTuple):
    """How a pattern is being sampled."""

    size: int = SAMPLE  # pages of the current sample
    dry: int = 0  # samples in a row that brought nothing new
    proven: bool = False  # a sample brought something new

    @property
    def is_closed(self) -> bool:
        """Whether its other URLs are not fetched."""
        return self.dry >= DRY_SAMPLES

    def after(self, new: int) -> "Sampling":
        """The next sample, after one that brought `new` contents that no page of the pattern had before.

        The first page of a pattern is always new, which therefore proves nothing.
        """
        if new > (not self.proven and not self.dry):
            size = min(2 * self.size, max(SAMPLE, ENOUGH_NEW * new))
            return Sampling(size, 0, proven=True)
        return Sampling(SAMPLE, self.dry + 1, self.proven)

    def patient(self, pages: int, contents: int, dry: int, *, refuses: bool = False) -> "Sampling":
        """The next sample of a pattern that would be closed, but has new contents too seldom for that.

        `pages`: that were read until its last new content. `dry`: since then. `refuses`: the site refuses
        what does not exist in the pattern, so that it may end, and pages of it be true ones.
        """
        is_seldom = self.proven and dry * max(1, contents) < PATIENCE * pages
        goes_on = dry < MOST_DRY and (is_seldom or (refuses and contents > 0))
        return self._replace(dry=DRY_SAMPLES - 1) if goes_on else self


def requests_for(contents: int) -> int:
    """How many requests a run may make on a site with so many distinct contents."""
    return REQUESTS + REQUESTS_PER_CONTENT * contents


def questions_for(contents: int) -> int:
    """How many requests a run may make with those of questions."""
    return requests_for(contents) + QUESTIONS + contents


def is_poor(requests: int, contents: int) -> bool:
    """Whether a site brought few contents for so many requests: it is crawled level by level from then on."""
    return requests > POOR_REQUESTS + POOR_PER_CONTENT * contents


class Traps:
    """Recognises patterns and traps during a crawl, and collects the traps for the report."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """`allowed`: kinds of traps that are crawled anyway."""
        self._allowed = frozenset(allowed)
        self._reported: set[str] = set()
        self._unreported: list[Trap] = []

    def allows(self, kind: str) -> bool:
        """Whether a kind of trap is crawled."""
        return kind in self._allowed

    def bars(self, url: Url, depth: int = 0) -> bool:
        """Whether the URL alone shows that it is in a trap."""
        if url.count("/") > SAME_SEGMENTS + 3 or url.count("&") >= SAME_PARAMETERS or depth > DEEPEST:
            shown = obvious(url, depth)
            if shown and shown[0] not in self._allowed:
                self.report(*shown, url)
                return True
        return False

    def pattern(self, url: Url, *, named: bool = False) -> Pattern | None:
        """The pattern in whose rounds a URL is fetched. `named`: as canonical, or target of a redirect."""
        pattern = pattern_of(url)
        if pattern is None or pattern.kind in self._allowed:
            return None
        return replace(pattern, named=named)

    def report(self, kind: str, pattern: str, example: str) -> None:
        if pattern not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(pattern)
            self._unreported.append(Trap(kind, pattern, example))

    def unreported(self) -> list[Trap]:
        """The traps recorded since the last call."""
        news, self._unreported = self._unreported, []
        return news

    def session(self, name: str, example: str) -> None:
        """Records a session id that was removed from a URL."""
        self.report("session", f"{name}=…", example)


def calendar_of(url: str) -> str | None:
    """The pattern of the calendar that a URL is a page of, or None."""
    path, _, query = url.partition("?")
    if query and (named := _calendar_query(query)):
        return f"{path}?{named}"
    target = urls.target(path)
    if _SOME_YEAR.search(target) and (found := _DATE_PATH.search(target)):
        return f"{urls.origin(path)}{target[: found.start()]}{{date}}{target[found.end() :]}"
    if _names_calendar(target) and _CALENDAR_PATH.match(target):
        return urls.origin(path) + _NUMBER.sub("{n}", target)
    return None


def _names_calendar(text: str) -> bool:
    """Whether a text has a word of calendars: most have none, which is found out sooner than the place."""
    lower = text.lower()
    return "cal" in lower or "kal" in lower or "agenda" in lower


def days_of(url: str) -> str | None:
    """The calendar that a page may be one of, wherever in its address the date stands."""
    if "?" not in url and not _SOME_YEAR.search(url) and not _names_calendar(url):
        return None  # as most
    if calendar := calendar_of(url):
        return calendar
    path, mark, query = url.partition("?")
    target = urls.target(path)
    if found := _date_inside(target):
        return f"{urls.origin(path)}{target[: found.start()]}{{date}}{target[found.end() :]}"
    found = _date_inside(query) if mark else None
    return f"{path}?{query[: found.start()]}{{date}}{query[found.end() :]}" if found else None


def _date_inside(target: str) -> re.Match[str] | None:
    return _DATE_INSIDE.search(target) if _SOME_YEAR.search(target) else None


def date_in(url: str) -> tuple[int, int] | None:
    """Where a URL names a date with its year, in the path or in its query."""
    path, _, query = url.partition("?")
    if query and _calendar_query(query):
        found = _DATE_IN_QUERY.search(query)
        start, end = found.span(1) if found else _in_value(query)
        return (len(path) + 1 + start, len(path) + 1 + end) if end else None
    origin = len(urls.origin(path))
    target = urls.target(path)
    if in_path := _DATE_PATH.search(target) or _date_inside(target):
        return origin + in_path.start(), origin + in_path.end()
    in_query = _date_inside(query)
    return (len(path) + 1 + in_query.start(), len(path) + 1 + in_query.end()) if in_query else None


def without_date(url: Url) -> Url:
    """The URL without the parameters that are a date, or the date at the end of one."""
    path, _, query = url.partition("?")
    start, end = _in_value(query)
    query = query[:start].rstrip("/_.-") + query[end:]
    parts = query.split("&")
    dated = _dated_names([part.partition("=") for part in parts])
    left = "&".join(part for part in parts if part.partition("=")[0] not in dated)
    return Url(f"{path}?{left}" if left else path)


def _in_value(query: str) -> tuple[int, int]:
    """Where a value of a query ends with a date; an empty span if none does."""
    found = _DATE_IN_VALUE.search(query) if _SOME_YEAR.search(query) else None
    return found.span() if found else (0, 0)


def _calendar_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&")]
    dated = _dated_names(pairs)
    start, end = _in_value(query)
    if not dated and end:
        return f"{query[:start]}{{date}}{query[end:]}"
    others = {_NUMBER.sub("{n}", name) for name, _, _ in pairs if name not in dated}
    parts = [f"{name}={{date}}" for name in dated] + [f"{name}=…" for name in others]
    return "&".join(sorted(parts)) if dated else ""


def _dated_names(pairs: Sequence[tuple[str, str, str]]) -> set[str]:
    """Of the parameters of a query, those that are a date."""
    names = {name.lower() for name, _, _ in pairs}
    dated = {name for name, _, value in pairs if _DATE_VALUE.fullmatch(value)}
    dated |= {name for name, _, value in pairs if name.lower() in _DATE_NAMES and _COUNT.match(value)}
    dated |= {name for name, _, value in pairs if name.lower() in _TIME_NAMES and _UNIX_TIME.fullmatch(value)}
    if len(names & _SHORT_NAMES) > 1:
        dated |= {name for name, _, value in pairs if name.lower() in _SHORT_NAMES and value.isdigit()}
    return dated


def pattern_of(url: str) -> Pattern | None:
    """The narrowest pattern that a URL matches; most match none.

    For a query it is the path and the set of parameter names, in which all numbers are equal (`a[1]`,
    `a[2]`).
    """
    path, mark, query = url.partition("?")
    if calendar := calendar_of(url):
        return Pattern("calendar", calendar)
    if not mark:
        return None
    parts = {_parameter(part) for part in query.split("&")}
    return Pattern("query", f"{path}?{'&'.join(sorted(parts))}")


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
