"""What config/compose-many.yaml starts, as processes on this machine: three members, of which the leader is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from crawler.cli.demo.site import Site
from tests.cli.test_shared_state import execute
from tests.postgres import new_state
from tests.waiting import until

ROOT = Path(__file__).parent.parent
SERVICE = yaml.safe_load((ROOT / "config/compose-many.yaml").read_text())["services"]["sitemap-crawler"]
SECRET = "hunter2-of-the-database"
PAGES = 150

LOOK = """
SELECT count(*), sum(settled), min(name) FILTER (WHERE id IN (SELECT leader FROM run)) FROM member WHERE NOT gone
"""

pytestmark = pytest.mark.slow


def program(words: list[str], environ: dict[str, str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "crawler", *words],
        env=environ,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Deployment:
    """The service of the compose file, with a site, a database and folders of this machine."""

    def __init__(self, origin: str, folder: Path) -> None:
        self.folder, self.output = folder, folder / "output"
        self.state = new_state() + "x"
        self.said: list[str] = []
        own = {
            "SITEMAP_CRAWLER_STATE": self.state.replace("#", "?sslmode=prefer&passfile=/no/passfile#"),
            "SITEMAP_CRAWLER_OUTPUT": str(self.output),
            "SITEMAP_CRAWLER_RUN": "2026-11-21",
            "SITEMAP_CRAWLER_RATE": "20",
            "PGPASSWORD": SECRET,
            "PYTHONPATH": str(ROOT),
        }
        assert set(SERVICE["environment"]) < set(own)
        self.environ = os.environ | own
        self.command = [word.replace("https://www.example.com/", origin + "/") for word in SERVICE["command"]]

    def start(self) -> "subprocess.Popen[str]":
        return program(self.command, self.environ, self.folder)

    def ask(self, *words: str) -> tuple[int, str]:
        """Another command in the same container."""
        process = program([*words], self.environ, self.folder)
        out, err = process.communicate(timeout=600)
        self.said += [out, err]
        return process.returncode, out

    def leader(self) -> int:
        """The process id of the leader, once all are members and pages were settled."""
        import psycopg  # noqa: PLC0415 - the driver is an extra

        found: list[str] = []

        def look() -> bool:
            with suppress(psycopg.Error):  # no tables yet
                [(members, settled, leader)] = execute(self.state, LOOK)
                if members == 3 and settled > 10 and leader:
                    found.append(leader)
            return bool(found)

        until(look, often=0.2)  # each look is a connection
        return int(found[0].rpartition(":")[2])

    def end(self, process: "subprocess.Popen[str]") -> int:
        out, err = process.communicate(timeout=600)
        self.said += [out, err]
        return process.returncode


@pytest.fixture
def origin() -> Iterator[str]:
    site = Site()
    site.page("/", links=[f"/{number}" for number in range(0, PAGES, 10)])
    for number in range(PAGES):
        site.page(f"/{number}", links=[f"/{number + 1}", f"/{number // 2}"] if number + 1 < PAGES else [])
    with site.serve() as origin:
        yield origin


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if "sitemap" in path.name}


def test_three_members_publish_once_though_the_leader_is_killed(origin: str, tmp_path: Path) -> None:
    words = ["crawl", origin + "/", "--rate", "0", "--state", "alone.db", "-o", "alone"]
    alone = program(words, os.environ | {"PYTHONPATH": str(ROOT)}, tmp_path)
    assert (alone.communicate(timeout=600)[0], alone.returncode) == ("", 0)
    here = Deployment(origin, tmp_path)
    members = [here.start() for _ in range(SERVICE["deploy"]["replicas"])]
    leads = here.leader()
    [leader] = [process for process in members if process.pid == leads]
    leader.send_signal(signal.SIGKILL)
    assert here.end(leader) == -signal.SIGKILL
    members[members.index(leader)] = here.start()  # as `restart` does
    code, status = here.ask("status", "--alive", "120", "--format", "json")
    assert (code, len(json.loads(status)["members"]) >= 3) == (0, True)
    assert [here.end(process) for process in members] == [0, 0, 0], here.said
    assert files(here.output) == files(tmp_path / "alone")
    assert here.end(here.start()) == 0, "the run is over"
    assert execute(here.state, "SELECT run, urls FROM publication") == [(1, PAGES + 1)]
    check_that_secrets_are_not_shown(here)


def check_that_secrets_are_not_shown(here: Deployment) -> None:
    """Neither the password nor the parameters are printed or written; of all other commands, see `shared/test_secrets`."""
    assert here.ask("config")[0] == 0
    written = [path.read_bytes().decode("latin-1") for path in here.output.iterdir() if path.is_file()]
    for text in (*here.said, *written):
        for secret in (SECRET, "passfile=", "crawler@"):
            assert secret not in text
