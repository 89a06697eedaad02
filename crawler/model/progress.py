"""How far a run has come, and who works on it: what `status` shows; the crawls of a database."""

from collections.abc import Sequence
from typing import NamedTuple

from crawler.model.run import Run
from crawler.model.survey import Balance


class Member(NamedTuple):
    """A process that works on a run, or did so."""

    name: str  # HOST:PID
    leads: bool
    alive: bool  # the other members count on it
    gone: bool  # it has left, or was taken for dead and its pages went back
    silent: float  # seconds since its last heartbeat
    settled: int  # visits

    @property
    def state(self) -> str:
        """leader, follower, silent (not yet gone) or gone."""
        if self.alive:
            return "leader" if self.leads else "follower"
        return "gone" if self.gone else "silent"

    @property
    def host(self) -> str:
        """The machine or container that it runs on."""
        return self.name.rpartition(":")[0]


class Progress(NamedTuple):
    """The newest run of a state."""

    run: Run
    balance: Balance | None  # None: not counted
    silent: float | None  # seconds since any process worked on it; None: none ever did
    members: Sequence[Member] | None = None  # in the order in which they came; None: the state is a file

    def silent_on(self, host: str) -> float | None:
        """Seconds since a member on that machine worked on the run; if none ever did, since any did."""
        here = [member.silent for member in self.members or () if member.host == host]
        return min(here) if here else self.silent


class StoredCrawl(NamedTuple):
    """A crawl in a database, with its newest run, as a list of them shows it."""

    name: str
    schema: str
    bytes: int  # of its tables and indexes
    version: int | None  # of its tables; None: not to be read by this user
    members: int = 0  # at work
    run: int | None = None  # None: no run has begun
    status: str | None = None  # as in the view `runs`
    started: float | None = None  # seconds since the epoch
