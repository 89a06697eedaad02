"""What is taken for an interstitial: pages before and after, and what was known of them."""

import pytest

from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Kept, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Verdict
from crawler.model.visit import Lease, Links, Prior, Visit
from crawler.parse.url import Url
from crawler.rules import interstitials

SITE = "https://a.example"
BEFORE = Prior(Listed(), Facts(200, title="Lamps"), may_stay=True)


def suspected(
    outcome: Outcome = Listed(),  # noqa: B008 - a value
    title: str | None = "One moment",
    links: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
    *,
    prior: Prior | None = BEFORE,
    unchanged: bool = False,
) -> bool:
    shown = Links(tuple(map(Url, (*named, *links))))
    verdict = Verdict(outcome, Facts(200, title=title), shown, unchanged, named=tuple(map(Url, named)))
    return interstitials.is_suspected(Lease(1, 1, Visit(Url(f"{SITE}/lamps")), prior=prior), verdict)


@pytest.mark.parametrize(
    "outcome", [Listed(), *(Unlisted(why) for why in (Why.NOINDEX, Why.CANONICAL, Why.EMPTY))]
)
def test_another_title_without_links_is_suspected(outcome: Outcome) -> None:
    assert suspected(outcome)
    assert suspected(outcome, title=None)
    assert suspected(
        outcome, links=(f"{SITE}/", "https://firewall.example/", "https://firewall.example/help")
    )
    assert suspected(outcome, named=(f"{SITE}/", f"{SITE}/de/", f"{SITE}/fr/")), "nobody can click these"
    assert suspected(outcome, prior=Prior(Kept(Cause.INTERSTITIAL), BEFORE.facts, may_stay=True))


def test_what_the_page_still_has_speaks_for_it() -> None:
    assert not suspected(title="Lamps")
    assert not suspected(links=(f"{SITE}/", f"{SITE}/tables"))


@pytest.mark.parametrize(
    "outcome",
    [Moved(Url(f"{SITE}/")), Failed(Cause.NOT_FOUND), *(Unlisted(why) for why in (Why.SOFT_404, Why.TYPE))],
)
def test_a_definite_answer_is_no_interstitial(outcome: Outcome) -> None:
    assert not suspected(outcome)


@pytest.mark.parametrize(
    "prior",
    [None, Prior(Listed(), BEFORE.facts), Prior(Unlisted(Why.NOINDEX), BEFORE.facts, may_stay=True)],
    ids=["new", "not published, or for too long", "not listed"],
)
def test_only_a_published_page_can_stay_as_it_was(prior: Prior | None) -> None:
    assert not suspected(prior=prior)


def test_an_unchanged_page_is_itself() -> None:
    assert not suspected(unchanged=True)
