"""What the state tells of a whole site, row by row: for reports, lists and whoever looks at all URLs at once.

Named tuples, since there is one for every URL. A row says what is known and judges nothing; what this version of the
state does not remember is None. The story of one URL is in `url_record`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawler.model.seed import Seed
from crawler.parse.url import Url

COMPLETE = frozenset({"complete", "concluded", "refused"})  # as a `RunRow` says it


class PageRow(NamedTuple):
    """A URL that the newest run, or one before it, found. Times in seconds since the epoch."""

    id: int
    url: Url
    run: int  # the last that found it
    outcome: str  # its code in that run; "" while it is open
    detail: str = ""  # where it moved to, its canonical URL, the line of robots.txt, how it failed
    status: int | None = None
    depth: int = 0  # links from a start URL
    was: str | None = None  # the code of its outcome in the run before
    lastmod: int | None = None
    source: str | None = None  # of lastmod: the value of a `Source`
    was_lastmod: int | None = None
    content: str | None = None  # fingerprint of what the page says
    seed: Seed | None = None  # what names it without linking to it; also if pages link to it
    title: str | None = None
    type: str | None = None  # essence of the media type
    bytes: int | None = None  # decoded
    took: int | None = None  # milliseconds, from the request to the last byte


class EdgeRow(NamedTuple):
    """Where a URL leads. Others are named by `PageRow.id`."""

    id: int
    url: Url
    links: Sequence[int] = ()  # below zero: nofollow
    redirect: int = 0  # 0: none
    canonical: int = 0  # 0: none, or itself


class PublicationRow(NamedTuple):
    """What a run published."""

    urls: int
    files: int | None = None
    bytes: int | None = None
    added: int | None = None
    removed: int | None = None
    changed: int | None = None
    base: str | None = None  # of the published URLs
    folder: str | None = None  # absolute; "" for standard output


class RunRow(NamedTuple):
    """A run. Times in seconds since the epoch."""

    number: int
    started: float
    status: str  # crawling, complete, concluded (published), refused, abandoned; interrupted: it was killed
    discovered: int = 0  # URLs
    ended: float | None = None
    exit: int | None = None
    seconds: float | None = None  # at work, over all sessions
    requests: int | None = None
    bytes: int | None = None  # of the pages that were read, decoded
    outcomes: Mapping[str, int] | None = None  # URLs by code
    publication: PublicationRow | None = None
    refused: str | None = None  # why the guard kept the published sitemap

    @property
    def complete(self) -> bool:
        """Crawled to its end."""
        return self.status in COMPLETE

    def counted(self, kind: str) -> int | None:
        """URLs whose outcome is of that kind (the part of the code before the colon), if the outcomes are known."""
        if self.outcomes is None:
            return None
        return sum(count for code, count in self.outcomes.items() if code.partition(":")[0] == kind)
