"""How tests wait: for a condition, as long as it takes and not longer than a bound. The only place that sleeps.

A condition in this process is an event, without polling; these are for what other processes and threads do.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

OFTEN = 0.01  # seconds between two looks
RARELY = 0.05  # where a look asks another process, and nothing depends on the moment


@dataclass
class Clock:
    """A clock that only a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Process(Protocol):
    """One of `subprocess`, or a `tests.program.Program`."""

    pid: int

    def poll(self) -> int | None: ...

    def send_signal(self, number: int, /) -> None: ...


def until(condition: Callable[[], object], seconds: float = 600.0, often: float = OFTEN) -> None:
    """Waits for a condition. The bound only ends a test that would hang, so a busy machine must not reach it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(often)


async def eventually(
    condition: Callable[[], object], seconds: float = 600.0, often: float = OFTEN / 2
) -> None:
    """As `until`, while the event loop goes on."""
    with anyio.fail_after(seconds):
        while not condition():
            await tick(often)


async def tick(seconds: float = OFTEN / 2) -> None:
    """Lets the event loop take what is ready."""
    await anyio.sleep(seconds)


def outlive(seconds: float) -> None:
    """Waits until what lives, or may take, that long is over: here the time is the subject."""
    time.sleep(seconds)


def answer_late(seconds: float) -> None:
    """In a thread of a server: answers come in another order than requests. At most 20 ms."""
    assert seconds <= 0.02
    time.sleep(seconds)


def send_signal(process: Process, number: int) -> None:
    """Sends a signal, and waits until it arrived: two that are pending are one."""
    process.send_signal(number)
    until(lambda: process.poll() is not None or number not in _pending(process.pid))


def _pending(pid: int) -> set[signal.Signals]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return set()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return {number for number in signal.Signals if any(mask >> (number - 1) & 1 for mask in masks)}
