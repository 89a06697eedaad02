"""A private PostgreSQL server for the tests: started once in a process that needs it, on loopback, gone with it.

At home, tests that need it are skipped where PostgreSQL is not installed; under `CI=true` they fail.
"""

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from functools import cache
from pathlib import Path

import pytest

TUNING = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=60"


@cache
def _programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`: Debian keeps them off the path, one a version."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return Path(found).resolve().parent if found else folders[-1] if folders else None


def _user() -> int | None:
    """The server refuses to run as root; then it runs as somebody else."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        return pwd.getpwnam("nobody").pw_uid


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def server(tuning: str = TUNING) -> str | None:
    """The address of a server, without a name of a crawl; None where none is installed. `tuning`: options of the server."""
    programs = _programs()
    if programs is None:
        return None
    folder, user, port = Path(tempfile.mkdtemp(prefix="crawler-pg-")), _user(), _free_port()
    if user is not None:
        os.chown(folder, user, -1)
    data = folder / "data"

    def call(program: str, *args: str) -> None:
        with (folder / "out").open("ab") as out:
            subprocess.run(
                [programs / program, *args],
                user=user,
                check=True,
                cwd=folder,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def stop() -> None:
        subprocess.run(
            [programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"],
            user=user,
            check=False,
            cwd=folder,
            capture_output=True,
        )
        shutil.rmtree(folder, ignore_errors=True)

    call("initdb", "-D", str(data), "-U", "crawler", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
    atexit.register(stop)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} {tuning}"
    call("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start")
    return f"postgresql://crawler@127.0.0.1:{port}/postgres"


def new_state() -> str:
    """The address of a crawl that nobody began. Skips the test where there is no server."""
    address = server()
    if address is None:
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg")
    return f"{address}#{uuid.uuid4().hex}"
