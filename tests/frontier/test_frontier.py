"""The contract of every frontier; add a new backend by one line in `BACKENDS`."""

import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.app.report import each
from crawler.errors import FrontierError, StateBusy
from crawler.frontier.patterns import sample
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.state_file import remove_state
from crawler.model.external import CheckedLink, ExternalCheck, ExternalRow
from crawler.model.facts import Entry, Facts, Lastmod, Validators
from crawler.model.ledger import LedgerHead, LedgerRow
from crawler.model.note import ASKED_PLACES, EXTERNAL, UNRELIABLE, Note
from crawler.model.outcome import Failed, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, SeedKind, SeedOutcome, Source, Why
from crawler.model.rendering import Inputs, Needs, PageSummary, Rendering, UsedAnswer
from crawler.model.reply import RobotsFile
from crawler.model.rows import AnchorRow, InPattern, PublicationRow, TargetRow
from crawler.model.run import SessionEnd, Terms
from crawler.model.seed import Seed, SeedCopy, SeedSettlement
from crawler.model.serialise import moment
from crawler.model.settlement import KnownUrl, LinkNumbers, Settlement, Verdict
from crawler.model.survey import Doubts, PagesOfKind, SameContent, WithContent
from crawler.model.trap import ImpossibleValues, Trap
from crawler.model.visit import Lease, Link, Visit
from crawler.parse.fingerprint import digest
from crawler.parse.url import Url, origin, target
from crawler.ports import Frontier, Round, SiteRule, reads
from crawler.rules import traps
from crawler.rules.lastmod import DATE_SOURCES
from crawler.rules.traps import PATIENCE, SAMPLE, Traps, pattern_of, requests_for
from tests.postgres import new_state

# On both loops only what shows how calls, streams and the end of a backend reach its threads: the rest is SQL.
pytestmark = pytest.mark.anyio

SITE = "http://a.example"
ROOT = Url(SITE + "/")
DAY = 86_400.0


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A frontier, its clock, and a way to open the same state again."""

    frontier: Frontier
    clock: Clock
    reopen: Callable[[], Frontier]

    async def ready(
        self,
        *urls: str,
        delay: float = 0.0,
        site: str = SITE,
        terms: Terms = Terms(),
    ) -> None:
        """Begin a run, record robots.txt of `site`, and add these URLs."""
        await self.frontier.begin("settings", terms=terms)
        await self.frontier.store_robots(site, RobotsFile("none", fetched=self.clock()), delay)
        self.clock.now += delay
        await self.frontier.add([Visit(Url(url)) for url in urls or (ROOT,)])

    async def settle(self, lease: Lease, outcome: Outcome, *found: Visit, facts: Facts | None = None) -> int:
        """Settle one page; returns how many visits were new."""
        return (await self.frontier.settle([Settlement(lease, Verdict(outcome, facts), found)])).new

    async def settle_all(self, pages: Iterable[tuple[Lease, Facts, Iterable[Visit]]]) -> None:
        """Settle many listed pages, in groups as a crawl does: hundreds of transactions take a database seconds."""
        closed = [Settlement(lease, Verdict(Listed(), facts), (*found,)) for lease, facts, found in pages]
        for start in range(0, len(closed), 64):
            await self.frontier.settle(closed[start : start + 64])

    async def links(self, lease: Lease) -> set[Link]:
        """The stored links of one page."""
        [links] = await self.frontier.read(reads.LinksToFollow([lease]))
        return set(links)

    async def leases(self, limit: int = 100, depth: int | None = None) -> list[Lease]:
        return list((await self.frontier.lease(limit, depth)).leases)


BACKENDS: dict[str, Callable[[Path, Clock], Frontier]] = {
    "sqlite file": lambda folder, clock: SqliteFrontier(str(folder / "state.db"), clock=clock),
    "sqlite memory": lambda _, clock: SqliteFrontier(":memory:", clock=clock),
}


def _on_postgres(folder: Path, clock: Clock) -> Frontier:
    note = folder / "address"
    if not note.exists():
        note.write_text(new_state())
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    return PostgresFrontier(note.read_text(), clock=clock)


BACKENDS["postgres"] = _on_postgres


@pytest.fixture(params=BACKENDS)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = Clock()
    opened: list[Frontier] = []

    def reopen() -> Frontier:
        opened.append(BACKENDS[request.param](tmp_path, clock))
        return opened[-1]

    bench = Bench(reopen(), clock, reopen)
    yield bench
    await bench.frontier.close()


def page(path: str, depth: int = 1, **more: object) -> Visit:
    return Visit(Url(SITE + path), depth, ROOT, **more)  # type: ignore[arg-type]


@pytest.mark.both_loops
async def test_url_is_added_once(bench: Bench) -> None:
    await bench.ready()
    assert await bench.frontier.add([page("/a"), page("/a"), page("/b")]) == 2
    assert await bench.frontier.add([page("/b"), page("/c")]) == 1
    assert (await bench.frontier.read(reads.RunBalance())).discovered == 4


async def test_visit_is_leased_once_at_a_time(bench: Bench) -> None:
    await bench.ready(*(f"{SITE}/{n}" for n in range(5)))
    first, second = await bench.leases(3), await bench.leases(3)
    assert len({lease.id for lease in [*first, *second]}) == 5
    batch = await bench.frontier.lease(1)
    assert not batch.leases
    assert not batch.finished


async def test_leases_are_ordered_by_depth(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page("/deep", 3), page("/near", 1), page("/middle", 2)])
    order = [lease.visit.url.removeprefix(SITE) for lease in await bench.leases()]
    assert order == ["/", "/near", "/middle", "/deep"]


async def test_depth_limit_of_lease_holds_back_deeper_visits(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page("/deep", 3)])
    [root] = await bench.leases(depth=0)
    await bench.settle(root, Listed())
    assert (await bench.frontier.lease(9, depth=2)).finished
    assert [lease.visit.depth for lease in await bench.leases(depth=3)] == [3]


async def test_robots_txt_is_read_when_a_page_of_its_host_is_next(bench: Bench) -> None:
    """Of many hosts, only of as many as there are pages to fetch at a time."""
    await bench.ready(*(f"https://h{host}.example/{page}" for host in range(50) for page in range(3)))
    asked = set[str]()
    for _ in range(6):
        leases = await bench.leases(4)
        for lease in leases:
            site = origin(lease.visit.url)
            if lease.robots_first:
                asked.add(site)
                await bench.frontier.store_robots(site, RobotsFile("none", fetched=bench.clock()), 0.25)
                await bench.frontier.release([lease])
            else:
                await bench.settle(lease, Listed(), facts=Facts(200))
        bench.clock.now += 0.25
    assert len(asked) == 8, "four hosts, and the next four when their twelve pages are settled"


async def test_unknown_origin_gets_one_robots_first_lease(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    await bench.frontier.add([page("/a"), page("/b")])
    [probe] = await bench.leases()
    assert probe.robots_first
    assert await bench.leases() == []
    await bench.frontier.store_robots(SITE, RobotsFile("rules", b"x", "ok", bench.clock()), 0.0)
    await bench.frontier.release([probe])
    both = await bench.leases()
    assert len(both) == 2
    assert not any(lease.robots_first for lease in both)
    assert both[0].attempt == 1, "reading robots.txt is no attempt at the page"


async def test_robots_txt_is_kept_for_a_day(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    file = RobotsFile("rules", b"User-agent: *\n\xff", "why", bench.clock())
    await bench.frontier.store_robots(SITE, file, 0.0)
    assert await bench.frontier.read(reads.RobotsOf(SITE)) == file
    assert await bench.frontier.read(reads.RobotsOf("http://other.example")) is None
    bench.clock.now += DAY
    assert await bench.frontier.read(reads.RobotsOf(SITE)) is None
    await bench.frontier.add([page("/a"), page("/b")])
    assert [lease.robots_first for lease in await bench.leases()] == [True]


async def test_stale_robots_txt_read_by_this_run_is_available(bench: Bench) -> None:
    bench.clock.now += 10
    await bench.frontier.begin("settings")
    file = RobotsFile("rules", b"User-agent: *", "", bench.clock())
    await bench.frontier.store_robots(SITE, file, 0.0)
    bench.clock.now += DAY
    assert await bench.frontier.read(reads.RobotsOf(SITE)) is None
    assert await bench.frontier.read(reads.RobotsOf(SITE, stale=True)) == file
    await bench.frontier.finish()
    await bench.frontier.conclude()
    bench.clock.now += 10
    await bench.frontier.begin("settings")
    assert await bench.frontier.read(reads.RobotsOf(SITE, stale=True)) is None, (
        "it had expired before this run began"
    )


async def test_robots_txt_that_expires_during_run_is_stale(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    file = RobotsFile("rules", b"User-agent: *", "", bench.clock())
    await bench.frontier.store_robots(SITE, file, 0.0)
    await bench.frontier.finish()
    await bench.frontier.conclude()
    bench.clock.now += DAY - 10
    await bench.frontier.begin("settings")
    bench.clock.now += 20
    assert await bench.frontier.read(reads.RobotsOf(SITE)) is None
    assert await bench.frontier.read(reads.RobotsOf(SITE, stale=True)) == file


@pytest.mark.parametrize(("delay", "due"), [(0.0, 0.0), (2.0, 2.0), (30.0, 30.0)])
async def test_pace_moves_the_next_slot(bench: Bench, delay: float, due: float) -> None:
    await bench.ready(delay=10.0)
    last = await bench.frontier.slot(SITE)
    await bench.frontier.pace(SITE, delay)
    bench.clock.now = last
    assert await bench.frontier.slot(SITE) == last + due
    assert await bench.frontier.slot(SITE) == last + due + delay


@pytest.mark.parametrize("status", ["down", "unreachable"])
async def test_failed_robots_txt_is_requested_again_on_resume(bench: Bench, status: str) -> None:
    await bench.frontier.begin("settings")
    await bench.frontier.store_robots(SITE, RobotsFile(status, fetched=bench.clock()), 0.0)
    await bench.frontier.add([page("/a"), page("/b")])
    [one, two] = await bench.leases()
    await bench.settle(one, Unlisted(Why.ROBOTS_DOWN))
    await bench.settle(two, Listed())
    await bench.frontier.begin("settings")
    assert await bench.frontier.read(reads.RobotsOf(SITE)) is None
    [again] = await bench.leases()
    assert again.robots_first
    assert again.visit == one.visit
    balance = await bench.frontier.read(reads.RunBalance())
    assert (balance.discovered, balance.open) == (2, 1)


async def test_slots_of_a_host_are_one_delay_apart(bench: Bench) -> None:
    await bench.ready(*(f"{SITE}/{n}" for n in range(20)), delay=0.5)
    moments = [lease.at - bench.clock.now for lease in await bench.leases(20)]
    assert moments == pytest.approx([0, 0.5, 1.0, 1.5, 2.0]), "no slot is booked past the horizon"
    assert await bench.frontier.slot(SITE) - bench.clock.now == pytest.approx(2.5)
    batch = await bench.frontier.lease(20)
    assert not batch.leases
    assert batch.wait == pytest.approx(2.0), "half of the horizon is free then"
    bench.clock.now += 1.0
    assert [lease.at - bench.clock.now for lease in await bench.leases(20)] == pytest.approx([2.0])


async def test_other_host_does_not_wait_for_slow_host(bench: Bench) -> None:
    await bench.ready(*(f"{SITE}/{n}" for n in range(9)), delay=10.0)
    other = "http://b.example"
    await bench.frontier.store_robots(other, RobotsFile("none", fetched=bench.clock()), 0.0)
    await bench.frontier.add([Visit(Url(f"{other}/{n}")) for n in range(9)])
    hosts = [lease.visit.url[:16] for lease in await bench.leases(6)]
    assert hosts.count(other) >= 5


async def test_overloaded_host_is_paused_and_its_delay_doubled(bench: Bench) -> None:
    await bench.ready(*(f"{SITE}/{n}" for n in range(9)), delay=0.5)
    await bench.frontier.slow(SITE, bench.clock.now + 30)
    assert await bench.leases() == []
    first = await bench.frontier.slot(SITE)
    second = await bench.frontier.slot(SITE)
    assert first - bench.clock.now == pytest.approx(30)
    assert second - first == pytest.approx(1.0), "twice the delay"


async def test_a_host_is_paused_once_in_a_run_by_all_processes(bench: Bench) -> None:
    await bench.ready(delay=0.5)
    assert await bench.frontier.slow(SITE, bench.clock.now + 30, once=True)
    bench.clock.now += 100
    assert not await bench.frontier.slow(SITE, bench.clock.now + 30, once=True)
    assert await bench.frontier.slot(SITE) == bench.clock.now
    assert await bench.frontier.slow(SITE, bench.clock.now + 30)
    bench.clock.now += 100
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    assert await bench.frontier.slow(SITE, bench.clock.now + 30, once=True)


async def test_successful_responses_restore_delay(bench: Bench) -> None:
    await bench.ready(*(f"{SITE}/{n}" for n in range(40)))
    await bench.frontier.slow(SITE, bench.clock.now)
    for _ in range(40):
        bench.clock.now += 10
        for lease in await bench.leases(1):
            await bench.settle(lease, Listed(), facts=Facts(200))
    assert await bench.frontier.slot(SITE) == await bench.frontier.slot(SITE) == bench.clock.now


@pytest.mark.parametrize("how", ["another host", "not requested", "failed"])
async def test_only_successful_responses_of_same_host_restore_delay(bench: Bench, how: str) -> None:
    other = "http://b.example"
    await bench.ready(*(f"{SITE}/{n}" for n in range(40)), delay=1.0)
    await bench.frontier.store_robots(other, RobotsFile("none", fetched=bench.clock()), 0.0)
    await bench.frontier.add([Visit(Url(f"{other}/{n}")) for n in range(40)])
    await bench.frontier.slow(SITE, bench.clock.now)
    for _ in range(40):
        bench.clock.now += 10
        for lease in await bench.leases(2):
            if how == "another host" and lease.visit.url.startswith(other):
                await bench.settle(lease, Listed(), facts=Facts(200))
            elif how == "not requested":
                await bench.settle(lease, Unlisted(Why.ROBOTS))
            elif how == "failed":
                await bench.settle(lease, Failed(Cause.SERVER_ERROR), facts=Facts(500))
    first = await bench.frontier.slot(SITE)
    assert await bench.frontier.slot(SITE) - first == pytest.approx(2.0)


async def test_settle_stores_facts_and_adds_links(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    dated = Lastmod(datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), Source.HEADER)
    facts = Facts(200, Validators('W/"x"', "yesterday"), dated)
    assert await bench.settle(root, Listed(dated), page("/a"), page("/b"), facts=facts) == 2
    record = await bench.frontier.read(reads.RecordOf(ROOT))
    assert record is not None
    assert (record.state, record.outcome, record.facts) == ("settled", Listed(dated), facts)
    found = await bench.frontier.read(reads.RecordOf(Url(SITE + "/a")))
    assert found is not None
    assert (found.visit.via, found.visit.depth, found.state) == (ROOT, 1, "queued")
    assert [(await bench.frontier.read(reads.Linking(url))).count for url in (found.visit.url, ROOT)] == [
        1,
        0,
    ]


@pytest.mark.parametrize(
    "outcome",
    [
        Listed(),
        Unlisted(Why.CANONICAL, SITE + "/other"),
        Unlisted(Why.NOINDEX),
        Moved(Url(SITE + "/new")),
        Failed(Cause.DNS, "no \x1b such host"),
    ],
)
async def test_outcomes_round_trip(bench: Bench, outcome: Outcome) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, outcome)
    record = await bench.frontier.read(reads.RecordOf(ROOT))
    assert record is not None
    assert record.outcome == outcome


async def test_postponed_visit_is_leased_again_when_due(bench: Bench) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, Later(bench.clock.now + 60, Cause.RATE_LIMITED))
    batch = await bench.frontier.lease(9)
    assert batch == type(batch)((), finished=False, is_idle=True, wait=60.0, rests=True)
    [wait] = await bench.frontier.read(reads.Waits())
    assert (wait.origin, wait.until - bench.clock.now, wait.pages) == (SITE, 60, 1)
    bench.clock.now += 57
    assert not (await bench.frontier.lease(9)).rests, "a few seconds are no wait"
    assert not await bench.frontier.read(reads.Waits())
    bench.clock.now += 3
    [again] = await bench.leases()
    assert again.visit.url == ROOT
    assert again.attempt == 2


async def test_expired_lease_is_leased_again_and_cannot_be_settled(bench: Bench) -> None:
    await bench.ready()
    [expired] = await bench.leases()
    bench.clock.now += 1000
    [renewed] = await bench.leases()
    assert renewed.id == expired.id
    assert await bench.settle(expired, Failed(Cause.TIMEOUT), page("/from-expired-lease")) == 0
    assert await bench.frontier.read(reads.RecordOf(Url(SITE + "/from-expired-lease"))) is None
    await bench.settle(renewed, Listed())
    record = await bench.frontier.read(reads.RecordOf(ROOT))
    assert record is not None
    assert record.outcome == Listed()


async def test_second_settlement_of_a_lease_is_ignored(bench: Bench) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, Listed())
    await bench.settle(lease, Failed(Cause.TIMEOUT))
    assert (await bench.frontier.read(reads.RunBalance())).outcomes == {"listed": 1}


async def test_finished_when_nothing_is_due_or_leased(bench: Bench) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    assert not (await bench.frontier.lease(1)).finished
    await bench.settle(lease, Listed())
    assert (await bench.frontier.lease(1)).finished


async def test_filtered_visit_is_settled_at_once_and_never_leased(bench: Bench) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), page("/out", filtered=Why.EXCLUDED))
    assert (await bench.frontier.lease(1)).finished
    balance = await bench.frontier.read(reads.RunBalance())
    assert balance.outcomes == {"listed": 1, "unlisted:excluded": 1}
    assert balance.balanced


@pytest.mark.parametrize("together", [True, False])
async def test_followed_link_overrides_nofollow_link_in_either_order(bench: Bench, together: bool) -> None:
    await bench.ready(ROOT, SITE + "/second")
    first, second = await bench.leases()
    avoided = Settlement(first, Verdict(Listed()), (page("/x", filtered=Why.NOFOLLOW),))
    followed = Settlement(second, Verdict(Listed()), (page("/x"),))
    if together:
        await bench.frontier.settle([followed, avoided])
    else:
        await bench.frontier.settle([avoided])
        await bench.frontier.settle([followed])
    assert [lease.visit.url for lease in await bench.leases()] == [SITE + "/x"]
    assert (await bench.frontier.read(reads.RunBalance())).balanced


@pytest.mark.both_loops
async def test_entries_are_ordered_by_url(bench: Bench) -> None:
    paths = ["/b", "/a?x=1", "/a", "/a/b", "/B", "/%C3%A9"]
    await bench.ready(*(SITE + path for path in paths))
    dated = Lastmod(datetime(2024, 1, 1, tzinfo=UTC), Source.HEADER)
    for lease in await bench.leases():
        outcome: Outcome = Unlisted(Why.NOINDEX) if lease.visit.url.endswith("/b") else Listed(dated)
        await bench.settle(lease, outcome, facts=Facts(200, lastmod=dated, title="A title"))
    entries = [entry async for entry in each(bench.frontier.stream(reads.ListedEntries()))]
    expected = sorted(SITE + path for path in paths if not path.endswith("/b"))
    assert entries == [Entry(Url(url), dated.at) for url in expected]
    titled = reads.ListedEntries(titled=True)
    assert {entry.title async for chunk in bench.frontier.stream(titled) for entry in chunk} == {"A title"}


async def test_notes_belong_to_one_run(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.remember(UNRELIABLE, {SITE: "all of one day"})
    assert await bench.frontier.recall(UNRELIABLE) == {SITE: "all of one day"}
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    assert await bench.frontier.recall(UNRELIABLE) == {}


async def test_malformed_note_is_reported_as_damaged_state(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.remember(Note(UNRELIABLE.key, str, ""), "[1]")
    with pytest.raises(FrontierError, match="damaged"):
        await bench.frontier.recall(UNRELIABLE)


async def finish(bench: Bench, facts: Facts, *found: Visit) -> None:
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), *found, facts=facts)
    for other in await bench.leases():
        await bench.settle(other, Listed(), facts=facts)
    await bench.frontier.finish()
    await bench.frontier.conclude()


async def test_next_run_has_validators_and_links_of_last_run(bench: Bench) -> None:
    await bench.ready()
    facts = Facts(200, Validators('"e"'))
    await finish(bench, facts, page("/a"), page("/n", filtered=Why.NOFOLLOW))
    run = await bench.frontier.begin("settings")
    assert (run.number, run.resumed) == (2, False)
    await bench.frontier.add([Visit(ROOT)])
    [lease] = await bench.leases()
    assert lease.prior is not None
    assert lease.prior.facts == facts
    avoided = Link(Url(SITE + "/n"), nofollow=True)
    assert await bench.links(lease) == {Link(Url(SITE + "/a")), avoided}
    unchanged = Verdict(lease.prior.outcome, lease.prior.facts, unchanged=True)
    await bench.frontier.settle([Settlement(lease, unchanged, (page("/a"),))])
    assert await bench.links(lease) == {avoided}, "a link to a page that this run knows tells nothing"
    assert (await bench.frontier.read(reads.Linking(Url(SITE + "/a")))).count == 1, "a 304 keeps the links"
    assert (await bench.frontier.read(reads.RunBalance())).discovered == 2, (
        "a page that is no longer linked is not discovered"
    )


@pytest.mark.parametrize("title", [None, "mapped"])
async def test_facts_of_unchanged_page_stay_unless_they_are_given_anew(
    bench: Bench, title: str | None
) -> None:
    await bench.ready()
    facts = Facts(200, Validators('"e"'), title="first", type="text/html")
    await finish(bench, facts)
    for run in ("second", "third"):
        await bench.frontier.begin(run)
        await bench.frontier.add([Visit(ROOT)])
        [lease] = await bench.leases()
        assert lease.prior is not None, run
        assert lease.prior.facts == facts, run
        facts = facts._replace(title=title) if title else lease.prior.facts
        given = facts if title else lease.prior.facts
        await bench.frontier.settle([Settlement(lease, Verdict(Listed(), given, unchanged=True))])
        await bench.frontier.finish()
        await bench.frontier.conclude()


async def test_named_canonical_is_followed_and_not_counted_as_link(bench: Bench) -> None:
    await bench.ready()
    other, both = Url(SITE + "/other"), Url(SITE + "/both")
    facts = Facts(200, Validators('"e"'), canonical=other)
    [lease] = await bench.leases()
    verdict = Verdict(Unlisted(Why.NOINDEX), facts, named=(other,))
    await bench.frontier.settle([Settlement(lease, verdict, (page("/both"), page("/other")))])
    assert [(await bench.frontier.read(reads.Linking(url))).count for url in (both, other)] == [1, 0]
    assert {lease.visit.url for lease in await bench.leases()} == {both, other}
    await bench.frontier.finish()
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    await bench.frontier.add([Visit(ROOT)])
    [lease] = await bench.leases()
    assert lease.prior
    unchanged = Verdict(lease.prior.outcome, lease.prior.facts, unchanged=True)
    await bench.frontier.settle([Settlement(lease, unchanged, (page("/both"), page("/other")))])
    assert [(await bench.frontier.read(reads.Linking(url))).count for url in (both, other)] == [1, 0], (
        "also after a 304"
    )


async def test_missing_pages_are_read_again_unless_browser_asks(bench: Bench) -> None:
    await bench.ready()
    inputs = Inputs(1, "b", UsedAnswer(ROOT, "0a", '"e"'))
    for seen, has_prior in (
        (None, False),
        (Rendering(Needs.SHELL), False),
        (Rendering(Needs.SHELL, inputs=inputs), True),
    ):
        [lease] = await bench.leases()
        await bench.settle(lease, Unlisted(Why.SOFT_404), facts=Facts(200, rendering=seen))
        await bench.frontier.finish()
        await bench.frontier.conclude()
        await bench.frontier.begin("settings")
        await bench.frontier.add([Visit(ROOT)])
        [lease] = await bench.leases()
        assert (lease.prior is not None) is has_prior
        await bench.frontier.release([lease])


async def test_changed_parse_settings_discard_facts_of_last_run(bench: Bench) -> None:
    await bench.ready()
    await finish(bench, Facts(200, Validators('"e"')))
    await bench.frontier.begin("others", "another reading")
    await bench.frontier.add([Visit(ROOT)])
    assert [lease.prior for lease in await bench.leases()] == [None]


async def test_unchanged_parse_settings_keep_facts_of_last_run(bench: Bench) -> None:
    await bench.ready()
    await finish(bench, Facts(200, Validators('"e"')))
    await bench.frontier.begin("others")
    await bench.frontier.add([Visit(ROOT)])
    assert [lease.prior is not None for lease in await bench.leases()] == [True]


async def test_unfinished_run_with_other_settings_is_abandoned(bench: Bench) -> None:
    await bench.ready(ROOT, SITE + "/old")
    await bench.leases(1)
    run = await bench.frontier.begin("others")
    assert (run.number, run.resumed) == (2, False)
    assert (await bench.frontier.read(reads.RunBalance())).discovered == 0
    await bench.frontier.add([Visit(ROOT)])
    assert [lease.visit.url for lease in await bench.leases()] == [ROOT]


async def test_completed_unpublished_run_is_resumed(bench: Bench) -> None:
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, Listed())
    await bench.frontier.finish()
    run = await bench.frontier.begin("settings")
    assert (run.number, run.resumed, run.complete) == (1, True, True)


# -- only where there is a file --------------------------------------------------------------------------


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "state.db"


async def test_run_resumes_where_it_stopped(path: Path) -> None:
    clock = Clock()
    first = Bench(SqliteFrontier(str(path), clock=clock), clock, lambda: first.frontier)
    await first.ready(ROOT, SITE + "/a", SITE + "/b")
    one, _, _ = await first.leases()
    await first.settle(one, Listed(), page("/c"))
    await first.frontier.close()
    again = SqliteFrontier(str(path), clock=clock)
    run = await again.begin("settings")
    assert (run.number, run.resumed) == (1, True)
    urls = [lease.visit.url.removeprefix(SITE) for lease in (await again.lease(9)).leases]
    assert urls == ["/a", "/b", "/c"]
    await again.close()


async def test_state_is_locked_for_writers_and_open_to_readers(path: Path) -> None:
    holder = SqliteFrontier(str(path))
    await holder.begin("settings")
    with pytest.raises(StateBusy, match=r"Another run is using the state .*state\.db"):
        SqliteFrontier(str(path))
    reader = SqliteFrontier(str(path), read_only=True)
    assert (await reader.read(reads.RunBalance())).discovered == 0
    await reader.close()
    await holder.close()
    await SqliteFrontier(str(path)).close()


KILLED = """
import anyio, os, signal, sys
from crawler.ports import reads
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.settlement import KnownUrl, LinkNumbers, Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url, origin

async def main():
    frontier = SqliteFrontier(sys.argv[1])
    await frontier.begin("settings")
    await frontier.store_robots("http://a.example", RobotsFile("none", fetched=2e9), 0.0)
    await frontier.add([Visit(Url("http://a.example/"))])
    for number in range(50):
        [lease, *_] = (await frontier.lease(1)).leases
        found = (Visit(Url(f"http://a.example/{number}"), 1, lease.visit.url),)
        await frontier.settle([Settlement(lease, Verdict(Listed()), found)])
    print((await frontier.read(reads.RunBalance())).outcomes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


@pytest.mark.slow
async def test_settlements_survive_sigkill(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "{'listed': 50}", done.stderr
    frontier = SqliteFrontier(str(path))
    assert (await frontier.begin("settings")).resumed
    assert (await frontier.read(reads.RunBalance())).outcomes == {"listed": 50}
    assert len((await frontier.lease(9)).leases) == 1
    await frontier.close()


async def test_last_runs_are_kept(path: Path) -> None:
    clock = Clock()
    frontier = SqliteFrontier(str(path), clock=clock, keep_runs=2)
    for number in range(5):
        await frontier.begin("x")
        await frontier.add([Visit(Url(f"{SITE}/{number}")), Visit(Url(f"{SITE}/always"))])
        await frontier.finish()
        await frontier.conclude()
    known = [await frontier.read(reads.RecordOf(Url(f"{SITE}/{number}"))) is not None for number in range(5)]
    assert known == [False, False, False, True, True]
    assert await frontier.read(reads.RecordOf(Url(f"{SITE}/always")))
    await frontier.close()


async def test_corrupt_pages_are_detected_on_open(path: Path) -> None:
    clock = Clock()
    frontier = SqliteFrontier(str(path), clock=clock)
    bench = Bench(frontier, clock, lambda: frontier)
    await bench.ready(*(f"{SITE}/{n}" for n in range(2000)))
    await bench.frontier.close()
    data = bytearray(path.read_bytes())
    for at in range(4096 * 3, len(data), 4096):
        data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(FrontierError, match=r"is damaged .*--fresh"):
        SqliteFrontier(str(path))
    kept = remove_state(path)
    assert kept is not None
    assert kept.stat().st_size == len(data), "the damaged file is kept for repair"
    assert not path.exists()


async def test_remove_state_removes_own_files(path: Path) -> None:
    await SqliteFrontier(str(path)).close()
    remove_state(path)
    remove_state(path)
    assert [left.name for left in path.parent.iterdir()] == [path.name + ".lock"]


async def test_reading_missing_state_creates_nothing(path: Path) -> None:
    with pytest.raises(FrontierError, match="There is no state at"):
        SqliteFrontier(str(path), read_only=True)
    assert not path.parent.exists()


async def test_full_disk_is_reported_and_loses_no_settlement(path: Path) -> None:
    clock = Clock()
    frontier = SqliteFrontier(str(path), clock=clock)
    bench = Bench(frontier, clock, lambda: frontier)
    await bench.ready()
    pages = frontier._connection.execute("PRAGMA page_count").fetchone()[0]
    frontier._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(FrontierError, match="full"):
        await frontier.add([page(f"/{n}" + "x" * 500) for n in range(1000)])
    assert (await frontier.read(reads.RunBalance())).discovered == 1
    frontier._connection.execute("PRAGMA max_page_count = 1000000")
    assert await frontier.add([page("/0" + "x" * 500)]) == 1, "a URL that was rolled back is new again"
    await frontier.close()


@pytest.mark.both_loops
async def test_links_to_a_url_and_on_a_page_can_be_read(bench: Bench) -> None:
    await bench.ready(ROOT, f"{SITE}/a", f"{SITE}/a/b")
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), page("/a"), page("/x", filtered=Why.NOFOLLOW))
    target = Url(f"{SITE}/x")
    linking = await bench.frontier.read(reads.Linking(target, 2))
    assert (linking.count, linking.first) == (3, [ROOT, f"{SITE}/a"])
    own = await bench.frontier.read(reads.Linking(Url(f"{SITE}/a"), 5))
    assert (own.count, own.first) == (2, [ROOT, f"{SITE}/a/b"]), "without the page itself"
    unknown = Url(f"{SITE}/never")
    assert (await bench.frontier.read(reads.Linking(unknown))).count == 0
    assert await bench.frontier.read(reads.NumberOf(unknown)) == 0
    one = reads.Edges(f"{SITE}/a", f"{SITE}/a ")
    rows = [row async for chunk in bench.frontier.stream(one) for row in chunk]
    assert [row.url for row in rows] == [f"{SITE}/a"]
    assert rows[0].links[1] == -(await bench.frontier.read(reads.NumberOf(target)))


async def test_links_to_known_urls_are_given_by_number(bench: Bench) -> None:
    await bench.ready(ROOT, SITE + "/second")
    first, second = await bench.leases()
    found = (page("/x"), page("/y", filtered=Why.NOFOLLOW), page("/z", hops=1))
    settled = await bench.frontier.settle([Settlement(first, Verdict(Listed()), found)])
    assert None not in settled.known
    (x, is_x_settled), (y, is_y_settled), (z, is_z_settled) = filter(None, settled.known)
    assert settled.new == 2
    assert is_x_settled
    assert not is_y_settled, "a link that is followed may change the row"
    assert not is_z_settled, "a link without redirects may change the row"
    again = Settlement(
        second, Verdict(Listed()), (page("/z"), page("/new")), links=LinkNumbers((x, 0, 0), (y,))
    )
    settled = await bench.frontier.settle([again])
    assert settled.new == 1
    new_z, new = settled.known
    assert new_z == KnownUrl(z)
    assert new
    named = [Url(SITE + path) for path in ("/x", "/y", "/z", "/new")]
    assert [(await bench.frontier.read(reads.Linking(url))).count for url in named] == [2, 2, 2, 1]
    chunks = [chunk async for chunk in bench.frontier.stream(reads.Edges())]
    edges = {row.url: list(row.links) for chunk in chunks for row in chunk}
    assert edges == {ROOT: [x, -y, z], second.visit.url: [x, z, new.number, -y]}


async def test_links_of_several_pages_are_read_in_one_call(bench: Bench) -> None:
    await bench.ready(ROOT, SITE + "/second")
    leases = await bench.leases()
    for number, lease in enumerate(leases):
        links = (page(f"/{number}"), page("/both"))
        await bench.settle(lease, Listed(), *links, facts=Facts(200, Validators('"e"')))
    await bench.frontier.finish()
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    await bench.frontier.add([Visit(lease.visit.url) for lease in leases])
    second, first = reversed(await bench.leases())
    stored = await bench.frontier.read(reads.LinksToFollow([second, first]))
    assert [[link.url.removeprefix(SITE) for link in links] for links in stored] == [
        ["/1", "/both"],
        ["/0", "/both"],
    ]


async def test_followed_link_to_url_known_from_nofollow_link_is_found(bench: Bench) -> None:
    await bench.ready(ROOT, SITE + "/second")
    first, second = await bench.leases()
    found = (page("/x", filtered=Why.NOFOLLOW), page("/y"))
    await bench.settle(first, Listed(), *found)
    assert await bench.frontier.add(found) == 0, "known, and not counted again"
    await bench.settle(second, Listed(), page("/x"), page("/y", filtered=Why.NOFOLLOW))
    leases = await bench.leases()
    assert [lease.visit.url for lease in leases] == [SITE + "/x", SITE + "/y"]
    balance = await bench.frontier.read(reads.RunBalance())
    assert balance.discovered == 4
    assert balance.balanced


async def test_identical_pages_are_found_and_can_be_unlisted(bench: Bench) -> None:
    urls = [f"{SITE}/{number}" for number in range(6)]
    await bench.ready(*urls)
    for number, lease in enumerate(await bench.leases()):
        outcome = Unlisted(Why.NOINDEX) if number == 5 else Listed()
        await bench.settle(lease, outcome, facts=Facts(200, content="odd" if number == 4 else "same"))
    assert await bench.frontier.read(reads.SameContentGroups(5)) == []
    [group] = await bench.frontier.read(reads.SameContentGroups(4))
    assert group == SameContent(SITE, "same", 4, Url(f"{SITE}/0"))
    await bench.frontier.withdraw([Url(urls[0]), Url(urls[5])], Why.TRAP, "pattern")
    record = await bench.frontier.read(reads.RecordOf(Url(urls[0])))
    assert record
    assert record.outcome == Unlisted(Why.TRAP, "pattern")
    spared = (Url(f"{SITE}/1"),)
    await bench.frontier.withdraw(WithContent(SITE, "same", f"{SITE}/1", spared), Why.SOFT_404, "probe")
    await bench.frontier.withdraw(WithContent(SITE, "same", f"{SITE}/", spared), Why.SOFT_404, "probe")
    balance = await bench.frontier.read(reads.RunBalance())
    assert balance.outcomes == {
        "listed": 2,
        "unlisted:noindex": 1,
        "unlisted:soft-404": 2,
        "unlisted:trap": 1,
    }
    assert balance.balanced


async def test_failed_pages_can_be_reopened(bench: Bench) -> None:
    await bench.ready(f"{SITE}/0", f"{SITE}/1")
    first, second = await bench.leases()
    await bench.settle(first, Failed(Cause.CONNECT))
    await bench.settle(second, Listed())
    await bench.frontier.reopen([first.visit.url, second.visit.url])
    balance = await bench.frontier.read(reads.RunBalance())
    assert (balance.open, dict(balance.outcomes), balance.balanced) == (1, {"listed": 1}, True)
    [again] = await bench.leases()
    assert (again.visit.url, again.attempt) == (first.visit.url, 1)


async def test_listed_pages_are_read_again_once_and_in_turn(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page("/a"), page("/b", 2)])
    first, second = await bench.leases(2)
    await bench.settle(first, Listed(), facts=Facts(200))
    await bench.settle(second, Failed(Cause.CONNECT))
    urls = [first.visit.url, second.visit.url]
    assert await bench.frontier.read_again(urls) == 1
    again = await bench.leases(2)
    assert [(lease.visit.url, lease.attempt) for lease in again] == [(ROOT, 2), (SITE + "/b", 1)]
    await bench.settle(again[0], Listed(), facts=Facts(200))
    assert await bench.frontier.read_again(urls) == 0
    assert await bench.frontier.read_again([]) == 0


@pytest.mark.parametrize("via", ["/shop/", "/shop/first", "/shop/first/", "/lists/first"])
async def test_places_that_grow_from_within_under_one_title_are_found(bench: Bench, via: str) -> None:
    urls = [f"/shop/{chr(97 + n)}{'/' * via.endswith('/')}" for n in range(20)]
    await bench.ready(SITE + via)
    [lease] = await bench.leases()
    await bench.settle(
        lease, Listed(), *(Visit(Url(SITE + url), 1, Url(SITE + via)) for url in urls), facts=Facts(200)
    )
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=Facts(200, title="Sold out"))
    places = await bench.frontier.read(reads.DoubtfulPlaces())
    assert ([*places] == [f"{SITE}/shop/"]) is via.startswith("/shop/")
    for place in places.values():
        assert not place.is_small
        assert {*place.pages} >= {SITE + url for url in urls}


@pytest.mark.parametrize(
    ("folders", "each", "differ", "is_doubtful"),
    [
        (7, 3, True, True),
        (6, 3, True, False),
        (20, 2, True, False),
        (7, 3, False, False),
        (40, 4, True, True),
    ],
)
async def test_small_folders_of_one_title_are_doubtful_together(
    bench: Bench, folders: int, each: int, differ: bool, is_doubtful: bool
) -> None:
    await bench.ready()
    names = [f"{chr(97 + n % 26)}x{chr(97 + n // 26)}" for n in range(folders)]
    firsts = [Visit(Url(f"{SITE}/{name}/"), 1, ROOT) for name in names]
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *firsts, facts=Facts(200))
    for lease in await bench.leases():
        to = [Visit(Url(f"{lease.visit.url}{n}"), 2, lease.visit.url) for n in range(each)]
        await bench.settle(lease, Listed(), *to, facts=Facts(200, title=lease.visit.url[::-1]))
    for lease in await bench.leases(1_000):
        content = digest(lease.visit.url.encode()) if differ else "00"
        await bench.settle(lease, Listed(), facts=Facts(200, title="Sold out", content=content))
    places = await bench.frontier.read(reads.DoubtfulPlaces())
    assert places.keys() == ({one.url for one in firsts} if is_doubtful else set())
    assert all(place.is_small for place in places.values())


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("/tour-{}.html", "/tour-{name}.html"),
        ("/tour/{}/view", "/tour/{name}/view"),
        ("/t/{}/a", "/t/{name}"),
    ],
)
async def test_pages_whose_addresses_are_alike_grow_as_a_place(bench: Bench, form: str, shape: str) -> None:
    first, *others = [Url(SITE + form.format(chr(97 + n))) for n in range(21)]
    await bench.ready(first)
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), *(Visit(url, 1, first) for url in others), facts=Facts(200))
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=Facts(200, title="Step"))
    places = await bench.frontier.read(reads.DoubtfulPlaces())
    assert {*places[SITE + shape].pages} == {first, *others}
    but = await bench.frontier.read(reads.DoubtfulPlaces(but=frozenset({SITE + shape})))
    assert but.keys() == places.keys() - {SITE + shape}
    assert SITE + shape not in await bench.frontier.read(reads.DoubtfulPlaces(alike=False))


@pytest.mark.parametrize(
    ("form", "place"), [("/days/2026-11-{}", "/days/{date}"), ("/shop/{}", None), ("/shop?page={}", None)]
)
async def test_calendars_are_found_alone_if_asked_for(bench: Bench, form: str, place: str | None) -> None:
    first, *others = [Url(SITE + form.format(n)) for n in range(10, 31)]
    await bench.ready(first)
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), *(Visit(url, 1, first) for url in others), facts=Facts(200))
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=Facts(200, title="Day"))
    assert (await bench.frontier.read(reads.DoubtfulPlaces())).keys()
    places = await bench.frontier.read(reads.DoubtfulPlaces(only_dated=True))
    assert places.keys() == ({SITE + place} if place else set())
    assert all({*found.pages} == {first, *others} for found in places.values())


async def test_pages_with_scripts_are_counted_by_kind(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page(f"/{name}") for name in "abc"])
    await bench.frontier.add([Visit(Url(f"{SITE}/d"), 1, Url(f"{SITE}/a"))])
    kinds = {
        "/": "111111111111222222222222",
        "/a": "111111111111333333333333",
        "/b": "444444444444333333333333",
    }
    made = tuple(Url(f"{SITE}/{name}") for name in "cd")
    seen = Rendering(Needs.SAMPLE, after=PageSummary(5), made=made)
    for lease in await bench.leases():
        of = kinds.get(target(lease.visit.url))
        shown = seen if lease.visit.url == ROOT else None
        await bench.settle(lease, Listed(), facts=Facts(200, scripts=of, rendering=shown))
    known = await bench.frontier.read(reads.KindsOfScripted())
    assert known.plain == [PagesOfKind("3" * 12, 2, Url(f"{SITE}/a"))]
    assert known.samples == [(ROOT, kinds["/"], seen)]
    assert known.new == {f"{SITE}/c"}, "not what a page without scripts led to"
    again = await bench.frontier.read(reads.UnrenderedPages(["1" * 12, "4" * 12]))
    assert again == [f"{SITE}/a", f"{SITE}/b"]
    assert await bench.frontier.read(reads.UnrenderedPages([])) == []
    assert await bench.frontier.read(reads.SameShell(2)) is None, "one page was rendered"
    for _ in range(2):
        assert await bench.frontier.read_again(again, once=False) == 2
        for lease in await bench.leases():
            await bench.settle(lease, Listed(), facts=Facts(200))


async def test_addresses_with_the_same_bytes_and_scripts_are_counted(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page(f"/{name}") for name in "abc"])
    for lease in await bench.leases():
        scripts = None if lease.visit.url == ROOT else "1" * 24
        why = Listed() if lease.visit.url < f"{SITE}/c" else Unlisted(Why.SOFT_404)
        await bench.settle(lease, why, facts=Facts(200, digest="d", scripts=scripts))
    assert await bench.frontier.read(reads.SameShell(3)) == PagesOfKind("d", 3, Url(f"{SITE}/a"))
    assert await bench.frontier.read(reads.SameShell(4)) is None
    await bench.frontier.read_again([ROOT], once=False)
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), facts=Facts(200, digest="d", scripts="1" * 24))
    assert await bench.frontier.read(reads.SameShell(9)) == PagesOfKind("d", 4, ROOT), "all listed pages"


async def test_pages_that_no_link_leads_to_any_more_are_not_listed(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([Visit(ROOT)], Seed(SeedKind.START))
    await bench.frontier.add([Visit(Url(SITE + "/input"))], Seed(SeedKind.INPUT, "list"))
    urls = {path: Visit(Url(SITE + path), 1, Url(ROOT)) for path in ("/a", "/b", "/c", "/d")}
    found = {ROOT: ("/a", "/b"), "/b": ("/c",), "/c": ("/d",), "/d": ("/c",)}
    while leases := await bench.leases():
        for lease in leases:
            to = found.get(lease.visit.url.removeprefix(SITE), found[ROOT] if lease.visit.url == ROOT else ())
            await bench.settle(lease, Listed(), *(urls[path] for path in to), facts=Facts(200))
    assert await bench.frontier.read_again([Url(SITE + "/b")]) == 1
    [again] = await bench.leases()
    await bench.settle(again, Unlisted(Why.SOFT_404), facts=Facts(200))
    await bench.frontier.apply(SiteRule.UNREACHED)
    outcomes = {path: (await bench.frontier.read(reads.RecordOf(Url(SITE + path)))) for path in urls}
    trap = Unlisted(Why.TRAP, "links of pages that do not exist")
    assert {path: one and one.outcome for path, one in outcomes.items()} == {
        "/a": Listed(), "/b": Unlisted(Why.SOFT_404), "/c": trap, "/d": trap,
    }  # fmt: skip
    seeded = await bench.frontier.read(reads.RecordOf(Url(SITE + "/input")))
    assert seeded
    assert seeded.outcome == Listed()


async def test_reopened_visits_are_leased_last_within_depth_limit(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page("/deep", 3), page("/a"), page("/b")])
    for lease in await bench.leases(2):
        await bench.settle(lease, Failed(Cause.CONNECT))
    await bench.frontier.reopen([ROOT, Url(SITE + "/a")])
    assert [lease.visit.url for lease in await bench.leases(3, depth=1)] == [SITE + "/b", ROOT, SITE + "/a"]
    assert [lease.visit.url for lease in await bench.leases()] == [SITE + "/deep"]


async def test_answered_returns_a_fetched_page_of_origin(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.add([page("/a"), page("/b")])
    first, second, third = await bench.leases()
    assert await bench.frontier.read(reads.LastAnswered(SITE)) is None
    await bench.settle(first, Listed())
    await bench.settle(second, Failed(Cause.NOT_FOUND), facts=Facts(404))
    assert await bench.frontier.read(reads.LastAnswered(SITE)) is None, "listed unfetched, and not found"
    await bench.settle(third, Listed(), facts=Facts(200))
    assert await bench.frontier.read(reads.LastAnswered(SITE)) == third.visit.url
    assert await bench.frontier.read(reads.LastAnswered("http://b.example")) is None


async def test_clock_going_back_does_not_turn_response_into_failure(bench: Bench) -> None:
    await bench.ready()
    await bench.settle((await bench.leases())[0], Failed(Cause.TIMEOUT))
    await bench.frontier.conclude()
    bench.clock.now -= 10 * DAY
    await bench.ready()
    await bench.settle((await bench.leases())[0], Listed(), page("/a"), facts=Facts(200, header=moment(5)))
    record = await bench.frontier.read(reads.RecordOf(ROOT))
    assert record
    assert record.facts
    assert (record.facts.header, record.failing) == (moment(5), None)


async def test_throttled_delay_doubles_once_per_second_up_to_limit(bench: Bench) -> None:
    await bench.ready(delay=1.0)

    async def delay() -> float:
        first = await bench.frontier.slot(SITE)
        return await bench.frontier.slot(SITE) - first

    for _ in range(5):
        await bench.frontier.slow(SITE, bench.clock.now)
    assert await delay() == pytest.approx(2.0)
    for _ in range(9):
        bench.clock.now += 1.5
        await bench.frontier.slow(SITE, bench.clock.now)
    assert await delay() == pytest.approx(8.0)


# -- seeds --------------------------------------------------------------------------------------------------


def sitemap(name: str, depth: int = 0) -> Seed:
    return Seed(SeedKind.SITEMAP, f"{SITE}/{name}.xml", depth)


async def test_seeds_are_read_in_order_and_once_per_run(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    await bench.frontier.add([Visit(ROOT)], Seed(SeedKind.START))
    assert await bench.frontier.read(reads.NextSeed()) is None, "start URLs are not read"
    assert await bench.frontier.add_seeds([sitemap("b"), sitemap("a"), sitemap("b")], 10) == 0
    await bench.frontier.add_seeds([Seed(SeedKind.INPUT, "list.txt")], 10)
    order = []
    while seed := await bench.frontier.read(reads.NextSeed()):
        order.append(seed)
        below = (sitemap("c", 1), sitemap("a", 1)) if seed == sitemap("b") else ()
        await bench.frontier.settle_seed(SeedSettlement(seed, SeedOutcome.READ, below=below), 10)
    assert order == [Seed(SeedKind.INPUT, "list.txt"), sitemap("b"), sitemap("a"), sitemap("c", 1)]
    await bench.frontier.add_seeds([sitemap("a"), sitemap("b")], 10)
    assert await bench.frontier.read(reads.NextSeed()) is None
    assert (await bench.frontier.read(reads.Sitemaps())).outcomes == {"read": 3}
    await bench.frontier.finish()
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    await bench.frontier.add_seeds([sitemap("a")], 10)
    assert await bench.frontier.read(reads.NextSeed()) == sitemap("a")


async def test_copy_of_a_sitemap_is_kept_until_another_one_is(bench: Bench) -> None:
    seed, copy = sitemap("a"), SeedCopy(Validators('"x"', None), b"\0body\xff")
    for kept, expected in ((copy, copy), (None, copy), (SeedCopy(Validators(), b""), None)):
        await bench.frontier.begin("settings")
        await bench.frontier.add_seeds([seed], 10)
        await bench.frontier.settle_seed(SeedSettlement(seed, SeedOutcome.READ, copy=kept), 10)
        assert await bench.frontier.read(reads.CopyOfSeed(seed)) == expected
        assert await bench.frontier.read(reads.CopyOfSeed(sitemap("b"))) is None
        await bench.frontier.finish()
        await bench.frontier.conclude()


async def test_latest_date_of_sitemaps_is_that_of_a_page_in_this_run(bench: Bench) -> None:
    """Whichever sitemap is read first, and whether or not the page was visited before."""
    await bench.ready(ROOT, SITE + "/a")
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=Facts(200))
    for name, day in (("a", 2), ("b", 3), ("c", 1)):
        dates = {ROOT: datetime(2024, 1, day, tzinfo=UTC), Url(SITE + "/offsite"): datetime.now(UTC)}
        await bench.frontier.add([Visit(ROOT)], sitemap(name), dates)
    assert await dated(bench) == {
        ROOT: (datetime(2024, 1, 3, tzinfo=UTC), True),
        Url(SITE + "/a"): (None, False),
    }
    await bench.frontier.finish()
    await bench.frontier.conclude()
    await bench.ready(ROOT, SITE + "/a")
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=Facts(200))
    assert set((await dated(bench)).values()) == {(None, False)}, "it was in no sitemap of this run"


async def dated(bench: Bench) -> dict[Url, tuple[datetime | None, bool]]:
    """The dates of entries, by all sources without doubts."""
    await bench.frontier.date(DATE_SOURCES["auto"], Doubts())
    entries = [one async for one in each(bench.frontier.stream(reads.ListedEntries()))]
    return {one.url: (one.lastmod, one.is_day) for one in entries}


async def test_number_of_seeds_per_depth_is_limited(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    assert await bench.frontier.add_seeds([sitemap(str(n)) for n in range(5)], 3) == 2
    assert await bench.frontier.add_seeds([sitemap("0"), sitemap("9")], 3) == 1, (
        "a known seed does not count towards the limit"
    )
    below = tuple(sitemap(f"c{n}", 1) for n in range(5))
    assert (
        await bench.frontier.settle_seed(SeedSettlement(sitemap("0"), SeedOutcome.READ, "", 5, below), 4) == 1
    )
    assert (await bench.frontier.read(reads.Sitemaps())).outcomes == {"read": 1, "open": 6, "passed": 1}


async def test_urls_named_by_seed_are_fetched_despite_link_filters(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    reasons = [Why.NOFOLLOW, Why.DEPTH, Why.TRAP, Why.NOT_NAMED, Why.EXCLUDED]
    await bench.settle(root, Listed(), *(page(f"/{why.value}", filtered=why) for why in reasons))
    await bench.frontier.add_seeds([sitemap("a")], 1)
    named = [Visit(Url(f"{SITE}/{why.value}")) for why in reasons[:-1]]
    excluded = Visit(Url(f"{SITE}/excluded"), filtered=Why.EXCLUDED)
    assert await bench.frontier.add([*named, excluded], sitemap("a")) == 4
    assert await bench.frontier.add([*named, excluded], sitemap("a")) == 0
    leases = await bench.leases()
    assert {lease.visit.url for lease in leases} == {visit.url for visit in named}
    assert {lease.visit.depth for lease in leases} == {0}
    balance = await bench.frontier.read(reads.RunBalance())
    assert (balance.discovered, balance.balanced) == (6, True)


@pytest.mark.parametrize("linked_first", [True, False])
async def test_provenance_of_url_does_not_depend_on_discovery_order(bench: Bench, linked_first: bool) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.frontier.add_seeds([sitemap("a"), sitemap("b")], 2)
    both, alone, follows_not, itself = (
        Url(SITE + path) for path in ("/both", "/alone", "/nofollow", "/itself")
    )
    named = [Visit(url) for url in (both, alone, follows_not, itself)]
    links = [page("/both"), page("/linked"), page("/nofollow", filtered=Why.NOFOLLOW)]
    if linked_first:
        await bench.settle(root, Listed(), *links)
        await bench.frontier.add(named, sitemap("b"))
        await bench.frontier.add(named, sitemap("a"))
    else:
        await bench.frontier.add(named, sitemap("a"))
        await bench.frontier.add(named, sitemap("b"))
        await bench.settle(root, Listed(), *links)
    for lease in await bench.leases():
        # A page that links only to itself is linked by no other page.
        await bench.settle(lease, Listed(), Visit(lease.visit.url, 1, lease.visit.url))
    known = {
        url: await bench.frontier.read(reads.RecordOf(url))
        for url in (both, alone, follows_not, itself, Url(SITE + "/linked"))
    }
    ways = {url.removeprefix(SITE): (r.seed, r.visit.via, r.visit.depth) for url, r in known.items() if r}
    assert ways == {
        "/both": (sitemap("a"), ROOT, 0), "/alone": (sitemap("a"), None, 0), "/nofollow": (sitemap("a"), None, 0),
        "/itself": (sitemap("a"), None, 0), "/linked": (None, ROOT, 1),
    }  # fmt: skip
    assert (await bench.frontier.read(reads.Sitemaps())).orphans == {sitemap("a").name: 3}


async def test_start_url_keeps_its_seed(bench: Bench) -> None:
    await bench.frontier.begin("settings")
    await bench.frontier.add_seeds([sitemap("a")], 1)
    await bench.frontier.add([Visit(ROOT)], sitemap("a"))
    await bench.frontier.add([Visit(ROOT)], Seed(SeedKind.START))
    await bench.frontier.add([Visit(ROOT)], sitemap("a"))
    record = await bench.frontier.read(reads.RecordOf(ROOT))
    assert record
    assert record.seed == Seed(SeedKind.START)


async def test_sitemaps_skipped_for_robots_txt_are_read_on_resume(
    bench: Bench,
) -> None:
    await bench.frontier.begin("settings")
    await bench.frontier.add_seeds([sitemap("a"), sitemap("b")], 2)
    await bench.frontier.settle_seed(SeedSettlement(sitemap("a"), SeedOutcome.ROBOTS_DOWN), 0)
    await bench.frontier.settle_seed(SeedSettlement(sitemap("b"), SeedOutcome.FAILED), 0)
    assert (await bench.frontier.begin("settings")).resumed
    assert await bench.frontier.read(reads.NextSeed()) == sitemap("a")


# -- the rounds of patterns that may be crawler traps ----------------------------------------------------


def shop(number: int, *, named: bool = False, depth: int = 1) -> Visit:
    url = Url(f"{SITE}/shop?n={number}")
    return Visit(url, depth, ROOT, pattern=Traps().pattern(url, named=named))


async def advance(bench: Bench, shown: str | None = None, *, is_bounded: bool | None = False) -> Round:
    """The next round. `shown`: for impossible values, by every pattern that is doubtful."""
    answer = await bench.frontier.advance()
    while answer.doubtful:
        assert not answer.released
        assert SAMPLE <= len(answer.doubtful[0].pages) <= 2 * SAMPLE
        told = {pattern.id: ImpossibleValues(shown, 2, is_bounded) for pattern in answer.doubtful}
        answer = await bench.frontier.advance(shown=told)
    return answer


async def rounds(bench: Bench, content: str = "same", most: int = 100) -> list[str]:
    """Settle everything, round after round; returns the leased URLs in order."""
    asked: list[str] = []
    for _ in range(most):
        leases = await bench.leases(10_000)
        asked += sorted(lease.visit.url for lease in leases)
        await bench.settle_all(
            (lease, Facts(200, content=content.format(lease.visit.url)), ()) for lease in leases
        )
        if not (await advance(bench)).released and not leases:
            break
    return asked


async def test_urls_of_pattern_are_held_until_next_round(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    assert await bench.settle(root, Listed(), page("/a"), *(shop(n) for n in range(200))) == 1
    assert [lease.visit.url for lease in await bench.leases()] == [SITE + "/a"]
    balance = await bench.frontier.read(reads.RunBalance())
    assert (balance.discovered, balance.open, balance.balanced) == (202, 201, True)


async def test_batch_does_not_depend_on_discovery_order(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in random.Random(1).sample(range(400), 400)))
    answer = await bench.frontier.advance()
    assert (answer.released, list(answer.closed)) == (SAMPLE, [])
    first = {lease.visit.url for lease in await bench.leases(1_000)}
    assert first == set(sorted((shop(n).url for n in range(400)), key=sample)[:SAMPLE])


async def test_held_urls_are_released_while_others_wait(bench: Bench) -> None:
    """Once, as many as a sample has; and not for a host that is itself paused with due visits."""
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), page("/a"), *(shop(n) for n in range(400)))
    [other] = await bench.leases()
    await bench.settle(other, Later(bench.clock.now + 600, Cause.RATE_LIMITED))
    assert (await bench.frontier.lease(9)).rests
    assert (await bench.frontier.advance()).released == SAMPLE
    assert (await bench.frontier.advance()).released == 0, "the host has due visits"
    first, *more = await bench.leases(1_000)
    await bench.settle(first, Later(bench.clock.now + 900, Cause.RATE_LIMITED))
    await bench.settle_all((lease, Facts(200, content="same"), ()) for lease in more)
    assert (await bench.frontier.advance()).released == 0, "a page of the sample waits"
    assert await bench.frontier.read(reads.TrapsOfRun()) == []
    [wait] = await bench.frontier.read(reads.Waits())
    assert wait.pages == 2
    balance = await bench.frontier.read(reads.RunBalance())
    assert balance.balanced
    assert balance.open > 300, "nothing is given up while a page waits"


async def test_pattern_without_new_content_is_closed_for_good(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(400)))
    assert len(await rounds(bench)) == 2 * SAMPLE
    [trap] = await bench.frontier.read(reads.TrapsOfRun())
    assert (trap.kind, trap.pattern) == ("query", SITE + "/shop?n=…")
    await bench.frontier.add([shop(1_000), page("/b")])
    assert [lease.visit.url for lease in await bench.leases()] == [SITE + "/b"]
    record = await bench.frontier.read(reads.RecordOf(shop(1_000).url))
    assert record
    assert record.outcome == Unlisted(Why.TRAP, trap.pattern)
    assert record.pattern == InPattern(trap.pattern, 2 * SAMPLE, closed=True)
    assert (await bench.frontier.read(reads.RunBalance())).balanced


async def test_what_a_page_says_under_its_own_address_is_not_new(bench: Bench) -> None:
    """A pattern leads to pages that say, but for their addresses, what is known."""
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), page("/shop"), *(shop(n) for n in range(400)))
    [shown] = await bench.leases()
    await bench.settle(shown, Listed(), facts=Facts(200, content="a shop at /shop"))
    sampled = 0
    while (await advance(bench)).released:
        sample = await bench.leases(1_000)
        sampled += len(sample)
        said = Facts(200, content="results")
        await bench.settle_all((lease, said, [page(f"/{lease.id}/{lease.id}")]) for lease in sample)
        said = Facts(200, content="a shop", echoing="a shop at /shop")
        await bench.settle_all((lease, said, ()) for lease in await bench.leases(1_000))
    assert sampled == 2 * SAMPLE


async def test_pages_are_compared_with_their_addresses_and_without(bench: Bench) -> None:
    urls = [f"{SITE}/a", f"{SITE}/a?b", f"{SITE}/c"]
    await bench.ready(*urls)
    known = {
        urls[0]: Facts(200, content="lamp a"),
        urls[1]: Facts(200, content="lamp", echoing="lamp a"),
        urls[2]: Facts(200, content="lamp c"),
    }
    for lease in await bench.leases():
        await bench.settle(lease, Listed(), facts=known[lease.visit.url])
    found = {page.url: page for page in await bench.frontier.read(reads.RepeatedPages())}
    assert found.keys() == {*urls}
    assert found[Url(urls[0])].is_like(found[Url(urls[1])])
    assert found[Url(urls[1])].is_like(found[Url(urls[0])])
    assert not found[Url(urls[1])].is_like(found[Url(urls[2])])


async def test_pattern_with_new_content_stays_open(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(400)))
    assert len(await rounds(bench, "{}")) == 400
    assert await bench.frontier.read(reads.TrapsOfRun()) == []


async def test_a_level_is_judged_before_pages_of_the_next_are_leased(bench: Bench) -> None:
    """Also while many of its pages are in flight: the number of those must not decide what is fetched."""
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(page(f"/{n}") for n in range(600)), facts=Facts(200, content="root"))
    flying = await bench.leases(600)
    assert len(flying) == 600
    same = Facts(200, content="same")
    await bench.settle_all((lease, same, [page(f"/of/{lease.id}", 2)]) for lease in flying[:50])
    assert await bench.leases() == []
    await bench.settle_all((lease, same, ()) for lease in flying[50:])
    assert await bench.leases() == []
    assert (await advance(bench)).released == 1, "repeats link to the others"


async def test_urls_named_by_seed_are_not_held(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(400)))
    seeds = [replace(shop(n), via=None, depth=0) for n in (7, 401)]
    named_by = sitemap("map")
    assert await bench.frontier.add(seeds, named_by) == 2
    assert {lease.visit.url for lease in await bench.leases()} == {seed.url for seed in seeds}
    await rounds(bench)
    held = shop(await held_back(bench))
    assert await bench.frontier.add([replace(held, via=None)], named_by) == 1
    assert [lease.visit.url for lease in await bench.leases()] == [held.url]


async def held_back(bench: Bench) -> int:
    """The number of a page that its closed pattern holds back."""
    for number in range(400):
        record = await bench.frontier.read(reads.RecordOf(shop(number).url))
        if record and record.outcome == Unlisted(Why.TRAP, SITE + "/shop?n=…"):
            return number
    raise AssertionError


async def test_canonical_in_closed_pattern_is_released_separately(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(400)))
    await rounds(bench)
    held = await held_back(bench)
    await bench.frontier.add([page("/copy")])
    [copy] = await bench.leases()
    await bench.settle(copy, Unlisted(Why.CANONICAL, shop(held).url), shop(held, named=True))
    assert (await bench.frontier.advance()).released == 1
    assert [lease.visit.url for lease in await bench.leases()] == [shop(held).url]


async def test_redirect_lowers_depth_of_target(bench: Bench) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), page("/x", 2), page("/y", 2, filtered=Why.DEPTH), page("/hop", 1))
    [hop] = await bench.leases(depth=1)
    await bench.settle(hop, Moved(Url(SITE + "/x")), page("/x", 1, hops=1), page("/y", 1, hops=1))
    nearer = {(lease.visit.url, lease.visit.depth) for lease in await bench.leases(depth=1)}
    assert nearer == {(SITE + "/x", 1), (SITE + "/y", 1)}


async def test_rounds_resume_after_crash(path: Path) -> None:
    clock, asked = Clock(), list[str]()
    for _ in range(12):
        frontier = SqliteFrontier(str(path), clock=clock)
        bench = Bench(frontier, clock, lambda: frontier)  # noqa: B023 - not called
        await bench.ready()
        for lease in await bench.leases(40):
            found = [shop(n) for n in range(400)] if lease.visit.url == ROOT else []
            asked.append(lease.visit.url)
            await bench.settle(lease, Listed(), *found, facts=Facts(200, content="same"))
        await bench.leases(7)  # lost
        if (await frontier.lease(1)).finished:
            await advance(bench)
        await frontier.close()
    assert len(asked) == len(set(asked)) == 1 + 2 * SAMPLE


async def sampled(bench: Bench, shown: str | None, found: int = 0) -> list[str]:
    """The leased URLs of a shop whose articles only repeat their addresses.

    `found`: how many more of them each one leads to. `shown`: for articles that do not exist.
    """
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(200)))
    asked = list[str]()
    while (await advance(bench, shown)).released:
        pages = []
        for lease in await bench.leases(1_000):
            url = lease.visit.url
            asked.append(url)
            others = [replace(shop(1_000 + number * 1_000 + len(asked)), via=url) for number in range(found)]
            pages.append(
                (lease, Facts(200, content="gone" if url.endswith("7") else "there", echoing=url), others)
            )
        await bench.settle_all(pages)
    assert (await bench.frontier.read(reads.RunBalance())).balanced
    return asked


@pytest.mark.parametrize("shown", ["", "gone", "another page"])
async def test_values_that_exist_are_read_where_others_are_refused(bench: Bench, shown: str) -> None:
    assert len(await sampled(bench, shown)) == 200
    assert await bench.frontier.read(reads.TrapsOfRun()) == []


@pytest.mark.parametrize(
    ("shown", "is_bounded", "read"),
    [
        ("", False, 2 * SAMPLE),
        ("", True, 300),
        ("", None, 300),
        ("no such page", None, 300),
        ("nothing", None, 2 * SAMPLE),
        (None, None, 2 * SAMPLE),
    ],
)
async def test_rare_pages_are_read_where_others_are_refused(
    bench: Bench, shown: str | None, is_bounded: bool | None, read: int
) -> None:
    """Of which few say anything, none of them among the first forty."""
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(300)))
    asked = 0
    while (await advance(bench, shown, is_bounded=is_bounded)).released:
        for lease in await bench.leases(1_000):
            asked += 1
            said = "nothing" if asked % 100 else f"something {asked}"
            await bench.settle(lease, Listed(), facts=Facts(200, content=said))
    assert asked == read


async def test_pattern_that_answers_anything_is_closed(bench: Bench) -> None:
    # Two contents in the first sample, and then none in eight times as many pages as each of them took.
    assert len(await sampled(bench, None)) == SAMPLE + PATIENCE * SAMPLE // 2
    [trap] = await bench.frontier.read(reads.TrapsOfRun())
    assert trap.pattern == f"{SITE}/shop?n=…"


async def test_values_that_lead_to_more_and_more_values_end(bench: Bench) -> None:
    asked = await sampled(bench, "", found=3)
    assert {shop(n).url for n in range(200)} <= {*asked}, "those linked from outside are all read"
    assert len(asked) < 4 * 200
    [trap] = await bench.frontier.read(reads.TrapsOfRun())
    assert trap.pattern == f"{SITE}/shop?n=…"


@pytest.mark.parametrize(("is_bounded", "read"), [(False, 2 * SAMPLE), (True, 90)])
async def test_chain_of_numbers_is_followed_if_they_are_bounded(
    bench: Bench, is_bounded: bool, read: int
) -> None:
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), shop(0))
    asked = 0
    while (await advance(bench, "", is_bounded=is_bounded)).released:
        [lease] = await bench.leases()
        asked += 1
        said = Facts(200, content="there", echoing=lease.visit.url)
        after = (replace(shop(asked), via=lease.visit.url),) if asked < 90 else ()
        await bench.settle(lease, Listed(), *after, facts=said)
    assert asked == read


async def test_true_pages_that_repeat_their_addresses_raise_the_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traps, "REQUESTS", 200)
    await bench.ready()
    [root] = await bench.leases()
    await bench.settle(root, Listed(), *(shop(n) for n in range(500)))
    asked = 0
    while (await advance(bench, "")).released:
        leases = await bench.leases(10_000)
        asked += len(leases)
        await bench.settle_all(
            (one, Facts(200, content="there", echoing=one.visit.url), ()) for one in leases
        )
    assert asked == 500


async def test_values_that_values_lead_to_come_last(bench: Bench) -> None:
    """A list of two hundred articles, and ten posted ones that lead to three more each, and so on."""
    await bench.ready()
    [root] = await bench.leases()
    articles = [shop(n) for n in range(200)]
    await bench.settle(
        root, Listed(), Visit(Url(f"{SITE}/list"), 1, ROOT), *(shop(10_000 + n) for n in range(10))
    )
    asked = list[str]()
    while (leases := await bench.leases(10_000)) or (len(asked) < 250 and (await advance(bench)).released):
        asked += (lease.visit.url for lease in leases if "?" in lease.visit.url)
        pages = []
        for lease in leases:
            url = lease.visit.url
            number = int(url.rpartition("=")[2]) if "?" in url else 0
            more = [shop(n) for n in range(3 * number, 3 * number + 3)] if number >= 10_000 else []
            to = [replace(one, via=url) for one in (more if "?" in url else articles)]
            pages.append((lease, Facts(200, content=digest(url.encode())), to))
        await bench.settle_all(pages)
    assert {one.url for one in articles} <= {*asked[:250]}


@pytest.mark.parametrize("questions", [0, 60])
async def test_first_content_of_a_pattern_raises_no_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, questions: int
) -> None:
    """Thirty pages, and posted links to each with a parameter that it greets. Twenty are read again."""
    monkeypatch.setattr(traps, "REQUESTS", 200)
    await bench.ready()
    [root] = await bench.leases()
    names = [Visit(Url(f"{SITE}/wine{n}"), 1) for n in range(30)]
    posted = [
        Visit(url := Url(f"{one.url}?via=x{n}"), 1, ROOT, pattern=pattern_of(url))
        for one in names
        for n in range(SAMPLE - 1)
    ]
    await bench.settle(root, Listed(), *names, *posted)
    await bench.frontier.remember(ASKED_PLACES, ({}, questions))
    asked = 0
    while (leases := await bench.leases(10_000)) or (await advance(bench)).released:
        asked += len(leases)
        pages = []
        for lease in leases:
            name, greeted, _ = lease.visit.url.partition("?")
            content = digest(f"{name}{greeted}".encode())
            pages.append((lease, Facts(200, content=content, echoing=lease.visit.url), ()))
        await bench.settle_all(pages)
        await bench.frontier.read_again([one.url for one in names[:20]])
    assert asked == requests_for(len(names)) - questions


async def test_reported_traps_are_stored_once(bench: Bench) -> None:
    await bench.ready()
    trap = Trap("path", "https://a/…/x/…/x/…", "https://a/x/x")
    await bench.frontier.store_traps([trap, trap])
    await bench.frontier.store_traps([trap])
    assert await bench.frontier.read(reads.TrapsOfRun()) == [trap]


async def test_the_last_success_outlives_the_runs_that_failed_since(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.mark_published(PublicationRow(1, 1, 99, files_changed=5.0))
    await bench.frontier.conclude()
    await bench.frontier.end_session(SessionEnd(0, succeeded=7.0))
    for _ in range(15):  # more than are kept
        run = await bench.frontier.begin("settings")
        assert run.succeeded == 7.0
        await bench.frontier.finish()
        await bench.frontier.conclude(refused=True)
        await bench.frontier.end_session(SessionEnd(6, refused="too few", succeeded=run.succeeded))
    rows = await bench.frontier.read(reads.AllRuns())
    assert len(rows) == 10
    assert {row.succeeded for row in rows} == {7.0}
    last = await bench.frontier.read(reads.LastPublication())
    assert last
    assert last.files_changed == 5.0


# -- the ledger of submissions ------------------------------------------------------------------------------


async def listed(bench: Bench, **content: str) -> None:
    """A published run of the root and of these pages, with that content."""
    await bench.ready(ROOT, *(f"{SITE}/{name}" for name in content))
    for lease in await bench.leases():
        said = content.get(lease.visit.url.rpartition("/")[2], "root")
        at = Lastmod(datetime.fromtimestamp(1_700_000_000, UTC), Source.HEADER) if said == "dated" else None
        await bench.settle(lease, Listed(at), facts=Facts(200, content=said, lastmod=at))
    await bench.frontier.finish()
    await bench.frontier.conclude()


async def ledger_rows(
    bench: Bench, *, unchanged: bool = False
) -> list[tuple[str, str | None, str | None, str]]:
    chunks = [chunk async for chunk in bench.frontier.stream(reads.LedgerRows(unchanged=unchanged))]
    return [
        (row.url.removeprefix(SITE), row.submitted, row.now, row.outcome) for chunk in chunks for row in chunk
    ]


async def test_a_ledger_begins_with_the_listed_pages_or_empty(bench: Bench) -> None:
    await listed(bench, a="1", b="dated")
    assert await bench.frontier.read(reads.LedgerState()) is None
    assert len(await ledger_rows(bench)) == 3
    assert await bench.frontier.open_ledger(SITE, noted=True) == 3
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE)
    assert await ledger_rows(bench) == []
    assert await ledger_rows(bench, unchanged=True) == [
        ("/", "root@", "root@", "listed"),
        ("/a", "1@", "1@", "listed"),
        ("/b", "dated@1700000000", "dated@1700000000", "listed"),
    ]
    assert await bench.frontier.open_ledger("http://other.example", noted=False) == 0
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead("http://other.example")
    assert [row[1] for row in await ledger_rows(bench)] == [None, None, None]


async def test_the_ledger_tells_what_is_new_moved_and_gone(bench: Bench) -> None:
    await listed(bench, a="1", b="1", c="1", d="1", e="1")
    await bench.frontier.open_ledger(SITE, noted=True)
    await bench.ready(ROOT, *(f"{SITE}/{name}" for name in "abcdf"))
    for lease in await bench.leases():
        outcomes: dict[str, tuple[Outcome, Facts]] = {
            "b": (Listed(), Facts(200, content="2")),
            "c": (Unlisted(Why.NOINDEX), Facts(200, content="1")),
            "d": (Failed(Cause.NOT_FOUND, "404"), Facts(404)),
        }
        name = lease.visit.url.rpartition("/")[2]
        outcome, facts = outcomes.get(name, (Listed(), Facts(200, content="1" if name else "root")))
        await bench.settle(lease, outcome, facts=facts)
    await bench.frontier.finish()
    await bench.frontier.conclude()
    expected: list[tuple[str, str | None, str | None, str]] = [
        ("/b", "1@", "2@", "listed"),
        ("/c", "1@", None, "unlisted:noindex"),
        ("/d", "1@", None, "failed:not-found"),
        ("/e", "1@", None, ""),
        ("/f", None, "1@", "listed"),
    ]
    assert await ledger_rows(bench) == expected
    rows = [LedgerRow(Url(SITE + url), *marks) for url, *marks in expected]  # type: ignore[arg-type]
    await bench.frontier.enter(rows[:2], 2)
    assert await ledger_rows(bench) == expected[2:]
    await bench.frontier.enter(rows[2:])
    assert await ledger_rows(bench) == []
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE)


async def test_ledger_survives_and_knows_how_pages_were_read(bench: Bench) -> None:
    await listed(bench, a="1")
    await bench.frontier.open_ledger(SITE, noted=True)
    await bench.frontier.begin("settings", "another way")
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE, comparable=False)
    await bench.frontier.enter([], 1)
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE)


async def test_what_was_delivered_is_kept_with_the_newest_publication(bench: Bench) -> None:
    await bench.ready()
    await bench.frontier.mark_published(PublicationRow(1))
    await bench.frontier.mark_delivered("one")
    await bench.frontier.mark_published(PublicationRow(2, delivered="one"))
    last = await bench.frontier.read(reads.LastPublication())
    assert last
    assert (last.urls, last.delivered) == (2, "one")
    await bench.frontier.mark_delivered("two")
    last = await bench.frontier.read(reads.LastPublication())
    assert last
    assert last.delivered == "two"
    [run] = await bench.frontier.read(reads.AllRuns())
    assert run.publication
    assert run.publication.delivered == "two"


async def test_the_ledger_knows_whether_a_run_searches_the_same_site(bench: Bench) -> None:
    await listed(bench, a="1")
    await bench.frontier.mark_published(PublicationRow(2))
    await bench.frontier.open_ledger(SITE, noted=True)
    await bench.frontier.begin("another scope")
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE, same_scope=False)
    await bench.frontier.mark_published(PublicationRow(2))
    await bench.frontier.enter([], 0)
    assert await bench.frontier.read(reads.LedgerState()) == LedgerHead(SITE)


# -- links to other sites -----------------------------------------------------------------------------------


def away(path: str, **more: object) -> Visit:
    found = {"via": ROOT, "filtered": Why.OFFSITE} | more
    return Visit(Url(f"https://b.example{path}"), 1, **found)  # type: ignore[arg-type]


async def links_due(bench: Bench, round_number: int = 1) -> list[str]:
    first = await bench.frontier.read(reads.DueLinks(round_number))
    assert list(await bench.frontier.read(reads.DueLinks(round_number, first[0]))) == list(first[1:])
    return [link.url for link in first]


async def answered(bench: Bench, code: str, *paths: str, round_number: int = 1) -> None:
    """Store the same answer for these URLs."""
    wanted = [away(path).url for path in paths]
    due = [link for link in await bench.frontier.read(reads.DueLinks(99)) if link.url in wanted]
    answers = [CheckedLink(link.id, code, 404, "says no", bench.clock()) for link in due]
    await bench.frontier.store_answers(answers, round_number)


async def linking_run(bench: Bench, *paths: str) -> None:
    """A run in which the start page links to these URLs of another site."""
    await bench.ready()
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), *map(away, paths))


async def test_links_to_other_sites_are_due_once_in_a_round(bench: Bench) -> None:
    await linking_run(bench, "/a", "/b")
    nofollow = away("/n", filtered=Why.NOFOLLOW)
    await bench.frontier.add([nofollow, away("/seed", via=None)], Seed(SeedKind.INPUT, "list"))
    assert await links_due(bench) == [away("/a").url, away("/b").url]
    await answered(bench, "ok", "/a")
    assert await links_due(bench) == [away("/b").url]
    assert await links_due(bench, 2) == [away("/b").url, away("/a").url], "the longest ago first"
    counts = await bench.frontier.read(reads.CountAnswers())
    assert (dict(counts.codes), counts.unchecked) == ({"ok": 1}, 1)


async def test_answers_are_kept_with_the_one_before_and_shown(bench: Bench) -> None:
    await linking_run(bench, "/a", "/b")
    await answered(bench, "ok", "/a")
    assert await bench.frontier.read(reads.ExternalAnswer(away("/b").url)) is None
    bench.clock.now += DAY
    await answered(bench, "broken:not-found", "/a", round_number=2)
    await answered(bench, "broken:dns", "/a", round_number=2)
    row = ExternalRow("broken:dns", 404, "says no", bench.clock(), 2, "ok")
    assert await bench.frontier.read(reads.ExternalAnswer(away("/a").url)) == row
    pages = [page async for chunk in bench.frontier.stream(reads.Pages()) for page in chunk]
    assert {page.url: page.external for page in pages} == {
        ROOT: None,
        away("/a").url: row,
        away("/b").url: None,
    }
    suspects = [page async for chunk in bench.frontier.stream(reads.Suspects()) for page in chunk]
    assert [(page.outcome, page.external) for page in suspects] == [("unlisted:offsite", row)]
    [page] = (await bench.frontier.read(reads.PagesOf([suspects[0].id]))).values()
    assert page.external == row
    target = await bench.frontier.read(reads.TargetsOf([page.id, 999]))
    assert target == {page.id: TargetRow(away("/a").url, "unlisted:offsite", 404, "broken:dns")}


async def test_answers_of_unknown_urls_are_ignored(bench: Bench) -> None:
    await linking_run(bench, "/a")
    await bench.frontier.store_answers([CheckedLink(999, "ok", 200, "", bench.clock())], 1)
    await bench.frontier.store_answers([], 1)
    assert (await bench.frontier.read(reads.CountAnswers())).codes == {}


async def test_answers_outlive_run_and_count_for_links_of_newest_one(bench: Bench) -> None:
    await linking_run(bench, "/a", "/b")
    await answered(bench, "ok", "/a", "/b")
    await bench.frontier.finish()
    await bench.frontier.conclude()
    await bench.frontier.begin("settings")
    await bench.frontier.add([Visit(ROOT)])
    [lease] = await bench.leases()
    await bench.settle(lease, Listed(), away("/a"))
    assert await links_due(bench, 2) == [away("/a").url]
    assert (await bench.frontier.read(reads.CountAnswers())).codes == {"ok": 1}
    assert await bench.frontier.read(reads.ExternalAnswer(away("/b").url)) is not None


async def test_note_of_a_check_of_links_is_kept(bench: Bench) -> None:
    await bench.ready()
    assert await bench.frontier.recall(EXTERNAL) is None
    check = ExternalCheck(1, bench.clock(), True, 7, "max-external")
    await bench.frontier.remember(EXTERNAL, check)
    assert await bench.frontier.recall(EXTERNAL) == check


async def test_what_links_say_is_replaced_page_by_page(bench: Bench) -> None:
    await linking_run(bench, "/a", "/b")
    numbers = [
        await bench.frontier.read(reads.NumberOf(url)) for url in (ROOT, away("/a").url, away("/b").url)
    ]
    home, first, second = numbers
    rows = [AnchorRow(home, first, "Read «more»", "footer", "v1"), AnchorRow(home, second, version="v1")]
    await bench.frontier.store_anchors(rows)
    await bench.frontier.store_anchors([AnchorRow(999, first, "of no page")])
    await bench.frontier.store_anchors([])
    found = await bench.frontier.read(reads.AnchorsOf([home, first, 999]))
    assert found == {(row.id, row.target): row for row in rows}
    again = AnchorRow(home, second, "More", "nav", "v2")
    await bench.frontier.store_anchors([again])
    assert await bench.frontier.read(reads.AnchorsOf([home])) == {(home, second): again}
    assert (await bench.frontier.read(reads.Linking(away("/a").url))).said == {}
    assert (await bench.frontier.read(reads.Linking(away("/b").url))).said == {ROOT: ("More", "nav")}
    assert await bench.frontier.read(reads.AnchorsOf([])) == {}
