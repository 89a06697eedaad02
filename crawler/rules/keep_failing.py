"""How long a published page that fails stays in the sitemap: a rule on its outcome, and nothing else.

A failure that may pass says nothing of the page: the page stays listed, with the date it had, and leads where it led.
What the site says of the page (not found, noindex, a redirect, a robots rule) takes it out at once. Pure; that the page
is in the last publication, and how long it has been failing, is known to the frontier.
"""

from collections.abc import Mapping
from typing import Final

from crawler.model.outcome import Failed, Kept, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Why

FORBIDDEN: Final = 172_800.0  # seconds for 401 and 403: a login that is meant shows within two days

PASSING: Final = frozenset({
    Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.CONNECT, Cause.TRUNCATED, Cause.PROTOCOL, Cause.DNS,
    Cause.TLS, Cause.CODING, Cause.PARSE, Cause.CRASHED, Cause.ROBOTS_DOWN,
})  # fmt: skip
"""No whole answer, or none that could be read: the site said nothing of the page."""


def patience(outcome: Outcome, keep: float) -> float:
    """Seconds from its first failure that a published page with this outcome stays listed; 0: it goes at once.

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
    """The same for all outcomes that have any: by the code of the failure, and that of the page that is kept."""
    rows: dict[tuple[str, str], float] = {}
    for cause in Cause:
        failure = Unlisted(Why.ROBOTS_DOWN) if cause is Cause.ROBOTS_DOWN else Failed(cause)
        if cause in PASSING or cause is Cause.FORBIDDEN:
            rows[code(failure), code(Kept(cause))] = patience(failure, keep)
    return rows
