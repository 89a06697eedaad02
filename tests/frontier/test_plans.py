"""No statement of the hot path reads the whole of a large table on PostgreSQL.

The plans are those of the operations themselves, as the server reports them (auto_explain), with the rows that it read.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from crawler.frontier.budget import FOUND
from crawler.frontier.levels import READ_SO_FAR
from crawler.frontier.tallies import _CONTENT_PAGES, _SAME_CONTENT
from crawler.model.facts import Facts
from crawler.model.outcome import Listed, Pattern
from crawler.model.reasons import Why
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import reads
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LARGE: Final = {"url", "visit", "page"}
ROWS: Final = 30_000  # of each state: open, settled, held
MOST: Final = 3_000  # rows that one node of a plan may read

FILL: Final = f"""
INSERT INTO trap (run, kind, pattern, size, size_left)
SELECT 1, 'query', '/shop?page=' || n, 150, 150 FROM generate_series(0, 20) AS n;
INSERT INTO url (id, fp, host, via, run, depth, hops, url, trap, sample)
SELECT nextval('url_id'), md5(n::text)::uuid, (SELECT min(id) FROM host), 1, 1, 1 + n % 5, 0, '{SITE}/filled/' || n,
    CASE WHEN n % 3 = 2 THEN (SELECT min(id) FROM trap) + 1 + n % 20 END, CASE WHEN n % 3 = 2 THEN n END
FROM generate_series(1, {3 * ROWS}) AS n;
INSERT INTO visit (id, host, depth, trap, sample, state)
SELECT id, host, depth, trap, sample, CASE WHEN trap IS NULL THEN 0 ELSE -1 END FROM url WHERE trap IS NOT NULL OR (id % 3 = 2 AND depth > 0);
INSERT INTO page (id, settled, outcome, status, content, links)
SELECT id, 1, 'listed', 200, md5(id::text), ARRAY[1, id - 1] FROM url WHERE NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = url.id);
ANALYZE
"""

# A run that the statistics do not know, with pages that were read in both ways.
NEW_RUN: Final = """
UPDATE url SET run = 99 WHERE id IN (SELECT id FROM page WHERE id % 4 = 0);
UPDATE page SET attempts = 1, digest = 'd' || id, echoing = 'e' || id WHERE id % 4 = 0
"""

# What `leases.TAKE` must not be: with a join, the planner does not know the limit.
JOINED: Final = """
UPDATE visit SET attempts = attempts FROM (
    SELECT v.id FROM unnest(ARRAY[:host], ARRAY[:share::integer]) AS h(host, share) CROSS JOIN LATERAL (
        SELECT id FROM visit WHERE host = h.host AND state = 0 ORDER BY reopened, depth, id LIMIT h.share
    ) AS v
) AS chosen WHERE visit.id = chosen.id
"""


class Plan(NamedTuple):
    """A statement that was carried out."""

    sql: str
    nodes: Sequence[dict[str, Any]]
    is_compiled: bool

    def excesses(self) -> list[str]:
        """The nodes that read a large table as a whole, or many rows of it; and that the statement was compiled (jit)."""
        return [f"compiled: {self.sql[:600]}"] * self.is_compiled + [
            f"{node['Node Type']} of {node.get('Relation Name', '?')}: {_read(node)} rows in {self.sql[:600]}"
            for node in self.nodes
            if (node.get("Relation Name") in LARGE and node["Node Type"] == "Seq Scan") or _read(node) > MOST
        ]


def excesses(plans: Sequence[Plan]) -> str:
    """Those of several statements, one a line."""
    return "\n".join(excess for plan in plans for excess in plan.excesses())


def _read(node: dict[str, Any]) -> int:
    """Rows that a node has looked at."""
    each = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
    return int(each * node.get("Actual Loops", 0))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


class Watched:
    """A frontier over a large state that reports its plans."""

    def __init__(self, frontier: "PostgresFrontier") -> None:
        self.frontier, self.plans = frontier, list[Plan]()
        connection = frontier._database.connection
        connection.execute(f'SET search_path TO "{frontier._address.schema}"'.encode())
        for statement in FILL.split(";\n"):
            connection.execute(statement.encode())
        connection.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;"
            "SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET client_min_messages = log"
        )
        connection.add_notice_handler(lambda notice: self._take(notice.message_primary or ""))

    def _take(self, message: str) -> None:
        _, found, plan = message.partition("plan:\n")
        if found:
            told = json.loads(plan)
            self.plans.append(
                Plan(" ".join(told["Query Text"].split()), list(_nodes(told["Plan"])), "JIT" in told)
            )

    def taken(self) -> list[Plan]:
        """The plans since the last call."""
        plans, self.plans = self.plans, []
        return plans


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def watched() -> Any:
    state = new_state()
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    frontier = PostgresFrontier(state, clock=Clock())
    await frontier.begin("settings")
    await frontier.take_leadership()
    await frontier.store_robots(SITE, RobotsFile("none", fetched=frontier.clock()), 0.0)
    await frontier.add([Visit(ROOT)])
    yield Watched(frontier)
    await frontier.close()


def settlements(leases: Sequence[Lease]) -> list[Settlement]:
    """Each page links to known URLs and to new ones, also by redirects, into patterns, and not to be followed."""
    found = []
    for lease in leases:
        known = [Url(f"{SITE}/filled/{lease.id + step}") for step in range(10)]
        new = [Url(f"{SITE}/new/{lease.id}"), ROOT]
        page = partial(Visit, depth=lease.visit.depth + 1, via=lease.visit.url)
        visits = [page(url) for url in (*known, *new)]
        visits += [
            page(Url(f"{SITE}/filled/{lease.id + 20}"), hops=1),
            page(Url(f"{SITE}/to/{lease.id}"), hops=1),
        ]
        visits += [
            page(Url(f"{SITE}/{lease.id % 40}/not"), filtered=Why.NOFOLLOW),
            page(Url(f"{SITE}/{lease.id % 30}/not")),
        ]
        for named in (False, True):
            pattern = Pattern("query", "/shop?page=1", named)
            visits.append(page(Url(f"{SITE}/shop?page=1&n={lease.id}"), pattern=pattern))
        verdict = Verdict(Listed(), Facts(200, content=str(lease.id)))
        found.append(Settlement(lease, verdict, tuple(visits)))
    return found


async def test_plan_that_reads_the_whole_queue_is_detected(watched: Watched) -> None:
    watched.taken()
    watched.frontier._db.do(JOINED, {"host": 1, "share": 32})
    [plan] = watched.taken()
    assert plan.excesses()


async def test_lease_and_settle_read_few_rows(watched: Watched) -> None:
    frontier = watched.frontier
    watched.taken()
    for _ in range(3):
        leases = (await frontier.lease(64)).leases
        assert len(leases) == 64
        await frontier.release(leases[32:])
        await frontier.settle(settlements(leases[:32]))
    plans = watched.taken()
    said = " ".join(plan.sql for plan in plans)
    for part in (
        "UPDATE visit SET state = 2", "INSERT INTO page", "INSERT INTO url", "r.was_hops > u.hops", "r.depth < k.depth",
        "k.trap <> r.trap", "AND k.nofollow",
    ):  # fmt: skip
        assert part in said
    assert not excesses(plans)


async def test_heartbeat_and_members_read_few_rows(watched: Watched) -> None:
    watched.taken()
    await watched.frontier._call(watched.frontier._members.beat)
    await watched.frontier.read(reads.MembersOfRun())
    assert not excesses(watched.taken())


async def test_rounds_read_few_rows(watched: Watched) -> None:
    """All but those that ask all pages, once in a round: for their links, and for their contents."""
    frontier = watched.frontier
    # Nothing is released while a host has due visits.
    database = frontier._database.connection
    database.execute(b"INSERT INTO host (origin, delay) VALUES ('https://busy.example', 0)")
    database.execute(b"UPDATE visit SET host = (SELECT max(id) FROM host) WHERE state = 0")
    database.execute(b"ANALYZE visit")
    watched.taken()
    assert (await frontier.advance()).released > 50
    plans = watched.taken()
    assert any("UPDATE visit SET state = 0" in plan.sql for plan in plans)
    of_all = [plan for plan in plans if "SET rank = " in plan.sql or "least(count(" in plan.sql]
    assert len(of_all) <= 3
    assert not excesses([plan for plan in plans if plan not in of_all])


@pytest.mark.parametrize("sql", [FOUND, READ_SO_FAR])
async def test_no_page_is_compared_with_all_others(watched: Watched, sql: str) -> None:
    """As the server does for `IN` where what it looks in is too large for its memory."""
    from crawler.frontier.postgres.database import statement  # noqa: PLC0415 - the driver is an extra

    connection = watched.frontier._database.connection
    connection.execute(b"SET work_mem = '64kB'")
    given = {"run": 1, "below": 1_000}
    [([told],)] = connection.execute(b"EXPLAIN (FORMAT JSON) " + statement(sql), given).fetchall()
    connection.execute(b"RESET work_mem")
    parts = [node for node in _nodes(told["Plan"]) if node.get("Parent Relationship") == "SubPlan"]
    assert "Materialize" not in {node["Node Type"] for node in parts}


async def test_rows_of_a_new_run_are_not_compared_with_each(watched: Watched) -> None:
    db, connection = watched.frontier._database, watched.frontier._database.connection
    with connection.transaction(force_rollback=True):
        for statement in NEW_RUN.split(";\n"):
            connection.execute(statement.encode())
        watched.taken()
        [(requests, _, _)] = db.ask_whole(FOUND, {"run": 99, "below": 100})()
        assert requests > ROWS // 5
        for sql in (READ_SO_FAR, *_SAME_CONTENT.values(), *_CONTENT_PAGES.values()):
            db.ask_whole(sql, {"run": 99})()
        plans = watched.taken()
    assert max(_read(node) for plan in plans for node in plan.nodes) < 30 * ROWS
