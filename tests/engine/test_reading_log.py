"""A page that kills the process that parses it is given up; one that was only in flight when the crawl was killed is not."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from crawler.cli.demo.site import Site
from crawler.engine.reading_log import SLOT, ReadingLog, counted
from crawler.parse.url import Url
from tests import program
from tests.frontier.test_nothing_lost import words
from tests.server import Origin, Talk, http, page, serving

pytestmark = pytest.mark.slow

# Kills the process as soon as it parses that page.
POISONED = """
import os, signal
from crawler.rules.judge import Judge
plain = Judge.__call__
def judge(self, lease, *given):
    if lease.visit.url.endswith("/poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, lease, *given)
Judge.__call__ = judge
"""


def small_site() -> Site:
    site = Site()
    site.page("/", links=["/a", "/poison", "/b"])
    for path in ("/a", "/poison", "/b"):
        site.page(path, links=["/"])
    return site


def outcomes(folder: Path, origin: str) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "s.db")) as db:
        rows = db.execute("SELECT url, outcome FROM pages").fetchall()
    return {url.removeprefix(origin): outcome for url, outcome in rows}


def test_page_that_kills_three_processes_is_given_up(tmp_path: Path) -> None:
    with small_site().serve() as origin:
        codes = [program.run(words(origin, tmp_path), patch=POISONED).returncode for _ in range(4)]
    assert codes == [-signal.SIGKILL] * 3 + [0]
    said = outcomes(tmp_path, origin)
    assert said.pop("/poison") == "failed:crashed"
    assert said == {"/": "listed", "/a": "listed", "/b": "listed"}
    assert not (tmp_path / "s.db.reading").exists(), "a run that ends normally removes the log"


def test_page_in_flight_during_kills_is_still_listed(tmp_path: Path) -> None:
    """The crawl is killed while the server holds back the response."""
    requested, released = Event(), Event()

    def held(talk: Talk) -> None:
        requested.set()
        released.wait(60)
        talk.say(http(page("/a", text="held")))

    origin = Origin("site", "127.0.0.1")
    origin.put("/", http(page("/held", "/a")))
    origin.put("/a", http(page("/held")))
    origin.put("/held", held)
    with serving(origin):
        command = words(origin.url()[:-1], tmp_path)
        for _ in range(4):
            requested.clear()
            running = program.start(command)
            assert requested.wait(60)
            running.kill()
            running.wait()
        released.set()
        last = program.run(command)
    assert last.returncode == 0, last.stderr
    assert set(outcomes(tmp_path, "").values()) == {"listed"}


def test_next_process_learns_once_which_pages_were_being_parsed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    first = ReadingLog(path)
    long = Url("http://x.example/" + "a" * 8_000)
    with first.reading(Url("http://x.example/done")):
        pass
    within = [
        first.reading(long),
        first.reading(Url("http://x.example/b")),
        first.reading(Url("http://x.example/c")),
    ]
    for one in within:
        one.__enter__()
    within[1].__exit__(None, None, None)
    assert path.stat().st_size <= 3 * SLOT
    second = ReadingLog(path)
    assert sorted(second.died()) == sorted([long, Url("http://x.example/c")])
    assert second.died() == []


def test_corrupt_or_unwritable_reading_log_is_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(os.urandom(3 * SLOT))
    ReadingLog(path).died()
    nowhere = ReadingLog(tmp_path / "no" / "folder")
    with nowhere.reading(Url("http://x.example/")):
        assert nowhere.died() == []


def test_deaths_are_summed_per_url() -> None:
    assert counted({"a": 2}, [Url("a"), Url("b")]) == {"a": 3, "b": 1}
