"""Links become visits; those to URLs that are known are given by number."""

import pytest

from crawler.model.facts import Facts
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.settlement import KnownUrl, Settlement, Verdict
from crawler.model.visit import Lease, Link, Links, Visit
from crawler.parse.url import Url
from crawler.rules.candidates import MOST_LONG, Candidates
from crawler.rules.scope import SiteScope
from crawler.rules.traps import Traps
from crawler.settings import sections

PAGE, KNOWN, SEEN, NEW = (Url(f"http://a.example/{name}") for name in ("page", "known", "seen", "new"))

ALIAS, OURS = Url("https://a.example/to"), Url("http://a.example/to")


def candidates(most_long: int = MOST_LONG) -> Candidates:
    """KNOWN has the number 7; the row of SEEN, 8, may still change."""
    made = Candidates(SiteScope.of([Url("http://a.example/")], sections.Scope()), Traps(), most_long)
    made.learn([Visit(KNOWN), Visit(SEEN), Visit(NEW)], [KnownUrl(7), KnownUrl(8, settled=False), None])
    return made


def settled(outcome: Outcome, *links: Link, named: tuple[Url, ...] = ()) -> Settlement:
    lease = Lease(1, 1, Visit(PAGE, 3, PAGE, 1))
    return candidates().settlement(lease, Verdict(outcome, named=named), Links.of(links))


def links_of(made: Settlement) -> tuple[list[int], list[int]]:
    assert made.links
    return list(made.links.followed), list(made.links.avoided)


def test_visits_are_made_for_new_urls_only() -> None:
    made = settled(Listed(), Link(KNOWN), Link(NEW), Link(SEEN))
    assert made.found == (Visit(NEW, 4, PAGE), Visit(SEEN, 4, PAGE))
    assert links_of(made) == ([7, 0, 0], [])


def test_long_urls_are_stored_up_to_a_limit() -> None:
    """Of one session; canonicals and redirect targets always."""
    made, longest = candidates(3_000), [Url(f"{NEW}/{number}{'x' * 2_100}") for number in range(4)]
    seen = list[Url]()
    pages: list[tuple[Url, Outcome]] = [
        (longest[0], Listed()), (NEW, Listed()), (longest[1], Listed()), (longest[2], Listed()),
        (longest[3], Moved(longest[3])), (SEEN, Listed()),
    ]  # fmt: skip
    for url, outcome in pages:
        links = Links.of([Link(url), Link(KNOWN)])
        done = made.settlement(Lease(1, 1, Visit(PAGE)), Verdict(outcome, named=()), links)
        assert links_of(done)[0] == [0] * len(done.found) + [7]
        seen += [visit.url for visit in done.found]
    assert seen == [longest[0], NEW, longest[1], longest[3], SEEN]
    assert [(trap.kind, trap.example) for trap in made.traps.unreported()] == [("links", longest[2])]


def test_nofollow_link_to_known_url_is_a_number() -> None:
    made = settled(Listed(), Link(KNOWN, nofollow=True), Link(SEEN, nofollow=True), Link(NEW, nofollow=True))
    assert made.found == (Visit(NEW, 4, PAGE, 0, Why.NOFOLLOW),)
    assert links_of(made) == ([], [7, 8, 0])


def test_redirect_target_is_visited_though_it_is_known() -> None:
    made = settled(Moved(KNOWN), Link(KNOWN), Link(NEW), named=(KNOWN,))
    assert made.found == (Visit(KNOWN, 3, PAGE, 2), Visit(NEW, 4, PAGE))


def test_canonical_is_visited_though_it_is_known() -> None:
    made = settled(Unlisted(Why.CANONICAL, KNOWN), Link(KNOWN))
    assert made.found == (Visit(KNOWN, 4, PAGE),)


def test_language_versions_on_an_alias_are_those_of_the_site() -> None:
    made = candidates()
    made.map_aliases({"https://a.example": "http://a.example"})
    read = {
        "hreflang": (("de", Url("https://a.example/de")), ("en", NEW), ("it", Url("https://b.example/"))),
        "images": (("", Url("https://a.example/a.jpg")),),
    }
    verdict = Verdict(Listed(), Facts(200), features=read)
    settlement = made.settlement(Lease(1, 1, Visit(PAGE)), verdict, Links())
    versions = ("de", Url("http://a.example/de")), *read["hreflang"][1:]
    assert settlement.verdict.features == read | {"hreflang": versions}


def test_canonical_of_unlisted_page_on_alias_is_of_the_site() -> None:
    """That of a page that is not listed for it stays as it is: it is shown, and visited."""
    made, alias = candidates(), Url("https://a.example/new")
    made.map_aliases({"https://a.example": "http://a.example"})
    for outcome, canonical in ((Unlisted(Why.NOINDEX), NEW), (Unlisted(Why.CANONICAL, alias), alias)):
        verdict = Verdict(outcome, Facts(200, canonical=alias), named=(alias,))
        done = made.settlement(Lease(1, 1, Visit(PAGE)), verdict, Links((alias,)))
        assert done.verdict.facts
        assert (done.verdict.facts.canonical, done.verdict.named) == (canonical, (canonical,))


@pytest.mark.parametrize(
    ("links", "named", "unchanged", "found"),
    [
        ([Link(ALIAS), Link(NEW)], (), False, [ALIAS, OURS, NEW]),
        ([Link(ALIAS), Link(ALIAS, nofollow=True)], (ALIAS,), False, [ALIAS, OURS]),
        ([Link(ALIAS), Link(OURS)], (ALIAS,), False, [ALIAS, OURS]),
        ([Link(ALIAS)], (ALIAS,), False, [ALIAS]),
        ([Link(ALIAS)], (), True, [ALIAS]),  # stored: mapped when the page was read
    ],
)
@pytest.mark.parametrize("outcome", [Unlisted(Why.CANONICAL, ALIAS), Moved(ALIAS)])
def test_link_to_alias_that_is_canonical_too_is_of_the_site(
    outcome: Outcome, links: list[Link], named: tuple[Url, ...], unchanged: bool, found: list[Url]
) -> None:
    """A canonical or the target of a refresh stays; a link to it is a link to the site."""
    made = candidates()
    made.map_aliases({"https://a.example": "http://a.example"})
    verdict = Verdict(outcome, Facts(200, canonical=ALIAS), named=named, unchanged=unchanged)
    done = made.settlement(Lease(1, 1, Visit(PAGE)), verdict, Links.of(links))
    assert [visit.url for visit in done.found] == found
    assert done.verdict.named == (() if unchanged else (ALIAS,))
    nofollow = any(link.nofollow for link in links)
    assert [visit.url for visit in done.found if visit.filtered is Why.NOFOLLOW] == [OURS] * nofollow
