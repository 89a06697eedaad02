"""Members of one crawl on PostgreSQL: who leads, what a dead one held, and what all of them must agree on."""

import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest

from crawler.errors import ConfigError, FrontierError, LeadershipLost, StateBusy
from crawler.model.facts import Facts
from crawler.model.note import ALIASES
from crawler.model.outcome import Listed, Unlisted
from crawler.model.reasons import SeedKind, Why
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.run import Interruption, Run, SessionEnd, StopReason, Terms
from crawler.model.seed import Seed
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import SiteRule, reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state
from tests.waiting import eventually, outlive, tick

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = [pytest.mark.anyio, pytest.mark.system]


class Crew:
    """Members of one crawl, with a clock that the test moves."""

    def __init__(self) -> None:
        self.state, self.clock = new_state(), Clock()
        self.ticks = Clock()  # of the process, which runs on while it is frozen
        self.opened: list[PostgresFrontier] = []

    def open(self) -> "PostgresFrontier":
        from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

        self.opened.append(PostgresFrontier(self.state, clock=self.clock, ticks=self.ticks))
        return self.opened[-1]

    async def join(self, terms: Terms = Terms(), fingerprint: str = "settings") -> "PostgresFrontier":
        member = self.open()
        await member.begin(fingerprint, "", terms)
        assert member._heartbeat
        member._heartbeat.stop()  # it beats when the test says so
        return member

    def beat(self, member: "PostgresFrontier") -> None:
        from crawler.frontier.postgres.connection import connect  # noqa: PLC0415 - the driver is an extra

        assert member._heartbeat
        with connect(member._address) as connection:
            member._heartbeat.beat(connection)

    def let_die(self, *living: "PostgresFrontier") -> None:
        """More than 30 seconds pass, in which only these members beat."""
        for _ in range(4):
            self.clock.now += 9
            self.ticks.now += 9
            for member in living:
                self.beat(member)


@pytest.fixture
async def crew() -> AsyncIterator[Crew]:
    crew = Crew()
    yield crew
    for member in crew.opened:
        await member.close()


async def ready(member: "PostgresFrontier", pages: int = 1) -> None:
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT), *(Visit(Url(f"{SITE}/{number}")) for number in range(1, pages))])


async def leases(member: "PostgresFrontier", limit: int = 100) -> list[Lease]:
    return list((await member.lease(limit)).leases)


LEADING: dict[str, Callable[["PostgresFrontier"], object]] = {
    "finish": lambda member: member.finish(),
    "conclude": lambda member: member.conclude(),
    "check_leadership": lambda member: member.check_leadership(),
    "mark_published": lambda member: member.mark_published(PublicationRow(1, 1, 1, base="", folder="")),
    "add with a seed": lambda member: member.add([Visit(ROOT)], Seed(SeedKind.START)),
    "advance": lambda member: member.advance(),
    "ignore_canonicals": lambda member: member.ignore_canonicals(lambda _: True),
    "read_again": lambda member: member.read_again([ROOT]),
    "apply": lambda member: member.apply(SiteRule.DUPLICATES),
    "withdraw": lambda member: member.withdraw([ROOT], Why.DUPLICATE, ""),
    "add_seeds": lambda member: member.add_seeds([Seed(SeedKind.SITEMAP, "x")], 1),
}


@pytest.mark.parametrize("verb", LEADING)
async def test_what_only_the_leader_may_do_is_refused_to_others(crew: Crew, verb: str) -> None:
    leader, follower = await crew.join(), await crew.join()
    assert (await leader.take_leadership(), await follower.take_leadership()) == (True, False)
    with pytest.raises(LeadershipLost):
        await LEADING[verb](follower)  # type: ignore[misc]
    await LEADING[verb](leader)  # type: ignore[misc]


async def test_leader_that_wakes_has_lost_lead_even_if_nobody_has_it(crew: Crew) -> None:
    frozen, other = await crew.join(), await crew.join()
    crew.let_die(other)
    with pytest.raises(LeadershipLost):
        await frozen.finish()
    assert await other.take_leadership()
    await other.close()
    with pytest.raises(
        LeadershipLost
    ):  # the other may have released pages that the frozen one knows nothing of
        await frozen.finish()
    assert await frozen.take_leadership()
    await frozen.finish()


async def test_member_marked_dead_joins_again_and_what_it_held_is_void(crew: Crew) -> None:
    frozen, other = await crew.join(), await crew.join()
    await ready(frozen, 2)
    [first, *_] = await leases(frozen, 1)
    assert frozen.is_lease_valid(first)
    crew.let_die(other)
    assert not frozen.is_lease_valid(first), "its own clock says so before it asks"
    crew.beat(frozen)
    assert not frozen.is_lease_valid(first), "a beat does not bring it back to life"
    again = await leases(other)
    assert {(lease.visit.url, lease.attempt) for lease in again} == {(ROOT, 2), (Url(f"{SITE}/1"), 1)}
    assert not (await frozen.lease(9)).leases
    found = (Visit(Url(SITE + "/new"), 1, ROOT),)
    assert (await frozen.settle([Settlement(first, Verdict(Listed()), found)])).new == 0
    await other.release(again)
    [*mine] = await leases(frozen)
    assert all(frozen.is_lease_valid(lease) for lease in mine)
    assert not frozen.is_lease_valid(first)
    assert [member.alive for member in await other.read(reads.MembersOfRun())] == [False, True, True]


async def test_robots_txt_of_dead_reader_is_read_by_another_member(crew: Crew) -> None:
    dead, other = await crew.join(), await crew.join()
    await dead.add([Visit(ROOT)])
    [lease] = await leases(dead)
    assert lease.robots_first
    crew.let_die(other)
    await other.take_leadership()
    [again] = await leases(other)
    assert again.robots_first


async def test_a_lease_is_void_when_its_member_was_silent_for_too_long(crew: Crew) -> None:
    alone = await crew.join()
    await ready(alone)
    [lease] = await leases(alone)
    crew.ticks.now += 29.9
    assert alone.is_lease_valid(lease)
    crew.ticks.now += 0.2
    assert not alone.is_lease_valid(lease)
    crew.beat(alone)
    assert alone.is_lease_valid(lease), "nobody marked it dead"


async def test_member_that_only_waits_says_that_the_disk_is_full(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres import heartbeat  # noqa: PLC0415 - the driver is an extra

    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.01)
    member = crew.open()
    await member.begin("settings")
    assert await member.read(reads.ExitOfRun()) is None
    full = "BEGIN RAISE 'no space' USING ERRCODE = 'disk_full'; END"
    for statement in (
        f"CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $${full}$$",
        "CREATE TRIGGER no_space BEFORE UPDATE ON member EXECUTE FUNCTION no_space()",
    ):
        await member._call(member._db.do, statement)
    await eventually(lambda: member._heartbeat and member._heartbeat.error)
    with pytest.raises(FrontierError, match=r"disk of the database is full.*nothing is lost"):
        await member.read(reads.ExitOfRun())


async def test_followers_get_nothing_until_start_urls_are_visited(crew: Crew) -> None:
    leader, follower = await crew.join(), await crew.join()
    await ready(leader, 3)
    assert (await leader.lease(1, depth=0)).leads
    batch = await follower.lease(9)
    assert (batch.leads, len(batch.leases), batch.wait is None) == (False, 0, False)
    await leader.lease(1)
    assert len(await leases(follower)) == 1


async def test_all_members_leave_with_the_exit_code_of_the_leader(crew: Crew) -> None:
    leader, follower = await crew.join(), await crew.join()
    await leader.finish()
    await leader.conclude(refused=True)
    await leader.end_session(SessionEnd(6, 1.0, 2, 3))
    assert await follower.read(reads.ExitOfRun()) is None, (
        "the leader may still change its mind, by --fail-on"
    )
    assert not await follower.take_leadership()
    await leader.close()
    assert await follower.read(reads.ExitOfRun()) == 6
    assert not await follower.take_leadership(), "nothing is left to be led"


async def test_a_leader_that_only_leaves_does_not_end_the_run(crew: Crew) -> None:
    leader, follower = await crew.join(), await crew.join()
    await leader.end_session(SessionEnd(143, 1.0, 2, 3, goes_on=True))
    await leader.close()
    assert await follower.read(reads.ExitOfRun()) is None
    assert await follower.take_leadership()
    await follower.end_session(SessionEnd(143, 1.0, 2, 3, goes_on=True))
    [row] = await follower.read(reads.AllRuns())
    assert (row.exit, row.requests, row.seconds) == (143, 4, 2.0)


async def test_leader_that_dies_after_conclusion_leaves_none_waiting(crew: Crew) -> None:
    leader, follower = await crew.join(), await crew.join()
    await leader.finish()
    await leader.conclude()
    crew.let_die(follower)
    assert await follower.read(reads.ExitOfRun()) == 0


async def test_run_that_is_over_is_not_begun_again_by_its_name(crew: Crew) -> None:
    first = await crew.join(Terms("nightly"))
    await first.finish()
    await first.conclude()
    await first.end_session(SessionEnd(0))
    late = crew.open()
    run = await late.begin("settings", "", Terms("nightly"))
    assert (run.number, run.over) == (1, 0)
    assert [member.name for member in await late.read(reads.MembersOfRun())] == [first._members.name], (
        "it has not joined"
    )
    await first.close()
    assert (await late.begin("settings", "", Terms("the next night"))).number == 2


async def test_killed_run_is_resumed_by_name_interrupted_by_another(crew: Crew) -> None:
    first = await crew.join(Terms("monday", max_pages=1))
    await ready(first)
    await first.close()
    again = await crew.join(Terms("monday", max_pages=1))
    assert (await again.read(reads.NewestRun()), (await again.lease(9)).interruption) != (None, None)
    await again.interrupt(Interruption(StopReason.MAX_PAGES))
    await again.end_session(SessionEnd(7))
    await again.close()
    late = crew.open()
    assert (await late.begin("settings", "", Terms("monday"))).over == 7
    tuesday = await late.begin("settings", "", Terms("tuesday"))
    assert (tuesday.number, tuesday.resumed, tuesday.over) == (1, True, None)
    assert (await late.lease(9)).interruption is None


async def test_settings_that_members_must_share_are_named(crew: Crew) -> None:
    from crawler.frontier.postgres.connection import connect  # noqa: PLC0415 - the driver is an extra

    first = await crew.join(Terms(settings={"--rate": "a", "--scope": "b"}))
    assert first._heartbeat
    with connect(first._address) as connection:
        first._heartbeat.beat(connection)
        with pytest.raises(ConfigError, match=r"other settings \(--rate\)"):
            await crew.open().begin("settings", "", Terms(settings={"--rate": "x", "--scope": "b"}))
        with pytest.raises(StateBusy, match=r"other settings is at work on this state \(--scope\)"):
            await crew.open().begin("others", "", Terms(settings={"--rate": "a", "--scope": "x"}))


@pytest.mark.parametrize(("fingerprint", "number"), [("settings", 1), ("others", 2)])
async def test_other_settings_wait_until_killed_members_are_dead(
    crew: Crew, fingerprint: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew.beat(await crew.join(Terms(settings={"--rate": "a"})))
    late = crew.open()
    while await late._call(late._members.has_connected, 1):
        await tick()  # until the server has ended its session
    begin, tries = late._runs.begin, list[Run | None]()

    def tried(*given: Any) -> Run | None:
        tries.append(begin(*given))
        crew.clock.now += 20
        return tries[-1]

    monkeypatch.setattr(late._runs, "begin", tried)
    monkeypatch.setattr("crawler.frontier.frontier.LEAVING", 0.0)
    run = await late.begin(fingerprint, "", Terms(settings={"--rate": "x"}))
    assert (run.number, tries) == (number, [None, None, run])


async def settle(member: "PostgresFrontier", lease: Lease, *, requested: bool = True) -> None:
    verdict = Verdict(Listed(), Facts(200)) if requested else Verdict(Unlisted(Why.ROBOTS))
    await member.settle([Settlement(lease, verdict)])


async def test_all_members_together_request_no_more_than_max_pages(crew: Crew) -> None:
    terms = Terms(max_pages=5)
    one, two, three = [await crew.join(terms) for _ in range(3)]
    await ready(one, 20)
    first, second, third = await leases(one, 2), await leases(two, 2), await leases(three, 2)
    assert [len(first), len(second), len(third)] == [2, 2, 1]
    await settle(one, first[0], requested=False)  # such as one that robots.txt disallows
    await two.release(second[:1])
    more = await leases(three, 9)
    assert len(more) == 2
    for member, held in (one, first[1:]), (two, second[1:]), (three, [*third, *more]):
        assert (await member.lease(9)).interruption is None, "some are still being visited"
        for lease in held:
            await settle(member, lease)
    for member in (one, two, three):
        assert (await member.lease(9)).interruption == Interruption(StopReason.MAX_PAGES)


async def test_what_one_member_finds_ends_the_crawl_for_all(crew: Crew) -> None:
    one, two = await crew.join(), await crew.join()
    await two.interrupt(Interruption(StopReason.FAILING, "every request to the host fails"))
    await one.interrupt(Interruption(StopReason.MAX_TIME))
    assert (await one.lease(1)).interruption == Interruption(
        StopReason.FAILING, "every request to the host fails"
    )


async def test_the_time_of_a_sitting_ends_for_all_at_once(crew: Crew) -> None:
    one = await crew.join(Terms(max_time=25.0))
    crew.clock.now += 20
    two = await crew.join(Terms(max_time=25.0))
    assert (await two.lease(1)).interruption is None
    crew.clock.now += 6
    assert (
        (await two.lease(1)).interruption
        == Interruption(StopReason.MAX_TIME)
        == (await one.lease(1)).interruption
    )


async def test_notes_of_two_members_are_both_kept(crew: Crew) -> None:
    one, two = await crew.join(), await crew.join()
    await one.amend(ALIASES, lambda known: {"http://a": "x"} | dict(known))
    both = await two.amend(ALIASES, lambda known: {"http://b": "y", "http://a": "z"} | dict(known))
    assert both == await one.recall(ALIASES) == {"http://a": "x", "http://b": "y"}


async def test_fresh_does_not_take_the_state_from_members_at_work(crew: Crew) -> None:
    from crawler.frontier.postgres.connection import renew  # noqa: PLC0415 - the driver is an extra

    crew.clock.now = 4e9  # the clock of the database decides here
    one = await crew.join(Terms("mine"))
    with pytest.raises(StateBusy, match="at work"):
        renew(one._address, "")
    renew(one._address, "mine")  # to be joined
    assert (await one.read(reads.NewestRun())) is not None
    await one.close()
    renew(one._address, "")
    assert await crew.open().read(reads.NewestRun()) is None


async def test_page_that_kills_members_is_counted_and_others_are_not(crew: Crew) -> None:
    undertaker = await crew.join()
    await ready(undertaker, 2)
    deaths = []
    for _ in range(5):
        member = await crew.join()
        await undertaker.lease(0)
        held = {lease.visit.url: lease for lease in await leases(member)}
        deaths.append([(lease.attempt, lease.deaths) for _, lease in sorted(held.items())])
        if held[ROOT].attempt > 1:
            await member.suspect(held[ROOT])
        crew.let_die(undertaker)
    assert deaths == [
        [(1, 0), (1, 0)],
        [(2, 0), (2, 0)],
        [(3, 1), (3, 0)],
        [(4, 2), (4, 0)],
        [(5, 3), (5, 0)],
    ]


def refresh(member: "PostgresFrontier") -> None:
    member._patterns.ask_changes()()


async def test_a_pattern_closed_by_the_leader_is_closed_for_all(crew: Crew) -> None:
    one, two = await crew.join(), await crew.join()
    two._patterns._places["x"] = (1, False)  # type: ignore[index]
    await one._call(one._patterns.note_closing)
    await two._call(lambda: refresh(two))
    assert not two._patterns._places


def test_members_that_come_at_the_same_moment_create_one_state() -> None:
    from crawler.frontier.postgres.address import parsed  # noqa: PLC0415 - with the next
    from crawler.frontier.postgres.connection import connect, prepare  # noqa: PLC0415 - the driver is an extra

    address = parsed(new_state())
    failed: list[BaseException] = []
    together = threading.Barrier(6)

    def come() -> None:
        try:
            with connect(address) as connection:
                together.wait()
                prepare(connection, address)
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            failed.append(error)

    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


async def test_member_whose_heart_finds_no_connection_beats_at_work(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier.postgres import heartbeat  # noqa: PLC0415 - the same

    def full(_: object) -> None:
        raise psycopg.OperationalError("FATAL:  sorry, too many clients already")

    monkeypatch.setattr(heartbeat, "connect", full)
    member = crew.open()
    await member.begin("settings")
    await eventually(lambda: not member.is_shared)  # the first heartbeat has found that
    assert member._heartbeat
    assert member._heartbeat.error is None


async def test_a_beat_that_may_end_no_session_still_counts(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres import heartbeat  # noqa: PLC0415 - the driver is an extra

    member = await crew.join()
    monkeypatch.setattr(heartbeat, "FROZEN", "DO 'BEGIN RAISE insufficient_privilege; END'")
    crew.clock.now += 60
    crew.ticks.now += 60
    crew.beat(member)
    assert member._heartbeat
    assert member._heartbeat.is_alive()


async def test_a_failed_beat_leaves_the_connection_of_the_work_usable(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier import members  # noqa: PLC0415 - the same
    from crawler.frontier.postgres.connection import connect  # noqa: PLC0415 - the same

    member = await crew.join()
    assert member._heartbeat
    monkeypatch.setattr(members, "BEAT", "DO 'BEGIN RAISE deadlock_detected; END'")
    with connect(member._address) as connection:
        with pytest.raises(psycopg.errors.DeadlockDetected):
            member._heartbeat.beat(connection)
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


async def test_rows_are_streamed_on_connection_of_the_heart(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier.postgres import session  # noqa: PLC0415 - the same

    member = crew.open()
    await member.begin("settings")
    await ready(member)
    heart = member._heartbeat
    assert heart
    await eventually(lambda: heart._own)

    def full(_: object) -> None:
        raise psycopg.OperationalError("FATAL:  sorry, too many clients already")

    monkeypatch.setattr(session, "connect", full)
    assert [list(chunk) async for chunk in member.stream(reads.AllUrls())] == [[ROOT]]
    monkeypatch.undo()
    await eventually(lambda: heart._own)  # another one


async def test_member_whose_connection_ended_is_soon_dead(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres.connection import connect  # noqa: PLC0415 - the driver is an extra
    from crawler.frontier.postgres.database import PostgresDatabase  # noqa: PLC0415 - the same

    monkeypatch.setattr(PostgresDatabase, "life", 4.0)
    one, two, three = await crew.join(), await crew.join(), await crew.join()
    await ready(one)
    assert await one.take_leadership()
    [lease] = (await one.lease(1)).leases
    with connect(one._address) as living, connect(one._address) as steady:
        for member, connection in ((one, None), (two, living), (three, steady)):
            assert member._heartbeat
            if connection:
                member._heartbeat.beat(connection)
            else:
                crew.beat(member)  # on a connection that ends then
        outlive(2.5)  # the session of `steady` has lasted
        crew.clock.now += 0.5
        assert three._heartbeat
        three._heartbeat.beat(steady)
        assert len(await alive(three)) == 3, "it may be connecting again"
        crew.clock.now += 1.0
        crew.beat(two)
        assert len(await alive(three)) == 3, "the server may have been restarted: this session is new"
        assert two._heartbeat
        two._heartbeat.beat(living)
        three._heartbeat.beat(steady)
        assert len(await alive(three)) == 2
    assert await three.take_leadership()
    assert [again.id for again in (await three.lease(1)).leases] == [lease.id]


async def alive(member: "PostgresFrontier") -> list[str]:
    return [one.name for one in await member.read(reads.MembersOfRun()) if not one.gone]


async def test_what_a_server_with_a_clock_ahead_left_is_forgotten(crew: Crew) -> None:
    member = await crew.join()
    await ready(member)
    [lease] = await leases(member)
    await member.settle([Settlement(lease, Verdict(Listed(), Facts(200)))])
    await member.finish()
    await member.conclude()
    for statement in (
        "UPDATE run SET started = 9e9",
        "UPDATE page SET lastmod = 8999999999, source = 'header', header = 8999999999, stated = 1",
        "UPDATE url SET sitemap_date = 8999999999",
        "UPDATE host SET robots_read_at = 8999999999",
    ):
        await member._call(member._db.do, statement)
    await member.begin("settings")
    for kept, query in (
        ((None, None, None, 1), "SELECT lastmod, source, header, stated FROM page"),
        ((None,), "SELECT sitemap_date FROM url"),
        ((None,), "SELECT robots_read_at FROM host"),
    ):
        assert tuple(await member._call(member._db.one, query)) == kept
