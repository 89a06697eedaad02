"""The third role of the frontier: start and end of a run."""

from typing import Protocol, TypeVar

from crawler.model.note import Note
from crawler.model.rows import PublicationRow
from crawler.model.run import Run, SessionEnd

T = TypeVar("T")


class Runs(Protocol):
    """Start and end of a run, and its notes."""

    async def begin(self, fingerprint: str, reading: str = "") -> Run:
        """Resumes an unfinished run, or begins a new one.

        `fingerprint` is a digest of the settings that affect what is found and listed: an unfinished run with another
        one is abandoned. `reading` is a digest of those that affect what is extracted from a page: pages parsed with
        another one are not fetched conditionally.
        """
        ...

    async def run(self) -> Run | None:
        """The newest run in any state; None before the first."""
        ...

    async def lead(self) -> bool:
        """Takes the lead of this run, or keeps it, unless another member has it. Only the leader walks and publishes."""
        ...

    async def is_over(self) -> bool:
        """Whether a member has concluded this run."""
        ...

    async def finish(self) -> None:
        """Marks the run as complete: every URL is settled."""
        ...

    async def mark_published(self, published: PublicationRow) -> None:
        """Records that the listed pages of this run are published, and counts the changes since the last publication."""
        ...

    async def last_publication(self) -> PublicationRow | None:
        """The newest publication of any run; None before the first."""
        ...

    async def end_session(self, end: SessionEnd) -> None:
        """Records how this session ended, with the outcomes so far.

        A run whose last session has no such record was interrupted.
        """
        ...

    async def conclude(self, *, refused: bool = False) -> None:
        """Closes a complete run that was published, or finally `refused`: the next `begin` starts a new one.

        Later runs detect changes only against published runs.
        """
        ...

    async def remember(self, note: Note[T], value: T) -> None:
        """Stores a note for this run."""
        ...

    async def recall(self, note: Note[T], *, published: bool = False) -> T:
        """A note of this run, or of the last `published` one before it; `note.absent` if there is none."""
        ...
