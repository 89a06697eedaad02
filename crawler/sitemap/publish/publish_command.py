"""Runs the command of `--publish-command`: in a process group of its own, for a limited time, its output on
stderr.

It is split into words as a shell would, and run without one. What it is given, and when it is called, is
decided by `app.delivery`.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import anyio
from anyio.abc import Process

from crawler.errors import OutputError
from crawler.settings.values import duration_words

STDERR: Final = 2  # file descriptor
GRACE: Final = 5.0  # seconds between TERM and KILL: a signal to this program must take effect within ten

_running: set[int] = set()  # process groups


async def run(command: str, environ: Mapping[str, str], seconds: float) -> None:
    """Runs the command, and waits for its end. Raises `OutputError` if it cannot be run, fails, or takes too
    long.

    On a timeout or a cancellation its whole process group gets TERM, then KILL. `environ` is added to ours.
    """
    words = shlex.split(command)
    try:
        process = await anyio.open_process(
            words,
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            stderr=STDERR,
            env={**os.environ, **environ},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise OutputError(f"{words[0]} cannot be run: {_reason(error)}") from error
    with _noted(process.pid):
        await _wait(process, words[0], seconds)


def kill_running() -> None:
    """Kills what is still running, at once. For a program that is about to exit."""
    for group in _running:
        _signal(group, signal.SIGKILL)


async def _wait(process: Process, name: str, seconds: float) -> None:
    code = None
    try:
        with anyio.move_on_after(seconds):
            code = await process.wait()
    finally:
        if code is None:
            with anyio.CancelScope(shield=True):
                await _end(process)
    if code is None:
        raise OutputError(f"{name} was ended after {duration_words(seconds)} (--publish-timeout)")
    if code < 0:
        raise OutputError(f"{name} was ended by signal {_name(-code)}")
    if code:
        raise OutputError(f"{name} exited with {code}")


async def _end(process: Process) -> None:
    _signal(process.pid, signal.SIGTERM)
    with anyio.move_on_after(GRACE):
        await process.wait()
    _signal(process.pid, signal.SIGKILL)  # children that are left, too
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(group, number)


def _name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return str(number)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such program"
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def _noted(group: int) -> Iterator[None]:
    _running.add(group)
    try:
        yield
    finally:
        _running.discard(group)
