"""Private PostgreSQL servers for the tests, on loopback: one for each test process, and more for tests that restart theirs.

At home, tests that need one are skipped where PostgreSQL is not installed; under `CI=true` they fail.
"""

import atexit
import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.server import free_port
from tests.waiting import until

TUNING = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=90"
_POOLER = """
[databases]
postgres = host=127.0.0.1 port={server} user=crawler
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {sessions}
logfile = {folder}/pooler.log
"""


@cache
def _programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`: Debian keeps them off the path, one for each version."""
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


class Server:
    """A server of its own. Skips or fails the test if PostgreSQL or its driver is not installed."""

    def __init__(self, tuning: str = TUNING) -> None:
        self._tuning = tuning
        programs = _programs()
        if programs is None:
            _missing("PostgreSQL", "postgresql")
        if os.environ.get("CI") == "true":
            import_module("psycopg")  # one that does not work is no reason to skip
        pytest.importorskip("psycopg")
        assert programs
        self._programs, self._user, self.port = programs, _user(), free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="crawler-pg-"))
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
        atexit.register(self.remove)
        self._initialise()
        self.start()

    @property
    def address(self) -> str:
        """Of its database, without the name of a crawl."""
        return f"postgresql://crawler@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} {self._tuning}"
        self._call("pg_ctl", "-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def _initialise(self) -> None:
        """Its data: a copy of those that the first server of all test processes began with. `initdb` takes ten times that."""
        data = self.folder / "data"
        with _first() as kept:
            if kept.exists():
                subprocess.run(["cp", "-a", kept, data], check=True)
                return
            self._call("initdb", "-U", "crawler", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
            subprocess.run(["cp", "-a", data, kept], check=True)
            atexit.register(_remove_first)

    def require_password(self, role: str, password: str) -> None:
        """Create a role that must give its password, and reload."""
        import psycopg  # noqa: PLC0415 - the driver is an extra

        with psycopg.connect(self.address) as connection:
            connection.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{password}'".encode())
        rules = self.folder / "data/pg_hba.conf"
        rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        self._call("pg_ctl", "reload")

    def crash(self) -> None:
        """As if its machine lost power: sessions end at once, and the next start recovers."""
        self._call("pg_ctl", "-m", "immediate", "stop")

    def copy(self) -> Path:
        """A copy of its data, as of an asynchronous replica. It must be stopped."""
        copied = self.folder / "replica"
        subprocess.run(["cp", "-a", self.folder / "data", copied], check=True)
        return copied

    def fail_over(self, replica: Path) -> None:
        """Promote a copy of its data in its place. It must be stopped."""
        shutil.rmtree(self.folder / "data")
        replica.rename(self.folder / "data")
        (self.folder / "data" / "standby.signal").touch()
        self.start()
        self._call("pg_ctl", "-w", "promote")

    def remove(self) -> None:
        atexit.unregister(self.remove)
        self._call("pg_ctl", "-m", "immediate", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *args: str, check: bool = True) -> None:
        with (self.folder / "out").open("ab") as out:
            subprocess.run(
                [self._programs / program, "-D", str(self.folder / "data"), *args],
                user=self._user,
                check=check,
                cwd=self.folder,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @contextmanager
    def pooled(self, mode: str = "transaction", sessions: int = 4) -> Iterator[str]:
        """The address of the same database behind PgBouncer, which gives each transaction any of so many sessions.

        `mode`: with "session", each connection.
        """
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if program is None:
            _missing("PgBouncer", "pgbouncer")
        assert program
        port, config = free_port(), self.folder / "pooler.ini"
        config.write_text(
            _POOLER.format(server=self.port, port=port, folder=self.folder, mode=mode, sessions=sessions)
        )
        pooler = subprocess.Popen(
            [program, str(config)], user=self._user, cwd=self.folder, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(port)
            yield f"postgresql://crawler@127.0.0.1:{port}/postgres"
        finally:
            pooler.terminate()
            pooler.wait()


@contextmanager
def _first() -> Iterator[Path]:
    """Where the data of a new server are kept for the next one, while no other process looks."""
    place, run = tempfile.gettempdir(), os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    lock = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(place, f"crawler-pg-new-{run}")
    finally:
        os.close(lock)


def _remove_first() -> None:
    """Who needs one later begins again."""
    with _first() as kept:
        shutil.rmtree(kept, ignore_errors=True)


def _wait_for(port: int) -> None:
    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    until(answers)


def _missing(name: str, package: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{name} is not installed: apt-get install {package}")
    pytest.skip(f"{name} is not installed")


@cache
def server(tuning: str = TUNING) -> Server:
    """The server of this process. `tuning`: its options."""
    return Server(tuning)


def new_state() -> str:
    """The address of a crawl that does not exist yet."""
    return named(server().address)


def named(address: str) -> str:
    """The address of a crawl that does not exist yet, in a database."""
    return f"{address}#{uuid.uuid4().hex}"
