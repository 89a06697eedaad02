"""The date of a listed page: the first of its sources that is trusted, by what is known of page and site.

Which sources of an origin are trusted is decided over all its pages, in `lastmod`. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from crawler.model.reasons import Source
from crawler.model.survey import LONG_AGO
from crawler.parse.extract import wording
from crawler.rules.noise import HEAD, MOST_RUNS, WAY, LastChange, has_restless
from crawler.rules.record import DAY

T = TypeVar("T")
_NOTHING_KNOWN: Final = frozenset({"", LastChange.UNKNOWN, LastChange.FIRST, LastChange.LABEL})


def first_date(
    sources: Sequence[Source],
    header: T | None,
    stated: T | None,
    sitemap: T | None = None,
    changed: T | None = None,
) -> tuple[T, Source] | None:
    """The date of a page by the first of its sources that has one.

    `header`: Last-Modified. `stated`: in the page. `sitemap`: in one that the site had before. `changed`:
    when its content was first seen, by earlier runs.
    """
    dates = (header, stated, sitemap, changed)
    for source, at in zip((Source.HEADER, Source.PAGE, Source.SITEMAP, Source.HISTORY), dates, strict=True):
        if at is not None and source in sources:
            return at, source
    return None


def way(watched: str | None) -> str:
    """Digits by which pages are found that changed last in the same way."""
    return (watched or "")[1 : WAY + 1]


class Distrust(Struct, frozen=True):
    """The sources of dates that are not trusted on one origin."""

    header: bool = False  # its Last-Modified headers
    changes: bool = False  # most of its content changed at once
    builds: tuple[tuple[int, int], ...] = ()  # first and last moment of builds of the site
    sitemap: bool = False  # the dates in its sitemap
    links: bool = False  # they changed on most pages at once, and are no content
    blocks: frozenset[str] = frozenset()  # `way`s in which pages changed that are those of a template
    rolled: Mapping[str, int] = {}  # such that dated pages before they were known, and since when
    noisy: bool = False  # many of its pages have noise
    unseen: bool = False  # so have most: a change is noise, unless it is known what is new
    stated: bool = False  # the dates in its pages
    stated_first: tuple[int, int] | None = None  # between these, they are those of the first run
    stale: bool = False  # they do not follow changes
    # Its pages change again and again in the same places; what they were dated in that time is doubtful.
    restless: tuple[int, int] | None = None
    everywhere: bool = False  # most of them do
    turning: Mapping[str, bool] = {}  # see `shown_in_turn.doubtful`

    def is_build(self, at: int) -> bool:
        """Whether the site was built at that time."""
        return any(first <= at <= last for first, last in self.builds)

    def is_of_run(self, stated: int | None) -> bool:
        """Whether many pages state that time, in their first run."""
        first, last = self.stated_first or (1, 0)
        return stated is not None and first <= stated <= last

    def withdraws(self, page: "Datable") -> bool:
        """Whether the known date of a page came from a source that has proved unreliable since.

        What such a source said of a time long ago was true more often than not.
        """
        at, now = page.dated_lastmod, page.settled
        if at is None or now is None or now - at > LONG_AGO:
            return False
        if page.has_moved_alone:
            return True
        since = self.rolled.get(way(page.watched))
        if since is not None and at >= since and page.content == page.published_content:
            return at not in {page.dated_header, page.dated_stated}
        is_restless = self.everywhere or has_restless(page.watched)
        if self.restless and self.restless[0] <= at < self.restless[1] and is_restless:
            return at not in {page.dated_header, page.dated_stated}
        return (self.header and at == page.dated_header) or (self.stated and at == page.dated_stated)


class Datable(NamedTuple):
    """What is known about the date of a listed page: values as in `Earlier`."""

    header: int | None
    stated: int | None
    settled: float | None
    content: str | None
    published_content: str | None
    dated_content: str | None
    dated_lastmod: int | None
    dated_header: int | None
    sitemap_date: int | None = None
    dated_stated: int | None = None
    watched: str | None = None
    visits: int = 0  # that could see a change, and those that saw one
    changes: int = 0
    first_visit: float | None = None  # when the run began in which it was

    def date(
        self, sources: Sequence[Source], distrust: Distrust, since: float = 0
    ) -> tuple[int, Source] | None:
        """The lastmod of the page and its source: the first in `sources` that is trusted and has a date.

        `since`: the time of the last publication.
        """
        if distrust.links:
            self = self._by_wording()  # noqa: PLW0642 - the same page, without its links
        header = None if distrust.header or self._has_slid(distrust, since) else self.header
        is_untrue = distrust.stated or distrust.is_of_run(self.stated) or not self._may_state(since)
        stated = None if is_untrue else self.stated
        changed = self._changed(distrust)
        if distrust.stale and stated is not None and changed is not None and changed > stated:
            stated = None
        sitemap = None if distrust.sitemap else self._date_in_sitemap(since)
        if sitemap is not None and distrust.is_build(sitemap):
            sitemap = None
        return first_date(sources, header, stated, sitemap, changed)

    @property
    def _is_same(self) -> bool:
        return self.content is not None and self.content == self.dated_content

    def _has_slid(self, distrust: Distrust, since: float) -> bool:
        """Whether Last-Modified changed while the content did not, or is the time of a build."""
        if self.header is None or distrust.is_build(self.header):
            return True
        if not self._is_same:
            # What was not believed then is believed no more than before.
            return self.dated_header == 0 and self.dated_content is not None and self.header <= since
        return self.header != self.dated_header and (
            self.dated_header is not None or self._is_later(self.header, since)
        )

    @property
    def has_moved_alone(self) -> bool:
        """Whether the known date is what the header, the page, or a sitemap said when the page was first
        seen, and that says another one now, though the content is the same: it may have been a build's.
        """
        at, first = self.dated_lastmod, self.first_visit
        if not self._is_same or at is None or first is None or (at >= first and self.changes):
            return False
        is_of_sitemap = at not in {self.dated_header, self.dated_stated}
        # What each of them says now, with the unit in which it counts, and whether it said that date before.
        said = (
            (self.header, 1, at == self.dated_header),
            (self.stated, DAY, at == self.dated_stated),
            (self.sitemap_date, 1, is_of_sitemap),
        )
        now = [(one // unit == at // unit, did) for one, unit, did in said if one is not None]
        return any(did for _, did in now) and not any(does for does, _ in now)

    def _is_later(self, at: int, since: float) -> bool:
        """Whether a date is later than this content, which had none when it was first seen. So a date to come
        does not become true by waiting.
        """
        first = since if self.first_visit is None else self.first_visit
        if self._is_same and self.dated_lastmod is not None:
            return at > max(first, self.dated_lastmod)
        return at > (since if self.changes else first)

    def _may_state(self, since: float) -> bool:
        """Whether the content agrees with the stated date: what is unchanged has the date it had first."""
        if self.stated is None or not self._is_same:
            return True
        if self.dated_stated is None:
            return not self._is_later(self.stated, since) or self.published_content is None
        return self.stated // DAY == self.dated_stated // DAY

    def _changed(self, distrust: Distrust) -> int | None:
        """When the content was first seen, by earlier runs or this one."""
        head = (self.watched or "")[:HEAD]
        change, turn = head[:1], distrust.turning.get(head[1:])
        is_doubtful = way(head) in distrust.blocks or turn is not None
        if distrust.restless is not None:
            is_doubtful |= change in {LastChange.AGAIN, LastChange.REPEATED}
            # Where most pages are restless, another one that changes so often probably is as well.
            is_often = distrust.everywhere and self.changes * MOST_RUNS >= self.visits
            is_doubtful |= is_often and change in _NOTHING_KNOWN
        if self._is_same or (is_doubtful and self.published_content == self.dated_content):
            # Content that is unchanged, or has returned, keeps its date; so does that of a doubtful change.
            at = self.dated_lastmod
            # A text in turn that returns has no date: that of its first turn was withdrawn.
            is_false_turn = turn or (turn is not None and self._differs_from_published and self._is_same)
            is_noise = change == LastChange.LEARNED or is_false_turn
            is_noise = is_noise and at not in {self.dated_header, self.dated_stated}
            is_false = at is None or distrust.is_build(at) or distrust.withdraws(self)
            return None if is_noise or is_false else at
        if self.settled is None or not self._differs_from_published or distrust.changes:
            return None
        is_noise = is_doubtful or (distrust.noisy and change == LastChange.REPEATED)
        is_noise |= distrust.unseen and change in {"", LastChange.UNKNOWN}
        return None if is_noise else int(self.settled)

    def _by_wording(self) -> "Datable":
        """The page with versions that do not depend on its links."""
        versions = (self.content, self.published_content, self.dated_content)
        now, published, dated = (version and wording(version) for version in versions)
        return self._replace(content=now, published_content=published, dated_content=dated)

    def _date_in_sitemap(self, since: float) -> int | None:
        """The date in the sitemap of the site, unless the history of the page contradicts it.

        A page that is unchanged since the last publication has no later date than that; one that is not has
        no earlier one, so that a sitemap that is not kept up to date, or was once published by us, gives no
        date. A day may stand for its last second.
        """
        at = self.sitemap_date
        if at is None or self.content is None or self.published_content is None:
            return at
        if self.content == self.dated_content and self.dated_lastmod is not None:
            return at if at == self.dated_lastmod else None
        last = at + DAY - 1 if at % DAY == 0 else at
        if self._differs_from_published:
            return at if last >= since else None
        return None if self._is_later(at, since) else at

    @property
    def _differs_from_published(self) -> bool:
        known = self.content is not None and self.published_content is not None
        return known and self.content != self.published_content
