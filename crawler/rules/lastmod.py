"""Which date of a page is trusted as its `lastmod`. The sources, in order:

    Last-Modified, unless unreliable -> the date stated in the page -> the sitemap that the site had before,
    unless unreliable -> the run that saw a change -> none

Correct or absent: a date that is invalid, in the future, or older than the web is omitted, never repaired or
guessed. Whether the headers of a server are reliable shows only over a whole site, so that is decided at the
end. The date of one page is then chosen by `record`. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec.structs import replace

from crawler.model.reasons import Source
from crawler.model.reply import Headers
from crawler.model.survey import LATELY, LONG_AGO, Build, Evidence, NewBlock, Restless
from crawler.parse.dates import http_date, read_stated
from crawler.rules import shown_in_turn
from crawler.rules.noise import MOST_RUNS, RUNS, LastChange
from crawler.rules.record import DAY

FIRST_PAGE: Final = datetime(1991, 8, 6, tzinfo=UTC)
"""The day the first website was announced. Older dates come from clocks that were never set."""

FRESH_WITHIN: Final = timedelta(seconds=5)  # a date this close to the request was generated for it
OFF: Final = timedelta(days=1)  # by which the clock of a server may differ, as dates may
DATE_SOURCES: Final[Mapping[str, tuple[Source, ...]]] = {
    "auto": (Source.HEADER, Source.PAGE, Source.SITEMAP, Source.HISTORY),
    "header": (Source.HEADER,),
    "page": (Source.PAGE,),
    "none": (),
}

# Pages with the same content as before, from which on they tell of all headers of a host. Fewer tell of
# themselves alone: a header that changed while its page did not is never the date of that page.
LEAST_COMPARED: Final = 10
# One page of so many that changed in a run, from which on they are no edits.
LEAST_SHARE: Final = 5
KNOWN_RUNS: Final = 4  # until which it is a part of that
BUILD_SECONDS: Final = 600  # seconds that a build takes
BUILD_SHARE: Final = 90  # percent of the dates of an origin that are within the window
LEAST_BUILT_PAGES: Final = 5  # pages: fewer may have been edited by hand in that time
AT_ONCE: Final = 20  # one date of so many is of the same second
# Seconds, 36 hours: a date without a time may be this much earlier than the moment it means.
OLDER_THAN_BUILD: Final = 129_600
LEAST_REPEATED: Final = 5  # pages that changed as in the run before: fewer may have been edited by hand
# Changes in the last runs from which on they are compared; of all text, one change in so many days or visits.
LEAST_CHANGES: Final = 6
EDIT_DAYS: Final = 50
# One page of so many, at most, is taken to have been edited in days on which it was not visited.
MORE_EDITED: Final = 10
ONE_EDIT: Final = 8  # changes, if not more than one of so many is known to be an edit
MOST_WINDOWS: Final = 20  # windows remembered for each origin

BuildWindows: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""By origin: first and last moment of each known build, in seconds since the epoch."""


def credible(at: datetime, now: datetime) -> bool:
    """Whether a page can have changed at that time."""
    return FIRST_PAGE <= at <= now


def from_header(headers: Headers, now: datetime) -> datetime | None:
    """The date of Last-Modified (RFC 9110 8.8.2), if there is exactly one field and its date is credible.

    A server whose clock is wrong, or a cache that does not say so, dates nothing.
    """
    values = headers.all("last-modified")
    if len(values) != 1 or _is_off(headers, now):
        return None
    at = http_date(values[0], now)
    return at if at and credible(at, now) else None


def _is_off(headers: Headers, now: datetime) -> bool:
    """Whether the clock of a server is wrong by more than a day. A cache may have kept its answer longer."""
    stated = headers.get("date")
    server = http_date(stated, now) if stated else None
    if server is None or -OFF <= now - server <= OFF:
        return False
    kept = re.fullmatch(r"[0-9]{1,9}", headers.get("age") or "")  # seconds (RFC 9111 5.1)
    return abs(now - server - timedelta(seconds=int(kept[0]) if kept else 0)) > OFF


def is_fresh(at: datetime, headers: Headers, now: datetime) -> bool:
    """Whether a date is the time of the request, by our clock or by the server's (Date)."""
    server = http_date(headers.get("date") or "", now)
    return abs(now - at) <= FRESH_WITHIN or (server is not None and abs(server - at) <= FRESH_WITHIN)


@lru_cache(1)  # for a page that is parsed and then judged
def with_age(headers: Headers, now: datetime) -> tuple[datetime | None, bool | None]:
    """The date of Last-Modified, and whether it is the time of the request; None if there is no date."""
    header = from_header(headers, now)
    return header, None if header is None else is_fresh(header, headers, now)


def from_page(texts: Iterable[str], now: datetime) -> datetime | None:
    """The newest credible date that a page states; a time without a zone is read as UTC."""
    found = [at for text in texts if (at := read_stated(text)) and credible(at, now)]
    return max(found, default=None)


def why_unreliable(evidence: Evidence, before: str | None = None) -> str | None:
    """Why an origin's headers are not trusted; None if they are.

    `before`: the reason of the last run. It stands until most pages can be compared and show no problem.
    """
    if 2 * evidence.fresh > evidence.dated:
        return f"it sends the time of the request on {evidence.fresh:,} of {evidence.dated:,} pages"
    if evidence.dated >= LEAST_COMPARED and 100 * evidence.recent >= BUILD_SHARE * evidence.dated:
        return f"{evidence.recent:,} of {evidence.dated:,} dates are of the last week, as after builds"
    if evidence.compared >= LEAST_COMPARED and 2 * evidence.slid > evidence.compared:
        pages = f"{evidence.slid:,} of {evidence.compared:,} pages"
        return f"its date changed on {pages} whose content did not change"
    return before if 2 * evidence.compared < evidence.dated else None


def why_stated(evidence: Evidence, found: Build | None) -> str | None:
    """Why the dates that the pages of an origin state are not trusted; None if they are."""
    if found and is_build(found) and found.within >= LEAST_COMPARED and found.age < LONG_AGO:
        return f"{found.within:,} of {found.dated:,} pages state a time within the same ten minutes"
    if evidence.stating >= LEAST_COMPARED and 5 * evidence.restated > 4 * evidence.stating:
        pages = f"{evidence.restated:,} of {evidence.stating:,} pages"
        return f"the stated date changed on {pages} whose content did not change"
    return None


def is_stale(stale: int, followed: int) -> bool:
    """Whether stated dates do not follow changes, by the edits so far that moved none, and those that did."""
    return stale >= LEAST_BUILT_PAGES and followed == 0


def restless(
    before: Restless | None,
    evidence: Evidence,
    blocks: int = 0,
    found: Iterable[NewBlock] = (),
    templates: tuple[int, ...] = (),
) -> Restless:
    """What is known of changes in place, with those of this run but for those of blocks."""
    before = before or Restless()
    now = (evidence.since, max(0, evidence.again - blocks), evidence.anew)
    # A run in which many pages changed at once dates none, and tells nothing of the others.
    edited = 0 if unusable_changes(evidence, blocks) else max(0, evidence.reworded - blocks)
    days = max(evidence.known, evidence.days)
    edits = (*before.edits, (edited, days, evidence.noisy))[-MOST_RUNS:]
    turns = shown_in_turn.after(before.turns, found)
    known = Restless((*before.runs, now)[-MOST_RUNS:], edits=edits, turns=turns, templates=templates)
    if not is_restless(known):
        return known
    if before.last:
        # That most pages have it may be known only later: then dates up to now are doubtful, on all of them.
        is_news = is_everywhere(known, evidence) and not is_everywhere(before, evidence)
        is_early = before.last >= known.runs[0][0]
        last = evidence.since if is_news and is_early else before.last
        return replace(known, first=before.first, last=last)
    return replace(known, first=known.runs[0][0], last=evidence.since)


def is_restless(known: Restless) -> bool:
    """Whether most changes of an origin come again where they were before: something beside the content that
    changes now and then, such as advertisements. An edit seldom comes back to its place within days.
    """
    again, anew = (sum(run[at] for run in known.runs) for at in (1, 2))
    return (again >= LEAST_CHANGES and again > anew) or is_lively(known)


def is_lively(known: Restless) -> bool:
    """Whether text changes more often than by edits, and few of its changes are known to be edits."""
    if not known.edits or known.edits[-1][1] < LEAST_COMPARED:
        return False
    edits, days = (sum(run[at] for run in known.edits) for at in (0, 1))
    # A page on which noise was recognised had changed twice before.
    edits -= (RUNS - 1) * max(0, known.edits[-1][2] - known.edits[0][2])
    anew = sum(run[2] for run in known.runs)
    return edits >= LEAST_CHANGES and edits * EDIT_DAYS > days and ONE_EDIT * anew <= edits


def is_noisy(evidence: Evidence, found: Iterable[NewBlock]) -> bool:
    """Whether pages that change where they did in the run before have noise that is not known yet: many pages
    have some, or most of those that changed did so.
    """
    repeated = sum(one.pages for one in found if one.change == LastChange.REPEATED)
    is_most = repeated >= LEAST_REPEATED and 2 * repeated > evidence.changed
    return is_most or evidence.noisy >= LEAST_COMPARED


def is_everywhere(known: Restless, evidence: Evidence) -> bool:
    """Whether what changes again and again is on most pages: as often as that once in the last runs."""
    return is_lively(known) or 0 < evidence.known <= sum(again for _, again, _ in known.runs)


def unusable_changes(
    evidence: Evidence, blocks: int = 0, *, runs: int = KNOWN_RUNS, is_read_anew: bool = False
) -> str | None:
    """Why changed content is not taken as a new date: many pages changed at once (a new template, or noise
    that is not recognised yet), or what is read of them did (`is_read_anew`).

    `blocks`: pages on which a block changed that many have. `runs`: before this one. In the first ones nobody
    knows how many pages have noise, so fewer are many. Of pages that were not visited for days, more were
    edited.
    """
    if is_read_anew and evidence.changed:
        return "what is read of a page has changed with the settings"
    changed = evidence.reworded - blocks
    known = max(1, min(runs, KNOWN_RUNS))
    least = LEAST_REPEATED + LEAST_REPEATED * known // KNOWN_RUNS
    edits = min(max(0, evidence.days - evidence.known) / EDIT_DAYS, evidence.known / MORE_EDITED)
    is_many = changed >= least and changed - edits > known * evidence.known / (KNOWN_RUNS * LEAST_SHARE)
    if 2 * changed > evidence.known or is_many:
        return f"the content changed on {changed:,} of {evidence.known:,} pages at once"
    return None


def is_navigation(evidence: Evidence) -> bool:
    """Whether links that changed are no content in this run, if changes are used: they did on most pages at
    once, as a menu or a list of the latest pages does.
    """
    return 2 * evidence.changed > evidence.known


def is_build(found: Build) -> bool:
    """Whether nearly all dates of an origin are within one build: a deployment that rewrote all files.

    A single page cannot show it. If most pages state older dates, the header dates the build, not the pages.
    """
    return found.within >= LEAST_BUILT_PAGES and 100 * found.within >= BUILD_SHARE * found.dated


def is_built_lately(found: Build) -> bool:
    """Whether most dates are within one window, not long ago, and the pages do not confirm it."""
    is_most = found.within >= LEAST_COMPARED and 2 * found.within > found.dated
    return is_most and found.age < LONG_AGO and 2 * found.agreeing <= found.within


def is_first_build(found: Build, lately: int = LATELY, long_ago: int = LONG_AGO) -> bool:
    """Whether dates are of one build, when no page can be compared yet: they are many, not `long_ago` (in
    seconds), or those of `lately` are of the same second, in which nobody edits several pages.
    """
    is_many = LEAST_SHARE * found.within > found.dated and found.within >= LEAST_COMPARED
    is_share = AT_ONCE * found.within > found.dated and found.within >= LEAST_BUILT_PAGES
    is_at_once = is_share and found.first == found.last and found.first % DAY > 0
    return (is_many and found.age < long_ago) or (is_at_once and found.age < lately)


def why_build(found: Build) -> str | None:
    """Why headers are not trusted; None if they are. Pages that state the same dates were really edited."""
    if not is_build(found):
        return None
    if 2 * found.older <= found.stating:
        share = f"{found.within:,} of {found.dated:,} dates are within ten minutes"
        return f"{share}, as after a build, and not long ago" if is_built_lately(found) else None
    return (
        f"{found.within:,} of {found.dated:,} dates are within ten minutes, as after a build, "
        f"and {found.older:,} of {found.stating:,} pages that state a date state an older one"
    )


def is_of_change(found: Build, evidence: Evidence) -> bool:
    """Whether most headers are of one build, when the content changed on many pages at once: a new template.

    Its time is that of no page.
    """
    return found.within >= LEAST_BUILT_PAGES and 2 * found.within > evidence.known


def why_sitemap(found: Build, evidence: Evidence) -> str | None:
    """Why the dates in the sitemap of an origin are not used; None if they are.

    One that gives most pages the same time says when it was made. Dates of the future, and of the request,
    are left out before.
    """
    if 2 * found.within > found.dated:
        return f"{found.within:,} of {found.dated:,} dates in its sitemap are within ten minutes"
    if evidence.announced >= LEAST_COMPARED and 2 * evidence.too_new > evidence.announced:
        pages = f"{evidence.too_new:,} of {evidence.announced:,} pages"
        return f"the dates in its sitemap are later than the last change of {pages}"
    return None


def from_sitemap(text: str | None, now: datetime) -> datetime | None:
    """The credible date that a sitemap gives a page, unless it is the time of the request."""
    at = from_page([text], now) if text else None
    return None if at is None or now - at <= FRESH_WITHIN else at


def build_note(found: Build) -> str | None:
    """A remark on headers that are trusted but may be the time of a build; None if there is none."""
    if not is_build(found) or found.stating:
        return None
    within = f"{found.within:,} of {found.dated:,}"
    return f"the dates of {found.origin} look like one build: {within} are within ten minutes"


def remembered_builds(windows: BuildWindows, found: Sequence[Build]) -> dict[str, list[tuple[int, int]]]:
    """Earlier builds and the new ones: pages that were not rebuilt since still have the earlier date."""
    known = {origin: list(some) for origin, some in windows.items()}
    for build in found:
        some = known.setdefault(build.origin, [])
        if not any(first <= build.first and build.last <= last for first, last in some):
            some[:] = [(first, last) for first, last in some if first < build.first or last > build.last]
            some.append((build.first, build.last))
            del some[:-MOST_WINDOWS]
    return known
