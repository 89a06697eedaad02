"""The password of the database is given by environment or file, and appears nowhere: in no output, error, file or table."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Server, named, new_state
from tests.server import Origin, http, page, serving
from tests.shared.members import Crew, crew

pytestmark = pytest.mark.slow

PASSWORD = "hunter2-of-the-database"
QUERY = "of_the_query"


@pytest.fixture(scope="module")
def site() -> Iterator[Origin]:
    here = Origin("secret", "127.0.77.9")
    here.put("/", http(page("/a", "/gone", text="home")))
    here.put("/a", http(page("/", text="a")))
    here.put("/gone", http("", "500 Internal Server Error"))
    with serving(here):
        yield here


@pytest.fixture
def members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with crew(tmp_path / "members") as found:
        yield found


def tables(state: str) -> str:
    """The notes and runs of a crawl, where words of settings may be."""
    import psycopg  # noqa: PLC0415 - the driver is an extra

    from crawler.frontier.postgres.address import parsed  # noqa: PLC0415 - the same

    address = parsed(state)
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f'SET LOCAL search_path TO "{address.schema}"'.encode())
        return str(
            [
                connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
                for name in ("note", "run", "member")
            ]
        )


def test_what_is_secret_of_the_address_appears_nowhere(site: Origin, members: Crew, tmp_path: Path) -> None:
    plain = new_state()
    state = plain.replace("#", f"?fallback_application_name={QUERY}#")
    out, url = tmp_path / "out", site.url()
    common = [url, "--state", state]
    reports = [
        flag for kind in ("html", "json", "md", "csv") for flag in ("--report", str(out / f"report.{kind}"))
    ]
    unreachable = f"postgresql://crawler@127.0.0.1:1/postgres?application_name={QUERY}#x"
    wrong = [
        f"postgresql://crawler:{PASSWORD}@127.0.0.1/postgres",
        f"postgresql://crawler:{PASSWORD}#x@127.0.0.1/postgres",
        f"postgresql://crawler:{PASSWORD}/x@127.0.0.1/postgres",
        f"postgresql://127.0.0.1/postgres?password={PASSWORD}",
        f"postgresql://127.0.0.1/postgres?sslpassword={PASSWORD}#y",
    ]
    commands = [
        ["crawl", *common, "-o", str(out), "-v", "--retries", "0", "--max-shrink", "0", *reports],
        ["crawl", *common, "-o", str(out), "-v", "--log-format", "json", "--retries", "0"],
        ["crawl", *common, "-o", str(out), "--max-pages", "1"],
        ["status", *common], ["status", *common, "--format", "json"],
        ["explain", url, "--state", state], ["list", "pages", *common[1:]], ["list", "runs", *common[1:]],
        ["report", *common[1:]], ["report", *common[1:], "-o", str(out / "later.html")],
        ["export", *common[1:], "-o", str(tmp_path / "again")], ["diff", str(out), "--state", state],
        ["state", "list", *common[1:]],
        *(["status", "--state", given] for given in (unreachable, *wrong)),
        *(["crawl", url, "--state", given, "-o", str(out)] for given in (unreachable, *wrong)),
    ]  # fmt: skip
    for command in commands:
        member = members.start(command)
        arguments = Path(f"/proc/{member.pid}/cmdline")
        if arguments.exists():
            assert PASSWORD.encode() not in arguments.read_bytes()
        code = member.wait()
        secrets = {PASSWORD, QUERY, "crawler@"}
        for secret in secrets:
            assert secret not in member.said, (command, code, member.said)
    found = 0
    for path in tmp_path.rglob("*"):
        if path.is_file():
            found += 1
            data = path.read_bytes()
            assert PASSWORD.encode() not in data, path
            assert QUERY.encode() not in data, path
    assert found > 8
    assert PASSWORD not in tables(plain)
    assert QUERY not in tables(plain)
    assert os.environ["PGPASSWORD"] == PASSWORD


def test_a_wrong_password_is_exit_3_at_once(
    site: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that cannot be reached is waited for; one that refuses the role is not."""
    monkeypatch.setenv("PGPASSWORD", "hunter3")
    server = Server()
    try:
        server.require_password("guarded", PASSWORD)
        state = named(server.address.replace("crawler@", "guarded@"))
        out = ["-o", str(tmp_path / "out"), "-q"]
        with crew(
            tmp_path / "members", life=3_600.0
        ) as members:  # hours are waited for a database that is away
            crawl = members.start(["crawl", site.url(), "--state", state, *out])
            status = members.start(["status", site.url(), "--state", state])
            for member in (crawl, status):
                assert member.wait() == 3, member.said
                assert member.said.count("\n") == 1
                assert "password" in member.said
                assert not {word for word in ("hunter", "guarded@") if word in member.said}
    finally:
        server.remove()
