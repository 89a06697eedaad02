"""Whether a published page is hidden for now by an interstitial: a bot check, a login, or a consent page.

`rules.walls` knows the answers of some firewalls. Others are only seen by what was there before: the page has
another title, and with it the links to its site are gone. Pure.
"""

from typing import Final

from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Kept, Listed, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Verdict
from crawler.model.visit import Lease
from crawler.parse.url import origin

MOST_LINKS: Final = 1  # to the site, such as a logo
FEWEST_BEFORE: Final = 3  # links that such a page had: more than an edit removes with the title
_HIDING: Final = frozenset({Why.NOINDEX, Why.CANONICAL, Why.EMPTY})


def is_suspected(lease: Lease, verdict: Verdict) -> bool:
    """Whether a visit may have met an interstitial. The number of links that the page had tells."""
    prior, facts = lease.prior, verdict.facts
    if prior is None or facts is None or verdict.unchanged or not prior.may_stay:
        return False
    if not isinstance(prior.outcome, Listed | Kept) or not _may_hide(verdict):
        return False
    return facts.title != prior.facts.title and _leads_nowhere(lease, verdict)


def failure(verdict: Verdict) -> Verdict:
    """The verdict on a page that is hidden by what was seen: what is known of it stays."""
    title = verdict.facts.title if verdict.facts else None
    return Verdict(Failed(Cause.INTERSTITIAL, title or "without a title"), Facts(200))


def _may_hide(verdict: Verdict) -> bool:
    outcome = verdict.outcome
    return isinstance(outcome, Listed) or (isinstance(outcome, Unlisted) and outcome.why in _HIDING)


def _leads_nowhere(lease: Lease, verdict: Verdict) -> bool:
    """Whether hardly a link of the page that a reader can click leads to its site."""
    site = f"{origin(lease.visit.url)}/"
    return sum(to.startswith(site) for to in {*verdict.links.followed} - {*verdict.named}) <= MOST_LINKS
