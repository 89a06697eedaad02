"""A page that kills whoever reads it is given up; one that was only in hand when somebody killed the crawl is not."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from crawler.cli.demo.site import Site
from crawler.engine.reading_log import SLOT, ReadingLog, counted
from crawler.parse.url import Url
from tests.frontier.test_nothing_lost import ROOT, process, words

pytestmark = pytest.mark.slow

# The process is gone as soon as the markup of that page is looked at.
POISONED = """
import os, signal, sys
from crawler.rules.judge import Judge
from crawler.__main__ import main
plain = Judge.__call__
def judge(self, lease, *given):
    if lease.visit.url.endswith("/poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, lease, *given)
Judge.__call__ = judge
main(sys.argv[1:])
"""


def small_site() -> Site:
    site = Site()
    site.page("/", links=["/a", "/poison", "/b"])
    for path in ("/a", "/poison", "/b"):
        site.page(path, links=["/"])
    return site


def outcomes(folder: Path, origin: str) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "s.db")) as db:
        rows = db.execute("SELECT url, outcome FROM url").fetchall()
    return {url.removeprefix(origin): outcome for url, outcome in rows}


def test_a_page_that_three_processes_died_on_is_given_up(tmp_path: Path) -> None:
    with small_site().serve() as origin:
        codes = [process(POISONED, *words(origin, tmp_path)).returncode for _ in range(4)]
    assert codes == [-signal.SIGKILL] * 3 + [0]
    said = outcomes(tmp_path, origin)
    assert said.pop("/poison") == "failed:crashed"
    assert said == {"/": "listed", "/a": "listed", "/b": "listed"}
    assert not (tmp_path / "s.db.reading").exists(), "a run that ends by itself leaves none behind"


class Held(BaseHTTPRequestHandler):
    """A site that keeps whoever asks for /held waiting, until it is let go."""

    asked, let_go = Event(), Event()

    def do_GET(self) -> None:
        if self.path == "/held":
            self.asked.set()
            self.let_go.wait(60)
        body = (
            b""
            if self.path == "/robots.txt"
            else b"<p>text of %s<a href=/held><a href=/a>" % self.path.encode()
        )
        with suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_page_that_was_only_in_hand_is_listed_however_often_the_crawl_is_killed(tmp_path: Path) -> None:
    """Whoever kills the crawl does so while the server still holds the answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Held)
    Thread(target=server.serve_forever, daemon=True).start()
    command = words(f"http://127.0.0.1:{server.server_port}", tmp_path)
    for _ in range(4):
        Held.asked.clear()
        running = subprocess.Popen(
            [sys.executable, "-m", "crawler", *command], cwd=ROOT, stderr=subprocess.DEVNULL
        )
        assert Held.asked.wait(60)
        running.kill()
        running.wait()
    Held.let_go.set()
    last = process("import sys; from crawler.__main__ import main; main(sys.argv[1:])", *command)
    server.shutdown()
    server.server_close()
    assert last.returncode == 0, last.stderr
    assert set(outcomes(tmp_path, "").values()) == {"listed"}


def test_what_was_being_read_is_known_to_the_next_process_once(tmp_path: Path) -> None:
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


def test_the_log_may_be_damaged_or_impossible(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(os.urandom(3 * SLOT))
    ReadingLog(path).died()
    nowhere = ReadingLog(tmp_path / "no" / "folder")
    with nowhere.reading(Url("http://x.example/")):
        assert nowhere.died() == []


def test_deaths_add_up() -> None:
    assert counted({"a": 2}, [Url("a"), Url("b")]) == {"a": 3, "b": 1}
