"""A role of the frontier: start and end of a run, and the members that work on it.

A member is one process. One member leads: it walks from the start URLs, applies the rules over all pages and
publishes; all of them visit. A verb that only the leader may call raises `LeadershipLost` if another member
leads by now.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from crawler.model.note import Note, RunWithNote
from crawler.model.rows import PublicationRow
from crawler.model.run import Interruption, Run, SessionEnd, Terms
from crawler.model.visit import Lease
from crawler.ports.reads import Reads

T = TypeVar("T")


class Runs(Reads, Protocol):
    """Start and end of a run, its members and its notes."""

    clock: Callable[[], float]
    """Seconds since the epoch, the same for all members."""

    is_remote: bool
    """Whether the state is kept by a server, whose answers take a while."""

    @property
    def name(self) -> str:
        """The name of this member: HOST:PID."""

    @property
    def is_shared(self) -> bool:
        """Whether other members are at work, and send requests to the same hosts."""

    async def begin(self, fingerprint: str, reading: str = "", terms: Terms = Terms()) -> Run:
        """Joins or resumes an unfinished run, or begins a new one.

        `fingerprint` is a digest of the settings that affect what is found and listed: an unfinished run with
        another one is abandoned. `reading` is a digest of those that affect what is extracted from a page:
        pages parsed with another one are not fetched conditionally. Raises `StateBusy` if members with others
        are at work, `ConfigError` if the `terms` differ from theirs.
        """

    async def take_leadership(self) -> bool:
        """Takes the leadership of this run, or keeps it.

        False if another member leads, or the run is over.
        """

    async def check_leadership(self) -> None:
        """Raises `LeadershipLost` if this member does not lead, or lost the leadership meanwhile."""

    async def interrupt(self, interruption: Interruption) -> None:
        """Stops all members: their next `lease` returns the interruption."""

    def is_lease_valid(self, lease: Lease) -> bool:
        """Whether a lease is still ours: not if others take this member for dead by now."""

    async def finish(self) -> None:
        """Marks the run as complete: every URL is settled. For the leader."""

    async def close_early(self) -> bool:
        """Settles what is still open, as a limit was reached: known pages stay as they are, new ones wait for
        the next run. False, and nothing is changed, if the site is not published yet. For the leader.
        """

    async def mark_published(self, published: PublicationRow) -> None:
        """Records that this run is published, and counts the changes since the last publication.

        For the leader.
        """

    async def mark_delivered(self, delivered: str) -> None:
        """Records what of the newest publication was delivered, in the words of `app.delivery`."""

    async def end_session(self, end: SessionEnd) -> None:
        """Records how this session ended, with the outcomes so far.

        If it led, the run ends so for all members. A run whose last session has no such record was
        interrupted.
        """

    async def conclude(self, *, refused: bool = False, abandoned: bool = False) -> None:
        """Closes a complete run that was published, or finally `refused`; or one that is `abandoned`, as it
        has no start page. The next `begin` starts a new one. For the leader.
        Later runs detect changes only against published runs.
        """

    async def remember(self, note: Note[T], value: T) -> None:
        """Stores a note for this run."""

    async def amend(self, note: Note[T], change: Callable[[T], T]) -> T:
        """Changes a note of this run, and returns it.

        No member overwrites what another one stores meanwhile.
        """

    async def recall(self, note: Note[T], of: RunWithNote = "this") -> T:
        """A note; `note.absent` if there is none."""
