"""A commit whose answer is lost: each verb is tried again, and what it did is done once."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from crawler.errors import FrontierError
from crawler.model.facts import Facts
from crawler.model.note import MOVED
from crawler.model.outcome import Listed
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.run import SessionEnd, Terms
from crawler.model.seed import Seed, SeedSettlement
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state
from tests.shared.proxy import Proxy, proxy_before

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = pytest.mark.anyio

Open = Callable[..., "PostgresFrontier"]


@pytest.fixture
def proxied() -> Iterator[tuple[Open, Proxy]]:
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    with proxy_before(new_state()) as (address, how):
        yield lambda **more: PostgresFrontier(address, clock=Clock(), **more), how


async def test_a_whole_run_in_doubt_is_the_run_without(proxied: tuple[Open, Proxy]) -> None:
    opened, how = proxied
    member = opened()
    how.cuts_commits = True
    run = await member.begin("settings", "", Terms("key", max_pages=100))
    assert member._heartbeat
    member._heartbeat.stop()
    assert run.number == 1
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    starts = Seed(SeedKind.START)
    await member.add([Visit(ROOT)], starts)
    assert await member.add_seeds([Seed(SeedKind.SITEMAP, "x"), Seed(SeedKind.SITEMAP, "y")], 1) == 1
    seed = await member.read(reads.NextSeed())
    assert seed
    await member.settle_seed(SeedSettlement(seed, SeedOutcome.READ, entries=1), 1)
    await member.amend(MOVED, lambda moves: moves or [(ROOT, ROOT)])
    [lease] = (await member.lease(9)).leases
    assert lease.attempt == 1
    found = tuple(Visit(Url(f"{SITE}/{number}"), 1, ROOT) for number in range(5))
    await member.settle([Settlement(lease, Verdict(Listed(), Facts(200)), found)])
    leases = (await member.lease(3)).leases
    await member.release(leases[:1])
    await member.settle([Settlement(one, Verdict(Listed(), Facts(200))) for one in leases[1:]])
    for one in (await member.lease(9)).leases:
        assert one.attempt == 1
        await member.settle([Settlement(one, Verdict(Listed(), Facts(200)))])
    assert (await member.lease(9)).finished
    balance = await member.read(reads.RunBalance())
    assert (balance.discovered, dict(balance.outcomes), balance.balanced) == (6, {"listed": 6}, True)
    assert (await member._call(lambda: member._db.one("SELECT budget FROM run")))[0] == 94
    await member.finish()
    await member.mark_published(PublicationRow(6, 1, 1, base="", folder=""))
    await member.conclude()
    await member.end_session(SessionEnd(0, 2.0, 6, 60))
    how.cuts_commits = False
    [row] = await member.read(reads.AllRuns())
    assert (row.exit, row.requests, row.seconds) == (0, 6, 2.0)
    assert (await member._call(lambda: member._db.one("SELECT count(*) FROM publication")))[0] == 1
    assert how.cuts > 20
    await member.close()


async def test_a_round_in_doubt_is_released_once(proxied: tuple[Open, Proxy]) -> None:
    from crawler.rules.traps import Traps  # noqa: PLC0415 - with the test

    opened, how = proxied
    member, traps = opened(), Traps()
    await member.begin("settings")
    assert member._heartbeat
    member._heartbeat.stop()
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    urls = [Url(f"{SITE}/shop?n={number}") for number in range(400)]
    await member.add([Visit(url, 1, ROOT, pattern=traps.pattern(url)) for url in urls])
    how.cuts_commits = True
    released = (await member.advance()).released
    how.cuts_commits = False
    assert how.cuts == 1
    assert len((await member.lease(1_000)).leases) == released < 400
    await member.close()


async def test_a_stream_goes_on_after_the_last_row_it_gave(
    proxied: tuple[Open, Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres import session  # noqa: PLC0415 - the driver is an extra

    monkeypatch.setattr(session, "CHUNK", 2)
    member = proxied[0]()
    await member.begin("settings")
    assert member._heartbeat
    member._heartbeat.stop()
    await member.add([Visit(Url(f"{SITE}/{number}")) for number in range(5)])
    seen, cuts = list[Url](), 0
    async for urls in member.stream(reads.AllUrls()):
        seen += urls
        cuts += await member._call(
            lambda: member._db.count(
                "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE query LIKE 'FETCH%'"
            )
        )
    assert seen == [f"{SITE}/{number}" for number in range(5)]
    assert cuts == 3
    await member.close()


async def test_a_database_that_stays_away_ends_the_member(proxied: tuple[Open, Proxy]) -> None:
    opened, how = proxied
    member = opened(away=0.2)
    await member.begin("settings")
    assert member._heartbeat
    member._heartbeat.stop()
    how.cuts_commits = True
    how.decide = lambda: True  # type: ignore[method-assign]
    with pytest.raises(FrontierError, match="nothing is lost"):
        await member.take_leadership()
    how.decide = lambda: False  # type: ignore[method-assign]
    await member.close()


async def test_the_wait_for_the_database_is_shared_by_all_verbs(proxied: tuple[Open, Proxy]) -> None:
    opened, how = proxied
    member = opened(away=3.0)
    await member.begin("settings", "")
    assert member._heartbeat
    member._heartbeat.stop()
    tries = 0

    def cut() -> bool:
        nonlocal tries
        tries += 1
        return True

    how.cuts_commits, how.decide = True, cut  # type: ignore[method-assign]
    with pytest.raises(FrontierError, match="nothing is lost"):
        await member.take_leadership()
    assert tries > 1
    tries = 0
    with pytest.raises(FrontierError, match="nothing is lost"):
        await member.take_leadership()
    assert tries == 1
    how.decide = lambda: False  # type: ignore[method-assign]
    await member.take_leadership()  # it is back, and the next absence is waited for again
    assert member._session._away_since is None
    await member.close()


@pytest.mark.parametrize(
    "state", ["40001", "40P01", "57P03"], ids=["serialization", "deadlock", "starting up"]
)
async def test_what_the_server_wants_to_be_tried_again_is(proxied: tuple[Open, Proxy], state: str) -> None:
    opened, _ = proxied
    member = opened()
    await member.begin("settings")
    assert member._heartbeat
    member._heartbeat.stop()
    tries = 0

    def verb() -> None:
        nonlocal tries
        tries += 1
        member._db.do("UPDATE run SET round = round + 1")
        if tries < 3:
            member._db.do(f"DO $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{state}'; END $$")

    await member._call(verb)
    assert tries == 3
    assert (await member._call(lambda: member._db.one("SELECT round FROM run"))) == (1,)
    await member.close()


async def test_a_member_joins_again_after_a_failover_that_lost_commits(
    proxied: tuple[Open, Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres import connection, database  # noqa: PLC0415 - the driver is an extra

    opened, _ = proxied
    member = opened()
    await member.begin("settings")
    assert member._heartbeat
    member._heartbeat.stop()
    await member.take_leadership()
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT), Visit(Url(f"{SITE}/a"))])
    before = await member.lease(9)
    assert (len(before.leases), before.voids_numbers) == (2, False)
    for module in (connection, database):
        monkeypatch.setattr(module, "TIMELINE", "SELECT '00000002'")
    done = [Settlement(lease, Verdict(Listed(), Facts(200))) for lease in before.leases]
    settled = await member.settle(done)
    assert settled.new == 0
    assert not any(member.is_lease_valid(lease) for lease in before.leases)
    assert not (await member.read(reads.RunBalance())).outcomes, "its pages are visited again"
    after = await member.lease(9)
    assert (len(after.leases), after.voids_numbers) == (2, True)
    assert all(member.is_lease_valid(lease) for lease in after.leases)
    assert not (await member.lease(9)).voids_numbers
    await member.settle([Settlement(lease, Verdict(Listed(), Facts(200))) for lease in after.leases])
    assert (await member.read(reads.RunBalance())).outcomes == {"listed": 2}
    await member.close()
