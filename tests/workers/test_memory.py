"""Two processes over pages of nine megabytes stay within the memory that the shipped configurations allow."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from tests.waiting import RARELY, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc for the memory of processes"),
]

CONFIG = Path(__file__).parents[2] / "config"
ALLOWED = 512 << 20  # bytes
PAGES = 20  # more than are in flight
PARAGRAPH = "<p>Some <b>words</b> of a long page, and <a href=/x>a link</a> more of them.</p>\n"


def memory(process: int) -> int:
    """Bytes of a process and its children, with its share of what it has in common with others."""
    try:
        below = [int(child) for task in Path(f"/proc/{process}/task").iterdir() for child in children(task)]
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return (int(found[1]) * 1024 if found else 0) + sum(map(memory, below))


def children(task: Path) -> list[str]:
    return (task / "children").read_text().split()


def test_shipped_configurations_allow_that_much() -> None:
    assert "mem_limit: 512m" in (CONFIG / "compose.yaml").read_text()
    assert "limits: {memory: 512Mi}" in (CONFIG / "kubernetes-cronjob.yaml").read_text()
    assert "MemoryMax=512M" in (CONFIG / "sitemap-crawler.service").read_text()


def test_large_pages_in_two_processes_fit_and_can_be_stopped(tmp_path: Path) -> None:
    site, peak = Site(), 0
    text = PARAGRAPH * (9_000_000 // len(PARAGRAPH))
    site.page("/", links=[f"/{number}" for number in range(PAGES)])
    for number in range(PAGES):
        site.page(f"/{number}", text=text)
    with site.serve() as origin:
        command = [
            sys.executable, "-m", "crawler", "crawl", origin + "/", "--processes", "2", "--rate", "0", "--quiet",
            "--state", str(tmp_path / "s.db"), "--output", str(tmp_path / "out"),
        ]  # fmt: skip

        def has_ended(process: subprocess.Popen[str], pages: int) -> bool:
            nonlocal peak
            peak = max(peak, memory(process.pid))
            return process.poll() is not None or len(site.log) >= pages

        for pages, status in ((PAGES // 2, 143), (sys.maxsize, 0)):
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
                until(partial(has_ended, running, pages), often=RARELY)
                if pages < PAGES:
                    running.terminate()
                until(partial(has_ended, running, sys.maxsize), often=RARELY)
                _, said = running.communicate(timeout=600)
            assert running.returncode == status, said
            assert "died" not in said
    assert peak < ALLOWED * 7 // 8, "the rest is for the system"
