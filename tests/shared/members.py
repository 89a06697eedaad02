"""Members of a shared crawl as processes: forked from one that has imported everything, killed and frozen by tests.

Importing takes more than a small crawl, so a test process has one parent of all its members; each member has the environment
of the test that starts it.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.waiting import until

LIFE = 2.0  # seconds without a heartbeat after which a member is taken for dead; thirty outside of tests

FORKING = """
import json, os, signal, sys
import crawler.cli.crawl, crawler.cli.main, crawler.frontier.postgres.frontier, crawler.sitemap.read
from crawler.__main__ import main
from crawler.app import job, state
from crawler.fetch.politeness import Politeness
from crawler.frontier.postgres import heartbeat
from crawler.frontier.postgres.database import PostgresDatabase
from crawler.model import failpoints

def crawl(words, out, life, environment, moment, turn, sign):
    os.environ.clear()
    os.environ.update(environment)
    PostgresDatabase.life = life
    state.AWAY = job.AWAY = 4 * life
    heartbeat.HEARTBEAT = life / 8
    null, said = os.open(os.devnull, os.O_RDWR), os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(null, 0), os.dup2(said, 1), os.dup2(said, 2)
    seen = 0
    def hook(name):
        nonlocal seen
        if name == moment:
            seen += 1
            if seen == turn:
                signal.raise_signal(sign)  # to this thread, which goes no further
    failpoints.hook = hook
    turn_of = Politeness.__call__
    async def noted(self, origin, at):
        await turn_of(self, origin, at)
        with open(out + ".turns", "a") as file:
            print(self._last[origin][1], file=file)
    Politeness.__call__ = noted
    main(words)

for line in sys.stdin:
    verb, *rest = json.loads(line)
    if verb == "start":
        child = os.fork()
        if not child:
            crawl(*rest)
        print(child, flush=True)
    else:
        found, status = os.waitpid(rest[0], os.WNOHANG)
        print(os.waitstatus_to_exitcode(status) if found else "running", flush=True)
"""


@dataclass
class Member:
    """A process, and what it wrote."""

    pid: int
    out: Path
    _code: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._code is None:
            answer = _ask(["poll", self.pid])
            self._code = None if answer == "running" else int(answer)
        return self._code

    def wait(self, seconds: float = 600.0) -> int:
        """Its exit code, once it has left."""
        until(lambda: self.poll() is not None, seconds)
        assert self._code is not None
        return self._code

    def kill(self) -> None:
        """Unless it has left by itself meanwhile."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    @property
    def said(self) -> str:
        return self.out.read_text()

    @property
    def turns(self) -> list[float]:
        """When its requests were let go, as `Politeness` took it down: a server on a busy machine notes them late."""
        file = Path(f"{self.out}.turns")
        return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


@cache
def _parent() -> "subprocess.Popen[str]":
    """The parent of all members. What it writes to stderr is an error of a test itself, and shown."""
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(parent.communicate)
    return parent


def _ask(words: list[object]) -> str:
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    print(json.dumps(words), file=parent.stdin, flush=True)
    return parent.stdout.readline().strip()


class Crew:
    """Starts members. `life`: seconds without a heartbeat after which one is taken for dead."""

    def __init__(self, folder: Path, life: float = LIFE) -> None:
        self._folder, self._life, self._started = folder, life, list[Member]()

    def start(
        self, words: Sequence[str], moment: str = "", turn: int = 1, sign: int = signal.SIGKILL
    ) -> Member:
        """A member with this command line. It is killed, or gets `sign`, at the `turn`-th time of the fail point `moment`."""
        out = self._folder / f"member-{len(self._started) + 1}"
        how = [list(words), str(out), self._life, dict(os.environ), moment, turn, int(sign)]
        self._started.append(Member(int(_ask(["start", *how])), out))
        return self._started[-1]

    def leave(self) -> None:
        for member in self._started:
            if member.poll() is None:
                member.kill()
                member.wait()


@contextmanager
def crew(folder: Path, life: float = LIFE) -> Iterator[Crew]:
    """Members may be started within the block."""
    folder.mkdir(exist_ok=True)
    members = Crew(folder, life)
    try:
        yield members
    finally:
        members.leave()
