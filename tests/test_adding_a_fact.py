"""docs/dev/adding-a-fact.md: its steps, applied to a copy of the program, are all that a new fact needs."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site

ROOT = Path(__file__).parent.parent
STEPS = (ROOT / "docs/dev/adding-a-fact.md").read_text()


def change(text: str, diff: str) -> str:
    """The text after one block of the document, whose lines must be in it exactly once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    assert text.count(before) == 1, f"the document is out of date:\n{before}"
    return text.replace(before, after)


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_steps_of_adding_a_fact_are_complete(tmp_path: Path, processes: str) -> None:
    shutil.copytree(ROOT / "crawler", tmp_path / "crawler")
    path = tmp_path
    for name, diff in re.findall(r"(?ms)^In `(crawler/[\w/]+\.py)`|^```diff\n(.*?)```", STEPS):
        if name:
            path = tmp_path / name
        else:
            path.write_text(change(path.read_text(), diff))
    site = Site()
    site.page("/", links=["/a"])  # in English
    site.raw("/a", body=b"<html><title>none</title>")
    with site.serve() as origin:
        command = [sys.executable, "-m", "crawler", "crawl", f"{origin}/", "--rate", "0", "-q"]
        command += ["--processes", processes, "--state", "s.db"]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(tmp_path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "s.db")) as state:
        assert dict(state.execute("SELECT title, language FROM pages")) == {"/": "en", "none": None}
