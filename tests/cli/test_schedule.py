"""`--every`: slots by a clock that the test moves, and one process that is terminated while it waits."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.cli.schedule import JITTER, SOON, next_start, repeat
from crawler.errors import ConfigError, Exit, StartUnreachable, StateBusy
from tests.commands import Run
from tests.server import free_port
from tests.sites import star

ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
DAY = 86_400.0


class Clock:
    """Time passes in `sleep` and while runs take their time; the last run ends the program."""

    def __init__(self, *runs: tuple[float, Exit | Exception]) -> None:
        self.now, self.runs, self.began = 1_000.0, list(runs), list[float]()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def run(self) -> Exit:
        self.began.append(self.now - 1_000.0)
        took, end = self.runs.pop(0)
        self.now += took
        if isinstance(end, Exception):
            raise end
        return end

    async def repeat(self, chance: float = 0.0) -> Exit:
        return await repeat(
            self.run, DAY, lambda: not self.runs, clock=self, sleep=self.sleep, chance=lambda: chance
        )


@pytest.mark.anyio
async def test_run_starts_after_each_interval_and_long_one_skips_some() -> None:
    clock = Clock((60.0, Exit.OK), (3 * DAY, Exit.OK), (60.0, Exit.PARTIAL))
    assert await clock.repeat() is Exit.PARTIAL
    assert clock.began == [0.0, DAY, 5 * DAY]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StartUnreachable("down"), 4),
        (OSError(28, "No space left on device"), 3),
        (RuntimeError("a bug"), 1),
    ],
    ids=["unreachable", "disk", "bug"],
)
async def test_after_a_failed_run_the_next_starts_at_its_usual_time(
    error: Exception, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock((60.0, error), (60.0, Exit.OK))
    with caplog.at_level("INFO", "crawler"):
        assert await clock.repeat() is Exit.OK
    assert clock.began == [0.0, DAY]
    [failed] = [record for record in caplog.records if getattr(record, "event", "") == "run failed"]
    assert failed.__dict__["fields"]["exit"] == code
    assert bool(failed.exc_info) == (code == 1)


@pytest.mark.anyio
async def test_run_that_another_one_kept_out_is_tried_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    busy = StateBusy("busy")
    clock = Clock((1.0, busy), (1.0, busy), (60.0, Exit.OK), (60.0, Exit.OK))
    with caplog.at_level("INFO", "crawler"):
        await clock.repeat()
    assert caplog.records[1].__dict__["fields"]["next"] == "1970-01-01T00:21:41Z"
    assert clock.began == [0.0, 1.0 + SOON, 2 * (1.0 + SOON), DAY]


@pytest.mark.anyio
async def test_run_that_is_kept_out_waits_at_most_the_interval() -> None:
    clock = Clock((DAY - 10.0, StateBusy("busy")), (60.0, Exit.OK))
    await clock.repeat()
    assert clock.began == [0.0, DAY]


@pytest.mark.anyio
async def test_wrong_settings_end_the_program() -> None:
    clock = Clock((1.0, Exit.OK), (1.0, ConfigError("no folder")), (1.0, Exit.OK))
    with pytest.raises(ConfigError, match="no folder"):
        await clock.repeat()
    assert clock.began == [0.0, DAY]


@pytest.mark.anyio
async def test_jitter_does_not_add_up() -> None:
    clock = Clock(*[(60.0, Exit.OK)] * 4)
    await clock.repeat(chance=1.0)
    late = JITTER * DAY
    assert clock.began == pytest.approx([0.0, DAY + late, 2 * DAY + late, 3 * DAY + late])


@given(st.floats(60, 1e7), st.floats(-1e5, 1e9))
def test_the_next_start_is_ahead_and_at_most_one_interval_away(every: float, passed: float) -> None:
    slot = next_start(0.0, every, passed)
    assert slot >= passed
    assert slot - max(0.0, passed) <= every * (1 + 1e-6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--every", "10s"), "at least 60 seconds"),
        (("--every", "24h", "--fresh"), "each run would start over"),
        (("--every", "24h", "--input", "-"), "stdin can be read only once"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_settings_that_make_no_sense(run: Run, words: tuple[str, ...], says: str) -> None:
    assert says in run.fails(2, "crawl", "http://127.0.0.1:9/", *words)


@pytest.mark.slow
def test_waiting_process_leaves_at_once_and_serves_metrics(tmp_path: Path) -> None:
    site = star("/a")
    port = free_port()
    with site.serve() as origin:
        words = [sys.executable, "-m", "crawler", "crawl", origin + "/", "--every", "24h", "--rate", "0"]
        words += ["--metrics-port", str(port), "--log-format", "json"]
        child = subprocess.Popen(words, cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True)
        assert child.stderr
        events = []
        for line in child.stderr:
            events.append(json.loads(line)["event"])
            if events[-1] == "waiting for the next run":
                break
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=600) as answer:
            text = answer.read().decode()
        assert "sitemap_crawler_exit_code{" in text
        assert "sitemap_crawler_findings{" in text
        child.terminate()
        rest = child.stderr.read()
        assert child.wait(60) == 143
        child.stderr.close()
    assert [json.loads(line)["event"] for line in rest.splitlines()] == ["stopped between two runs"]
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()
