"""Crash safety: after kills, corruption, full disks and clock jumps nothing is lost and nothing is listed twice."""

import gzip
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.engine.pool import GROUP
from crawler.settings.sections import Pace
from tests import program
from tests.commands import Run
from tests.waiting import until

pytestmark = pytest.mark.slow

# Each moment, and what is on the disk then. Who dies loses the index of the log of the database (-shm) in any case.
LOGGING = """
import hashlib, pathlib
from crawler.model import failpoints
def hook(name):
    disk = hashlib.sha256()
    for path in sorted(pathlib.Path({folder!r}).rglob("*")):
        if path.is_file() and not path.name.endswith("-shm"):
            disk.update(str(path).encode() + path.read_bytes())
    with open({log!r}, "a") as file:
        print(disk.hexdigest(), name, file=file)
failpoints.hook = hook
"""
FILE_LIMIT = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
"""


def words(origin: str, folder: Path) -> list[str]:
    return [
        "crawl", origin + "/", "--rate", "0", "--max-urls", "10", "-q", "--retries", "1",
        "--state", str(folder / "s.db"), "-o", str(folder / "out"),
    ]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def sitemaps(folder: Path) -> dict[str, bytes]:
    return {name: body for name, body in contents(folder).items() if name != "manifest.json"}


def listed(folder: Path) -> list[str]:
    bodies = [
        gzip.decompress(body) for name, body in sorted(sitemaps(folder).items()) if name != "sitemap.xml.gz"
    ]
    return re.findall(r"<loc>([^<]+)", b"".join(bodies).decode())


def many_pages(count: int) -> Site:
    """A site whose pages link to some others; all are reachable from the first."""
    site = Site()
    for number in range(count):
        links = [f"/{(number * 7 + step) % count}" for step in (1, 2, 3)] + [f"/{number + 1}"] * (
            number + 1 < count
        )
        site.page(f"/{number}" if number else "/", links=links, lastmod="Mon, 01 Jan 2024 00:00:00 GMT")
    site.page("/0")
    return site


# Split into parts, which test processes run in parallel.
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_kill_at_every_commit_fsync_and_rename_loses_nothing(tmp_path: Path, part: int) -> None:
    """To die where the disk holds what it held at the moment before is to die at that one: such moments are left out."""
    site, log = many_pages(30), tmp_path / "log"
    with site.serve() as origin:
        logging = LOGGING.format(log=str(log), folder=str(tmp_path / "calm"))
        calm = program.run(words(origin, tmp_path / "calm"), patch=logging)
        assert (calm.returncode, calm.stderr) == (0, "")
        turns: dict[str, list[int]] = {}  # of each moment, at which the disk holds something new
        last, passed = "", Counter[str]()
        for line in log.read_text().splitlines():
            disk, _, moment = line.partition(" ")
            passed[moment] += 1
            if disk != last:
                turns.setdefault(moment, []).append(passed[moment])
            last = disk
        kinds = sorted(turns)
        assert {
            "after commit of settle",
            "after rename of sitemap.xml.gz",
            "before fsync of sitemap-00001.xml.gz",
        } <= set(kinds)
        for moment in kinds[part::PARTS]:
            # On a busy machine, groups are larger and there are fewer: then the first.
            for turn in (turns[moment][len(turns[moment]) // 2], turns[moment][0]):
                folder = tmp_path / f"kill-{kinds.index(moment)}-{turn}"
                killed = program.run(words(origin, folder), dies=moment, turn=turn)
                if killed.returncode:
                    break
            assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, ""), moment
            again = program.run(words(origin, folder))
            assert (again.returncode, again.stderr) == (0, ""), moment
            assert sitemaps(folder) == sitemaps(tmp_path / "calm"), moment
            assert not list((folder / "out").glob(".staging*")), moment


def test_random_kills_lose_nothing_and_repeat_few_requests(tmp_path: Path) -> None:
    pages = 300
    site = many_pages(pages)
    chance = random.Random(5)
    with site.serve() as origin:
        calm = [*words(origin, tmp_path / "calm"), "--max-urls", "120"]
        assert program.run(calm).returncode == 0
        asked = len(site.log)
        kills, code = 0, None
        while code is None:
            running = program.start([*words(origin, tmp_path / "killed"), "--max-urls", "120"])
            # Kill after a random number of requests, so that each run makes progress.
            enough = len(site.log) + chance.randint(15, 120)
            until(lambda: running.poll() is not None or len(site.log) >= enough)  # noqa: B023
            code = running.poll()
            if code is None:
                running.kill()
                kills += running.wait() == -signal.SIGKILL
    assert (code, kills >= 4) == (0, True)
    assert sitemaps(tmp_path / "killed") == sitemaps(tmp_path / "calm")
    urls = listed(tmp_path / "killed")
    assert len(urls) == len(set(urls)) == pages + 1
    twice = len(site.log) - 2 * asked
    # After each kill robots.txt may be requested once more, too.
    assert twice <= kills * (Pace().concurrency + GROUP + 1), f"{kills} kills, {twice} repeated requests"


@pytest.mark.skipif(sys.platform != "linux", reason="limits file sizes as Linux does")
@pytest.mark.parametrize("limit", [40_000, 120_000])
def test_full_disk_is_one_line_error_and_next_run_resumes(tmp_path: Path, limit: int) -> None:
    site = many_pages(200)
    with site.serve() as origin:
        full = program.run(words(origin, tmp_path / "full"), patch=FILE_LIMIT.format(limit=limit))
        assert full.returncode == 3, full.stderr
        assert len(full.stderr.strip().splitlines()) == 1
        assert "nothing is lost" in full.stderr
        assert program.run(words(origin, tmp_path / "full")).returncode == 0
        assert program.run(words(origin, tmp_path / "calm")).returncode == 0
    assert sitemaps(tmp_path / "full") == sitemaps(tmp_path / "calm")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Some bits flipped, or the end cut off."""
    if chance.random() < 0.3:
        return data[: chance.randrange(len(data))]
    broken = bytearray(data)
    for _ in range(chance.choice([1, 3, 20])):
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    return bytes(broken)


def test_damaged_state_opens_intact_or_reports_remedy(tmp_path: Path, run: Run) -> None:
    site = many_pages(30)
    chance = random.Random(12)
    with site.serve() as origin:
        run.ok(*words(origin, tmp_path / "calm"))
        half = [*words(origin, tmp_path / "half"), "--max-pages", "12"]
        assert run(*half)[0] == 7
        state = (tmp_path / "half/s.db").read_bytes()
        refused = 0
        for number in range(20):
            folder = tmp_path / f"damage-{number}"
            folder.mkdir()
            (folder / "s.db").write_bytes(damaged(state, chance))
            code, _, err = run(*words(origin, folder))
            if code:
                refused += 1
                assert code == 3, err
                assert len(err.strip().splitlines()) == 1
                again, _, said = run(*words(origin, folder), "--fresh")
                # Without its application id it may be a foreign file, which is kept.
                if "is not a state file of" in err:
                    assert again == 3, said
                    continue
                assert "--fresh" in err
                assert again == 0, said
            assert sitemaps(folder) == sitemaps(tmp_path / "calm"), number
    assert refused > 5


@pytest.mark.parametrize("jump", [-7 * 86_400.0, -3_600.0, 7 * 86_400.0])
def test_clock_jump_does_not_stall_crawl(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    site = many_pages(40)
    real, shift = time.time, [0.0]

    def jumping(_: object) -> object:
        shift[0] = jump
        return site.answer(200, b"<p>the clock jumped while this was sent")

    site.respond("/20", jumping)
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    with site.serve() as origin:
        began = time.monotonic()
        run.ok(*words(origin, tmp_path), "--rate", "100")
        assert time.monotonic() - began < 900, "it did not wait for the clock to catch up"
    assert len(listed(tmp_path)) == 41


def test_unwritable_folder_is_reported_before_crawl(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("x")
    site = many_pages(3)
    with site.serve() as origin:
        begin = ("crawl", origin + "/", "-q")
        code, _, err = run(*begin, "--state", str(tmp_path / "file/s.db"), "-o", str(tmp_path / "o"))
        assert (code, site.log) == (3, [])
        assert "file" in err
        if os.geteuid() != 0:
            (tmp_path / "locked").mkdir(mode=0o500)
            code, _, err = run(*begin, "--state", ":memory:", "-o", str(tmp_path / "locked/out"))
            assert (code, site.log) == (3, [])
            assert "permission is denied" in err
