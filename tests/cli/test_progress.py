import io
import logging
import sys

import anyio
import pytest
from rich.console import Console

from crawler.cli import progress
from crawler.model.phases import Phase
from crawler.report.log import LineHandler, TextLines
from crawler.report.stats import Stats
from tests.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stats(clock: Clock) -> Stats:
    stats = Stats(clock, site="https://www.example.com")
    stats.phase = Phase.CRAWLING
    return stats


async def run_for(stats: Stats, clock: Clock, seconds: int = 12) -> None:
    """Half of 1,000 pages, at 40 a second."""
    stats.resume(1_000, 500 - 40 * seconds)
    for _ in range(seconds):
        clock.now += 1
        stats.done += 40
        stats.rate()


def drawn(stats: Stats, width: int = 80, **more: object) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True, force_terminal=True, **more)  # type: ignore[arg-type]
    console.print(progress.Display(stats))
    return [line.rstrip() for line in console.export_text().splitlines()]


async def test_the_display_shows_all_values(stats: Stats, clock: Clock) -> None:
    await run_for(stats, clock)
    stats.failed, stats.in_hand = 2, 16
    stats.pace(0.02)
    empty, bar, *rows = drawn(stats)
    assert empty == ""
    assert bar.startswith("crawling    ━━━")
    assert bar.endswith(" 50%")
    assert rows == [
        "site        https://www.example.com",
        "pages       500 of 1,000 known · 2 failed",
        "queue       484 waiting · 16 in flight",
        "speed       40.0 pages/s · at most 50 requests/s",
        "time        12 s · about 15 s left",
    ]


async def test_unknown_values_are_not_shown(stats: Stats) -> None:
    stats.found(5)
    _, bar, _, *rows = drawn(stats)
    assert "%" not in bar
    assert rows[0] == "pages       0 of 5 known · none failed"
    assert rows[2] == "speed       0.0 pages/s · unpaced"
    assert rows[3] == "time        0 s · remaining time unknown"


async def test_backing_off_and_stopping_are_shown(stats: Stats, clock: Clock) -> None:
    await run_for(stats, clock)
    stats.throttled()
    stats.stopping = "interrupted\x1b[2J[red]"
    _, bar, _, *rows = drawn(stats)
    assert bar.startswith("stopping ")
    assert rows[2].endswith("· backing off")
    assert rows[3] == r"time        12 s · interrupted\x1b[2J[red] · finishing requests in flight"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
async def test_no_line_is_wider_than_the_terminal(stats: Stats, clock: Clock, width: int) -> None:
    stats.phase = Phase.OPENING
    await run_for(stats, clock)
    stats.known = stats.done + 98_765_432
    stats.failed = 1_234_567
    stats.pace(0.2)
    lines = drawn(stats, width)
    assert max(map(len, lines)) <= min(width - len("^C"), progress.WIDEST), "^C behind it is no further line"
    assert len(lines) == 7 or width < 60


async def test_an_ascii_terminal_gets_ascii(stats: Stats) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(width=80, file=stream, force_terminal=True, color_system=None)
    console.print(progress.Display(stats))
    stream.flush()


async def show_once(stats: Stats, console: Console) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.show, stats, console)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_the_display_leaves_no_trace(stats: Stats) -> None:
    stream = io.StringIO()
    await show_once(stats, Console(width=80, file=stream, force_terminal=True))
    text = stream.getvalue()
    assert " of 0 known" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    assert text.endswith("\x1b[1A\x1b[2K" * 7)  # seven lines wiped


async def test_log_lines_appear_above_the_display(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    handler = LineHandler()
    handler.setFormatter(TextLines())
    console = progress.Screen(width=80, force_terminal=True, color_system=None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.show, stats, console)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        handler.emit(logging.makeLogRecord({"msg": "a [red]line\x1b[2J", "levelname": "INFO"}))
        tasks.cancel_scope.cancel()
    before, _, after = stream.getvalue().partition(r" info a [red]line\x1b[2J")
    assert "\x1b[1A\x1b[2K" in before  # the display was wiped first
    assert "queue" in after  # and drawn anew below


async def test_no_color_is_respected(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    await show_once(stats, Console(width=80, file=stream, force_terminal=True, color_system="truecolor"))
    assert "known" in stream.getvalue()
    assert "\x1b[3" not in stream.getvalue()


class Gone(io.StringIO):
    """A stream that answers every write with an error."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, _text: str) -> int:
        raise self._error


async def test_a_broken_terminal_does_not_stop_a_crawl(stats: Stats) -> None:
    with anyio.fail_after(120):
        await progress.show(stats, progress.Screen(file=Gone(OSError(5, "EIO")), force_terminal=True))


async def test_a_closed_pipe_does_not_stop_a_crawl(stats: Stats) -> None:
    console = progress.Screen(file=Gone(BrokenPipeError()), force_terminal=True)
    console.print("hello")
    await show_once(stats, console)


@pytest.mark.parametrize("terminal", [False, "dumb"])
async def test_without_a_terminal_progress_is_logged(
    stats: Stats, terminal: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if terminal:
        monkeypatch.setenv("TERM", "dumb")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 2:
            scope.cancel()
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(progress, "sleep", sleep)
    stream = io.StringIO()
    with caplog.at_level(logging.INFO, "crawler"), anyio.CancelScope() as scope:
        await progress.show(stats, Console(file=stream, force_terminal=bool(terminal)))
    assert pauses == [10.0, 10.0, 10.0]
    assert [record.message[:6] for record in caplog.records] == ["https:", "https:"]
    assert stream.getvalue() == ""
