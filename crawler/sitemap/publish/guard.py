"""The publish guard: whether the result of a crawl may replace the published sitemap. Pure: counts in, a
refusal out.

Not the address guard of `fetch`. A crawl is compared with earlier publications, and its own outcomes are
checked. Each refusal says what was decisive, with the numbers and the setting, and what to do about it;
--force is only advised where nothing is lost by it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from crawler.errors import PublishRefused
from crawler.model.outcome import says
from crawler.model.reasons import Why
from crawler.model.survey import NONE_VANISHED, AlikePages, Failures, SiteHealth, VanishedPages
from crawler.rules import failures
from crawler.rules.incomplete_site import without_flag
from crawler.settings.sections import Guard
from crawler.sitemap.publish.difference import NO_DIFFERENCE, Difference
from crawler.sitemap.publish.identity import SitemapIdentity

FEWEST_REMOVED: Final = 5  # removed URLs, below which their share is not significant while others stay

NONE_ALIKE: Final = AlikePages()

_NOT_FETCHED: Final = frozenset(f"unlisted:{why.value}" for why in (
    Why.OFFSITE, Why.EXCLUDED, Why.DEPTH, Why.HOSTS, Why.NOFOLLOW, Why.ROBOTS, Why.ROBOTS_DOWN, Why.TRAP,
    Why.LOGOUT, Why.UNVISITED,
))  # fmt: skip
_VERDICTS: Final = frozenset(
    f"unlisted:{why.value}" for why in (Why.NOINDEX, Why.CANONICAL, Why.EMPTY, Why.SOFT_404, Why.TYPE)
)
_KEPT: Final = "the old files are kept"


class EarlierPublications(Struct, frozen=True):
    """The earlier publications."""

    urls: int | None = 0  # now in the folder; None: there are files that cannot be counted
    recent: tuple[int, ...] = ()  # URLs of the last publications, up to `failures.COMPARED`, newest last
    identity: SitemapIdentity | None = None  # of the last one; None: unknown
    difference: Difference = NO_DIFFERENCE  # what the new publication changes

    @property
    def largest(self) -> int:
        return max(self.urls or 0, *self.recent, 0)


class CrawlResult(Struct, frozen=True):
    """The result of a crawl, for the guard."""

    complete: bool
    outcomes: Mapping[str, int]  # how many URLs by outcome code; of a partial run, only those it visited
    # The same for the pages of the last publication; "": not found in this run.
    published: Mapping[str, int]
    doubt: str = ""  # a sentence on why the crawl may not have seen the site; refuses a first publication
    failures: Failures = field(default_factory=Failures)
    health: SiteHealth | None = None  # what pages answered that were asked again; None: they were not
    vanished: VanishedPages = NONE_VANISHED  # published pages that no link leads to any more
    moved: int = 0  # published pages that redirect to a listed page of their own
    identity: SitemapIdentity | None = None  # what is crawled
    is_partial: bool = False  # pages that were not visited stay as they were
    alike: AlikePages = NONE_ALIKE  # published pages of which many say the same now
    unseen: str = ""  # why a partial run cannot be published


class _Change(Struct, frozen=True):
    """A difference to earlier publications that is larger than a limit."""

    words: str
    flag: str  # with the value that allows it
    codes: frozenset[str] = frozenset()  # the outcomes that were decisive
    has_examples: bool = False  # in its words


def check(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    """Raises `PublishRefused`, with the reason and what to do, if `urls` pages must not be published."""
    try:
        _check(guard, urls, before, crawled)
    except PublishRefused as refusal:
        if before.urls == 0:
            raise PublishRefused(str(refusal).replace(_KEPT, "nothing is published"), refusal.codes) from None
        raise


def _check(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    if urls == 0:
        words = f"No page is listed, and an empty sitemap is never published{_of_these(crawled)}; {_KEPT}."
        raise PublishRefused(f"{words} {crawled.doubt}".strip(), _gone(crawled).keys())
    _check_identity(before, crawled)
    if guard.force:
        return
    if not crawled.complete and not guard.allow_partial:
        raise PublishRefused(f"The crawl is not complete; {_KEPT}. --allow-partial publishes anyway.")
    _check_first(guard, before, crawled)
    try:
        _compare(guard, urls, before, crawled)
    except PublishRefused as refusal:
        hint = without_flag(crawled.doubt)  # probably the cause
        raise PublishRefused(f"{refusal} {hint}".strip(), refusal.codes) from None


def suspects_failures(guard: Guard, crawled: CrawlResult) -> bool:
    """Whether so many pages failed that the site is to be asked again."""
    return not guard.force and failures.are_many(
        crawled.failures.counts, answered(crawled.outcomes), guard.max_failed
    )


def fetched(outcomes: Mapping[str, int]) -> int:
    """The number of fetched URLs."""
    return sum(count for code, count in outcomes.items() if code not in _NOT_FETCHED)


def answered(outcomes: Mapping[str, int]) -> int:
    """The number of fetched URLs that did not fail, or stay in the sitemap though they did."""
    return sum(
        count
        for code, count in outcomes.items()
        if code not in _NOT_FETCHED and not code.startswith("failed:")
    )


def _check_identity(before: EarlierPublications, crawled: CrawlResult) -> None:
    """Refuses, also with --force, to replace the sitemap of another site or scope."""
    other = before.identity and crawled.identity and before.identity.differs_from(crawled.identity)
    if other:
        raise PublishRefused(
            f"{other}; {_KEPT}. Choose another place with --output; or, if this sitemap is to take the place "
            "of that one, move the old files and their manifest.json away first."
        )


def _check_first(guard: Guard, before: EarlierPublications, crawled: CrawlResult) -> None:
    """A first publication cannot be compared, so a run with doubts is refused, unless --min-urls is set."""
    is_first = before.urls is not None and not before.largest
    if crawled.doubt and crawled.complete and is_first and guard.min_urls is None:
        raise PublishRefused(crawled.doubt)


def _compare(guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult) -> None:
    if guard.min_urls and urls < guard.min_urls:
        raise PublishRefused(
            f"URLs listed: {urls:,}, fewer than --min-urls {guard.min_urls:,}; {_KEPT}. "
            "Lower it if the site is no larger."
        )
    _check_failed(guard, crawled)
    if crawled.unseen:
        raise PublishRefused(crawled.unseen)
    _check_known(guard, before)
    changes = [
        *_changed_verdicts(guard, crawled),
        *_shrinking(guard, urls, before, crawled),
        *_removing(guard, before, crawled),
    ]
    if changes:
        words = ". ".join(change.words for change in changes)
        flags = " ".join(change.flag for change in changes)
        has_examples = any(change.has_examples for change in changes)
        codes = frozenset[str]().union(*(change.codes for change in changes if not has_examples))
        raise PublishRefused(
            f"{words}; {_KEPT}.{_settings_since(before, crawled)} If the site has really changed so, {flags} "
            "publishes it this once.",
            codes,
        )


def _check_failed(guard: Guard, crawled: CrawlResult) -> None:
    """Refuses if many pages failed, and pages that had answered do not answer any more."""
    failed, good = crawled.failures, answered(crawled.outcomes)
    health = crawled.health
    if health is None:
        if failures.are_many(failed.weights, good, guard.max_failed):
            raise PublishRefused(
                f"{_failed_words(failed.weights, good, guard)}; {_KEPT}. A crawl asks the site whether it "
                "works, and publishes if it does.",
                failed.weights.keys(),
            )
        return
    if failures.are_many(failed.counts, good, guard.max_failed) and failures.is_ill(health, failed):
        raise PublishRefused(
            f"{_failed_words(failed.counts, good, guard)}; {_health_words(health)}. The site does not work "
            f"now, or refuses this crawler; {_KEPT}. Crawl again when it works.",
            failed.counts.keys(),
        )


def _failed_words(failed: Mapping[str, int], good: int, guard: Guard) -> str:
    count = sum(failed.values())
    total = count + good
    return (
        f"Of {total:,} fetched pages, {count:,} failed ({count / total:.0%}; {_named(failed)}), and "
        f"--max-failed is {guard.max_failed:.0%}"
    )


def _health_words(health: SiteHealth) -> str:
    if not health.silent:
        return f"only {health.asked:,} answered well"
    shown = ", ".join(health.silent[:2])
    return f"of {health.asked:,} pages that had answered, {len(health.silent):,} do not any more: {shown}"


def _check_known(guard: Guard, before: EarlierPublications) -> None:
    if before.urls is None and guard.max_shrink < 1:
        raise PublishRefused(
            "It is unknown how many URLs are published, so it cannot be checked whether there would be "
            "fewer: manifest.json is missing or damaged, and the published sitemap cannot be read in full; "
            f"{_KEPT}. --max-shrink 100% publishes it this once."
        )


def _changed_verdicts(guard: Guard, crawled: CrawlResult) -> Iterator[_Change]:
    """Many published pages became noindex, empty and so on, by a mistake that answers 200."""
    changed = {code: count for code, count in crawled.published.items() if code in _VERDICTS}
    count = sum(changed.values()) + crawled.alike.count
    total = sum(crawled.published.values()) + (crawled.alike.earlier if crawled.is_partial else 0)
    named = [_named(changed)] if changed else []
    if crawled.alike.count:
        named.append(
            f"{crawled.alike.count:,} say the same now, unlike before, such as {crawled.alike.example}"
        )
    if failures.exceeds(count, total, guard.max_verdict_change):
        what = "have changed" if crawled.alike.count else "would no longer be listed"
        yield _Change(
            f"Of {total:,} published pages, {count:,} {what} ({count / total:.0%}; "
            f"{'; '.join(named)}), and --max-verdict-change is {guard.max_verdict_change:.0%}",
            "--max-verdict-change 100%",
            frozenset(changed),
        )


def _shrinking(
    guard: Guard, urls: int, before: EarlierPublications, crawled: CrawlResult
) -> Iterator[_Change]:
    most, now = before.largest - crawled.vanished.passing, before.urls or 0
    if not failures.exceeds(most - urls, most, guard.max_shrink):
        return
    history = (
        f" and {most:,} were in the largest of the last {failures.COMPARED} publications"
        if most > now
        else ""
    )
    yield _Change(
        f"URLs listed: {urls:,}, where {now:,} are published{history}: {1 - urls / most:.0%} "
        f"fewer, and --max-shrink is {guard.max_shrink:.0%}{_of_these(crawled)}",
        "--max-shrink 100%",
        frozenset(_gone(crawled)),
    )


def _removing(guard: Guard, before: EarlierPublications, crawled: CrawlResult) -> Iterator[_Change]:
    """Many published URLs would leave, and have not moved, whatever takes their place."""
    found, seen = _lasting(before.difference, crawled.vanished), "published URLs"
    found = found._replace(removed=max(0, found.removed - crawled.moved))
    is_all = found.removed == found.before and found.before > 1
    is_significant = is_all or found.removed >= FEWEST_REMOVED
    if crawled.is_partial:  # others cannot leave
        visited = sum(crawled.published.values())
        found, seen = found._replace(before=max(visited, found.removed)), "published URLs that were visited"
    if not (is_significant and failures.exceeds(found.removed, found.before, guard.max_removed)):
        return
    examples = f", such as {', '.join(found.examples)}" if found.examples else ""
    yield _Change(
        f"Of {found.before:,} {seen}, {found.removed:,} would no longer be listed "
        f"({found.removed / found.before:.0%}{examples}), and --max-removed is "
        f"{guard.max_removed:.0%}{_vanished_words(crawled.vanished)}",
        "--max-removed 100%",
        frozenset(_gone(crawled)),
        bool(found.examples),
    )


def _lasting(found: Difference, vanished: VanishedPages) -> Difference:
    """The difference without pages that came and went: one page had led to them, which anybody may write."""
    passing = min(vanished.passing, found.removed)
    return found._replace(before=found.before - passing, removed=found.removed - passing)


def _vanished_words(vanished: VanishedPages) -> str:
    if not vanished.asked:
        return ""
    alive = sum(page.is_alive for page in vanished.asked)
    return (
        f" (no link leads to {vanished.count:,} of them any more; {len(vanished.asked):,} were asked, and "
        f"{alive:,} still {'answers' if alive == 1 else 'answer'})"
    )


def _settings_since(before: EarlierPublications, crawled: CrawlResult) -> str:
    if not (before.identity and crawled.identity):
        return ""
    changed = before.identity.changed_settings(crawled.identity)
    return f" Since the last publication, {' and '.join(changed)} changed." if changed else ""


def _gone(crawled: CrawlResult) -> Mapping[str, int]:
    """The outcomes of published pages that were found, and are no longer listed."""
    return {
        code: count
        for code, count in crawled.published.items()
        if code and code != "listed" and not code.startswith("kept:")
    }


def _of_these(crawled: CrawlResult) -> str:
    gone = _gone(crawled)
    return f" (of the published pages, {_named(gone)})" if gone else ""


def _named(counts: Mapping[str, int], most: int = 3) -> str:
    """The most frequent outcomes, each with count and sentence."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count:,} {code}: {says(code)}" for code, count in ranked[:most]]
    return "; ".join(named) + (f"; {len(ranked) - most} more kinds" if len(ranked) > most else "")
