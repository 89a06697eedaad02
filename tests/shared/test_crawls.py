"""Whole crawls by several members on PostgreSQL publish what one process on SQLite publishes, whatever happens to them."""

import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from tests.postgres import Server, named, new_state
from tests.server import Origin, Talk, http, page, serving
from tests.shared.members import LIFE, Crew, crew
from tests.shared.proxy import proxy_before
from tests.shared.sites import PAGES, asked, files, words
from tests.waiting import outlive, until

pytestmark = pytest.mark.slow


def test_members_publish_bytes_of_one_process_also_in_next_run(
    site: Origin, alone: Path, members: Crew, tmp_path: Path
) -> None:
    state, count = new_state(), 3
    again = members.start(words(site, str(alone / "state.db"), alone / "1"))
    assert again.wait() == 0, again.said
    for turn in range(2):
        before, out = len(site.log), tmp_path / str(turn)
        crawled = [members.start(words(site, state, out, "--run", str(turn))) for _ in range(count)]
        assert [member.wait() for member in crawled] == [0] * count, [member.said for member in crawled]
        assert files(out) == files(alone / str(turn))
    conditional = [request for request in site.log[before:] if "if-modified-since" in request.headers]
    assert len(conditional) == 3 * PAGES, "what was dated is asked whether it changed"


def test_round_trips_of_what_is_around_the_pages(small: Origin, members: Crew, tmp_path: Path) -> None:
    """A ratchet. A busy machine adds heartbeats and cuts answers into parts: the best of three counts."""
    turns = []
    for part in range(3):
        with proxy_before(new_state()) as (state, proxy):
            crawl = members.start(words(small, state, tmp_path / f"out-{part}"))
            assert crawl.wait() == 0, crawl.said
        turns.append(proxy.turns)
        if proxy.turns <= 240:  # 223 on an idle machine
            return
    pytest.fail(f"{turns} round trips")


# Between a commit and the next one nothing is written: to die after one is to die before the other. Only verbs that write
# something for this site; `test_nothing_lost` finds the moments that do.
MOMENTS = [
    "after commit of begin", "after commit of take_leadership", "after commit of add", "after commit of settle_seed",
    "after commit of lease", "after commit of settle", "after commit of finish",
    "before rename of manifest.json", "after rename of sitemap.xml.gz",
    "after commit of mark_published", "after commit of conclude", "after commit of end_session",
]  # fmt: skip


@pytest.mark.parametrize("part", range(3))
def test_a_leader_killed_at_any_moment_is_replaced(
    small: Origin, members: Crew, tmp_path: Path, part: int
) -> None:
    calm = members.start(words(small, new_state(), tmp_path / "calm"))
    assert calm.wait() == 0, calm.said
    for number, moment in enumerate(MOMENTS[part::3]):
        out = tmp_path / f"out-{number}"
        crawl = words(small, new_state(), out, "--run", "once")
        leader = members.start(crawl, moment)
        if leader.wait() == 0:
            continue  # it had nothing to do at that moment
        assert leader.wait() == -signal.SIGKILL, (moment, leader.said)
        follower = members.start(crawl)
        assert follower.wait() == 0, (moment, follower.said)
        assert files(out) == files(tmp_path / "calm"), moment
        assert not list(out.glob(".staging*")), moment


def test_members_killed_at_random_publish_the_same_once(
    site: Origin, alone: Path, members: Crew, tmp_path: Path
) -> None:
    state, out, chance, before = new_state(), tmp_path / "out", random.Random(3), len(site.log)
    crawl = words(site, state, out, "--run", "once", "--concurrency", "4", "--log-format", "json")
    crawl.remove("-q")
    living = [members.start(crawl) for _ in range(3)]
    killed = 0
    while killed < 5 and all(member.poll() is None for member in living):
        asked(site, chance.randint(10, 30), living)
        victim = living.pop(chance.randrange(3) if killed else 0)  # the leader is among them
        victim.kill()
        killed += victim.wait() != 0
        living.append(members.start(crawl))
    assert [member.wait() for member in living] == [0, 0, 0], [member.said for member in living]
    assert killed >= 3
    assert files(out) == files(alone / "0")
    requests = [request.path for request in site.log[before:]]
    twice = len(requests) - len(set(requests))
    assert twice <= killed * (4 * 2 + 128), f"{killed} kills, {twice} requested twice"
    done = [json.loads(line) for member in living for line in member.said.splitlines()]
    published = [event["published"] for event in done if event.get("event") == "done"]
    assert sorted(published) in ([False, False, False], [False, False, True])


def test_a_frozen_leader_wakes_as_another_member(
    site: Origin, alone: Path, members: Crew, tmp_path: Path
) -> None:
    state, out = new_state(), tmp_path / "out"
    crawl = words(site, state, out, "--run", "once", "--concurrency", "2", "--rate", "150")
    leader = members.start(crawl)
    asked(site, 30, [leader])
    others = [members.start(crawl) for _ in range(2)]
    asked(site, 30, others)
    os.kill(leader.pid, signal.SIGSTOP)
    outlive(LIFE + 1)
    os.kill(leader.pid, signal.SIGCONT)
    assert [member.wait() for member in [leader, *others]] == [0, 0, 0], [m.said for m in [leader, *others]]
    assert files(out) == files(alone / "0")


@pytest.mark.parametrize("moment", [f"commit of {verb}" for verb in ("begin", "lease", "beat")])
def test_a_member_frozen_in_a_transaction_blocks_nobody(
    site: Origin, alone: Path, members: Crew, tmp_path: Path, moment: str
) -> None:
    """It holds the rows of a host, and its own, which others must lock to take it for dead."""
    _freeze(site, alone, members, tmp_path, new_state(), moment)


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_nor_does_one_that_is_frozen_behind_a_pooler(
    site: Origin, alone: Path, members: Crew, tmp_path: Path, mode: str
) -> None:
    """The session that the pooler lent to it was another's; its transaction names it all the same.

    With "session" as without a pooler, while it settles.
    """
    server = Server()
    try:
        with server.pooled(mode, 4 if mode == "transaction" else 9) as address:
            _freeze(site, alone, members, tmp_path, named(address), "commit of settle")
    finally:
        server.remove()


def _freeze(site: Origin, alone: Path, members: Crew, tmp_path: Path, state: str, moment: str) -> None:
    out = tmp_path / "out"
    crawl = words(site, state, out, "--run", "once", "--concurrency", "2", "--rate", "150")
    others = [members.start(crawl)]
    asked(site, 1, others)
    turn = 1 if moment == "commit of begin" else 4  # a beat is the second of two transactions
    frozen = members.start(crawl, f"before {moment}", turn, signal.SIGSTOP)
    others.append(members.start(crawl))
    assert [member.wait() for member in others] == [0, 0], [member.said for member in others]
    assert files(out) == files(alone / "0")
    os.kill(frozen.pid, signal.SIGCONT)
    assert frozen.wait() == 0, frozen.said


def test_pace_of_a_host_is_kept_by_three_members_one_frozen(members: Crew, tmp_path: Path) -> None:
    here = Origin("paced", "127.0.77.3")
    here.others = lambda path: http(page("/", text=path))
    here.put("/", http(page(*(f"/{n}" for n in range(260)), text="home")))
    rate = 20
    with serving(here):
        crawl = words(here, new_state(), tmp_path / "out", "--rate", str(rate), "--run", "once")
        found = [members.start(crawl) for _ in range(3)]
        for _ in range(2):
            asked(here, 40, found)
            os.kill(found[1].pid, signal.SIGSTOP)
            asked(here, 40, found)
            outlive(LIFE + 0.5)
            os.kill(found[1].pid, signal.SIGCONT)
        assert [member.wait() for member in found] == [0, 0, 0], [member.said for member in found]
    at = [turn for member in found for turn in member.turns]
    assert len(at) >= len(here.log)
    most = max(sum(start <= other < start + 2 for other in at) for start in at)
    assert most <= 1.15 * rate * 2 + 1, most


def test_a_database_that_crashes_costs_nothing_but_time(site: Origin, alone: Path, tmp_path: Path) -> None:
    server = Server()
    try:
        state, out = named(server.address), tmp_path / "out"
        crawl = words(site, state, out, "--run", "once", "--concurrency", "4", "--rate", "120")
        with crew(tmp_path / "members", life=60.0) as members:
            found = [members.start(crawl) for _ in range(2)]
            for _ in range(2):
                asked(site, 40, found)
                server.crash()
                server.start()
            assert [member.wait() for member in found] == [0, 0], [member.said for member in found]
        assert files(out) == files(alone / "0")
    finally:
        server.remove()


def test_a_pooler_of_transactions_may_stand_between(
    site: Origin, alone: Path, members: Crew, tmp_path: Path
) -> None:
    server = Server()
    try:
        with server.pooled() as address:
            state, out = named(address), tmp_path / "out"
            crawled = [members.start(words(site, state, out, "--run", "once")) for _ in range(3)]
            assert [member.wait() for member in crawled] == [0, 0, 0], [member.said for member in crawled]
            assert files(out) == files(alone / "0")
            for command in (
                ["status"],
                ["explain", site.url("/1")],
                ["list", "pages"],
                ["report"],
                ["export", "-o", str(tmp_path / "again")],
            ):
                read = members.start([*command, "--state", state])
                assert read.wait() == 0, read.said
    finally:
        server.remove()


def test_members_that_disagree_come_late_or_are_told_to_leave(
    site: Origin, members: Crew, tmp_path: Path
) -> None:
    state, out = new_state(), tmp_path / "out"
    slow = words(site, state, out, "--run", "once", "--rate", "5")
    leader = members.start(slow)
    asked(site, 5, [leader])
    follower = members.start(slow)
    other_rate = members.start([*slow, "--rate", "6"])
    assert (other_rate.wait(), "--rate" in other_rate.said) == (2, True), other_rate.said
    other_scope = members.start([*slow, "--exclude", "/x*"])
    assert (other_scope.wait(), "--exclude" in other_scope.said) == (9, True), other_scope.said
    fresh = members.start([*slow[:-4], "--run", "other", "--fresh", "--rate", "5"])
    assert (fresh.wait(), "at work" in fresh.said) == (9, True), fresh.said
    os.kill(leader.pid, signal.SIGTERM)
    assert leader.wait() == 143
    asked(site, 10, [follower])
    assert follower.poll() is None
    os.kill(follower.pid, signal.SIGTERM)
    assert follower.wait() == 143


def test_all_members_leave_with_the_same_exit_code(site: Origin, members: Crew, tmp_path: Path) -> None:
    state, out, before = new_state(), tmp_path / "out", len(site.log)
    limited = words(site, state, out, "--run", "limited", "--max-pages", "50")
    found = [members.start(limited) for _ in range(3)]
    assert [member.wait() for member in found] == [7, 7, 7], [member.said for member in found]
    assert len(site.visits(before)) <= 50
    late, before = members.start(limited), len(site.log)
    assert (late.wait(), len(site.log)) == (7, before), late.said
    down = Origin("down", "127.0.77.4")
    down.others = lambda _: http("", "503 Service Unavailable")
    with serving(down):
        crawl = words(down, new_state(), tmp_path / "down", "--run", "down", "--max-wait", "1")
        found = [members.start(crawl) for _ in range(2)]
        codes = {member.wait() for member in found}
    assert codes <= {4, 5}
    assert len(codes) == 1, [member.said for member in found]


@pytest.mark.parametrize("moment", ["", "before commit of store_anchors", "after commit of store_anchors"])
def test_one_member_reads_what_broken_links_say(members: Crew, tmp_path: Path, moment: str) -> None:
    """If it is killed meanwhile, the run is published all the same, and the next one reads them."""
    here, state, again = Origin("broken", "127.0.77.6"), new_state(), threading.Event()

    def say(talk: Talk) -> None:
        if talk.count > 1:
            again.wait(600)
        talk.say(http(page("/a", "/gone", text="home")))

    here.put("/", say)
    here.put("/a", http(page("/", text="a")))
    with serving(here):
        crawl = words(
            here, state, tmp_path / "out", "--run", "once", "--timeout", "600", "--total-timeout", "600"
        )
        found = [members.start(crawl, moment) for _ in range(2)]
        until(lambda: len([one for one in here.log if one.path == "/"]) == 2)
        published = files(tmp_path / "out")
        assert published
        late = members.start(crawl)
        again.set()
        assert late.wait() == 0, late.said
        codes = sorted(member.wait() for member in found)
        assert codes == ([-signal.SIGKILL, 0] if moment else [0, 0]), [member.said for member in found]
        most = 2 if not moment else 3  # whoever leads now may read what is not known
        assert len([one for one in here.log if one.path == "/"]) <= most, "one member reads"
        assert files(tmp_path / "out") == published
        following = members.start([*crawl, "--run", "next"])
        assert following.wait() == 0, following.said
        assert files(tmp_path / "out") == published
        listed = members.start(
            ["list", "links", "--state", state, "--to", here.url("/gone"), "--format", "csv"]
        )
        assert (listed.wait(), ",link," in listed.said) == (0, True), listed.said
