"""Pages made by scripts, rendered by the browser of the system: four applications, in one run or in several."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests import program
from tests.render.sites import APPS, paths, spa

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("browser")]


def crawl(origin: str, folder: Path, *words: str) -> program.Program:
    flags = ("--render", "auto", "--rate", "0", "--no-gzip")
    places = ("--state", folder / "state.db", "-o", folder / "out")
    return program.run(["crawl", f"{origin}/", *flags, *places, *words])


@contextmanager
def busy() -> Iterator[None]:
    """The processors are busy with something else."""
    burning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def listed(folder: Path) -> list[str]:
    text = (folder / "out/sitemap.xml").read_text()
    return [part.partition("</loc>")[0] for part in text.split("<loc>")[1:]]


FIELDS = "url,outcome,title,rendered,links_before,links_after,script_requests,script_bytes"
SOME = ("--include", "/", "--include", "/tea", "--include", "/tea/*5")
OF_SOME = {"/", "/tea", "/tea/5", "/tea/15"}


@pytest.mark.parametrize("app", [app for app in APPS if app != "svelte"])  # that one the next test crawls
def test_every_page_of_an_application_is_listed(app: str, tmp_path: Path) -> None:
    """Of some of them: each one takes a second of processor time."""
    site = spa(app)
    with site.serve() as origin:
        done = crawl(origin, tmp_path, *SOME)
        assert done.returncode == 0, done.stderr
        assert listed(tmp_path) == sorted(origin + path for path in OF_SOME)
    assert OF_SOME.issubset(paths())
    script = "/main.js" if app == "angular" else "/assets/index.js"
    assert site.requests(script) == 1, "a script is requested once"
    assert site.requests("/api/tea/5.json") == 1


def listing(folder: Path) -> str:
    words = ("list", "pages", "--state", folder / "state.db", "--fields", FIELDS, "--format", "jsonl")
    return program.run(words).stdout


def test_two_runs_give_the_same_bytes_one_on_a_busy_machine(tmp_path: Path) -> None:
    files, lists = set(), set()
    with spa("svelte").serve() as origin:
        for around, concurrency in ((nullcontext, "1"), (busy, "16")):
            folder = tmp_path / concurrency
            folder.mkdir()
            with around():
                done = crawl(origin, folder, *SOME, "--concurrency", concurrency)
            assert done.returncode == 0, done.stderr
            assert len(listed(folder)) == len(OF_SOME)
            files.add((folder / "out/sitemap.xml").read_bytes())
            lists.add(listing(folder))
    assert (len(files), len(lists)) == (1, 1)
    assert listing(folder)
