"""What an operator sees of a crawl in a PostgreSQL database: `status`."""

import json
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from crawler.model.outcome import Listed
from crawler.model.robots import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from tests.cli.conftest import Run
from tests.postgres import new_state

if TYPE_CHECKING:
    from crawler.frontier.postgres.frontier import PostgresFrontier

pytestmark = pytest.mark.anyio

SITE = "https://example.com"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"  # the commands run in threads of their own


def opened(state: str) -> "PostgresFrontier":
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    return PostgresFrontier(state)


def execute(state: str, sql: str, *values: Any) -> list[Any]:
    """A statement in the schema of a crawl."""
    import psycopg  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier.postgres.address import parsed  # noqa: PLC0415 - the same

    address = parsed(state)
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f'SET LOCAL search_path TO "{address.schema}"'.encode())
        cursor = connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
async def state() -> AsyncIterator[str]:
    """A crawl with two members, of which the first leads and has settled a page."""
    state = new_state()
    one, two = opened(state), opened(state)
    await one.begin("settings")
    await one.lead()
    await one.store_robots(SITE, RobotsFile("none", fetched=one._db.now()), 0.0)
    await one.add([Visit(Url(SITE + "/")), Visit(Url(SITE + "/a"))])
    [lease] = (await one.lease(1)).leases
    await one.settle([Settlement(lease, Verdict(Listed()))])
    await two.begin("settings")
    yield state
    await two.close()
    await one.close()


def silence(state: str, seconds: float, name: str = "") -> None:
    """The second member was silent for so long."""
    execute(
        state,
        "UPDATE member SET until = extract(epoch FROM clock_timestamp()) + 30 - %s, name = coalesce(nullif(%s, ''), name)"
        " WHERE id = (SELECT max(id) FROM member)",
        seconds,
        name,
    )


async def test_status_shows_members(state: str, run: Run) -> None:
    silence(state, 100, "web-2:7\x1b[31m")
    code, out, err = run("status", "--state", state)
    assert code == 0, err
    assert "leader    " + socket.gethostname() in out
    assert "silent    web-2:7" in out
    assert "heartbeat 1 min 40 s ago" in out
    assert "\x1b" not in out
    assert "2  discovered, all accounted for" in out


async def test_status_has_members_in_json(state: str, run: Run) -> None:
    silence(state, 100)
    code, out, _ = run("status", "--state", state, "--log-format", "json")
    facts = json.loads(out)
    first, second = facts["members"]
    assert code == 0
    assert first["name"].startswith(socket.gethostname() + ":")
    assert (first["state"], first["leads"], first["alive"], first["settled"]) == ("leader", True, True, 1)
    assert (second["state"], second["leads"], second["alive"], second["settled"]) == (
        "silent",
        False,
        False,
        0,
    )
    assert second["silent"] == pytest.approx(100, abs=10)
    assert facts["silent"] == pytest.approx(first["silent"], abs=0.2)
    assert (facts["discovered"], facts["open"], facts["balanced"]) == (2, 1, True)


async def test_member_that_left_is_gone(state: str, run: Run) -> None:
    execute(state, "UPDATE member SET gone = true WHERE id = (SELECT max(id) FROM member)")
    _, out, _ = run("status", "--state", state, "--log-format", "json")
    assert [member["state"] for member in json.loads(out)["members"]] == ["leader", "gone"]


async def test_healthcheck_of_shared_state_counts_no_urls(state: str, run: Run) -> None:
    code, out, _ = run("status", "--state", state, "--alive", "60")
    assert code == 0
    assert "leader" in out
    assert "discovered" not in out, "all members ask every minute"
    _, out, _ = run("status", "--state", state, "--alive", "60", "--log-format", "json")
    assert json.loads(out)["balanced"] is True


async def test_healthcheck_looks_at_members_on_this_machine(
    state: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence(state, 100, "web-2:7")
    words = ("status", "--state", state, "--alive", "60")
    monkeypatch.setattr(socket, "gethostname", lambda: "web-2")
    assert run(*words)[0] == 8, "the member on this machine is silent, though another one works"
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert run(*words)[0] == 0, "no member on this machine: any member counts"
    execute(state, "UPDATE member SET until = 0")
    assert run(*words)[0] == 8
    execute(state, "UPDATE run SET status = 'concluded'")
    assert run(*words)[0] == 0, "nothing is left to do"
