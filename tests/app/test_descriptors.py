"""File descriptors: the limit is raised, or fewer requests are in flight; a request waits for one."""

import errno
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from crawler.app import descriptors
from crawler.errors import ConfigError
from crawler.fetch import pool
from crawler.settings.sections import Pace, Settings
from tests.sites import star

UNLIMITED = -1


class Limits:
    """In place of the module `resource`."""

    RLIMIT_NOFILE = 7
    RLIM_INFINITY = UNLIMITED

    def __init__(self, soft: int, hard: int, *, may_raise: bool = True) -> None:
        self.soft, self.hard, self.may_raise = soft, hard, may_raise

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.soft, self.hard

    def setrlimit(self, _: int, limits: tuple[int, int]) -> None:
        if not self.may_raise:
            raise ValueError("not allowed")
        self.soft, self.hard = limits


@pytest.mark.parametrize(
    ("soft", "hard", "may_raise", "concurrency", "used"),
    [
        (1024, 4096, True, 16, 16),
        (1024, 4096, True, 1000, 1000),
        (256, 256, True, 1000, 94),
        (256, UNLIMITED, True, 1000, 1000),
        (256, 4096, False, 1000, 94),
        (UNLIMITED, UNLIMITED, True, 1000, 1000),
        (20, 4096, True, 16, 16),
        (32, 32, True, 16, 1),
        (100, 100, True, 16, 16),
    ],
)
def test_concurrency_fits_the_limit(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, may_raise: bool, concurrency: int, used: int
) -> None:
    limits = Limits(soft, hard, may_raise=may_raise)
    monkeypatch.setattr(descriptors, "resource", limits)
    settings = replace(Settings(), pace=Pace(concurrency=concurrency))
    assert descriptors.fitted(settings).pace.concurrency == used
    assert limits.soft >= soft
    assert limits.hard == hard


def test_too_few_descriptors_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "resource", Limits(31, 31))
    with pytest.raises(ConfigError, match=r"limit of open files is 31: raise it to at least 32"):
        descriptors.fitted(Settings())


@pytest.mark.slow
@pytest.mark.parametrize("most", [8, 12, 16, 18, 20, 24, 32, 64])
def test_crawl_with_few_descriptors_is_done_or_refused(most: int, tmp_path: Path) -> None:
    site = star("/a")
    with site.serve() as origin:
        crawl = f"exec {sys.executable} -m crawler crawl {origin}/ --rate 0 -q --report r.html --processes 2"
        done = subprocess.run(
            ["sh", "-c", f"ulimit -n {most} && {crawl}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    refused = f"The limit of open files is {most}: raise it to at least 32 (ulimit -n).\n"
    assert (done.returncode, done.stderr) == ((2, f"sitemap-crawler: {refused}") if most < 32 else (0, ""))


@pytest.mark.anyio
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
async def test_a_connection_waits_for_a_descriptor(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    pauses: list[float] = []
    real = socket.socket

    def full(*kind: int) -> socket.socket:
        if len(pauses) < 3:
            raise OSError(number, "Too many open files")
        return real(*kind)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with monkeypatch.context() as patched:
        patched.setattr(anyio, "sleep", sleep)
        patched.setattr(socket, "socket", full)
        made = await pool._socket(socket.AF_INET)
    made.close()
    assert pauses == [pool.FULL_PAUSE] * 3
