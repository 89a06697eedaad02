"""Both databases hold what `rules.record` says: how URLs are found, and what runs keep of pages."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from crawler.model.facts import Facts, Lastmod
from crawler.model.outcome import Failed, Listed, code
from crawler.model.reasons import Cause, Source, Why
from crawler.model.rows import PublicationRow
from crawler.model.run import Terms
from crawler.model.serialise import seconds
from crawler.model.settlement import Settlement, Verdict
from crawler.model.survey import Doubts
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.dated import Datable, Distrust, first_date
from crawler.rules.record import (
    LEASED,
    LISTED,
    QUEUED,
    SETTLED,
    Earlier,
    Failing,
    RunTime,
    Way,
    found_again,
    found_in_new_run,
    interval_of,
    keep_for,
)
from tests.frontier.test_frontier import DAY, SITE, Bench
from tests.frontier.test_frontier import bench as bench  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.anyio

DEEPEST = 3
STATES = {QUEUED: "queued", LEASED: "leased", SETTLED: "settled"}
SOURCES = tuple(Source)
KEEP = 604_800.0  # seconds: the default of --keep-failing


def visit(url: Url, via: Url, chance: random.Random) -> Visit:
    """One way to a URL, by redirects: only these may lead to a smaller depth than was found before."""
    depth = chance.randrange(1, DEEPEST + 3)
    filtered = Why.NOFOLLOW if chance.random() < 0.3 else Why.DEPTH if depth > DEEPEST else None
    return Visit(url, depth, via, chance.randrange(1, 5), filtered)


def way(visit: Visit, pages: list[Url]) -> Way:
    assert visit.via
    outcome = f"unlisted:{visit.filtered.value}" if visit.filtered else None
    return Way(visit.depth, visit.hops, pages.index(visit.via), SETTLED if outcome else QUEUED, outcome)


@pytest.mark.parametrize("seed", range(3))
async def test_urls_are_found_again_as_the_rule_says(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    pages = [Url(f"{SITE}/page-{number}") for number in range(8)]
    await bench.ready(*pages)
    targets = [Url(f"{SITE}/target-{number}") for number in range(60)]
    known: dict[Url, Way] = {}
    leases = await bench.leases()
    while leases:
        group = [leases.pop() for _ in range(min(len(leases), chance.randrange(1, 3)))]
        settlements = list[Settlement]()
        for lease in group:
            found = [visit(url, lease.visit.url, chance) for url in targets if chance.random() < 0.4]
            settlements.append(Settlement(lease, Verdict(Listed(), Facts(200)), tuple(found)))
            for one in found:
                new = way(one, pages)
                known[one.url] = found_again(known[one.url], new) if one.url in known else new
        await bench.frontier.settle(settlements)
        for lease in await bench.leases(chance.randrange(3)):
            known[lease.visit.url] = replace(known[lease.visit.url], state=LEASED)
    for url, expected in known.items():
        stored = await bench.frontier.read(reads.RecordOf(url))
        assert stored
        assert stored.visit.via
        outcome = stored.outcome and code(stored.outcome)
        assert (stored.state, outcome) == (STATES[expected.state], expected.outcome)
        if expected.outcome is None:
            assert (stored.visit.depth, stored.visit.hops) == (expected.depth, expected.hops)
            assert pages.index(stored.visit.via) == expected.via


@dataclass
class Page:
    """What is known of a page by the rules."""

    facts: Facts | None = None
    earlier: Earlier = field(default_factory=Earlier)
    settled: float = 0.0
    failing: Failing | None = None

    def find(self, *, was_published: bool) -> None:
        self.earlier = found_in_new_run(self.earlier, was_published=was_published)

    def forget(self, after: float) -> None:
        """Dates that a clock ahead left."""
        dates = ("lastmod", "header", "stated", "dated_lastmod", "dated_header", "dated_stated")
        wrong = [name for name in dates if (getattr(self.earlier, name) or 0) > after]
        self.earlier = self.earlier._replace(**dict.fromkeys(wrong))

    def settle(self, facts: Facts | None, at: RunTime) -> None:
        """`facts`: None for a temporary failure."""
        self.settled = at.now
        patience = 0.0 if facts else keep_for(Failed(Cause.SERVER_ERROR), KEEP)
        stays = at.lasted(self.failing) < patience
        self.failing = at.failing(self.failing, patience, answered=facts is not None)
        self.earlier = self.earlier._replace(outcome=LISTED if facts else "failed:server-error")
        if not stays:
            date = facts and first_date(SOURCES, facts.header, facts.stated)
            self.facts = facts
            self.earlier = self.earlier._replace(
                content=facts and (facts.content or f"={facts.digest}"),
                header=facts and seconds(facts.header),
                stated=facts and seconds(facts.stated),
                lastmod=seconds(date[0]) if date else None,
            )

    def date(self, distrust: Distrust, since: float) -> None:
        if self.earlier.outcome == LISTED and self.facts:
            one = self.earlier
            page = Datable(
                one.header, seconds(self.facts.stated), self.settled, one.content, one.published_content,
                one.dated_content, one.dated_lastmod, one.dated_header, dated_stated=one.dated_stated,
            )  # fmt: skip
            date = page.date(SOURCES, distrust, since)
            self.earlier = one._replace(lastmod=date[0] if date else None)


def facts_of(chance: random.Random) -> Facts | None:
    if chance.random() < 0.2:
        return None
    header, stated = (
        datetime(2024, 1, chance.randrange(1, 4), tzinfo=UTC) if chance.random() < share else None
        for share in (0.4, 0.4)
    )
    date = first_date(SOURCES, header, stated)
    content, digest = chance.choice(("a", "b", None)), chance.choice("xy")
    lastmod = Lastmod(*date) if date else None
    return Facts(200, lastmod=lastmod, header=header, stated=stated, content=content, digest=digest)


def distrust_of(chance: random.Random) -> Distrust:
    first = seconds(datetime(2024, 1, chance.randrange(1, 4), tzinfo=UTC)) or 0
    builds = ((first, first + 600),) if chance.random() < 0.3 else ()
    return Distrust(chance.random() < 0.2, chance.random() < 0.2, builds)


def doubts_about(distrust: Distrust) -> Doubts:
    return Doubts(
        (SITE,) if distrust.header else (),
        (SITE,) if distrust.changes else (),
        tuple((SITE, first, last) for first, last in distrust.builds),
    )


async def leased(bench: Bench, *, is_partial: bool) -> AsyncIterator[Lease]:
    """All visits of a run."""
    while leases := await bench.leases():
        for lease in leases:
            yield lease
        if is_partial:
            await bench.frontier.advance()


@pytest.mark.parametrize("has_budgets", [False, True])
@pytest.mark.parametrize("seed", range(3))
async def test_runs_keep_of_pages_what_the_rules_say(bench: Bench, seed: int, has_budgets: bool) -> None:
    chance, frontier = random.Random(seed), bench.frontier
    pages = {Url(f"{SITE}/{number}"): Page() for number in range(20)}
    was_published, starts, published_at = False, list[float](), 0.0
    for run in range(12):
        ahead = 30 * DAY if chance.random() < 0.2 else 0.0
        bench.clock.now += DAY + ahead
        is_partial = has_budgets and was_published and chance.random() < 0.5
        await bench.ready(*pages, terms=Terms(max_pages=8 if is_partial else None))
        for page in pages.values() if max(starts, default=0.0) > bench.clock() else ():
            page.forget(bench.clock())
        starts.append(bench.clock())
        at = RunTime(bench.clock(), run + 1, interval_of(starts))
        for page in pages.values() if run else ():
            page.find(was_published=was_published)
        async for lease in leased(bench, is_partial=is_partial):
            page, facts = pages[lease.visit.url], facts_of(chance)
            page.settle(facts, at)
            outcome = Listed() if facts else Failed(Cause.SERVER_ERROR)
            await bench.settle(lease, outcome, facts=facts or Facts(500))
        await frontier.date(SOURCES, doubts_about(distrust_of(chance)))  # as if it was killed after that
        distrust = distrust_of(chance)
        await frontier.date(SOURCES, doubts_about(distrust))
        await frontier.finish()
        was_published = chance.random() < 0.6
        since = published_at
        if was_published:
            published_at = bench.clock()
            await frontier.mark_published(PublicationRow(len(pages)))
        await frontier.conclude(refused=not was_published)
        bench.clock.now -= ahead
        stored = {row.url: row.lastmod async for rows in frontier.stream(reads.Pages()) for row in rows}
        for url, page in pages.items():
            page.date(distrust, since)
            shown = (
                page.earlier.lastmod if page.earlier.outcome == LISTED else None
            )  # of a failing page: kept
            assert stored[url] == shown, (run, url)
