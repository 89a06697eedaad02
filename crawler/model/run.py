"""A run of a crawl, its members, how far it has come, and the end of a session of one of them."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct

from crawler.model.survey import Balance


class Run(Struct, frozen=True):
    """One crawl of the site from start to end, possibly over several starts of the program."""

    number: int
    started: float  # seconds since the epoch
    resumed: bool = False
    complete: bool = False  # completely crawled, but not published
    ended: bool = False  # its last session, in an orderly way
    # Seconds since the epoch: when a session of any run last ended with success.
    succeeded: float | None = None
    # The exit code, if the run that was asked for by its key is over: there is nothing to do.
    over: int | None = None
    # Of a partial run: the run that published the site last; pages that are not visited stay as they are.
    follows: int | None = None


class Terms(Struct, frozen=True):
    """What the members of a run must agree on, besides the settings that affect what is found and listed."""

    key: str = ""  # of the run; members with the same one work on the same run; empty: on the unfinished one
    settings: Mapping[str, str] = {}  # digests by the name of the setting
    max_pages: int | None = None
    max_time: float | None = None  # seconds
    max_age: float = 2_592_000.0  # seconds that a page goes unvisited in partial runs, at most
    asked_as: str = ""  # a digest of who asks: another robots.txt may be for somebody else
    limits: Mapping[str, float] = {}  # by the name of the setting, as in `rules.record.AVERTED`

    @property
    def is_limited(self) -> bool:
        """Whether a run may end before every page is visited."""
        return self.max_pages is not None or self.max_time is not None


class StopReason(StrEnum):
    """Why a crawl stops before everything is settled."""

    MAX_PAGES = "max-pages"
    MAX_TIME = "max-time"
    FAILING = "failing"  # every request to a host of the site fails
    ASKED = "asked"  # by a signal, or by the caller
    OVER = "over"  # another member ended the run

    @property
    def is_limit(self) -> bool:
        """Whether the user set this limit."""
        return self in {StopReason.MAX_PAGES, StopReason.MAX_TIME}


class Interruption(NamedTuple):
    """A crawl stops; in a run of several members, that of all of them."""

    reason: StopReason
    details: str = ""

    @property
    def why(self) -> str:
        """The reason in the words of a log."""
        return self.details or self.reason.value

    @classmethod
    def read(cls, text: str) -> Self:
        """The interruption that `written` wrote."""
        reason, details = json.loads(text)
        return cls(StopReason(reason), details)

    def written(self) -> str:
        """As JSON."""
        return json.dumps(self)


class SessionEnd(Struct, frozen=True):
    """The work and the end of a session: one start of the program that worked on a run."""

    exit: int
    seconds: float = 0.0  # at work
    requests: int = 0  # pages requested
    bytes: int = 0  # of the pages that were read, decoded
    refused: str | None = None  # why the guard kept the published sitemap
    # When a session of any run last ended with success: this one, or an earlier one.
    succeeded: float | None = None
    goes_on: bool = False  # only this session ends: other members continue the run


class Member(Struct, frozen=True):
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


class Wait(Struct, frozen=True):
    """A host whose open pages are not due yet."""

    origin: str
    until: float  # seconds since the epoch: when the first of them is due
    pages: int


class Outlook(Struct, frozen=True):
    """What is known of the rest of a run."""

    site: str = ""  # the first start URL
    running: bool = False  # a process is at work, as far as its heartbeat tells
    delay: float = 0.0  # seconds between two requests to the host that takes longest; 0: unpaced
    left: float = 0.0  # seconds until its known pages are done, at least


class Progress(Struct, frozen=True):
    """The newest run of a state."""

    run: Run
    balance: Balance | None  # None: not counted
    silent: float | None  # seconds since any process worked on it; None: none ever did
    members: Sequence[Member] | None = None  # in the order in which they came; None: the state is a file
    waits: Sequence[Wait] = ()  # what is waited for, the first to be due first
    outlook: Outlook = Outlook()

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
