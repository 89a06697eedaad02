"""Databases that cannot be used: which of them are waited for, and what each is told."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from crawler.errors import CrawlerError, FrontierError, StateAway
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.settings.sections import Settings, State
from tests.postgres import Server, named
from tests.waiting import until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    """Speaks TLS, with a certificate for another host name."""
    made = Server("-c fsync=off -c max_connections=8 -c superuser_reserved_connections=2")
    data = made.folder / "data"
    key, certificate = data / "server.key", data / "server.crt"
    import trustme  # noqa: PLC0415 - with the driver

    authority = trustme.CA()
    issued = authority.issue_cert("other.example")
    issued.private_key_pem.write_to_path(key)
    issued.cert_chain_pems[0].write_to_path(certificate)
    authority.cert_pem.write_to_path(made.folder / "ca.pem")
    for path in (key, certificate):
        path.chmod(0o600)
        os.chown(path, data.stat().st_uid, -1)
    made.require_password("guarded", "secret")
    _sql(made, "CREATE ROLE plain LOGIN", "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
    rules = data / "pg_hba.conf"
    rules.write_text(
        f"hostssl all tls_only 127.0.0.1/32 trust\nhost all tls_only all reject\n{rules.read_text()}"
    )
    _sql(made, "CREATE ROLE tls_only LOGIN", "CREATE ROLE locked LOGIN CONNECTION LIMIT 0")
    _sql(made, "CREATE ROLE single LOGIN CONNECTION LIMIT 1", "GRANT CREATE ON DATABASE postgres TO single")
    _sql(made, "CREATE ROLE reader LOGIN", "ALTER ROLE reader SET default_transaction_read_only = on")
    _sql(made, "CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM public")
    _sql(made, "SELECT pg_reload_conf()")
    yield made
    made.remove()


def _sql(database: Server, *statements: str) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    with psycopg.connect(database.address, autocommit=True) as connection:
        for text in statements:
            connection.execute(text.encode())


def refused(state: str, *, fresh: bool = False) -> CrawlerError:
    """What the crawl of a state is told at once, without a wait."""
    from crawler.app.state import open_frontier  # noqa: PLC0415 - the driver is an extra

    with pytest.raises(CrawlerError) as caught:
        open_frontier(Settings(state=State(state=state if "#" in state else named(state), fresh=fresh)), None)
    return caught.value


def said(state: str, *, fresh: bool = False) -> str:
    error = refused(state, fresh=fresh)
    assert type(error) is FrontierError
    return str(error)


HERE = "127.0.0.1:{port}"


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (
            f"plain@{HERE}/postgres?sslmode=verify-full&sslrootcert={{ca}}",
            "match host name .* Give the host name",
        ),
        (f"plain@{HERE}/postgres?sslmode=verify-ca&sslrootcert=system", "weak sslmode .* Correct that"),
        (f"plain@{HERE}/postgres?sslmode=verify-full&sslrootcert=system", "verify failed.* in sslrootcert"),
        (f"plain@{HERE}/postgres?sslmode=verify-full&sslrootcert=/no.pem", "does not exist.* in sslrootcert"),
        (f"plain@{HERE}/postgres?sslmode=verify", "invalid sslmode value.* Correct that"),
        (f"plain@{HERE}/postgres?ssl=on", "invalid URI query parameter.* Correct that"),
        ("plain@nowhere.invalid/postgres", "nowhere.invalid.* Correct the host name"),
        ("plain@127.0.0.1:99999/postgres", "invalid port number.* Correct the port"),
        (f"plain@{HERE}/nowhere", '"nowhere" does not exist. Create the database'),
        (f"plain@{HERE}/closed", "permission denied for database.* GRANT CONNECT"),
        (f"nobody@{HERE}/postgres", 'role "nobody" does not exist. Create the role'),
        (f"guarded@{HERE}/postgres", "no password supplied. Give its password in PGPASSWORD"),
        (f"tls_only@{HERE}/postgres?sslmode=disable", "rejects.* Connect with TLS"),
    ],
)
def test_what_waiting_does_not_heal_is_final(
    database: Server, state: str, sentence: str, fresh: bool
) -> None:
    ca = database.folder / "ca.pem"
    error = refused(f"postgresql://{state.format(port=database.port, ca=ca)}", fresh=fresh)
    assert type(error) is FrontierError, error
    assert re.search(sentence, str(error)), error
    assert "nothing is lost" not in str(error)


def test_tls_that_the_server_refuses_is_final() -> None:
    plain = Server()
    try:
        error = refused(f"{plain.address}?sslmode=require")
        assert type(error) is FrontierError
        assert "does not support SSL, but SSL was required. Let the server speak TLS" in str(error)
    finally:
        plain.remove()


def test_a_password_file_that_others_may_read_is_named(
    database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "passwords"
    file.write_text("*:*:*:*:secret\n")
    file.chmod(0o640)
    state = database.address.replace("crawler@", "guarded@")
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert f"chmod 600 {file}" in str(refused(state))
    monkeypatch.delenv("PGPASSFILE")
    assert f"chmod 600 {file}" in str(refused(f"{state}?passfile={file}"))
    file.chmod(0o600)
    file.write_text("*:*:*:*:wrong\n")
    assert "Correct the password" in str(refused(f"{state}?passfile={file}"))


def test_full_server_and_one_that_is_down_are_waited_for(database: Server) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    plain = database.address.replace("crawler@", "plain@")
    taken = [psycopg.connect(plain) for _ in range(6)]
    try:
        for state in (plain, database.address.replace("crawler@", "locked@")):
            error = refused(state)
            assert type(error) is StateAway, error
            assert "Use fewer members" in str(error)
    finally:
        for connection in taken:
            connection.close()
    down = refused("postgresql://crawler@127.0.0.1:1/postgres")
    assert type(down) is StateAway
    assert "Connection refused. Run again when the database works again: nothing is lost" in str(down)
    replica = refused(database.address.replace("crawler@", "reader@"))
    assert type(replica) is StateAway
    assert "It takes no writes: name the primary" in str(replica)


def test_a_database_that_the_pooler_does_not_know_is_final(database: Server) -> None:
    with database.pooled() as pooler:
        assert "Name the database in [databases] of the pooler" in said(
            pooler.replace("/postgres", "/nowhere")
        )


def test_that_a_database_is_slow_to_answer_is_said(
    database: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As behind a pooler, which accepts connections while its server is down."""
    from crawler.app import state  # noqa: PLC0415 - the driver is an extra

    def answers_late(*_: object, **__: object) -> None:
        until(lambda: "still waiting for the database" in caplog.text)
        raise FrontierError("late")

    monkeypatch.setattr(state, "SLOW", 0.01)
    monkeypatch.setattr("crawler.frontier.postgres.frontier.PostgresFrontier", answers_late)
    assert said(database.address) == "late"


@pytest.mark.anyio
async def test_rows_are_streamed_also_on_a_single_connection(
    database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    monkeypatch.setattr("crawler.frontier.postgres.session.CHUNK", 10)
    frontier = PostgresFrontier(named(database.address.replace("crawler@", "single@")))
    await frontier.begin("x")
    await frontier.take_leadership()
    urls = {Url(f"https://a.example/{number}") for number in range(25)}
    await frontier.add([Visit(url) for url in urls])
    found = list[Url]()
    async for chunk in frontier.stream(reads.Pages()):
        found += [page.url for page in chunk]
        assert (await frontier.read(reads.RunBalance())).open == 25, "the connection works on in between"
    await frontier.close()
    assert sorted(found) == sorted(urls)


def tables(database: Server, schema: str) -> set[tuple[str, int]]:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    with psycopg.connect(database.address) as connection:
        found = connection.execute(
            "SELECT relname, oid::bigint FROM pg_class WHERE relnamespace = to_regnamespace(%s)", [schema]
        )
        return set(found.fetchall())


def test_fresh_in_a_schema_that_an_administrator_made(database: Server) -> None:
    """The role may not create schemas: its tables are made anew, and where that fails all stays as it is."""
    from crawler.app.state import open_frontier  # noqa: PLC0415 - the driver is an extra
    from crawler.frontier.postgres.address import parsed  # noqa: PLC0415 - the same
    from crawler.frontier.postgres.crawls import create  # noqa: PLC0415 - the same

    state = named(database.address.replace("crawler@", "plain@"))
    address = parsed(state)
    first = said(state)
    assert "may not create schemas" in first
    assert f"state init {address.name} --state … --owner ROLE" in first
    create(parsed(state.replace("plain@", "crawler@")), None)
    assert "--owner ROLE" in said(state), "its tables belong to another role"
    before = tables(database, address.schema)
    assert "--owner ROLE" in said(state, fresh=True)
    assert tables(database, address.schema) == before
    create(parsed(state.replace("plain@", "crawler@")), "plain")
    anyio.run(open_frontier(Settings(state=State(state=state, fresh=True)), None).close)
    after = tables(database, address.schema)
    assert ({name for name, _ in after}, after & before) == ({name for name, _ in before}, set())
    _sql(
        database,
        f'ALTER SCHEMA "{address.schema}" OWNER TO crawler',
        f'GRANT USAGE ON SCHEMA "{address.schema}" TO plain',
    )
    assert "permission denied" in said(state, fresh=True)
    assert tables(database, address.schema) == after, "dropped and not made again: nothing happened"


def test_the_first_wait_is_said_at_once(tmp_path: Path) -> None:
    """What is waited for, and why; a signal ends the wait."""
    words = [
        "crawl",
        "http://127.0.0.1:49151/",
        "--state",
        "postgresql://crawler@127.0.0.1:1/crawls#x",
        "-o",
        str(tmp_path),
    ]
    crawl = subprocess.Popen([sys.executable, "-m", "crawler", *words], stderr=subprocess.PIPE, text=True)
    try:
        assert crawl.stderr
        line = crawl.stderr.readline()
        assert "database does not answer; trying again" in line
        assert "Connection refused" in line
    finally:
        crawl.kill()
        crawl.communicate()
