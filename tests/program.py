"""The program in processes of its own, forked from one that has imported everything: that takes more than a small crawl.

A test process has one parent of all its programs. Each has the environment and the folder of the test that starts it.
What is measured, or is about the start itself, is no matter for this module: it starts a Python of its own.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from tests.waiting import RARELY, until

PARENT = """
import atexit, contextlib, gc, json, os, signal, sys, threading
import crawler.app.job, crawler.app.stored_frontier, crawler.cli.crawl, crawler.cli.export, crawler.cli.list, crawler.cli.main
import crawler.cli.status, crawler.cli.submit, crawler.sitemap.publish.object_store, crawler.sitemap.read
import crawler.frontier.postgres.frontier, crawler.frontier.sqlite.frontier
import anyio._backends._asyncio, anyio.streams.tls, difflib, tomllib  # what it imports as it goes
from crawler.__main__ import main
from crawler.model import failpoints
with contextlib.suppress(ImportError):
    import uvloop

def program(words, folder, environment, files, patch, moment, turn, sign):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o600), number)
    passed = 0
    def hook(name):
        nonlocal passed
        passed += name == moment
        if name == moment and passed == turn:
            signal.raise_signal(sign)  # to this thread, which goes no further
    if moment:
        failpoints.hook = hook
    exec(patch, {})
    code = 0
    try:
        main(words)
    except SystemExit as left:
        code = left.code
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to take an interpreter apart would copy all pages of memory that it shares with its parent

gc.freeze()

for line in sys.stdin:
    verb, *rest = json.loads(line)
    if verb == "start":
        child = os.fork()
        if not child:
            program(*rest)
        print(child, flush=True)
    else:
        found, status = os.waitpid(rest[0], os.WNOHANG)
        print(os.waitstatus_to_exitcode(status) if found else "running", flush=True)
"""
_NUMBERS = count()


@dataclass
class Program:
    """A process, and the files that it writes; like `subprocess.Popen`, and `subprocess.run`'s answer once it ended."""

    pid: int
    files: tuple[Path, Path]  # of stdout and stderr, which may be the same
    returncode: int | None = None

    @property
    def stdout(self) -> str:
        return self.files[0].read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return self.files[1].read_text(encoding="utf-8")

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None:
            answer = _ask("poll", self.pid)
            self.returncode = None if answer == "running" else int(answer)
        return self.returncode

    def wait(self, timeout: float = 600.0) -> int:
        """Its exit code, once it has left."""
        until(lambda: self.poll() is not None, timeout, RARELY)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = 600.0) -> tuple[str, str]:
        """All that it wrote, once it has left."""
        self.wait(timeout)
        return self.stdout, self.stderr

    def send_signal(self, number: int) -> None:
        """Unless it has left by itself meanwhile."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """As `send_signal`."""
        self.send_signal(signal.SIGKILL)


def start(
    words: Sequence[object],
    *,
    stdin: str | Path = os.devnull,
    out: Path | None = None,
    patch: str = "",
    dies: str = "",
    turn: int = 1,
    sign: int = signal.SIGKILL,
) -> Program:
    """The program with this command line, after some lines of Python (`patch`), in the current folder.

    It is killed, or gets `sign`, at the `turn`-th time of the fail point `dies`. `out`: a file for all that it says.
    """
    number = next(_NUMBERS)
    files = (out, out) if out else (_folder() / f"{number}.out", _folder() / f"{number}.err")
    given = [str(stdin), *map(str, files)]
    how = (os.getcwd(), dict(os.environ), given, patch, dies, turn, int(sign))  # noqa: PTH109 - as JSON takes it
    return Program(int(_ask("start", [*map(str, words)], *how)), files)


def run(words: Sequence[object], **how: object) -> Program:
    """As `start`, once it has left."""
    program = start(words, **how)  # type: ignore[arg-type]
    program.wait()
    return program


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="programs-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def _parent() -> "subprocess.Popen[str]":
    """What it writes to stderr is an error of a test itself, and shown."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(parent.communicate)
    return parent


def _ask(*words: object) -> str:
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    print(json.dumps(words), file=parent.stdin, flush=True)
    return parent.stdout.readline().strip()
