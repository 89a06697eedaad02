"""What the database does for each statement of a crawl: no step of a visit reads a whole table, however large it is."""

import json
from typing import Any

import pytest

from crawler.model.facts import Facts
from crawler.model.outcome import Listed
from crawler.model.robots import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from tests.frontier.test_frontier import ROOT, SITE, Clock
from tests.postgres import new_state

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LARGE = frozenset({"url", "visit", "page"})
FILL = """
INSERT INTO url (id, fp, host, run, depth, hops, url)
SELECT nextval('url_id'), md5(n::text)::uuid, 1, 1, 3, 0, 'http://a.example/filled/' || n FROM generate_series(1, 100000) AS n;
INSERT INTO visit (id, host, depth, state) SELECT id, 1, depth, 0 FROM url WHERE depth = 3 AND id % 2 = 0;
INSERT INTO page (id, outcome, settled) SELECT id, 'listed', 1 FROM url WHERE depth = 3 AND id % 2 = 1;
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def whole_tables(plan: Any) -> set[str]:
    """The large tables that a plan reads whole."""
    found = {plan["Relation Name"]} & LARGE if plan.get("Node Type") == "Seq Scan" else set()
    return found.union(*map(whole_tables, plan.get("Plans", [])))


async def test_no_statement_of_a_visit_reads_a_whole_table() -> None:
    from crawler.frontier.postgres.database import statement  # noqa: PLC0415 - the driver is an extra
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the same

    member = PostgresFrontier(new_state(), clock=Clock())
    await member.begin("settings")
    await member.store_robots(SITE, RobotsFile("none", fetched=member.clock()), 0.0)
    await member.add([Visit(ROOT)])
    db = member._db
    db.connection.execute(f'SET search_path TO "{member._address.schema}"')
    db.connection.execute(FILL)
    db.connection.execute("ANALYZE")
    said: dict[str, dict[str, Any]] = {}
    real = db.cursor

    def cursor(sql: str, given: dict[str, Any] | None = None) -> Any:
        said[sql] = given or {}
        return real(sql, given)

    db.cursor = cursor  # type: ignore[method-assign]
    leases = (await member.lease(64)).leases
    assert len(leases) == 64
    found = tuple(Visit(Url(f"{SITE}/new/{number}"), 4, ROOT) for number in range(40))
    known = tuple(Visit(Url(f"{SITE}/filled/{number}"), 4, ROOT) for number in range(40))
    await member.settle(
        [Settlement(one, Verdict(Listed(), Facts(200)), found + known) for one in leases[:32]]
    )
    await member.links(leases[:8])
    await member.release(leases[32:])
    await member._call(member._members.beat)
    assert len(said) > 15
    slow = {}
    for sql, given in said.items():
        if sql.lstrip().upper().startswith(("SELECT", "WITH", "UPDATE", "INSERT", "DELETE")):
            rows = db.connection.execute(b"EXPLAIN (FORMAT JSON) " + statement(sql), given).fetchone()
            plan = rows[0] if isinstance(rows[0], list) else json.loads(rows[0])  # type: ignore[index]
            if tables := whole_tables(plan[0]["Plan"]):
                slow[sql] = tables
    await member.close()
    assert not slow
