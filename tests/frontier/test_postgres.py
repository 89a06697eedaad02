"""What only the PostgreSQL frontier has: several processes (members) on one state. Whole crawls that share it: tests/shared."""

from typing import TYPE_CHECKING

import anyio
import pytest

from crawler.errors import ConfigError, StateAway, StateBusy
from crawler.frontier.postgres.address import parsed
from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settled, Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier


def opened(state: str, clock: Clock) -> "PostgresFrontier":
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    return PostgresFrontier(state, clock=clock)


@pytest.mark.anyio
@pytest.mark.system
async def test_visit_is_leased_to_one_member_and_slots_are_shared() -> None:
    state, clock = new_state(), Clock()
    one, two = opened(state, clock), opened(state, clock)
    first = await one.begin("settings")
    await one.store_robots(SITE, RobotsFile("none", fetched=clock()), 0.5)
    clock.now += 0.5
    await one.add([Visit(Url(f"{SITE}/{number}")) for number in range(20)])
    second = await two.begin("settings")
    assert (first.number, first.resumed, second.number, second.resumed) == (1, False, 1, True)
    leases = [*(await one.lease(2)).leases, *(await two.lease(2)).leases, *(await one.lease(1)).leases]
    assert len({lease.id for lease in leases}) == 5
    assert [lease.at - clock.now for lease in leases] == pytest.approx([0, 0.5, 1.0, 1.5, 2.0])
    await two.close()
    await one.close()


@pytest.mark.system
@pytest.mark.parametrize(
    ("step", "name"),
    [("connect", "OperationalError"), ("prepare", "OperationalError"), ("prepare", "AdminShutdown")],
)
def test_server_that_stops_while_a_state_is_opened_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, step: str, name: str
) -> None:
    """A connection that is lost on the way does not end the program: it is opened again."""
    from psycopg import errors  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier.postgres import connection, session  # noqa: PLC0415 - the same

    module = connection if step == "connect" else session
    lost, real = [getattr(errors, name)("server closed the connection unexpectedly")], getattr(module, step)

    def stopped_once(*args: object, **kwargs: object) -> object:
        if lost:
            raise lost.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(module, step, stopped_once)
    state = new_state()
    if step == "prepare":
        with pytest.raises(StateAway, match="Run again when the database works again"):
            opened(state, Clock())
    anyio.run(opened(state, Clock()).close)
    assert not lost


@pytest.mark.anyio
@pytest.mark.system
async def test_leases_of_dead_member_return_its_settlement_is_dropped() -> None:
    state, clock = new_state(), Clock()
    one, two = opened(state, clock), opened(state, clock)
    await one.begin("settings")
    await one.store_robots(SITE, RobotsFile("none", fetched=clock()), 0.0)
    await one.add([Visit(ROOT)])
    await two.begin("settings")
    [lost] = (await one.lease(1)).leases
    assert not (await two.lease(1)).leases
    assert one._heartbeat
    one._heartbeat.stop()
    clock.now += 31
    three = opened(state, clock)
    await three.begin("settings")  # removes the dead member
    [again] = (await three.lease(1)).leases
    assert (again.id, again.attempt) == (lost.id, 2)
    found = (Visit(Url(SITE + "/from-the-dead"), 1, ROOT),)
    assert await one.settle([Settlement(lost, Verdict(Listed()), found)]) == Settled(0, [None])
    await three.settle([Settlement(again, Verdict(Listed()))])
    balance = await three.read(reads.RunBalance())
    assert (balance.discovered, dict(balance.outcomes), balance.balanced) == (1, {"listed": 1}, True)
    for frontier in (one, two, three):
        await frontier.close()


@pytest.mark.anyio
@pytest.mark.system
async def test_crawl_with_other_settings_is_refused_while_members_work() -> None:
    state, clock = new_state(), Clock()
    one, two = opened(state, clock), opened(state, clock)
    await one.begin("settings")
    with pytest.raises(StateBusy, match="other settings"):
        await two.begin("others")
    await one.close()
    assert (await two.begin("others")).number == 2
    await two.close()


def test_database_url_with_password_is_refused_and_masked() -> None:
    address = parsed("postgresql://crawler@db.internal:5433/crawls?sslmode=verify-full#docs")
    assert str(address) == "postgresql://db.internal:5433/crawls#docs"
    assert address.schema == "smc_docs"
    assert parsed("postgresql://h/d", "a.example").schema != parsed("postgresql://h/d", "a_example").schema
    for secret in ("postgresql://crawler:hunter2@db/crawls", "postgresql://db/crawls?password=hunter2"):
        with pytest.raises(ConfigError, match="PGPASSFILE") as refused:
            parsed(secret)
        assert "hunter2" not in str(refused.value)
