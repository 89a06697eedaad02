"""Members when something is not there for a while: the database, its disk, or the member that has locked the folder."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.postgres import Server, named, new_state
from tests.server import Origin
from tests.shared.members import LIFE, Crew, crew
from tests.shared.sites import asked, files, words
from tests.waiting import outlive, until

pytestmark = [pytest.mark.slow, pytest.mark.system]


def test_a_member_waits_for_a_database_that_is_started_after_it(small: Origin, tmp_path: Path) -> None:
    server = Server()
    try:
        server.crash()
        with crew(tmp_path / "members", life=120.0) as members:
            crawl = words(small, named(server.address), tmp_path / "out")
            crawl.remove("-q")
            member = members.start(crawl)
            until(lambda: member.files[0].exists() and "trying again" in member.said)
            reader = members.start(["status", small.url(), "--state", named(server.address)])
            assert reader.wait() == 3, reader.said
            assert "trying again" not in reader.said, "one that only reads says at once what is wrong"
            server.start()
            assert member.wait() == 0, member.said
            no_database = server.address.replace("/postgres", "/nowhere")
            other = members.start(words(small, named(no_database), tmp_path / "out"))
            assert (other.wait(), "nowhere" in other.said) == (3, True), other.said
    finally:
        server.remove()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of that size. Skips where it cannot be mounted, as in most containers."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_under_the_database_loses_nothing(site: Origin, alone: Path, tmp_path: Path) -> None:
    import psycopg  # noqa: PLC0415 - the driver is an extra

    server = Server()
    try:
        with (
            small_disk(server.folder / "small", "24m") as disk,
            crew(tmp_path / "members") as members,
            psycopg.connect(server.address, autocommit=True) as connection,
        ):
            os.chown(disk, server.folder.stat().st_uid, -1)
            connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
            connection.execute("CREATE DATABASE crawls TABLESPACE small")
            out, address = tmp_path / "out", server.address.replace("/postgres", "/crawls")
            crawl = words(site, named(address), out, "--run", "once", "--rate", "150")
            found = [members.start(crawl) for _ in range(2)]
            asked(site, 40, found)
            ballast = disk / "ballast"
            with suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4_096))
            assert [member.wait() for member in found] == [3, 3], [member.said for member in found]
            assert all("disk of the database is full" in member.said for member in found)
            assert not out.exists() or not files(out)
            ballast.unlink()
            again = members.start(crawl)
            assert again.wait() == 0, again.said
            assert files(out) == files(alone / "0")
            connection.execute("DROP DATABASE crawls WITH (FORCE)")
    finally:
        server.remove()


def test_failover_to_replica_that_lacks_commits_loses_no_page(
    site: Origin, alone: Path, tmp_path: Path
) -> None:
    server = Server()
    try:
        out = tmp_path / "out"
        crawl = words(
            site, named(server.address), out, "--run", "once", "--concurrency", "4", "--rate", "120"
        )
        crawl.remove("-q")
        with crew(tmp_path / "members", life=60.0) as members:
            found = [members.start(crawl) for _ in range(2)]
            asked(site, 30, found)
            server.crash()
            replica = server.copy()
            server.start()
            asked(site, 50, found)
            server.crash()
            server.fail_over(replica)
            assert [member.wait() for member in found] == [0, 0], [member.said for member in found]
            assert any("failed over" in member.said for member in found)
        assert files(out) == files(alone / "0")
    finally:
        server.remove()


@pytest.mark.parametrize("moment", ["before rename of manifest.json", "after rename of sitemap.xml.gz"])
def test_leader_frozen_between_renames_publishes_once_it_wakes(
    small: Origin, members: Crew, tmp_path: Path, moment: str
) -> None:
    calm = members.start(words(small, new_state(), tmp_path / "calm"))
    assert calm.wait() == 0, calm.said
    out = tmp_path / "out"
    crawl = words(small, new_state(), out, "--run", "once")
    leader = members.start(crawl, moment, sign=signal.SIGSTOP)
    until(lambda: _is_stopped(leader.pid) or leader.poll() is not None)
    between = files(out)
    next_leader = members.start(crawl)
    outlive(LIFE + 1)
    assert (next_leader.poll(), files(out)) == (None, between), "it waits while the folder is locked"
    os.kill(leader.pid, signal.SIGCONT)
    assert [leader.wait(), next_leader.wait()] == [0, 0], [leader.said, next_leader.said]
    assert files(out) == files(tmp_path / "calm")
    assert json.loads((out / "manifest.json").read_text())
    assert not list(out.glob(".staging*"))


def test_leader_that_stays_frozen_between_renames_is_named(
    small: Origin, members: Crew, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    crawl = words(small, new_state(), out, "--run", "once")
    leader = members.start(crawl, "before rename of manifest.json", sign=signal.SIGSTOP)
    until(lambda: _is_stopped(leader.pid))
    next_leader = members.start(crawl)
    assert next_leader.wait() == 9
    assert "Another run is publishing" in next_leader.said
    os.kill(leader.pid, signal.SIGKILL)
    again = members.start(crawl)
    assert again.wait() == 0, again.said
    assert len(files(out)) == 1


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_members_with_workers_publish_bytes_of_one_process(
    site: Origin, alone: Path, members: Crew, tmp_path: Path
) -> None:
    crawl = words(site, new_state(), tmp_path / "out", "--run", "once", "--processes", "2", "--rate", "150")
    leader = members.start(crawl)
    asked(site, 30, [leader])
    others = [members.start(crawl) for _ in range(2)]
    asked(site, 30, others)
    os.kill(others[0].pid, signal.SIGKILL)
    asked(site, 30, [leader])
    os.kill(leader.pid, signal.SIGSTOP)
    outlive(LIFE + 1)
    os.kill(leader.pid, signal.SIGCONT)
    assert [leader.wait(), others[1].wait()] == [0, 0], [leader.said, others[1].said]
    assert files(tmp_path / "out") == files(alone / "0")


def test_members_say_which_run_they_joined_and_who_published(
    site: Origin, members: Crew, tmp_path: Path
) -> None:
    crawl = words(site, new_state(), tmp_path / "out", "--run", "once", "--rate", "150")
    crawl.remove("-q")
    leader = members.start(crawl)
    asked(site, 30, [leader])
    follower = members.start(crawl)
    assert [leader.wait(), follower.wait()] == [0, 0], [leader.said, follower.said]
    name = f"{os.uname().nodename}:{leader.pid}"
    assert f"joined run 1 as one of 2 members; {name} leads" in follower.said
    assert f"published by {name}" in follower.said
    assert "joined run" not in leader.said
    assert "published by" not in leader.said
