"""The progress display: redrawn on a terminal a few times per second, log lines elsewhere.

It only reads `Stats`. If drawing fails, the display is switched off and the crawl continues.
"""

from typing import Any, Final

from anyio import sleep
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crawler.model.log import log
from crawler.report.formatting import duration, waiting_words
from crawler.report.log import log_progress, remaining_words, speed_words
from crawler.report.printable import printable
from crawler.report.stats import Stats

LINE_SECONDS: Final = 10.0  # between two log lines
LABEL: Final = len("robots.txt")  # columns: the longest phase
WIDEST: Final = 100  # columns
ECHO: Final = "^C "  # of a terminal, behind the last row: on a further line it would be left over


class Screen(Console):
    """A console on stderr: no markup, and a closed pipe does not end the program."""

    def __init__(self, **more: Any) -> None:
        super().__init__(stderr=True, markup=False, emoji=False, highlight=False, **more)

    def on_broken_pipe(self) -> None:
        """Ignored. Rich would redirect stdout, which may be a sitemap, to /dev/null and exit with 1."""


async def show(stats: Stats, console: Console, *, interval: float = 0.25) -> None:
    """Draws `stats` every `interval` seconds until cancelled; logs them if the console cannot be redrawn."""
    if not console.is_terminal or console.is_dumb_terminal:
        await log_periodically(stats)
    try:
        await _draw(stats, console, interval)
    except Exception:  # a closed terminal or an unusual encoding must not stop a crawl
        log.debug("progress display failed and is switched off", exc_info=True)


async def log_periodically(
    stats: Stats, _console: Console | None = None, *, interval: float = LINE_SECONDS
) -> None:
    """Logs `stats` every `interval` seconds until cancelled. Same parameters as `show`."""
    while True:
        await sleep(interval)
        log_progress(stats)


async def _draw(stats: Stats, console: Console, interval: float) -> None:
    with Live(Display(stats), console=console, transient=True, auto_refresh=False) as live:
        while True:
            live.refresh()
            await sleep(interval)


class Display:
    """A rich renderable with the current values of `stats` in six rows, below an empty one."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A bar, and values in fixed positions. Fits 60 columns."""
        dot = Text(", " if options.ascii_only else " · ")
        grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
        grid.width = min(options.max_width - len(ECHO), WIDEST)
        grid.add_column(style="dim", min_width=LABEL, no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_row("", "")  # a log line that is wrapped does not run into the bar
        grid.add_row(_phase(self._stats), _bar(self._stats))
        grid.add_row("site", printable(self._stats.site, max(1, grid.width - LABEL - 2)))
        for label, facts in (("pages", _pages), ("queue", _queue), ("speed", _speed), ("time", _time)):
            grid.add_row(label, dot.join(facts(self._stats)))
        yield grid


def _phase(stats: Stats) -> Text:
    word, colour = ("stopping", "yellow") if stats.stopping else (stats.phase, "cyan")
    return Text(word, f"bold not dim {colour}")


def _bar(stats: Stats) -> Table:
    """The share of pages done; while the total is unknown the bar only pulses."""
    known = stats.converges()
    total = max(1, stats.done + stats.left)
    bar = ProgressBar(
        total, stats.done, pulse=not known, complete_style="cyan", finished_style="cyan", pulse_style="cyan"
    )
    row = Table.grid(expand=True)
    row.add_column(ratio=1)
    row.add_column(width=6, justify="right")
    row.add_row(bar, Text(f"{100 * stats.done // total}%" if known else ""))
    return row


def _pages(stats: Stats) -> list[Text]:
    done = Text.assemble((f"{stats.done:,}", "bold"), f" of {stats.known:,} known")
    failed = Text(f"{stats.failed:,} failed", "red") if stats.failed else Text("none failed", "green")
    return [done, failed]


def _queue(stats: Stats) -> list[Text]:
    return [Text(f"{stats.queued:,} waiting"), Text(f"{stats.in_flight:,} in flight")]


def _speed(stats: Stats) -> list[Text]:
    pace = Text(speed_words(stats), "yellow" if stats.backing_off else "")
    return [Text.assemble((f"{stats.rate():,.1f}", "bold"), " pages/s"), pace]


def _time(stats: Stats) -> list[Text]:
    parts = [Text(duration(stats.elapsed))]
    if stats.stopping:
        parts.append(Text(printable(stats.stopping, 40), "yellow"))
        parts.append(Text("finishing requests in flight"))
    elif stats.waiting:
        parts.append(Text(waiting_words(stats.waiting), "yellow"))
    else:
        parts.append(Text(remaining_words(stats) or "remaining time unknown"))
    return parts
