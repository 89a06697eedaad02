"""Failed URLs when a publication is decided: which of them count, and whether the site itself is ill.

Many failures may come from places of the site that fail for everyone, or from links that a stranger posted:
then the pages that answered in this run answer again, and the failures are findings. The engine asks; this
decides. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from crawler.model.outcome import Failed, code
from crawler.model.reasons import Cause
from crawler.model.survey import Failures, SiteHealth
from crawler.parse.url import in_folder
from crawler.rules.record import PASSING

COMPARED: Final = 7  # publications that a new one is compared with
FEWEST_FAILURES: Final = 5  # failures, below which their share is not significant
ASKED: Final = 5  # pages that are asked again
ANSWERING: Final = 0.8  # share of these that answer on a healthy site
# Failures for each page that answered, above which fewer than `ASKED` pages cannot vouch for the site.
VOUCHED: Final = 4

_NOT_FOUND: Final = code(Failed(Cause.NOT_FOUND))
_MAY_PASS: Final = frozenset(code(Failed(cause)) for cause in PASSING)


class FailedUrl(Struct, frozen=True):
    """A URL that failed in this run."""

    outcome: str  # its code
    url: str
    via: int | None  # id of the page that links to it
    is_seed: bool  # a start URL, or in a seed
    is_published: bool  # in the last publication


def weigh(failed: Iterable[FailedUrl]) -> Failures:
    """The failures that count: all of them, and those that weigh.

    Pages that were published, and seeds, weigh one each; other URLs weigh one for each linking page and
    folder. A URL that is not found and was not published does not count at all.
    """
    counts: dict[str, int] = {}
    weights: dict[str, int] = {}
    shared: dict[tuple[int | None, str], str] = {}
    for one in failed:
        if one.outcome == _NOT_FOUND and not one.is_published:
            continue
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
        if one.is_seed or one.is_published:
            weights[one.outcome] = weights.get(one.outcome, 0) + 1
        else:
            place = one.via, in_folder(one.url)[0]
            shared[place] = min(one.outcome, shared.get(place, one.outcome))
    for outcome in shared.values():
        weights[outcome] = weights.get(outcome, 0) + 1
    return Failures(counts, weights)


def are_many(failed: Mapping[str, int], answered: int, limit: float) -> bool:
    """Whether more than the share `limit` of the pages failed. `answered`: fetched pages that did not."""
    count = sum(failed.values())
    return count >= FEWEST_FAILURES and exceeds(count, count + answered, limit)


def exceeds(part: int, whole: int, share: float) -> bool:
    """Whether a part is more than a share of the whole; exactly the share is not, however it is rounded."""
    return part > round(whole * share, 6)


def is_ill(health: SiteHealth, failed: Failures) -> bool:
    """Whether the site, and not only places of it, fails, by pages that were asked again."""
    if health.answered < ANSWERING * health.asked or not health.asked:
        return True
    passing = sum(count for outcome, count in failed.weights.items() if outcome in _MAY_PASS)
    return health.asked < ASKED and passing > VOUCHED * health.answered
