"""What an operator sees of a crawl in a PostgreSQL database: `status`."""

import json
import re
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Visit
from crawler.parse.url import Url
from tests.commands import Run
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
    await one.take_leadership()
    await one.store_robots(SITE, RobotsFile("none", fetched=one._db.now()), 0.0)
    await one.add([Visit(Url(SITE + "/")), Visit(Url(SITE + "/a"))])
    [lease] = (await one.lease(1)).leases
    await one.settle([Settlement(lease, Verdict(Listed()))])
    await two.begin("settings")
    for member in (one, two):  # a test decides when a member was heard last
        assert member._heartbeat
        member._heartbeat.stop()
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
    out, _ = run.ok("status", "--state", state)
    assert "leader    " + socket.gethostname() in out
    assert "silent    web-2:7" in out
    assert "heartbeat 1 min 40 s ago" in out
    assert "\x1b" not in out
    assert "2  discovered, all accounted for" in out


async def test_status_has_members_in_json(state: str, run: Run) -> None:
    silence(state, 100)
    code, out, _ = run("status", "--state", state, "--format", "json")
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
    _, out, _ = run("status", "--state", state, "--format", "json")
    assert [member["state"] for member in json.loads(out)["members"]] == ["leader", "gone"]


async def test_healthcheck_of_shared_state_counts_no_urls(state: str, run: Run) -> None:
    out, _ = run.ok("status", "--state", state, "--alive", "60")
    assert "leader" in out
    assert "discovered" not in out, "all members ask every minute"
    _, out, _ = run("status", "--state", state, "--alive", "60", "--format", "json")
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


# -- the command `state` ----------------------------------------------------------------------------------


def database(state: str) -> str:
    """The address without the name of a crawl."""
    return state.partition("#")[0]


def named(out: str, name: str) -> dict[str, Any]:
    """The crawl of that name in `state list`."""
    found: list[dict[str, Any]] = json.loads(out)
    return next(crawl for crawl in found if crawl["name"] == name)


async def test_state_list_shows_crawls_of_database(state: str, run: Run) -> None:
    place, _, name = state.partition("#")
    out, _ = run.ok("state", "list", "--state", place, "--format", "json")
    crawl = named(out, name)
    assert (crawl["run"], crawl["status"], crawl["members"]) == (1, "crawling", 2)
    assert crawl["bytes"] > 100_000
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}Z", crawl["started"])
    _, out, _ = run("state", "list", "--state", place)
    [line] = [line for line in out.splitlines() if line.startswith(name)]
    assert "run 1 crawling, started 20" in line
    assert line.endswith("2 members at work")


async def test_state_is_created_upgraded_and_dropped(run: Run) -> None:
    place = database(new_state())
    url = "https://shop.example.com:8443/start"
    assert run("state", "init", url, "--state", place)[:2] == (0, "shop.example.com_8443: created.\n")
    assert run("state", "init", url, "--state", place)[1] == "shop.example.com_8443: was there already.\n"
    assert "The state is empty" in run("status", url, "--state", place)[2]
    _, out, _ = run("state", "list", "--state", place, "--format", "json")
    crawl = named(out, "shop.example.com_8443")
    assert (crawl["run"], crawl["schema"].rpartition("_")[0]) == (None, "smc_shop_example_com_8443")
    run.ok("state", "upgrade", crawl["schema"].removeprefix("smc_"), "--state", place)
    run.ok("state", "upgrade", "--state", place)
    out, _ = run.ok("state", "drop", "shop.example.com_8443", "--state", place)
    assert "dropped, " in out
    assert "There is no crawl shop.example.com_8443" in run.fails(3, "state", "drop", url, "--state", place)


async def test_state_says_what_it_did_as_json(run: Run) -> None:
    place, name = database(new_state()), "blog.example.com"
    last = ("--state", place, "--format", "json")
    said = [
        json.loads(run("state", *words, *last)[1])
        for words in (("init", name), ("init", name), ("upgrade", name))
    ]
    assert said == [{"name": name, "created": True}, {"name": name, "created": False}, {"upgraded": [name]}]
    dropped = json.loads(run("state", "drop", name, *last)[1])
    assert dropped.pop("bytes") > 0
    assert dropped == {"name": name}


async def test_crawl_with_members_at_work_is_not_dropped(state: str, run: Run) -> None:
    assert "2 members are at work" in run.fails(9, "state", "drop", "--state", state)
    execute(state, "UPDATE member SET gone = true")
    run.ok("state", "drop", "--state", state)


async def test_role_without_create_works_on_tables_made_for_it(run: Run) -> None:
    state = new_state()
    execute(f"{database(state)}#x", "DROP ROLE IF EXISTS reduced")
    execute(f"{database(state)}#x", "CREATE ROLE reduced LOGIN")
    own = state.replace("crawler@", "reduced@")
    assert "may not create schemas" in run.fails(3, "state", "init", "--state", own)
    run.ok("state", "init", "--state", state, "--owner", "reduced")
    frontier = opened(own)
    await frontier.begin("settings")
    assert await frontier.add([Visit(Url(SITE + "/"))]) == 1
    [lease] = (await frontier.lease(1)).leases
    await frontier.settle([Settlement(lease, Verdict(Listed()))])
    await frontier.close()
    run.ok("status", "--state", own)
    run.ok("state", "drop", "--state", own)


async def test_state_of_other_user_is_listed_but_not_read(state: str, run: Run) -> None:
    execute(f"{database(state)}#x", "DROP ROLE IF EXISTS stranger")
    execute(f"{database(state)}#x", "CREATE ROLE stranger LOGIN")
    place, _, name = state.replace("crawler@", "stranger@").partition("#")
    out, _ = run.ok("state", "list", "--state", place)
    [line] = [line for line in out.splitlines() if line.startswith(name)]
    assert line.endswith("not readable by this user")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list",), "give --state postgresql://"),
        (("list", "--state", "crawl.db"), "give --state postgresql://"),
        (("drop", "--state", "postgresql://db/crawls"), "Which crawl?"),
        (("init", "--state", "postgresql://db/crawls"), "Which crawl?"),
        (("drop", "a", "--state", "postgresql://db/crawls", "--owner", "x"), "only state init"),
        (("list", "a", "--state", "postgresql://db/crawls"), "takes no name"),
        (("list", "--state", "postgresql://u:hunter2@db/crawls"), "PGPASSFILE"),
    ],
)
def test_misuse_of_state_is_usage_error(words: tuple[str, ...], said: str, run: Run) -> None:
    pytest.importorskip("psycopg")
    code, out, err = run("state", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "hunter2" not in err


async def test_config_shows_where_the_state_is_and_nothing_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "SITEMAP_CRAWLER_STATE", "postgresql://crawler:hunter2#/x@db.internal/crawls?sslmode=require#docs"
    )
    code, out, err = run("config")
    assert (code, err) == (0, "")
    assert "postgresql://db.internal/crawls#docs" in out
    assert "hunter2" not in out
    assert "require" not in out
