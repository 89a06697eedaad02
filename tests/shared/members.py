"""Members of a shared crawl as processes, which tests kill and freeze."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import program

LIFE = 2.0  # seconds without a heartbeat after which a member is taken for dead; thirty outside of tests

PATCH = """
from crawler.app import job, state
from crawler.fetch.politeness import Politeness
from crawler.frontier.postgres import heartbeat
from crawler.frontier.postgres.database import PostgresDatabase
from crawler.rules import traps

traps.MOST_DRY = 20  # a trap is closed, but soon: each of its pages costs milliseconds
PostgresDatabase.life = {life}
state.AWAY = job.AWAY = 4 * {life}
heartbeat.HEARTBEAT = {life} / 8
turn_of = Politeness.__call__
async def noted(self, origin, at):
    await turn_of(self, origin, at)
    with open({turns!r}, "a") as file:
        print(self._last[origin][1], file=file)
Politeness.__call__ = noted
"""


@dataclass
class Member(program.Program):
    """A process, and what it wrote."""

    @property
    def said(self) -> str:
        return self.stderr

    @property
    def turns(self) -> list[float]:
        """When its requests were let go, as `Politeness` took it down: a server on a busy machine notes them late."""
        file = Path(f"{self.files[0]}.turns")
        return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


class Crew:
    """Starts members. `life`: seconds without a heartbeat after which one is taken for dead."""

    def __init__(self, folder: Path, life: float = LIFE) -> None:
        self._folder, self._life, self._started = folder, life, list[Member]()

    def start(
        self, words: Sequence[str], moment: str = "", turn: int = 1, sign: int = signal.SIGKILL
    ) -> Member:
        """A member with this command line. It is killed, or gets `sign`, at the `turn`-th time of the fail point `moment`."""
        out = self._folder / f"member-{len(self._started) + 1}"
        patch = PATCH.format(life=self._life, turns=f"{out}.turns")
        begun = program.start(words, out=out, patch=patch, dies=moment, turn=turn, sign=sign)
        self._started.append(Member(begun.pid, begun.files))
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
