"""How long a published page that fails stays in the sitemap, by its outcome.

After a temporary failure the page stays listed, with its last date and links. A definite answer of the site (not found,
noindex, a redirect, a robots rule) removes it at once. Pure; the frontier knows whether the page was published and how
long it has been failing.
"""

from collections.abc import Mapping
from typing import Final

from crawler.model.outcome import Failed, Kept, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Why

FORBIDDEN: Final = 172_800.0  # seconds for 401 and 403: after two days the login is taken as intended

PASSING: Final = frozenset({
    Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.CONNECT, Cause.TRUNCATED, Cause.PROTOCOL, Cause.DNS,
    Cause.TLS, Cause.CODING, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN,
})  # fmt: skip
"""Failures without a complete, readable response: they may be temporary."""


def keep_for(outcome: Outcome, keep: float) -> float:
    """Seconds from its first failure that a published page with this outcome stays listed; 0: removed at once.

    `keep`: the seconds of --keep-failing.
    """
    match outcome:
        case Failed(Cause.FORBIDDEN) | Kept(Cause.FORBIDDEN):
            return min(FORBIDDEN, keep)
        case Failed(cause) | Kept(cause) if cause in PASSING:
            return keep
        case Unlisted(Why.ROBOTS_DOWN):
            return keep
    return 0.0


def by_code(keep: float) -> Mapping[tuple[str, str], float]:
    """`keep_for` above zero, by the code of the failure and the code of the page that is kept in spite of it."""
    rows: dict[tuple[str, str], float] = {}
    for cause in Cause:
        failure = Unlisted(Why.ROBOTS_DOWN) if cause is Cause.ROBOTS_DOWN else Failed(cause)
        if cause in PASSING or cause is Cause.FORBIDDEN:
            rows[code(failure), code(Kept(cause))] = keep_for(failure, keep)
    return rows
