"""What a database that is far away costs: round trips, counted by a proxy. They repeat; seconds do not."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from crawler.engine.together import together
from crawler.errors import FrontierError
from crawler.frontier.levels import HOLD
from crawler.model.note import OUTPUT, ROBOTS_LINE
from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state
from tests.shared.proxy import Proxy, proxy_before

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = [pytest.mark.anyio, pytest.mark.system]

GROUP = 112  # pages


@pytest.fixture
async def far() -> AsyncIterator[tuple["PostgresFrontier", Proxy]]:
    """A member that leads, whose heart is stopped, and what it sends."""
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    with proxy_before(new_state()) as (state, proxy):
        member = PostgresFrontier(state, clock=Clock())
        await member.begin("settings")
        await member.take_leadership()
        assert member._heartbeat
        member._heartbeat.stop()
        yield member, proxy
        await member.close()


def _state(member: "PostgresFrontier") -> str:
    return f"{member._address.conninfo}#{member._address.name}"


def page(lease: Lease) -> Settlement:
    """With links to two pages that are new."""
    here, depth = lease.visit.url, lease.visit.depth + 1
    return Settlement(
        lease, Verdict(Listed()), tuple(Visit(Url(f"{here}{n}/"), depth, here) for n in range(2))
    )


# The clock stands still: what is done once a second falls into no group. On a busy machine an answer may arrive in
# two parts, which only adds round trips, so the least is what is sent. The first group is left out: it has no
# group before it whose last statements are sent with its own.


async def turns_a_page(far: tuple["PostgresFrontier", Proxy], delay: float) -> float:
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), delay)
    await member.add([Visit(ROOT), *(Visit(Url(f"{SITE}/{number}/")) for number in range(12 * GROUP))])
    first = (await member.lease(1)).leases
    await member.settle([page(lease) for lease in first])
    groups, settled = list[float](), 0
    while settled < 12 * GROUP:
        before = proxy.turns
        leases = (await member.lease(GROUP)).leases
        assert leases
        settled += (await member.settle([page(lease) for lease in leases])).new // 2
        groups.append((proxy.turns - before) / len(leases))
    return min(groups[1:])


async def test_round_trips_of_a_page(far: tuple["PostgresFrontier", Proxy]) -> None:
    """A ratchet: 0.38 when each statement was waited for."""
    assert GROUP * await turns_a_page(far, 0.0) <= 6.5


async def test_round_trips_of_a_page_of_a_paced_host(far: tuple["PostgresFrontier", Proxy]) -> None:
    assert GROUP * await turns_a_page(far, 1e-6) <= 8.5


async def test_round_trips_of_a_page_that_leads_to_one(far: tuple["PostgresFrontier", Proxy]) -> None:
    """Of a chain, where no two pages are settled together: it was five."""
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT)])
    turns = list[int]()
    for number in range(12):
        before = proxy.turns
        [lease] = (await member.lease(GROUP)).leases
        on = Visit(Url(f"{SITE}/{number}/"), number + 1, lease.visit.url)
        await member.settle([Settlement(lease, Verdict(Listed()), (on,))])
        turns.append(proxy.turns - before)
    assert min(turns) <= 4


async def test_one_url_that_two_members_find_at_once(
    far: tuple["PostgresFrontier", Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids that were asked for are not those of the URL: it is looked up."""
    member, _ = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT)])
    [lease] = (await member.lease(1)).leases
    both, own = Visit(Url(f"{SITE}/both/"), 1, ROOT), Visit(Url(f"{SITE}/own/"), 1, ROOT)
    add_found, other = member._discovery.add_found, type(member)(_state(member), clock=member.clock)
    await other.begin("settings")

    def add_later(*given: Any) -> Any:
        if not member._db.is_retry:
            other._session.transact(other._discovery.add, [both])
        return add_found(*given)

    monkeypatch.setattr(member._discovery, "add_found", add_later)
    settled = await member.settle([Settlement(lease, Verdict(Listed()), (both, own))])
    assert member._db.is_retry, "another member was faster"
    await other.close()
    assert settled.new == 1
    stored = [await member.read(reads.NumberOf(visit.url)) for visit in (both, own)]
    assert [known.number for known in settled.known if known] == stored
    row = (await member.read(reads.LinksOf([lease.id])))[lease.id]
    assert list(row.links) == stored


async def test_slots_that_are_asked_for_at_once_are_booked_together(
    far: tuple["PostgresFrontier", Proxy],
) -> None:
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.5)
    first, slots = await member.slot(SITE), list[float]()

    async def ask() -> None:
        slots.append(await member.slot(SITE))

    before = proxy.turns
    async with anyio.create_task_group() as tasks:
        for _ in range(9):
            tasks.start_soon(ask)
    assert slots == [first + 0.5 * place for place in range(1, 10)]
    assert proxy.turns - before <= 6, "two, unless answers come in parts"
    assert await member.slot(SITE) == first + 5.0


async def test_what_was_asked_ahead_is_dropped_where_levels_begin(
    far: tuple["PostgresFrontier", Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    member, _ = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(Url(f"{SITE}/{number}/")) for number in range(9)])
    assert len((await member.lease(2, 0)).leases) == 2

    def begin(*_: object) -> int:
        member._db.do(HOLD, {"front": 0, "run": member._db.run})
        return 0

    monkeypatch.setattr(member._leases._levels, "watch", begin)
    assert not (await member.lease(2, 0)).leases


async def test_round_trips_of_what_is_read(far: tuple["PostgresFrontier", Proxy]) -> None:
    member, proxy = far
    turns = list[int]()
    for _ in range(8):
        before = proxy.turns
        await member.read(reads.ExitOfRun())
        turns.append(proxy.turns - before)
    # Of two in a row, as a round trip may be counted with the next read.
    assert min(map(sum, pairwise(turns))) <= 2


async def test_round_trips_of_a_slot(far: tuple["PostgresFrontier", Proxy]) -> None:
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.5)
    turns = list[int]()
    for _ in range(8):
        before = proxy.turns
        await member.slot(SITE)
        turns.append(proxy.turns - before)
    assert min(map(sum, pairwise(turns))) <= 2


async def test_what_is_asked_at_once_shares_round_trips(far: tuple["PostgresFrontier", Proxy]) -> None:
    """Also of reads that need an answer to ask on, and each with its own answer."""
    member, proxy = far
    await member.add([Visit(Url(f"{SITE}/{number}/")) for number in range(3)])
    await together(member.remember(OUTPUT, "here"), member.remember(ROBOTS_LINE, "Sitemap: x"))
    alone = await member.read(reads.PublishedOutcomes()), await member.read(reads.RunBalance())
    before = proxy.turns
    answers = await together(
        member.read(reads.PublishedOutcomes()),
        member.read(reads.RunBalance()),
        member.recall(OUTPUT),
        member.recall(ROBOTS_LINE),
        member.read(reads.NumberOf(Url(f"{SITE}/2/"))),
    )
    assert answers[:4] == (*alone, "here", "Sitemap: x")
    assert answers[4] == await member.read(reads.NumberOf(Url(f"{SITE}/2/"))) > 0
    assert proxy.turns - before <= 5, "two, of which one is of the last line, unless answers come in parts"


async def test_an_error_of_one_question_is_that_of_all(far: tuple["PostgresFrontier", Proxy]) -> None:
    """And what is asked later finds the connection as it was."""
    member, _ = far

    def broken() -> None:
        member._db.one("SELECT 1 / 0")

    with pytest.raises(FrontierError, match="division by zero"):
        await together(member._look(broken), member.read(reads.RunBalance()), member.recall(OUTPUT))
    assert await member.recall(OUTPUT) == OUTPUT.absent


async def test_round_trips_of_a_stream(far: tuple["PostgresFrontier", Proxy]) -> None:
    """To connect, to read, and the good-bye: it was ten."""
    member, proxy = far
    await member.add([Visit(Url(f"{SITE}/{number}/")) for number in range(3)])
    turns = list[int]()
    for _ in range(3):
        before = proxy.turns
        assert [len(urls) async for urls in member.stream(reads.AllUrls())] == [3]
        turns.append(proxy.turns - before)
    assert min(turns) <= 5


async def test_a_verb_of_the_leader_that_only_writes(far: tuple["PostgresFrontier", Proxy]) -> None:
    """Whether it leads is not waited for."""
    member, proxy = far
    turns = list[int]()
    for _ in range(6):
        before = proxy.turns
        await member.finish()
        turns.append(proxy.turns - before)
    assert min(map(sum, pairwise(turns))) <= 2


async def test_a_host_without_a_pace_is_asked_for_no_slot(far: tuple["PostgresFrontier", Proxy]) -> None:
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    assert await member.slot(SITE) == member.clock()
    before = proxy.turns
    assert [await member.slot(SITE) for _ in range(3)] == [member.clock()] * 3
    assert proxy.turns == before
    await member.slow(SITE, member.clock() + 5.0)
    assert await member.slot(SITE) == member.clock() + 5.0
    await member.pace(SITE, 2.0)
    assert await member.slot(SITE) > member.clock() + 5.0


async def test_round_trips_of_a_lease_of_nothing(far: tuple["PostgresFrontier", Proxy]) -> None:
    """What is left is asked with the end of the transaction."""
    member, proxy = far
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT)])
    assert len((await member.lease(GROUP)).leases) == 1
    turns = list[int]()
    for _ in range(8):
        before = proxy.turns
        batch = await member.lease(GROUP)
        assert not batch.leases
        assert not batch.finished
        assert batch.wait
        turns.append(proxy.turns - before)
    assert min(map(sum, pairwise(turns))) <= 4
