"""What the guard asks of a state, on every backend: failures, pages to ask again, and pages that are lost."""

import itertools

import pytest

from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Listed, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.rows import PublicationRow
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.failures import COMPARED
from tests.frontier.test_frontier import DAY, ROOT, SITE, Bench, page
from tests.frontier.test_frontier import bench as bench  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.anyio


async def night(bench: Bench, outcomes: dict[str, Outcome]) -> None:
    """A run that finds these pages on the start page, and is published."""
    await bench.ready()
    (start,) = await bench.leases()
    await bench.settle(start, Listed(), *(page(path) for path in outcomes), facts=Facts(200))
    for lease in await bench.leases():
        outcome = outcomes[lease.visit.url.removeprefix(SITE)]
        await bench.settle(lease, outcome, facts=Facts(200 if isinstance(outcome, Listed) else 403))
    await bench.frontier.finish()


async def published(bench: Bench, outcomes: dict[str, Outcome]) -> None:
    await night(bench, outcomes)
    await bench.frontier.mark_published(PublicationRow(len(outcomes)))
    await bench.frontier.conclude()


async def test_failures_are_counted_and_weighed(bench: Bench) -> None:
    refused, gone = Failed(Cause.FORBIDDEN), Failed(Cause.NOT_FOUND)
    await published(bench, {f"/{n}": Listed() for n in range(10)})
    second: dict[str, Outcome] = {f"/{n}": Listed() for n in range(6)}
    second |= {"/6": refused, "/7": gone} | {f"/x/{n}": refused for n in range(20)}
    second |= {f"/y/{n}": gone for n in range(20)}
    await night(bench, second)
    found = await bench.frontier.read(reads.FailuresOfRun())
    assert found.counts == {"failed:forbidden": 21, "failed:not-found": 1}
    assert found.weights == {"failed:forbidden": 2, "failed:not-found": 1}
    lost = await bench.frontier.read(reads.LostPages(5))
    assert lost == [f"{SITE}/8", f"{SITE}/9"]
    assert (await bench.frontier.read(reads.PublishedOutcomes()))[""] == 2
    read = bench.frontier.read
    assert await read(reads.PublishedExamples({"failed:forbidden", "failed:not-found"})) == [
        f"{SITE}/6",
        f"{SITE}/7",
    ]
    assert await read(reads.PublishedExamples([""], 1)) == [f"{SITE}/8"]


async def test_pages_leave_a_publication_and_come_back(bench: Bench) -> None:
    listed: dict[str, Outcome] = {f"/{n}": Listed() for n in range(4)}
    counts = list[tuple[int | None, int | None]]()
    for there in (4, 4, 2, 2, 3):  # with the start page; the others are not found
        await published(bench, dict(itertools.islice(listed.items(), there)))
        last = await bench.frontier.read(reads.LastPublication())
        assert last is not None
        counts.append((last.added, last.removed))
    assert counts == [(None, None), (0, 0), (0, 2), (0, 0), (1, 0)]
    await night(bench, {"/3": Listed()})
    assert await bench.frontier.read(reads.LostPages(5)) == [f"{SITE}/{n}" for n in range(3)]


@pytest.mark.parametrize(("before", "passing"), [(COMPARED - 2, 0), (COMPARED - 1, 3)])
async def test_pages_that_came_and_went_count_once_a_page(bench: Bench, before: int, passing: int) -> None:
    """Each page that led to them, of those that came after the oldest publication that is compared."""
    lasting: dict[str, Outcome] = {"/0": Listed(), "/1": Listed()}
    for night in range(before + 2):
        there = lasting if night <= before else {}
        await bench.ready()
        (start,) = await bench.leases()
        await bench.settle(
            start, Listed(), *(page(path) for path in there), page("/guests"), facts=Facts(200)
        )
        for lease in await bench.leases():
            found = [page(f"/new{n}", depth=2) for n in range(4)] if night == before else []
            at_guests = found if lease.visit.url.endswith("/guests") else []
            await bench.settle(lease, Listed(), *at_guests, facts=Facts(200))
        for lease in await bench.leases():
            await bench.settle(lease, Listed(), facts=Facts(200))
        await bench.frontier.finish()
        if night <= before:
            await bench.frontier.mark_published(PublicationRow(1))
            await bench.frontier.conclude()
        bench.clock.now += DAY
    lost = await bench.frontier.read(reads.LostPages(9))
    assert lost == [f"{SITE}/{name}" for name in ("0", "1", "new0", "new1", "new2", "new3")]
    assert await bench.frontier.read(reads.LostPages(9, passing=True)) == lost[3:][:passing]


@pytest.mark.parametrize("pages", [0, 1, 4, 5, 23, 100])
async def test_pages_to_ask_again_are_spread_over_the_site(bench: Bench, pages: int) -> None:
    await night(bench, {f"/{n:03}": Listed() for n in range(pages)})
    found = await bench.frontier.read(reads.AnsweringPages(5))
    every = sorted([str(ROOT), *(f"{SITE}/{n:03}" for n in range(pages))])
    assert len(found) == min(5, pages + 1)
    assert found[0] == every[0]
    places = [every.index(url) for url in found]
    apart = [later - earlier for earlier, later in itertools.pairwise(places)]
    assert not apart or max(apart) - min(apart) <= 1
    assert await bench.frontier.read(reads.LostPages(5)) == []


async def test_pages_that_were_not_requested_are_not_asked_again(bench: Bench) -> None:
    await bench.ready(f"{SITE}/a")
    (lease,) = await bench.leases()
    await bench.settle(lease, Listed(), Visit(Url(f"{SITE}/b"), 1, Url(f"{SITE}/a")))
    assert await bench.frontier.read(reads.AnsweringPages(5)) == []


async def test_a_published_page_may_stay_and_its_links_are_counted(bench: Bench) -> None:
    """For two days after its first failure; see `rules.interstitials`."""
    hidden, barred = Failed(Cause.INTERSTITIAL), Unlisted(Why.NOINDEX)
    seen = list[tuple[bool, ...]]()
    for outcome in (Listed(), hidden, hidden, hidden):
        await bench.ready(ROOT, SITE + "/second")
        leases = await bench.leases()
        seen.append(tuple(lease.prior is not None and lease.prior.may_stay for lease in leases))
        stored = [await bench.frontier.read(reads.KnownLinks(lease.id)) for lease in leases]
        assert stored == ([0, 0] if outcome == Listed() else [2, 0])
        found = (page("/1"), page("/2"), page("/3", filtered=Why.NOFOLLOW)) if outcome == Listed() else ()
        await bench.settle(leases[0], outcome, *found, facts=Facts(200))
        await bench.settle(leases[1], barred, facts=Facts(200))
        for lease in await bench.leases():
            await bench.settle(lease, barred)
        await bench.frontier.finish()
        await bench.frontier.mark_published(PublicationRow(1))
        await bench.frontier.conclude()
        bench.clock.now += DAY
    assert seen == [(False, False), (True, False), (True, False), (False, False)]


async def test_pages_whose_titles_name_an_error(bench: Bench) -> None:
    titles = ("Lamps", "Lamp not found", None, "404", "Lampe introuvable")
    await bench.ready(*(f"{SITE}/{number}" for number in range(len(titles))))
    for lease, title in zip(await bench.leases(), titles, strict=True):
        await bench.settle(lease, Listed(), facts=Facts(200, title=title))
    named = [f"{SITE}/{number}" for number in (1, 3, 4)]
    assert await bench.frontier.read(reads.NamedErrors(5)) == named
    assert await bench.frontier.read(reads.NamedErrors(2)) == named[:2]
