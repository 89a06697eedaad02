"""Validates a feed as a sitemap: RSS 2.0 (also 0.9 and 1.0) and Atom (RFC 4287), as sitemaps.org allows them.

Only what search engines take from it counts: the URL and the date of each item. It must be XML and UTF-8 as
any sitemap; `xml` passes the elements on.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from crawler.sitemap.validate import values
from crawler.sitemap.validate.findings import FaultCode

if TYPE_CHECKING:
    from crawler.sitemap.validate.file import Check

ATOM: Final = "http://www.w3.org/2005/Atom"
ROOTS: Final = frozenset({"rss", "feed", "RDF"})  # local names
_ITEMS: Final = frozenset({"item", "entry"})
_DATES: Final = frozenset({"updated", "date"})  # W3C datetimes: of Atom, and of Dublin Core in RSS 1.0


class FeedCheck:
    """Validates the items of one feed: takes the start and the end of each element."""

    def __init__(self, report: "Check", now: datetime) -> None:
        self._report, self._now = report, now
        self._line, self._depth = 0, 0  # of the open item; 0: none
        self._loc, self._guid = "", ""
        self._is_permalink = True

    def start(self, depth: int, local: str, given: Mapping[str, str], line: int) -> None:
        """An element begins inside `depth` others."""
        if not self._depth and local in _ITEMS:
            self._line, self._depth, self._loc, self._guid = line, depth, "", ""
            self._report.count(line)
        elif self._depth and depth == self._depth + 1:
            if local == "link" and given.get("rel", "alternate") == "alternate":
                self._loc = self._loc or given.get("href", "").strip()
            elif local == "guid":
                self._is_permalink = given.get("isPermaLink", "true").lower() == "true"

    def end(self, depth: int, local: str, text: str, line: int) -> None:
        """An element ends that has `depth` others around it, and that text."""
        if not self._depth:
            return
        if depth == self._depth:
            self._close()
        elif depth == self._depth + 1:
            self._field(local, text, line)

    def _field(self, local: str, text: str, line: int) -> None:
        if local == "link":
            self._loc = self._loc or text
        elif local == "guid" and self._is_permalink:
            self._guid = text
        elif local in _DATES:
            self._report.add_all(values.check_lastmod(text, self._now), line)
        elif local == "pubDate":
            self._report.add_all(_check_date(text, self._now), line)

    def _close(self) -> None:
        if loc := self._loc or self._guid:
            self._report.loc(loc, self._line)
        else:
            self._report.add(FaultCode.FEED_LINK, self._line)
        self._depth = 0


def _check_date(text: str, now: datetime) -> list[values.Fault]:
    """Checks a date of RSS, in the form of e-mail (RFC 822)."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - takes long to import, and few sitemaps are feeds

    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return [(FaultCode.FEED_DATE, (text,))]
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return [(FaultCode.LASTMOD_FUTURE, (text,))] if at > now else []
