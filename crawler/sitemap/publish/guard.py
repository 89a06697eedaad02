"""The publish guard: whether the result of a crawl may replace the published sitemap. Pure: counts in, a
refusal out.

Not the address guard of `fetch`. A crawl is compared with earlier publications, and its own outcomes are
checked. Each refusal names the numbers, the setting, and the flag that publishes anyway.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crawler.errors import PublishRefused
from crawler.model.outcome import says
from crawler.model.reasons import Cause, Why
from crawler.rules.doubts import without_flag
from crawler.settings.sections import Guard

PUBLICATIONS_COMPARED: Final = 7  # publications that a new one is compared with
FEWEST_FAILURES: Final = 5  # failures, below which their share is not significant

_NOT_FETCHED: Final = frozenset(
    f"unlisted:{why.value}"
    for why in (
        Why.OFFSITE,
        Why.EXCLUDED,
        Why.DEPTH,
        Why.NOFOLLOW,
        Why.ROBOTS,
        Why.ROBOTS_DOWN,
        Why.TRAP,
        Why.LOGOUT,
    )
)
_VERDICTS: Final = frozenset(
    f"unlisted:{why.value}" for why in (Why.NOINDEX, Why.CANONICAL, Why.EMPTY, Why.SOFT_404, Why.TYPE)
)
_NOT_FOUND: Final = f"failed:{Cause.NOT_FOUND.value}"
_ANYWAY: Final = "the old files are kept. --force publishes anyway."


@dataclass(frozen=True, slots=True)
class EarlierPublications:
    """The earlier publications."""

    urls: int | None = 0  # now in the folder; None: there are files that cannot be counted
    recent: tuple[int, ...] = ()  # URLs of the last publications, up to `PUBLICATIONS_COMPARED`, newest last

    @property
    def largest(self) -> int:
        """URLs of the largest publication."""
        return max(self.urls or 0, *self.recent, 0)


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """The result of a crawl, for the guard."""

    complete: bool
    outcomes: Mapping[str, int]  # how many URLs by outcome code
    published: Mapping[str, int]  # the same for the pages of the last publication; "": not found in this run
    doubt: str = ""  # a sentence on why the crawl may not have seen the site; refuses a first publication


def check(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    """Raises `PublishRefused`, with reason and how to override it, if `urls` pages must not be published."""
    if urls == 0:
        words = (
            f"No page is listed, and an empty sitemap is never published{_of_these(crawled)}; "
            "the old files are kept."
        )
        raise PublishRefused(f"{words} {crawled.doubt}".strip())
    if guard.force:
        return
    if not crawled.complete and not guard.allow_partial:
        raise PublishRefused(
            "The crawl is not complete; the old files are kept. --allow-partial publishes anyway."
        )
    _check_first(guard, before, crawled)
    try:
        _compare(guard, urls, before, crawled)
    except PublishRefused as refusal:
        hint = without_flag(crawled.doubt)  # probably the cause
        raise PublishRefused(f"{refusal} {hint}".strip()) from None


def _compare(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    if guard.min_urls and urls < guard.min_urls:
        raise PublishRefused(f"URLs listed: {urls:,}, fewer than --min-urls {guard.min_urls:,}; {_ANYWAY}")
    _check_failed(guard, crawled)
    _check_verdicts(guard, crawled)
    _check_shrink(guard, urls, before, crawled)


def _check_first(guard: Guard, before: EarlierPublications, crawled: CrawlResult) -> None:
    """A first publication cannot be compared, so a run with doubts is refused, unless --min-urls is set."""
    is_first = before.urls is not None and not before.largest
    if crawled.doubt and crawled.complete and is_first and guard.min_urls is None:
        raise PublishRefused(crawled.doubt)


def _check_failed(guard: Guard, crawled: CrawlResult) -> None:
    failed, fetched_urls = failures(crawled.outcomes), fetched(crawled.outcomes)
    count = sum(failed.values())
    if count >= FEWEST_FAILURES and count > fetched_urls * guard.max_failed:
        raise PublishRefused(
            f"Of {fetched_urls:,} fetched pages, {count:,} failed ({count / fetched_urls:.0%}; "
            f"{_named(failed)}), and --max-failed is {guard.max_failed:.0%}; {_ANYWAY}"
        )


def fetched(outcomes: Mapping[str, int]) -> int:
    """The number of fetched URLs."""
    return sum(count for code, count in outcomes.items() if code not in _NOT_FETCHED)


def failures(outcomes: Mapping[str, int]) -> Mapping[str, int]:
    """The failures that suggest that the site is broken or blocks the crawler.

    Pages that are not found do not count, unless most pages are not found: a healthy site has some. Kept
    pages do not count, as they stay in the sitemap.
    """
    failed = {code: count for code, count in outcomes.items() if code.startswith("failed:")}
    if 2 * failed.get(_NOT_FOUND, 0) <= fetched(outcomes):
        failed.pop(_NOT_FOUND, None)
    return failed


def _check_verdicts(guard: Guard, crawled: CrawlResult) -> None:
    """Refuses if many published pages became noindex, empty and so on, by a mistake that answers 200."""
    changed = _changed(crawled)
    count, total = sum(changed.values()), sum(crawled.published.values())
    if count > total * guard.max_verdict_change:
        raise PublishRefused(
            f"Of {total:,} published pages, {count:,} would no longer be listed ({count / total:.0%}; "
            f"{_named(changed)}), and --max-verdict-change is {guard.max_verdict_change:.0%}; {_ANYWAY}"
        )


def _check_shrink(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    if guard.max_shrink >= 1:
        return
    if before.urls is None:
        raise PublishRefused(
            "It is unknown how many URLs are published, so it cannot be checked whether there would be "
            "fewer: manifest.json "
            f"is missing or damaged, and the published sitemap cannot be read in full; {_ANYWAY}"
        )
    if urls < before.largest * (1 - guard.max_shrink):
        most = before.largest
        history = (
            f" and {most:,} were in the largest of the last {PUBLICATIONS_COMPARED} publications"
            if most > before.urls
            else ""
        )
        raise PublishRefused(
            f"URLs listed: {urls:,}, where {before.urls:,} are published{history}: {1 - urls / most:.0%} "
            f"fewer, and --max-shrink is {guard.max_shrink:.0%}{_of_these(crawled)}; {_ANYWAY}"
        )


def _changed(crawled: CrawlResult) -> Mapping[str, int]:
    return {code: count for code, count in crawled.published.items() if code in _VERDICTS}


def _of_these(crawled: CrawlResult) -> str:
    """The outcomes of published pages that are no longer listed."""
    gone = {
        code: count
        for code, count in crawled.published.items()
        if code and code != "listed" and not code.startswith("kept:")
    }
    return f" (of the published pages, {_named(gone)})" if gone else ""


def _named(counts: Mapping[str, int], most: int = 3) -> str:
    """The most frequent outcomes, each with count and sentence."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count:,} {code}: {says(code)}" for code, count in ranked[:most]]
    return "; ".join(named) + (f"; {len(ranked) - most} more kinds" if len(ranked) > most else "")
