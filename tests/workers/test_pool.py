"""Worker processes: the crawl is the same as without them, and a failing page or worker affects no other."""

import json
import os
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.app.job import open_job
from crawler.engine.crawl import Ending
from crawler.errors import ConfigError
from crawler.model import serialise
from crawler.model.facts import Facts, Lastmod, Obstacle, Validators
from crawler.model.outcome import Failed, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Source, Why
from crawler.model.settlement import Unvisited, Verdict, VisitResult, WhyUnvisited
from crawler.model.visit import Lease, Links, Prior, Visit
from crawler.parse.url import Url, host, origin
from crawler.settings.sections import Settings
from crawler.workers import messages
from crawler.workers.channel import MALFORMED, Channel
from crawler.workers.messages import PageVisited, SentUrls, StartWork, VisitPage
from crawler.workers.pool import WorkerPool
from crawler.workers.spawn import Child, start
from crawler.workers.surroundings import Surroundings
from crawler.workers.worker import Worker, shares
from tests.engine.test_crawl import closest, settings
from tests.engine.test_hostile import check, crawl, judge, late
from tests.hostile import sites
from tests.rules.test_scope import scope
from tests.server import Origin, Talk, http, page, serving
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
both_loops = pytest.mark.both_loops  # for what depends on how the loop starts, hears and ends processes

URL = Url("http://x.example/")
AT = datetime(2024, 2, 29, 12, tzinfo=UTC)
FACTS = Facts(
    200,
    Validators('"e"', "x"),
    Lastmod(AT, Source.PAGE),
    AT,
    True,
    AT,
    "89ab",
    "0123",
    "4567",
    Url("http://a.example/b.html"),
    Obstacle.SHELL,
    "A title",
    "text/html",
    1_000,
    12,
    Url("http://a.example/c"),
)
OUTCOMES: list[Outcome] = [
    Listed(FACTS.lastmod), Unlisted(Why.NOINDEX), Unlisted(Why.CANONICAL, "http://x.example/b"), Moved(Url("https://y/")),
    Later(1.5, Cause.RATE_LIMITED, "503"), Failed(Cause.DNS, "no"),
]  # fmt: skip


def sent(result: VisitResult) -> bytes:
    return msgspec.json.encode([PageVisited(1, messages.written(result, SentUrls()))])


def received(data: bytes, lease: Lease) -> VisitResult:
    (message,) = messages.FROM_WORKER.decode(data)
    assert isinstance(message, PageVisited)
    return messages.read(message.page, lease, messages.received_urls())


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("truncated", [False, True])
def test_visit_result_round_trips_through_messages(outcome: Outcome, truncated: bool) -> None:
    links = Links((Url("http://x.example/a"),), (Url("http://x.example/%C3%A4"),))
    features = {"images": (("", Url("https://cdn.example/a.jpg")), ("en", Url("https://x.example/")))}
    result = VisitResult(Verdict(outcome, FACTS, links, named=links.followed, features=features), truncated)
    lease = Lease(7, 8, Visit(URL, 3, Url("http://x.example/via"), 2), 2)
    assert received(sent(result), lease) == result


def test_unchanged_page_is_restored_from_its_lease() -> None:
    lease = Lease(7, 8, Visit(URL, 3, None, 2), 2, prior=Prior(Unlisted(Why.NOINDEX), FACTS))
    (message,) = messages.TO_WORKER.decode(msgspec.json.encode([VisitPage.of(1, lease)]))
    assert isinstance(message, VisitPage)
    there = message.lease
    assert there.prior is not None
    assert (there.visit, there.attempt, there.prior.facts.validators) == (lease.visit, 2, FACTS.validators)
    result = received(sent(VisitResult(Verdict(Listed(), unchanged=True))), lease)
    assert result.verdict == Verdict(Unlisted(Why.NOINDEX), FACTS, unchanged=True)


LISTED: list[Any] = ["Listed", None]
PLAIN: list[Any] = [200]
NOTHING: list[Any] = [[], [], []]
GOOD: list[Any] = [LISTED, PLAIN, [["http://x/"], [0], []], [], False, {"images": [["", "http://x/a.jpg"]]}]


def facts(**values: Any) -> list[Any]:
    """Facts as they are sent, with these values."""
    return list((Facts(200)._asdict() | values).values())


def test_a_message_of_this_form_is_read() -> None:
    result = received(json.dumps([["PageVisited", 1, GOOD]]).encode(), Lease(1, 1, Visit(URL)))
    assert result.verdict.links.followed == ("http://x/",)
    assert result.verdict.features == {"images": (("", "http://x/a.jpg"),)}
    assert result.verdict.facts == Facts(200)
    full = [LISTED, facts(title="T"), *GOOD[2:]]
    result = received(json.dumps([["PageVisited", 1, full]]).encode(), Lease(1, 1, Visit(URL)))
    assert result.verdict.facts == Facts(200, title="T")


@pytest.mark.parametrize(
    "said",
    [
        None, [], {}, 1,
        [LISTED, PLAIN, [["javascript:x"], [0], []], [], False, {}],
        [LISTED, PLAIN, [["http://x/ä"], [0], []], [], False, {}],
        [LISTED, PLAIN, [[1], [0], []], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], [1], []], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], [-1], []], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], [], [False]], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], [0.5], []], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], "0", []], [], False, {}],
        [LISTED, PLAIN, [["http://x/"], [0] * 99_999, []], [], False, {}],
        [LISTED, PLAIN, None, [], False, {}],
        [["Gone"], PLAIN, NOTHING, [], False, {}],
        [["Kept", "dns", ""], PLAIN, NOTHING, [], False, {}],
        [["Listed", ["2024-02-29T12:00:00Z", "page"]], PLAIN, NOTHING, [], False, {}],
        [["Unlisted", "x"], PLAIN, NOTHING, [], False, {}],
        [["Unlisted", "noindex", "x" * 1_000_001], PLAIN, NOTHING, [], False, {}],
        [["Unlisted", "noindex", "", ""], PLAIN, NOTHING, [], False, {}],
        [["Later", "soon", "dns", ""], PLAIN, NOTHING, [], False, {}],
        [["Later", None, "dns", ""], PLAIN, NOTHING, [], False, {}],
        [["Later", 1e300, "dns", ""], PLAIN, NOTHING, [], False, {}],
        [["Moved", "x"], PLAIN, NOTHING, [], False, {}],
        [LISTED, [1], NOTHING, [], False, {}],
        [LISTED, ["?"], NOTHING, [], False, {}],
        [LISTED, [*facts(), None], NOTHING, [], False, {}],
        *(
            [LISTED, facts(**{name: value}), NOTHING, [], False, {}]
            for name, value in [
                ("status", None), ("status", 2_000), ("header", 1e300), ("header", "9999-12-31T23:59:59-23:59"),
                ("stated", "2024-02-29T12:00:00"), ("fresh", "x"), ("validators", ["\n", None]), ("title", "\ud800"),
                ("title", "a\x1bb"), ("title", "x" * 1_025), ("bytes", -1), ("took", 2**53), ("obstacle", "x"),
                ("variant", "javascript:x"), ("canonical", "http://x/\n"), ("alternates", "de javascript:x"),
                ("rendering", ["shell", [0, "x" * 201]]),
                ("rendering", ["x"]), ("lastmod", ["2024-02-29T12:00:00Z", "x"]),
            ]
        ),
        [LISTED, PLAIN, NOTHING, ["x"], False, {}],
        [LISTED, PLAIN, NOTHING, ["http://x/"] * (messages.MOST_NAMED + 1), False, {}],
        GOOD[:-1], [*GOOD, []], [*GOOD[:-1], None], [*GOOD[:-1], "x"], [*GOOD[:-1], {"images": [1]}],
        [*GOOD[:-1], {"images": [["", "javascript:x"]]}], [*GOOD[:-1], {"images": [["", "http://x/\x1b"]]}],
        [*GOOD[:-1], {"images": [["", "http://x/"]] * 2_001}], [*GOOD[:-1], {"images": [["\n", "http://x/"]]}],
        [*GOOD[:-1], {"images": [["x" * 41, "http://x/"]]}], [*GOOD[:-1], {"; DROP": [["", "http://x/"]]}],
        [*GOOD[:-1], {f"{'a' * n}": [] for n in range(1, 22)}],
    ],
    ids=lambda said: repr(said)[:300],
)  # fmt: skip
def test_malformed_message_is_refused(said: Any) -> None:
    with pytest.raises(MALFORMED):
        received(json.dumps([["PageVisited", 1, said]]).encode(), Lease(1, 1, Visit(URL)))


def test_settings_round_trip_through_messages() -> None:
    chosen = settings("http://x.example", Path("/x"), header=("a: b",), max_depth=3, processes=2)
    (message,) = messages.TO_WORKER.decode(msgspec.json.encode([StartWork(chosen, 1.5)]))
    assert message == StartWork(chosen, 1.5)


# -- workers that misbehave ------------------------------------------------------------------------------


class Unpaced:
    """A coordinator that paces nothing and records all calls."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []
        self.ended = anyio.Event()

    async def slot(self, origin: str) -> float:
        self.said.append(("slot", origin))
        return 0.0

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        is_first = "slow" not in dict(self.said)
        self.said.append(("slow", f"{origin} {until}"))
        return is_first or not once

    async def turn(self, origin: str, at: float) -> None:
        self.said.append(("turn", f"{origin} {at}"))


def pool_of(
    tmp_path: Path, body: str, size: int = 2, main: Unpaced | None = None, stuck: float = 60.0
) -> WorkerPool:
    """A pool of workers that run `body` for each visit.

    `body` may use `number` and `url` of the visit, `say(message)` and `visited(number)`; each start of a worker is
    recorded in the file `starts`.
    """
    file = tmp_path / "worker.py"
    file.write_text(
        f"""
import json, os, pathlib, signal, socket, sys, time
folder = pathlib.Path({str(tmp_path)!r})
with (folder / "starts").open("a") as starts:
    starts.write("x")
stream = socket.socket(fileno=0).makefile("rwb")
def send(data): stream.write(len(data).to_bytes(4) + data); stream.flush()
def say(message): send(json.dumps([message]).encode())
def receive(): return stream.read(int.from_bytes(stream.read(4)))
messages = []
def next_message():
    while not messages: messages.extend(json.loads(receive() or sys.exit()))
    return messages.pop(0)
def visited(number): say(["PageVisited", number, [["Listed", None], None, [[], [], []], [], False, {{}}]])
next_message()
say(["Ready"])
while True:
    what, *rest = next_message()
    if what != "VisitPage": continue
    number, url, *_ = rest
    {body}
"""
    )
    at = main or Unpaced()
    around = Surroundings(
        at,
        at.turn,
        lambda wait: at.said.append(("throttled", wait)),
        lambda name, _: at.said.append(("session", name)),
        repeated=lambda *told: at.said.append(("repeated", told)),
    )
    return WorkerPool(Settings(), size, around, at.ended, command=[sys.executable, str(file)], stuck=stuck)  # fmt: skip


def lease(path: str) -> Lease:
    return Lease(1, 1, Visit(Url(URL + path)))


async def visit_all(pool: WorkerPool, *paths: str) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}

    async def go(path: str) -> None:
        result = await pool.visit(lease(path))
        assert isinstance(result, VisitResult)
        outcomes[path] = result.verdict.outcome

    async with pool.running(), anyio.create_task_group() as tasks:
        for path in paths:
            tasks.start_soon(go, path)
    return outcomes


BAD = {
    "dies": "os.kill(os.getpid(), signal.SIGKILL) if 'bad' in url else visited(number)",
    "hangs": "time.sleep(60) if 'bad' in url else visited(number)",
    "sends an invalid outcome": "say(['PageVisited', number, 'what?']) if 'bad' in url else visited(number)",
    "sends deeply nested JSON": "send(b'[' * 200000) if 'bad' in url else visited(number)",
    "hands back its lease": "say(['LeaseReturned', number]) if 'bad' in url else visited(number)",
    "sends NaN": "send(b'[[\"Throttled\",NaN]]') if 'bad' in url else visited(number)",
    "sends an infinite number": "send(b'[[\"PauseHost\",\"http://x.example\",1e999]]') if 'bad' in url else visited(number)",
    "sends a lone surrogate": "say(['SessionFound', '\\ud800', url]) if 'bad' in url else visited(number)",
    "sends too many links": "say(['PageVisited', number, [['Listed', None], None, [[url] * 99999, [], []], [], False, {}]]) if 'bad' in url else visited(number)",
    "sends a too long message": "send(b'[' * 9000000) if 'bad' in url else visited(number)",
    "announces a message that never comes": "(stream.write(b'\\xff' * 4), stream.flush()) if 'bad' in url else visited(number)",
    "sends no batch": "send(b'{}') if 'bad' in url else visited(number)",
    "sends a message that is no list": "say({}) if 'bad' in url else visited(number)",
    "sends no JSON": "send(b'what?') if 'bad' in url else visited(number)",
}


@pytest.mark.parametrize("kind", BAD)
async def test_page_that_kills_three_workers_fails_alone(tmp_path: Path, kind: str) -> None:
    stuck = 1.5 if kind == "hangs" else 60.0
    paths = [f"good{number}" for number in range(20)]
    outcomes = await visit_all(pool_of(tmp_path, BAD[kind], stuck=stuck), *paths[:10], "bad", *paths[10:])
    assert outcomes.pop("bad") == Failed(Cause.CRASHED, "3 worker processes died on it")
    assert outcomes == dict.fromkeys(paths, Listed())
    # Two at first, one replacement, and two more that got the page alone.
    assert len((tmp_path / "starts").read_text()) == 5


@both_loops
async def test_pages_visited_alone_count_towards_concurrency(tmp_path: Path) -> None:
    both = pool_of(tmp_path, BAD["dies"])
    async with both.running():
        assert [worker.share for worker in both._all()] == [8, 8]
        await both.visit(lease("bad"))
        assert sum(worker.share for worker in both._workers) == 15, (
            "one request is reserved for the page visited alone"
        )
        await both.visit(lease("bad"))
        assert sum(worker.share for worker in both._workers) == 15, "reserved once"


@both_loops
async def test_page_of_dead_worker_is_not_retried_while_crawl_ends(
    tmp_path: Path,
) -> None:
    main = Unpaced()
    both = pool_of(tmp_path, BAD["dies"], main=main)
    async with both.running():
        main.ended.set()
        assert await both.visit(lease("bad")) == Unvisited(lease("bad"), WhyUnvisited.ENDING)
    assert len((tmp_path / "starts").read_text()) == 3, "two, and one replacement"


@both_loops
async def test_workers_that_exit_at_once_raise_config_error(tmp_path: Path) -> None:
    file = tmp_path / "worker.py"
    file.write_text("raise SystemExit")
    at = Unpaced()
    around = Surroundings(at, at.turn, lambda _: None, lambda *_: None)
    with pytest.raises(ConfigError, match="--processes"):
        async with WorkerPool(Settings(), 2, around, at.ended, command=[sys.executable, str(file)]).running():
            await anyio.sleep_forever()


@both_loops
async def test_worker_that_dies_before_first_message_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exits before the settings are sent to it, so the socket is closed."""
    both, sent = pool_of(tmp_path, BAD["dies"]), Channel.send
    broken: list[Channel] = []

    async def send(channel: Channel, message: bytes) -> None:
        if not broken:
            broken.append(channel)
            channel._end.shutdown(socket.SHUT_RDWR)
        await sent(channel, message)

    monkeypatch.setattr(Channel, "send", send)
    assert await visit_all(both, "good") == {"good": Listed()}
    assert broken


@both_loops
async def test_visits_wait_for_a_worker_that_starts_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started when the first one is ready already."""
    body = "(folder / url[-1]).write_text(str(os.getpid())); visited(number)"
    both, first, ready = pool_of(tmp_path, body), anyio.Event(), WorkerPool._ready

    def note(worker_pool: WorkerPool, worker: Worker) -> None:
        ready(worker_pool, worker)
        first.set()

    async def start_late(command: Sequence[str]) -> Child:
        if both._workers:
            await first.wait()
        return await start(command)

    monkeypatch.setattr(WorkerPool, "_ready", note)
    monkeypatch.setattr("crawler.workers.pool.start", start_late)
    assert await visit_all(both, "a", "b") == {"a": Listed(), "b": Listed()}
    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text(), "each has one"


@both_loops
async def test_missing_executable_raises_config_error(tmp_path: Path) -> None:
    at = Unpaced()
    around = Surroundings(at, at.turn, lambda _: None, lambda *_: None)
    with pytest.raises(ConfigError, match=r"No such file.*--processes 1"):
        async with WorkerPool(Settings(), 2, around, at.ended, command=[str(tmp_path / "nothing")]).running():
            pass


async def test_worker_cannot_throttle_host_it_has_no_lease_for(tmp_path: Path) -> None:
    main = Unpaced()
    body = "(say(['PauseHost', 'http://other.example', 5]), say(['SlotWanted', 1, 'http://other.example']), visited(number))"
    assert await visit_all(pool_of(tmp_path, body, 1, main), "a") == {"a": Listed()}
    assert main.said == []


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from(["http://[", "http://x/\n", "https://", "http://a@b/", "listed", "moved", "kept:dns", "later:dns", 10**30, -1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip


@given(st.sampled_from(OUTCOMES), st.data())
def test_mutated_worker_message_is_refused_or_harmless(outcome: Outcome, data: st.DataObject) -> None:
    links = Links((Url("http://x.example/a"),), (Url("http://x.example/b"),))
    shown = {"images": (("", Url("http://x.example/c.jpg")), ("a", Url("https://cdn.example/d?e")))}
    result = VisitResult(Verdict(outcome, FACTS, links, features=shown))
    said = json.loads(sent(result))
    place = said
    while isinstance(place, list) and place:  # replace a random value in it
        at = data.draw(st.integers(0, len(place) - 1))
        if not isinstance(place[at], list) or not place[at] or data.draw(st.booleans()):
            place[at] = data.draw(VALUES)
            break
        place = place[at]
    held = Lease(1, 1, Visit(URL))
    try:
        (message,) = messages.FROM_WORKER.decode(json.dumps(said).encode())
        if not isinstance(message, PageVisited):
            return
        result = messages.read(message.page, held, messages.received_urls())
    except MALFORMED:
        return
    assert all(host(url) for found in result.verdict.features.values() for _, url in found)
    for link in result.verdict.links.urls:
        assert origin(link)
        assert host(link)
        assert not scope("http://x.example/").belongs(link) or host(link) == "x.example"
    row = [serialise.detail_of(result.verdict.outcome), *serialise.plain_facts(result.verdict.facts)]
    with closing(sqlite3.connect(":memory:")) as db:
        stored = db.execute(
            "SELECT " + ", ".join("?" * len(row)), [str(v) if isinstance(v, list) else v for v in row]
        ).fetchone()
    assert len(stored) == len(row)
    json.dumps(row, allow_nan=False).encode()


@pytest.mark.parametrize(
    "said",
    [
        b"NaN",
        b"[Infinity]",
        b"-1e999",
        b'"\\ud800"',
        b'"\\uDC00x"',
        b'"\xed\xa0\x80"',
        b"[" * 100_000,
        b"1" * 5_000,
    ],
)
def test_json_that_cannot_be_stored_is_refused(said: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        msgspec.json.decode(said)


@both_loops
async def test_workers_request_slots_and_report_throttling(tmp_path: Path) -> None:
    main = Unpaced()
    body = (
        "(say(['PauseHost', 'http://x.example', 5]), say(['Throttled', 1.5]), say(['SessionFound', 'sid', url]),"
        " say(['SlotWanted', 9, 'http://x.example']),"
        " next_message() == ['GrantSlot', 9] and visited(number))"
    )
    assert await visit_all(pool_of(tmp_path, body, 1, main), "a") == {"a": Listed()}
    assert sorted(main.said, key=repr) == [
        ("session", "sid"),
        ("slot", "http://x.example"),
        ("slow", "http://x.example 5.0"),
        ("throttled", 1.5),
        ("turn", "http://x.example 0.0"),
    ]


async def test_the_first_refusal_pauses_a_host_once_for_all_workers(tmp_path: Path) -> None:
    """Each worker takes the first refusal that it sees for that of the host."""
    main = Unpaced()
    refused = "say(['PauseHost', 'http://x.example', 5, True]), say(['SlotWanted', 9, 'http://x.example'])"
    told = "[next_message()[0] for _ in range(2 if 'first' in url else 1)]"
    body = f"{refused}, (folder / 'told').write_text(str({told})), visited(number)"
    for path, expected in (("first", ["PauseHost", "GrantSlot"]), ("second", ["GrantSlot"])):
        assert await visit_all(pool_of(tmp_path, body, 1, main), path) == {path: Listed()}
        assert sorted(json.loads((tmp_path / "told").read_text().replace("'", '"')), reverse=True) == expected


async def test_retries_of_workers_are_told(tmp_path: Path) -> None:
    main = Unpaced()
    body = "(say(['Repeated', url, 'status 503', 2]), visited(number))"
    assert await visit_all(pool_of(tmp_path, body, 1, main), "a") == {"a": Listed()}
    assert main.said == [("repeated", (URL + "a", "status 503", 2))]


async def test_pause_of_host_is_shared_with_other_workers(tmp_path: Path) -> None:
    main = Unpaced()
    told = "['PauseHost', 'http://x.example', 5, False]"
    reports = "[time.sleep(0.01) for _ in iter((folder / 'waits').exists, True)], say(['PauseHost', 'http://x.example', 5])"
    receives = (
        f"(folder / 'waits').touch(), list(iter(next_message, {told}))"  # other messages may come first
    )
    body = f"({reports}) if 'reports' in url else ({receives}); visited(number)"
    both = {"reports": Listed(), "receives": Listed()}
    assert await visit_all(pool_of(tmp_path, body, 2, main), *both) == both
    assert main.said == [("slow", "http://x.example 5.0")]


# -- whole crawls ----------------------------------------------------------------------------------------


@pytest.fixture
def branching() -> Iterator[Origin]:
    """Two hundred pages, each with links to the next ones."""
    here = Origin("branching", "127.0.31.1")
    for number in range(200):
        near = [f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < 200]
        here.put(f"/{number}" if number else "/", http(page(*near, text=f"page {number}")), listed=True)
    with serving(here):
        yield here


@pytest.mark.measured
async def test_output_does_not_depend_on_number_of_processes(branching: Origin, tmp_path: Path) -> None:
    written = []
    for count in (1, 3):
        result = await crawl(branching, tmp_path / str(count), processes=count)
        assert judge(branching, result) == []
        written.append((tmp_path / str(count) / "out" / "sitemap.xml.gz").read_bytes())
    assert written[0] == written[1]


@both_loops
async def test_max_pages_is_exact_with_workers(branching: Origin, tmp_path: Path) -> None:
    result = await crawl(branching, tmp_path, processes=3, max_pages=50, allow_partial=True)
    assert result.ending is Ending.LIMIT
    assert len(branching.visits()) == 50


async def test_no_new_requests_after_stop(tmp_path: Path) -> None:
    here, go_on = Origin("stopped", "127.0.31.4"), threading.Event()

    def held(talk: Talk) -> None:
        go_on.wait(600)
        talk.say(http(page(text=talk.asked.path)))

    paths = [f"/{number}" for number in range(60)]
    here.put("/", http(page(*paths)), listed=True)
    for path in paths:
        here.put(path, held, listed=True, most=1)
    chosen = {"concurrency": 4, "processes": 2, "state": str(tmp_path / "state.db")}
    with serving(here):
        given = settings(here.url().rstrip("/"), tmp_path, **chosen, allow_address=(f"{here.address}/32",))
        async with open_job(given) as job, anyio.create_task_group() as tasks:
            tasks.start_soon(job.crawl)
            await eventually(lambda: here.waiting == 4 and job.stats.in_hand == 12)
            job.stop("a test")
            await eventually(lambda: job.stats.in_hand == 4)
            go_on.set()
        assert job.ending is Ending.STOPPED
        assert job.stats.exchanges == 1 + 4
        assert len(here.visits()) == 1 + 4, "the start page, and the requests in flight"
        assert judge(here, await crawl(here, tmp_path, **chosen)) == [], "the rest is requested later, once"


@pytest.mark.parametrize(
    ("concurrency", "size", "expected"),
    [(16, 2, [8, 8]), (16, 5, [4, 3, 3, 3, 3]), (16, 50, [2] * 8), (5, 2, [3, 2]), (3, 3, [3]), (1, 8, [1])],
)
def test_concurrency_is_divided_among_workers(concurrency: int, size: int, expected: list[int]) -> None:
    assert shares(concurrency, size) == expected
    assert sum(expected) == concurrency


@pytest.mark.parametrize(("concurrency", "processes"), [(1, 2), (3, 3), (5, 2)])
async def test_concurrency_limit_holds_across_workers(
    concurrency: int, processes: int, tmp_path: Path
) -> None:
    here, answer = Origin("busy", "127.0.31.2"), late(concurrency)
    for number in range(30):
        here.put(f"/{number}", answer, listed=True)
    await check(sites.finish(here), tmp_path, concurrency=concurrency, processes=processes)
    assert max(asked.in_flight for asked in here.log) == concurrency


async def test_rate_is_kept_with_late_responses(tmp_path: Path, turns: list[float]) -> None:
    here = Origin("late", "127.0.31.3")

    def held(talk: Talk) -> None:
        talk.hold(
            0.15 if int(talk.asked.path[1:]) < 8 else 0.0
        )  # afterwards all delayed requests could be sent at once
        talk.say(http(page(text=talk.asked.path)))

    for number in range(24):
        here.put(f"/{number}", held, listed=True)
    await check(sites.finish(here), tmp_path, concurrency=4, processes=2, rate=50.0)
    assert max(asked.in_flight for asked in here.log) <= 4
    assert len(turns) == len(here.log)
    assert closest(turns) >= 0.9 * 0.02


@pytest.mark.measured
async def test_retries_and_second_run_work_with_workers(tmp_path: Path) -> None:
    result = await check(sites.statuses(), tmp_path / "statuses", processes=2)
    assert "failed:crashed" not in result.balance.outcomes
    here = sites.dates()
    with serving(here):
        chosen = {"processes": 2, "state": str(tmp_path / "state.db")}
        runs = [await crawl(here, tmp_path / "dates", **chosen) for _ in range(2)]
    assert judge(here, runs[1]) == [
        f"{path} was asked for 2 times, more than 1" for path, right in here.expect.items() if right.most == 1
    ]
    assert runs[0].dates == runs[1].dates


@both_loops
async def test_worker_processes_exit_with_crawl(
    branching: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = list[Child]()

    async def noted(command: Sequence[str]) -> Child:
        workers.append(await start(command))
        return workers[-1]

    monkeypatch.setattr("crawler.workers.pool.start", noted)
    chosen = settings(
        f"http://{branching.address}:{branching.port}", tmp_path, processes=2, allow_address=("127.0.0.0/8",)
    )
    async with open_job(chosen) as job:
        await job.crawl()
        assert [worker.process.returncode for worker in workers] == [0, 0], "they exited normally"
        for worker in workers:
            with pytest.raises(ProcessLookupError):
                os.kill(worker.process.pid, 0)
        await job.publish()


def test_worker_knows_what_the_last_run_read_of_a_page() -> None:
    facts = Facts(200, Validators('"e"'), digest="89ab", content="0123", watched="00ff2")
    lease = Lease(1, 1, Visit(URL), prior=Prior(Listed(), facts))
    message = msgspec.json.decode(msgspec.json.encode(VisitPage.of(1, lease)), type=VisitPage)
    assert message.lease.prior == lease.prior
    assert VisitPage.of(1, Lease(1, 1, Visit(URL))).lease.prior is None
